//! `starchild organism` as a person uses it, from an empty folder.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SUMS: &str = "\
organism: sums
payloads:
  - name: Add
    fields: [{name: a, type: integer}, {name: b, type: integer}]
  - name: Sum
    fields: [{name: value, type: integer}]
  - name: Note
    fields: [{name: text}]
listeners:
  - name: adder
    description: Adds two numbers.
    accepts: [Add]
    kind: {process: {command: [sh, add.sh], format: json}}
  - name: shouter
    accepts: [Note]
    timeout_seconds: 20
    kind: {process: {command: [sh, shout.sh], write: ['.']}}
  - name: failing
    accepts: [Sum]
    kind: {process: {command: [./shell, -c, 'echo no >&2; exit 3']}}
gateways:
  - name: console
    peers: [adder, shouter, failing]
";

/// Reads `{\"Add\":{\"a\":1,\"b\":2}}`, with nothing but a shell.
const ADD: &str = "#!/bin/sh
set -- $(tr -c '0-9-' ' ')
echo \"{\\\"Sum\\\": {\\\"value\\\": $(($1 + $2))}}\"
";

/// Waits until there is a file called go, then shouts.
const SHOUT: &str = "#!/bin/sh
touch \"$ORGANISM_FOLDER/started\"
while [ ! -e \"$ORGANISM_FOLDER/go\" ]; do sleep 0.01; done
tr a-z A-Z | sed 's/NOTE/Note/g; s/TEXT/text/g'
";

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "organism.yaml", SUMS);
    write(folder.path(), "add.sh", ADD);
    write(folder.path(), "shout.sh", SHOUT);
    std::os::unix::fs::symlink("/bin/sh", folder.path().join("shell")).unwrap();
    folder
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

fn starchild(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_starchild"));
    command
        .arg("organism")
        .args(arguments)
        .current_dir(folder)
        .env_remove("RUST_LOG");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn start(folder: &Path, arguments: &[&str]) -> Child {
    starchild(folder, arguments).spawn().unwrap()
}

/// Runs with this input, to its end.
fn with_input(folder: &Path, arguments: &[&str], input: &str) -> Output {
    with_bytes(folder, arguments, input.as_bytes())
}

fn with_bytes(folder: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = start(folder, arguments);
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8(bytes.to_vec())
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "waited too long for {what}"
        );
        std::thread::yield_now();
    }
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

#[test]
fn check_finds_what_cannot_work_though_nothing_is_wrong() {
    let folder = folder();
    write(
        folder.path(),
        "organism.yaml",
        "\
payloads:
  - {name: Ask, fields: [{name: text}]}
  - {name: Told, fields: [{name: text}]}
listeners:
  - name: first
    accepts: [Ask]
    peers: [second, third]
    sends: [Told]
    kind: {process: {command: [no-such-program-anywhere]}}
  - name: second
    accepts: [Told]
    peers: [third]
    kind: {process: {command: [./add.sh]}}
  - name: third
    accepts: [Ask]
    kind: {rust: echo}
  - name: lost
    accepts: [Ask]
    peers: [lost-too]
  - name: lost-too
    accepts: [Ask]
    kind: {process: {command: [./shell]}}
  - name: system.boot
    accepts: [Ask]
    kind: {rust: echo}
gateways:
  - {name: console, peers: [first]}
",
    );
    let output = with_input(folder.path(), &["check"], "");
    assert!(!output.status.success());
    let nobody = "it is no peer of a gateway, nor of a listener that one reaches";
    assert_eq!(
        lines(&output.stderr),
        [
            "organism.yaml:5:11: first: there is no program \"no-such-program-anywhere\" in any folder of PATH",
            "organism.yaml:7:21: third accepts nothing that first sends (which is Told)",
            "organism.yaml:10:11: second: there is no program \"./add.sh\" in .",
            &format!("organism.yaml:17:11: nobody can reach lost: {nobody}"),
            "organism.yaml:19:13: lost-too accepts nothing that lost sends (which is nothing)",
            &format!("organism.yaml:20:11: nobody can reach lost-too: {nobody}"),
        ]
    );
}

