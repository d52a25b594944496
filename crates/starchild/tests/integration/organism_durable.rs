//! `organism run` that is killed at any moment, and goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tempfile::TempDir;

const ECHO: &str = "\
payloads: [{name: Note, fields: [{name: text}]}]
listeners:
  - {name: echo, accepts: [Note], kind: {rust: echo}}
  - {name: slow, accepts: [Note], kind: {process: {command: [sh, slow.sh], write: ['.']}}}
gateways: [{name: console, peers: [echo, slow]}]
";

/// Notes that it ran, and sends back what it was sent.
const SLOW: &str = "echo \"$ORGANISM_DEDUP_KEY\" >> \"$ORGANISM_FOLDER/effects\"\ncat\n";

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("organism.yaml"), ECHO).unwrap();
    std::fs::write(folder.path().join("slow.sh"), SLOW).unwrap();
    folder
}

fn organism(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_starchild"));
    command
        .arg("organism")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn with_input(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = organism(folder, arguments).spawn().unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_owned());
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn twenty_thousand_lines_give_twenty_thousand_answers_in_order() {
    let folder = folder();
    let note = |number| format!("<Note><text>{number}</text></Note>\n");
    let input: String = (0..20_000).map(note).collect();
    let arguments = ["run", "--gateway", "console"];
    let addressed = input.replace("<Note>", "<message><meta><to>echo</to></meta><Note>");
    let addressed = addressed.replace("</Note>", "</Note></message>");
    let output = with_input(folder.path(), &arguments, &addressed);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout) == input);
}

/// A message to `to` with an id of its own.
fn message(id: usize, to: &str) -> String {
    format!(
        "<message><meta><to>{to}</to><id>m{id}</id></meta><Note><text>{id}</text></Note></message>\n"
    )
}

/// A run that will be killed.
struct Run {
    child: Child,
    stdin: std::process::ChildStdin,
    lines: Receiver<String>,
}

impl Run {
    fn start(folder: &Path) -> Self {
        let mut command = organism(folder, &["run", "--state", "state", "--envelopes"]);
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self {
            child,
            stdin,
            lines,
        }
    }
}

/// What was heard over all runs: for each message, the ids of its answers.
#[derive(Default)]
struct Heard(BTreeMap<usize, BTreeSet<u64>>);

impl Heard {
    /// Takes a line, unless a kill has cut it.
    fn line(&mut self, line: &str) {
        if line.ends_with("</message>") {
            let request = element(line, "in-reply-to");
            let request = request[1..].parse().unwrap();
            let answer = element(line, "id").parse().unwrap();
            self.0.entry(request).or_default().insert(answer);
        }
    }
}

fn element<'a>(line: &'a str, name: &str) -> &'a str {
    let start = line
        .find(&format!("<{name} "))
        .unwrap_or_else(|| panic!("{line}"));
    let text = &line[start..];
    let text = &text[text.find('>').unwrap() + 1..];
    &text[..text.find('<').unwrap()]
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % most
    }
}

