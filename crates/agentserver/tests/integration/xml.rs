//! The door for XML: what passes, what is mended, what is refused.

use crate::common::processor_time;
use agentserver::envelope::Envelope;
use agentserver::payload::Canonical;
use agentserver::xml::{Limits, ParsedOutput, Repair, XmlError, canonicalize, repair};
use std::time::Duration;

const ENVELOPE: &str = "https://xml-pipeline.org/ns/envelope/v1";

fn read(text: &str) -> Result<Envelope, XmlError> {
    Envelope::read(text, &Limits::default())
}

#[test]
fn an_envelope_is_read_and_written_to_the_byte() {
    let text = format!(
        "<message xmlns=\"{ENVELOPE}\"><meta><from>a &amp; b</from><to>c</to><thread>t</thread></meta>\
         <Ask xmlns=\"\"><text> x </text></Ask></message>"
    );
    let envelope = read(&text).unwrap();
    assert_eq!(
        (&*envelope.from, envelope.to.as_deref(), &*envelope.thread),
        ("a & b", Some("c"), "t")
    );
    assert_eq!(envelope.payload.xml(), "<Ask><text> x </text></Ask>");
    assert_eq!(envelope.write().unwrap(), text);
    assert_eq!(canonicalize(&text, &Limits::default()).unwrap(), text);
}

#[test]
fn payloads_of_any_namespace_survive_the_envelope() {
    for payload in [
        "<a><b></b></a>",
        "<a xmlns=\"urn:x\"><b></b></a>",
        "<p:a xmlns:p=\"urn:x\"><b></b></p:a>",
        "<p:a xmlns:p=\"urn:x\"><p:b q=\"1\"></p:b></p:a>",
    ] {
        let envelope = Envelope {
            from: "a".into(),
            to: None,
            thread: "t".into(),
            payload: Canonical::parse(payload, &Limits::default()).unwrap(),
        };
        let written = envelope.write().unwrap();
        assert_eq!(canonicalize(&written, &Limits::default()).unwrap(), written);
        assert_eq!(read(&written).unwrap(), envelope);
    }
}

#[test]
fn what_is_no_envelope_is_refused() {
    let meta = "<meta><from>a</from><thread>t</thread></meta>";
    for text in [
        format!("<message xmlns=\"{ENVELOPE}\">{meta}</message>"),
        format!("<message>{meta}<a/></message>"),
        format!("<message xmlns=\"urn:other\">{meta}<a/></message>"),
        format!("<message xmlns=\"{ENVELOPE}\"><meta><thread>t</thread></meta><a/></message>"),
        format!("<message xmlns=\"{ENVELOPE}\"><meta><from>a</from></meta><a/></message>"),
        format!(
            "<message xmlns=\"{ENVELOPE}\"><meta><from>a</from><from>b</from><thread>t</thread></meta><a/></message>"
        ),
        format!("<message xmlns=\"{ENVELOPE}\"><a/>{meta}</message>"),
        format!("<message xmlns=\"{ENVELOPE}\">{meta}<a/><b/></message>"),
        format!("<message xmlns=\"{ENVELOPE}\">text{meta}<a/></message>"),
        "<a/>".to_owned(),
    ] {
        assert!(matches!(read(&text), Err(XmlError::Envelope(_))), "{text}");
    }
    let other = "<x:note xmlns:x=\"urn:x\"/>";
    let text = format!(
        "<message xmlns=\"{ENVELOPE}\"><meta><from>a</from><thread>t</thread>{other}</meta><a xmlns=\"\"/></message>"
    );
    assert!(read(&text).is_ok(), "other namespaces may stand in meta");
}

#[test]
fn hostile_documents_are_refused_quickly() {
    let limits = Limits::default();
    let entities =
        "<!DOCTYPE a [<!ENTITY b \"bbbbbbbbbb\"><!ENTITY c \"&b;&b;&b;&b;\">]><a>&c;</a>";
    let deep = "<a>".repeat(100_000);
    let wide = format!("<a>{}</a>", "<b/>".repeat(200_000));
    let attributes = format!(
        "<a {}/>",
        (0..100_000)
            .map(|n| format!("a{n}='' "))
            .collect::<String>()
    );
    let namespaces = format!(
        "<a {}/>",
        (0..20_000)
            .map(|n| format!("xmlns:a{n}='u' "))
            .collect::<String>()
    );
    let huge = "x".repeat(limits.bytes + 1);
    let references = format!("<a>{}</a>", "&amp;".repeat(200_000));
    let quotes = "<a \"".repeat(200_000);
    let ends = "<a>".to_owned() + &"</b".repeat(300_000);
    let unclosed = "<".repeat(1_000_000);
    let begin = processor_time();
    for text in [
        entities,
        &deep,
        &wide,
        &attributes,
        &namespaces,
        &huge,
        &references,
        &quotes,
        &ends,
        &unclosed,
        "<a>&b;</a>",
        "<a><?php x?></a>",
        "<?x?><a/>",
        "<a",
        "",
        "<a></b>",
        "<a/><a/>",
        "\u{0}",
        "<a>\u{1}</a>",
        "<!doctype html><a/>",
        "<a b='1' b='2'/>",
        "<x:a/>",
        "<a xmlns:x=''/>",
    ] {
        let shown = &text[..text.len().min(40)];
        assert!(Canonical::parse(text, &limits).is_err(), "{shown}");
        // Whatever the repairer makes of it, it comes to an end.
        let _ = ParsedOutput::read(text, &limits);
    }
    let took = processor_time() - begin;
    assert!(took < Duration::from_secs(20), "took {took:?}");
}