#[test]
fn a_file_of_the_python_project_is_refused_with_the_one_it_would_be_here() {
    let folder = tempfile::tempdir().unwrap();
    let original = "\
organism:
  name: hello-world
  port: 8765
listeners:
  - name: greeter
    payload_class: handlers.hello.Greeting
    handler: handlers.hello.handle_greeting
    description: Responds with a greeting message
    agent: false
    broadcast: false
";
    write(folder.path(), "organism.yaml", original);
    for command in ["check", "run"] {
        let output = with_input(folder.path(), &[command], "");
        assert!(!output.status.success());
        let told = String::from_utf8(output.stderr).unwrap();
        for part in [
            "payload_class",
            "organism: hello-world",
            "accepts: [Greeting]",
        ] {
            assert!(told.contains(part), "{told}");
        }
    }
}

#[test]
fn check_says_what_is_wrong_and_where() {
    let folder = folder();
    std::fs::remove_file(folder.path().join("organism.yaml")).unwrap();
    let output = with_input(folder.path(), &["check"], "");
    assert!(!output.status.success());
    assert!(lines(&output.stderr)[0].starts_with("organism.yaml: "));

    let broken = SUMS.replace("peers: [adder, shouter, failing]", "peers: [adder, nobody]");
    write(
        folder.path(),
        "organism.yaml",
        &broken.replace("accepts: [Add]", "accepts: [Ad]"),
    );
    let output = with_input(folder.path(), &["check"], "");
    assert!(!output.status.success());
    assert_eq!(
        lines(&output.stderr),
        [
            "organism.yaml:12:15: the payload \"Ad\" does not exist",
            "organism.yaml:23:20: the peer \"nobody\" does not exist",
        ]
    );

    write(
        folder.path(),
        "organism.yaml",
        &SUMS.replace("command:", "comand:"),
    );
    let output = with_input(folder.path(), &["check"], "");
    assert!(
        lines(&output.stderr)[0].starts_with("organism.yaml:13:"),
        "{:?}",
        lines(&output.stderr)
    );

    write(folder.path(), "organism.yaml", SUMS);
    let output = with_input(folder.path(), &["check"], "");
    assert!(output.status.success());
    assert_eq!(
        lines(&output.stdout),
        ["organism.yaml: sums is well: 3 listeners, 1 gateways, 3 payload types"]
    );
}

#[test]
fn a_line_in_is_a_line_out() {
    let folder = folder();
    let input = "<Add><a>40</a><b>2</b></Add>\n";
    let output = with_input(folder.path(), &["run", "--trace", "trace.txt"], input);
    assert!(output.status.success(), "{:?}", lines(&output.stderr));
    assert_eq!(lines(&output.stdout), ["<Sum><value>42</value></Sum>"]);

    let trace = std::fs::read_to_string(folder.path().join("trace.txt")).unwrap();
    let told: Vec<_> = trace.lines().collect();
    assert_eq!(told.len(), 3, "{trace}");
    assert!(
        told[0].contains("console -> adder  <Add>") && told[0].ends_with("call"),
        "{trace}"
    );
    assert!(
        told[1].contains("console -> adder  <Add>") && told[1].contains("handled in "),
        "{trace}"
    );
    assert!(
        told[2].contains("adder -> console  <Sum>") && told[2].ends_with("answer"),
        "{trace}"
    );
}

#[test]
fn what_cannot_be_sent_or_done_is_told() {
    let folder = folder();
    let input = "nonsense\n<Nobody/>\n<message><meta><to>nobody</to></meta><Note><text>x</text></Note></message>\n\
                 <Sum><value>1</value></Sum>\n";
    let output = with_input(folder.path(), &["run"], input);
    let told = lines(&output.stdout);
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told[0].starts_with("<huh ") && told[1].starts_with("<huh "));
    assert!(told[2].contains("<code>routing</code>"));
    assert!(told[3].contains("<code>handler</code>"));
    assert!(!output.status.success());
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("exit status: 3: no"),
        "the log says why"
    );
}

