//! Fuzzing on stable Rust: a seeded mutator over the corpus in `tests/corpus`.
//! Two seconds for each target, or as many as `FUZZ_SECONDS` says; `FUZZ_SEED`
//! leads elsewhere.
//! A failing input is printed so that it can join the corpus.

use crate::common::processor_time;
use agentserver::envelope::Envelope;
use agentserver::xml::{Limits, ParsedOutput, canonicalize, repair, text};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// Pieces that XML parsers trip over.
const TOKENS: [&str; 30] = [
    "<",
    ">",
    "</",
    "/>",
    "&",
    "&amp;",
    "&#0;",
    "&#x110000;",
    "]]>",
    "<![CDATA[",
    "<!--",
    "-->",
    "<?",
    "?>",
    "<!DOCTYPE",
    "\"",
    "'",
    "=",
    "xmlns=\"\"",
    "xmlns:a='b'",
    ":",
    "```",
    "<message>",
    "<meta><to>x</to></meta>",
    "\u{feff}",
    "\u{0}",
    "\r\n",
    " ",
    "\u{1F600}",
    "<a>",
];

/// A small generator of our own, so that a seed names a run for ever.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

fn mutate(input: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut out = input.to_vec();
    for _ in 0..=random.below(6) {
        let at = random.below(out.len() + 1);
        let end = at + random.below((out.len() - at).min(40) + 1);
        match random.below(7) {
            0 if at < out.len() => out[at] = random.next() as u8,
            1 => drop(out.drain(at..end)),
            2 => drop(out.splice(at..at, TOKENS[random.below(TOKENS.len())].bytes())),
            3 => {
                let piece = out[at..end].to_vec();
                drop(out.splice(at..at, piece));
            }
            4 => {
                let from = random.below(other.len() + 1);
                drop(out.splice(at..end, other[from..].iter().copied()));
            }
            5 => {
                let token = TOKENS[random.below(TOKENS.len())].repeat(random.below(60));
                drop(out.splice(at..at, token.bytes()));
            }
            _ => out.truncate(at),
        }
    }
    out.truncate(1 << 16);
    out
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(name);
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| std::fs::read(file.unwrap().path()).unwrap());
    let mut files: Vec<_> = files.collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn time() -> Duration {
    let said = std::env::var("FUZZ_SECONDS").ok();
    let seconds = said.and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(2))
}

fn fuzz(name: &str, target: impl Fn(&[u8])) {
    let corpus = corpus(name);
    let seed = std::env::var("FUZZ_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0x5eed_u64);
    let mut random = Random(seed.max(1));
    let (begin, mut runs) = (Instant::now(), 0u64);
    let run = |input: &[u8]| {
        let start = processor_time();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(input))) {
            eprintln!("failing input: {:?}", String::from_utf8_lossy(input));
            std::panic::resume_unwind(panic);
        }
        let took = processor_time() - start;
        assert!(
            took < Duration::from_secs(20),
            "took {took:?}: {:?}",
            String::from_utf8_lossy(input)
        );
    };
    corpus.iter().for_each(|input| run(input));
    while begin.elapsed() < time() {
        for _ in 0..100 {
            let input = &corpus[random.below(corpus.len())];
            let other = &corpus[random.below(corpus.len())];
            run(&mutate(input, other, &mut random));
            runs += 1;
        }
    }
    println!("{name}: {runs} inputs from seed {seed}");
}

#[test]
fn the_envelope_reader_holds() {
    let limits = Limits::default();
    fuzz("envelope", |input| {
        let Ok(envelope) = text(input).and_then(|text| Envelope::read(text, &limits)) else {
            return;
        };
        assert!(
            !String::from_utf8_lossy(input).contains("<!DOCTYPE message"),
            "a DOCTYPE got in"
        );
        let written = envelope.write().expect("what was read can be written");
        let again = Envelope::read(&written, &limits).expect("and read again");
        assert_eq!(again, envelope, "with nothing changed");
        assert_eq!(
            canonicalize(&written, &limits).expect("and is canonical"),
            written
        );
    });
}

#[test]
fn the_repairer_holds() {
    let limits = Limits::default();
    fuzz("repair", |input| {
        let Ok(text) = text(input) else { return };
        if let Ok((documents, repairs)) = repair(text, &limits) {
            assert!(!documents.is_empty());
            assert!(repairs.len() <= 4 + documents.iter().map(String::len).sum::<usize>());
        }
        if let Ok(answer) = ParsedOutput::read(text, &limits) {
            assert!(!answer.said.is_empty());
            for said in answer.said {
                let again =
                    canonicalize(said.payload.xml(), &limits).expect("a payload is a document");
                assert_eq!(again, said.payload.xml(), "and canonical");
                let clean = ParsedOutput::read(said.payload.xml(), &limits);
                assert!(
                    clean.is_err() || clean.is_ok_and(|clean| clean.repairs.is_empty()),
                    "and needs no repair"
                );
            }
        }
    });
}
