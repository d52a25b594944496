//! What shells offer, asked of the real shells.

use std::{
    collections::BTreeSet,
    path::Path,
    process::{Command, Stdio},
};

/// The words that a shell offers after a command line.
type Offers = fn(folder: &Path, line: &str) -> String;

#[test]
fn bash_completes_commands_and_options() {
    offers("bash", "starchild.bash", |folder, line| {
        let asked = "source starchild.bash; read -ra COMP_WORDS <<< \"$1\"; \
            [[ $1 == *\" \" ]] && COMP_WORDS+=(''); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); \
            _starchild starchild \"${COMP_WORDS[-1]}\" \"${COMP_WORDS[-2]}\"; printf '%s\\n' \"${COMPREPLY[@]}\"";
        said(folder, "bash", &["--norc", "-c", asked, "bash", line])
    });
}

#[test]
fn fish_completes_commands_and_options() {
    offers("fish", "starchild.fish", |folder, line| {
        let asked = "source starchild.fish; complete -C $argv[1]";
        said(folder, "fish", &["--no-config", "-c", asked, line])
    });
}

#[test]
fn zsh_completes_commands_and_options() {
    offers("zsh", "_starchild", |folder, line| {
        let script = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/integration/complete.zsh"
        );
        let file = folder.join("offered");
        let _ = std::fs::remove_file(&file);
        let (from, to) = (folder.to_str().unwrap(), file.to_str().unwrap());
        said(folder, "zsh", &["-f", script, from, to, line]);
        std::fs::read_to_string(&file).unwrap_or_default()
    });
}

/// What a program prints.
fn said(folder: &Path, program: &str, args: &[&str]) -> String {
    let output = Command::new(program)
        .args(args)
        .current_dir(folder)
        .env("HOME", folder)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}; cargo xtask test installs it"));
    String::from_utf8(output.stdout).unwrap()
}

fn offers(shell: &str, file: &str, offers: Offers) {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_starchild");
    let script = said(folder.path(), program, &["completions", shell]);
    std::fs::write(folder.path().join(file), script).unwrap();
    for (line, wanted, unwanted) in [
        ("starchild ", &["agents", "join", "status", "up"][..], "add"),
        ("starchild stat", &["status"], "join"),
        ("starchild agents ", &["add", "list", "remove"], "status"),
        ("starchild room j", &["join"], "agents"),
        ("starchild room join --age", &["--agent"], "--stream"),
    ] {
        let offered = offers(folder.path(), line);
        // fish also says what each is for.
        let words = offered.lines().filter_map(|line| line.split('\t').next());
        let words: BTreeSet<&str> = words.map(str::trim).collect();
        for word in wanted {
            assert!(words.contains(word), "{shell} after {line:?}: {offered}");
        }
        assert!(
            !words.contains(unwanted),
            "{shell} after {line:?}: {offered}"
        );
    }
}