#[test]
fn plain_words_are_answered_with_what_to_type() {
    let folder = folder();
    let output = with_input(folder.path(), &["run"], "hello\nhello\n<Add><a>1</a>");
    let told = lines(&output.stdout);
    assert_eq!(told.len(), 3, "{told:?}");
    let example =
        "Write for example: &lt;Add&gt;&lt;a&gt;1&lt;/a&gt;&lt;b&gt;1&lt;/b&gt;&lt;/Add&gt;";
    let words = "Expected an XML element, found the words \"hello\".";
    assert!(
        told[0].contains(words) && told[0].contains(example),
        "{told:?}"
    );
    assert!(
        told[2].contains("The input ended before &lt;Add&gt; was closed."),
        "{told:?}"
    );
    let said = String::from_utf8(output.stderr).unwrap();
    let typed = said
        .lines()
        .filter_map(|line| line.strip_prefix("  <"))
        .map(|line| format!("<{line}"));
    let typed: Vec<_> = typed.collect();
    // Once, with everything that the gateway takes.
    assert_eq!(said.matches("type one XML element").count(), 1, "{said}");
    assert_eq!(typed.len(), 3, "{said}");
    assert!(said.contains("to adder: Adds two numbers."), "{said}");
    // What it says can be typed.
    let output = with_input(folder.path(), &["run"], &typed[0]);
    assert!(output.status.success(), "{:?}", lines(&output.stderr));
    assert_eq!(lines(&output.stdout), ["<Sum><value>2</value></Sum>"]);
}

#[test]
fn an_element_is_as_large_and_as_deep_as_the_file_allows() {
    let folder = tempfile::tempdir().unwrap();
    let limits = "limits: {bytes: 4000000, nodes: 30000}\n";
    let file = ECHO.replace("{name: text}", "{name: text, many: true}") + limits;
    write(folder.path(), "organism.yaml", &file);
    let texts = "<text>x</text>".repeat(12_000) + &format!("<text>{}</text>", "y".repeat(2 << 20));
    let message = format!("<message><meta><to>echo</to></meta><Note>{texts}</Note></message>");
    let mut child = start(folder.path(), &["run"]);
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(message.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "{:?}", lines(&output.stderr));
    assert_eq!(lines(&output.stdout), [format!("<Note>{texts}</Note>")]);
}

const ECHO: &str = "\
organism: echo
payloads: [{name: Note, fields: [{name: text}]}]
listeners: [{name: echo, accepts: [Note], kind: {rust: echo}}]
gateways: [{name: console, peers: [echo]}]
";

#[test]
fn thousands_of_lines_are_answered_in_order() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "organism.yaml", ECHO);
    let note = |n: usize| format!("<Note><text>{n}</text></Note>");
    let all: Vec<_> = (0..2000).map(note).collect();
    let input = all.join("\n");
    let mut child = start(folder.path(), &["run"]);
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "{:?}", lines(&output.stderr));
    assert_eq!(lines(&output.stdout), all);
}

#[test]
fn input_is_read_to_the_balanced_element_and_never_mended() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "organism.yaml", ECHO);
    let input = "<Note>\n<text>two\nlines</text>\n</Note><Note><text>x</text></Note>\n\
                 I will not say `<Note><text>y</text></Note>`\n<Note><text>1 & 2</text></Note>\n\
                 <!DOCTYPE a [<!ENTITY b 'c'>]>\n<Note><text>\u{1}</text></Note>\n";
    let input = [
        input.as_bytes(),
        b"<Note><text>\xff</text></Note>\n<Note><text>cut",
    ]
    .concat();
    let output = with_bytes(folder.path(), &["run"], &input);
    let told = lines(&output.stdout);
    let huhs = told.iter().filter(|line| line.starts_with("<huh ")).count();
    assert_eq!((told.len(), huhs), (8, 6), "{told:?}");
    for words in ["a DOCTYPE is not allowed", "the text is not UTF-8"] {
        assert!(told.iter().any(|line| line.contains(words)), "{told:?}");
    }
    let notes: Vec<_> = told
        .iter()
        .filter(|line| line.starts_with("<Note>"))
        .collect();
    assert!(notes[0].contains("two&#10;lines"), "{notes:?}");
    assert_eq!(notes[1], "<Note><text>x</text></Note>");
    assert!(!output.status.success());
}

