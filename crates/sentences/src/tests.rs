use super::*;
use std::time::{Duration, Instant};

const GOLDEN: &str = include_str!("../model/golden.tsv");

fn model() -> &'static Model {
    Model::built_in().unwrap()
}

#[test]
fn vectors_are_those_of_the_model_it_was_made_from() {
    let mut count = 0;
    for (text, numbers) in GOLDEN.lines().filter_map(|line| line.split_once('\t')) {
        let wanted: Vec<f32> = numbers.split(' ').map(|x| x.parse().unwrap()).collect();
        let found = model().embed(text, 30).unwrap();
        assert_eq!(found.len(), wanted.len());
        let near = cosine_similarity(&found, &wanted);
        assert!(near > 0.998, "{text}: {near}");
        count += 1;
    }
    assert_eq!(count, 5);
}

#[test]
fn every_processor_comes_to_the_same() {
    let model = model();
    for text in [
        "hi",
        "three words here",
        "send a letter to my aunt",
        "where did I park",
    ] {
        let tokens = model.tokens(text, 30).unwrap();
        let [quick, plain] = [Processor::new(), Processor::Any]
            .map(|processor| forward::embedding(&model.weights, &tokens, processor));
        assert_eq!(quick, plain, "{text}");
    }
}

#[test]
fn what_means_alike_is_near() {
    let near = |a: &str, b: &str| {
        let [a, b] = [a, b].map(|text| model().embed(text, 30).unwrap());
        assert!((cosine_similarity(&a, &a) - 1.0).abs() < 1e-4);
        cosine_similarity(&a, &b)
    };
    let farther = |question: &str, its: &str, other: &str| {
        let [its, other] = [its, other].map(|text| near(question, text));
        assert!(its > other + 0.1, "{question}: {its} and {other}");
    };
    let died = "my father passed away last night, what now";
    farther(died, "Arrange a funeral.", "Book a flight.");
    farther(
        "the doctor is ill",
        "a sick physician",
        "a bridge over a river",
    );
    farther(
        "next boat to the mainland",
        "ferry timetable",
        "phase of the moon",
    );
}

#[test]
fn any_text_is_taken_in_bounded_time() {
    let started = Instant::now();
    for text in [
        "".to_owned(),
        "\0\u{feff}\u{200b} \u{1f600}".into(),
        "天氣預報".into(),
        "погода завтра".into(),
    ] {
        assert!(model().embed(&text, 30).is_none(), "{text:?}");
    }
    for text in [
        "a".repeat(1 << 20),
        "wörter ".repeat(200_000),
        "xqzjk ".repeat(200_000),
        "🦀 rain ".repeat(200_000),
        format!("{}天 ", "x".repeat(39)).repeat(1000),
        "!".repeat(1 << 20),
    ] {
        let vector = model().embed(&text, usize::MAX);
        assert!(vector.is_none_or(|vector| vector.iter().all(|x| x.is_finite())));
    }
    assert_eq!(model().embed("rain", 0), None);
    let took = started.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn only_the_first_tokens_of_a_long_text_count() {
    let long = format!("will it rain tomorrow {}", "in the desert ".repeat(100));
    assert_eq!(
        model().embed(&long, 4),
        model().embed("will it rain tomorrow", 30)
    );
    assert_eq!(
        model().embed("Élan, café", 30),
        model().embed("elan, cafe", 30)
    );
}

#[test]
fn a_broken_file_is_no_model() {
    for end in [0, 3, 4, 24, 25, 1000, BYTES.len() / 2, BYTES.len() - 1] {
        assert!(Weights::parse(&BYTES[..end]).is_none(), "{end}");
    }
    // Each number of the shape, made too small, too large and odd.
    for at in 0..6 {
        for number in [0, 7, 1 << 19, u32::MAX] {
            let mut bytes = BYTES.to_vec();
            bytes[at * 4..at * 4 + 4].copy_from_slice(&number.to_le_bytes());
            assert!(Weights::parse(bytes.leak()).is_none(), "{at}: {number}");
        }
    }
}

#[test]
fn common_words_have_a_low_rank() {
    let rank = |word| model().rank(word);
    assert!(rank("the") < rank("weather") && rank("weather") < rank("papyrus"));
    assert_eq!(rank("qqzzx"), None);
}