/// Kills a run again and again. Each time all that was not answered is sent again,
/// and some that was.
fn kill_many_times(kills: usize, seed: u64) {
    const MESSAGES: usize = 400;
    let (folder, mut heard, mut dice) = (folder(), Heard::default(), Dice(seed));
    let to = |id: usize| if id % 25 == 7 { "slow" } else { "echo" };
    let mut sent = 0;
    for _ in 0..kills {
        let mut run = Run::start(folder.path());
        sent = (sent + 4).min(MESSAGES);
        let missing = (0..sent).filter(|id| !heard.0.contains_key(id)).take(20);
        let again = dice.below(sent as u64) as usize;
        let input: String = missing
            .chain([again])
            .map(|id| message(id, to(id)))
            .collect();
        run.stdin.write_all(input.as_bytes()).unwrap();
        // At some moment of its start, or after some answers, or a little later.
        match dice.below(4) {
            0 => std::thread::sleep(Duration::from_millis(dice.below(80))),
            _ => {
                for _ in 0..dice.below(5) {
                    if let Ok(line) = run.lines.recv_timeout(Duration::from_secs(3)) {
                        heard.line(&line);
                    }
                }
                std::thread::sleep(Duration::from_micros(dice.below(3000)));
            }
        }
        run.child.kill().unwrap();
        run.child.wait().unwrap();
        run.lines.iter().for_each(|line| heard.line(&line));
    }
    let input: String = (0..sent).map(|id| message(id, to(id))).collect();
    let output = with_input(
        folder.path(),
        &["run", "--state", "state", "--envelopes"],
        &input,
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
        .lines()
        .for_each(|line| heard.line(line));

    let answered: Vec<_> = heard.0.keys().copied().collect();
    assert_eq!(answered, (0..sent).collect::<Vec<_>>(), "nothing is lost");
    let twice = heard.0.iter().find(|(_, answers)| answers.len() > 1);
    assert_eq!(twice, None, "no answer twice");
    // What a command did twice, it could tell by its key.
    let effects = std::fs::read_to_string(folder.path().join("effects")).unwrap();
    let effects: BTreeSet<_> = effects.lines().collect();
    assert_eq!(
        effects.len(),
        (0..sent).filter(|id| to(*id) == "slow").count()
    );
}

#[test]
fn five_hundred_kills_lose_nothing_and_give_no_answer_twice() {
    std::thread::scope(|scope| {
        for seed in 1..=4 {
            scope.spawn(move || kill_many_times(125, seed));
        }
    });
}

#[test]
fn a_run_is_told_again_to_any_hop_and_beside_another() {
    let folder = folder();
    let input = |texts: &[&str]| -> String {
        let note = |text| {
            format!("<message><meta><to>echo</to></meta><Note><text>{text}</text></Note></message>")
        };
        texts.iter().map(note).collect()
    };
    for (state, texts) in [
        ("one", ["a", "b"]),
        ("same", ["a", "b"]),
        ("other", ["a", "c"]),
    ] {
        let output = with_input(folder.path(), &["run", "--state", state], &input(&texts));
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let replay = |arguments: &[&str]| {
        let arguments = [&["replay", "one"][..], arguments].concat();
        let output = with_input(folder.path(), &arguments, "");
        (
            output.status.success(),
            text(&output.stdout),
            text(&output.stderr),
        )
    };
    let (is_ok, told, _) = replay(&[]);
    let hops: Vec<_> = told.lines().collect();
    // A call, that it was handled, and an answer, twice.
    assert!(is_ok && hops.len() == 6, "{told}");
    assert!(hops[0].contains("console -> echo") && hops[0].contains("<text>a</text>"));
    assert_eq!(told.matches("  handled in ").count(), 2, "{told}");
    let hop = hops[0].split_once('#').unwrap().1;
    let hop = hop.split_whitespace().next().unwrap();
    let (_, until, _) = replay(&["--until", hop]);
    let until: Vec<_> = until.lines().collect();
    assert_eq!(until[0], hops[0]);
    assert_eq!(until[1], "the state then:");
    let runs = format!("#{hop}  console -> echo  <Note>");
    let state = |what: &str, words: &str| {
        let mut lines = until[2..].iter();
        lines.any(|line| line.trim_start().starts_with(what) && line.contains(words))
    };
    assert!(state("runs:", &runs), "{until:?}");
    assert!(state("thread:", "echo  1 messages"), "{until:?}");
    assert!(state("budget: request", "1 of 1000 messages"), "{until:?}");

    assert_eq!(
        replay(&["--diff", "same"]),
        (true, String::new(), String::new())
    );
    let (is_ok, told, _) = replay(&["--diff", "other"]);
    assert!(!is_ok);
    let signs: String = told.lines().map(|line| &line[..1]).collect();
    assert_eq!(signs, "--++", "{told}");
    let (is_ok, _, wrong) = replay(&["--until", "999"]);
    assert!(!is_ok && wrong.contains("knows of no hop 999"), "{wrong}");
}