fn answer(text: &str) -> (Vec<(Option<String>, String)>, Vec<Repair>) {
    let answer = ParsedOutput::read(text, &Limits::default())
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    let said = answer
        .said
        .into_iter()
        .map(|said| (said.to, said.payload.xml().to_owned()));
    (said.collect(), answer.repairs)
}

fn bare(text: &str) -> (Option<String>, String) {
    (None, text.to_owned())
}

#[test]
fn a_clean_answer_needs_no_repair() {
    assert_eq!(
        answer("<a><b>x</b></a>"),
        (vec![bare("<a><b>x</b></a>")], vec![])
    );
}

#[test]
fn each_repair_is_made_and_recorded() {
    let cases: [(&str, &str, Vec<Repair>); 6] = [
        ("```xml\n<a>x</a>\n```", "<a>x</a>", vec![Repair::CodeFence]),
        (
            "<a>x & y &nbsp; &amp; &#65;</a>",
            "<a>x &amp; y &amp;nbsp; &amp; A</a>",
            vec![Repair::BareAmpersand],
        ),
        (
            "<a b='x&y'>z</a>",
            "<a b=\"x&amp;y\">z</a>",
            vec![Repair::BareAmpersand],
        ),
        (
            "<a>1 < 2</a>",
            "<a>1 &lt; 2</a>",
            vec![Repair::BareLessThan],
        ),
        (
            "<a><b>x</a>",
            "<a><b>x</b></a>",
            vec![Repair::Unclosed("b".into())],
        ),
        ("<a>x</a", "<a>x</a>", vec![Repair::Unclosed("a".into())]),
    ];
    for (text, mended, repairs) in cases {
        assert_eq!(answer(text), (vec![bare(mended)], repairs), "{text}");
    }
}

#[test]
fn several_roots_are_several_messages() {
    let (said, repairs) = answer("<a>x</a>\n<b/>");
    assert_eq!(said, [bare("<a>x</a>"), bare("<b></b>")]);
    assert_eq!(repairs, [Repair::SeveralRoots(2)]);
}

#[test]
fn an_envelope_from_a_model_gives_a_target_and_nothing_else() {
    let to_c = |payload: &str| (Some("c".to_owned()), payload.to_owned());
    let (said, _) =
        answer("<message><meta><from>system</from><to> c </to></meta><a><b>x</b></a></message>");
    assert_eq!(said, [to_c("<a><b>x</b></a>")]);
    let inherited = format!(
        "<message xmlns=\"{ENVELOPE}\"><meta><to>c</to></meta><a><b>x</b></a><d/></message>"
    );
    assert_eq!(
        answer(&inherited).0,
        [to_c("<a><b>x</b></a>"), to_c("<d></d>")]
    );
}

#[test]
fn what_could_be_read_in_two_ways_is_not_mended() {
    for text in [
        "just words",
        "Here you are: <a>x</a> Anything else?",
        "I will not run `<a>x</a>`",
        "This would do it:\n```xml\n<a>x</a>\n```",
        "```xml\n<a>x</a>\n```\n```xml\n<b>x</b>\n```",
        "<a>x</a> and so on",
        "<a><b>x",
        "<a><b>10",
        "<a><b>10</b>",
        "<a><b>10</b><c",
        "<a><b>10</b",
        "```\n<a>x\n```",
        "",
        "<a>x</b></a>",
        "x</a>",
        "<a>if x <b and c</a>",
        "<a><![CDATA[x</a>",
        "<a><!-- x</a>",
        "<message><meta><to>c</to></meta></message>",
        "<!DOCTYPE a><a>x",
        "<a>x<?php y ?>",
    ] {
        assert!(
            ParsedOutput::read(text, &Limits::default()).is_err(),
            "{text}"
        );
    }
}

#[test]
fn a_text_cannot_hold_documents_without_end() {
    assert!(repair(&"<a/>".repeat(65), &Limits::default()).is_err());
    assert!(repair(&"<a/>".repeat(64), &Limits::default()).is_ok());
}

#[test]
fn a_document_as_deep_as_the_limit_survives_the_envelope_and_one_deeper_is_refused() {
    let limits = Limits {
        depth: u32::MAX,
        ..Limits::default()
    };
    let nested = |levels: usize| "<a>".repeat(levels) + &"</a>".repeat(levels);
    let payload = Canonical::parse(&nested(100), &limits).unwrap();
    let envelope = Envelope {
        from: "a".into(),
        to: None,
        thread: "t".into(),
        payload,
    };
    assert!(envelope.write().is_ok());
    assert!(Canonical::parse(&nested(101), &limits).is_err());
    assert!(Canonical::parse(&nested(1 << 16), &limits).is_err());
}