#[test]
fn a_hang_up_reads_the_file_again_and_loses_nothing() {
    let folder = folder();
    let mut child = start(folder.path(), &["run"]);
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut complaints = BufReader::new(child.stderr.take().unwrap()).lines();
    writeln!(input, "<Note><text>hello</text></Note>").unwrap();
    wait_for("the shouter", || folder.path().join("started").exists());

    // While it works, the file breaks: nothing changes.
    write(folder.path(), "organism.yaml", "listeners: [");
    signal(&child, rustix::process::Signal::HUP);
    let told = complaints.find(|line| line.as_ref().unwrap().contains("not read again"));
    assert!(told.is_some());

    // Then the shouter goes, and the adder changes.
    let smaller = SUMS
        .replace("name: shouter", "name: whisperer")
        .replace("shouter", "whisperer");
    write(folder.path(), "organism.yaml", &smaller);
    signal(&child, rustix::process::Signal::HUP);
    assert!(complaints.next().unwrap().unwrap().ends_with("read again"));
    writeln!(
        input,
        "<message><meta><to>shouter</to></meta><Note><text>x</text></Note></message>"
    )
    .unwrap();
    assert!(
        output
            .next()
            .unwrap()
            .unwrap()
            .contains("<code>routing</code>"),
        "it takes nothing new"
    );

    // What it had begun, it finishes.
    write(folder.path(), "go", "");
    assert_eq!(
        output.next().unwrap().unwrap(),
        "<Note><text>HELLO</text></Note>"
    );
    drop(input);
    assert!(
        !child.wait().unwrap().success(),
        "one message was refused on the way"
    );
}

#[test]
fn a_signal_ends_it_well_while_input_is_open() {
    let folder = folder();
    let mut child = start(folder.path(), &["run", "--stay", "--trace", "trace.txt"]);
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    writeln!(input, "<Add><a>1</a><b>2</b></Add>").unwrap();
    assert_eq!(
        output.next().unwrap().unwrap(),
        "<Sum><value>3</value></Sum>"
    );

    // What is under way when the signal comes is still answered.
    writeln!(input, "<Note><text>late</text></Note>").unwrap();
    wait_for("the shouter", || folder.path().join("started").exists());
    signal(&child, rustix::process::Signal::TERM);
    write(folder.path(), "go", "");
    assert_eq!(
        output.next().unwrap().unwrap(),
        "<Note><text>LATE</text></Note>"
    );
    assert!(child.wait().unwrap().success());
    drop(input);
    let trace = std::fs::read_to_string(folder.path().join("trace.txt")).unwrap();
    assert_eq!(trace.lines().count(), 6, "{trace}");
}

#[test]
fn a_command_that_takes_too_long_is_ended_with_all_it_started() {
    let folder = folder();
    let slow = SUMS.replace("timeout_seconds: 20", "timeout_seconds: 3");
    write(folder.path(), "organism.yaml", &slow);
    // It leaves its group behind, and tries to keep its guard from ending it.
    let script = "#!/bin/sh\nsetsid sh -c 'echo $$ > \"$ORGANISM_FOLDER/pid\"; sleep 1000' &\n\
                  kill -STOP $PPID\nsleep 1000\n";
    write(folder.path(), "shout.sh", script);
    let output = with_input(folder.path(), &["run"], "<Note><text>x</text></Note>\n");
    assert!(lines(&output.stdout)[0].contains("<code>timeout</code>"));
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    let status = format!("/proc/{}/stat", pid.trim());
    wait_for("its child to end", || {
        let state = std::fs::read_to_string(&status).unwrap_or_default();
        state.is_empty() || state.contains(") Z ")
    });
}

#[test]
fn a_command_has_a_folder_and_limits_of_its_own() {
    let folder = folder();
    let small = SUMS.replace("write: ['.']", "limits: {memory_mib: 64, cpu_seconds: 7}");
    write(folder.path(), "organism.yaml", &small);
    let script =
        "#!/bin/sh\necho \"<Note><text>$PWD $HOME $(ulimit -v) $(ulimit -t)</text></Note>\"\n";
    write(folder.path(), "shout.sh", script);
    let output = with_input(folder.path(), &["run"], "<Note><text>x</text></Note>\n");
    let own = folder
        .path()
        .canonicalize()
        .unwrap()
        .join(".organism/work/shouter");
    let own = own.display();
    assert_eq!(
        lines(&output.stdout),
        [format!("<Note><text>{own} {own} 65536 7</text></Note>")],
        "{:?}",
        lines(&output.stderr)
    );
}

#[test]
fn a_command_writes_to_its_own_folder_alone_where_the_kernel_knows_landlock() {
    let folder = folder();
    write(
        folder.path(),
        "organism.yaml",
        &SUMS.replace(", write: ['.']", ""),
    );
    let script = "#!/bin/sh\ntouch own && (touch \"$ORGANISM_FOLDER/other\" || echo '<Note><text>kept</text></Note>')\n";
    write(folder.path(), "shout.sh", script);
    let output = with_input(folder.path(), &["run"], "<Note><text>x</text></Note>\n");
    if String::from_utf8_lossy(&output.stderr).contains("no Landlock") {
        return;
    }
    assert_eq!(lines(&output.stdout), ["<Note><text>kept</text></Note>"]);
    assert!(!folder.path().join("other").exists());
}

#[test]
fn a_command_that_writes_without_end_is_cut_off() {
    let folder = folder();
    write(folder.path(), "shout.sh", "#!/bin/sh\nyes '<Note>'\n");
    let output = with_input(folder.path(), &["run"], "<Note><text>x</text></Note>\n");
    assert!(lines(&output.stdout)[0].contains("<code>handler</code>"));
}

#[test]
fn a_command_sees_who_it_is_called_by_and_no_keys() {
    let folder = folder();
    let models = "models:\n  backends:\n    - {model: m, key_env: SECRET_KEY}\n    - {kind: anthropic, model: m}\n";
    let named = SUMS.replace("write: ['.']", "env: [NAMED]");
    write(folder.path(), "organism.yaml", &(named + models));
    // It also looks for them where the system tells of the processes that started it.
    let script_text = "\
found=''
for process in $PPID $(sed -n 's/^PPid:\\t//p' /proc/$PPID/status); do
  cat /proc/$process/environ 2>/dev/null | tr '\\0' ' ' | grep -q 'secret\\|hidden' && found=found
done
echo \"<Note><text>$ORGANISM_FROM/$SECRET_KEY$ANTHROPIC_API_KEY/$OTHER/$NAMED/$found</text></Note>\"
";
    write(folder.path(), "shout.sh", script_text);
    let mut command = starchild(folder.path(), &["run"]);
    let mut child = command
        .env("SECRET_KEY", "secret")
        .env("ANTHROPIC_API_KEY", "secret")
        .env("OTHER", "hidden")
        .env("NAMED", "given")
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"<Note><text>x</text></Note>\n")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        lines(&output.stdout),
        ["<Note><text>console///given/</text></Note>"]
    );
}

#[test]
fn graph_draws_everyone() {
    let folder = folder();
    let output = with_input(folder.path(), &["graph", "-o", "organism.svg"], "");
    assert!(output.status.success());
    let picture = std::fs::read_to_string(folder.path().join("organism.svg")).unwrap();
    for name in ["console", "adder", "shouter", "failing"] {
        assert!(picture.contains(&format!(">{name}</text>")), "{name}");
    }
    assert_eq!(picture.matches("class=\"edge\"").count(), 3);
}
