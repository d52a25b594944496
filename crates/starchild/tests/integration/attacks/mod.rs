//! What strangers in rooms and hostile servers try on the machine of an agent's owner.

mod answering;
mod environment;
mod hostile;
mod servers;
mod terminal;

use std::{
    io::Write,
    process::{Command, Stdio},
};

/// Runs a command as somebody at a terminal does, who types these lines; gives what they see.
pub async fn at_terminal(command: &Command, typed: &str) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words = words.map(|word| word.to_str().unwrap());
    let line = shell_words::join(words);
    let mut script = Command::new("/usr/bin/script");
    script.args(["--quiet", "--flush", "--command", &line, "/dev/null"]);
    let set = command.get_envs();
    script.envs(set.filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        script.current_dir(folder);
    }
    let typed = typed.to_owned();
    let seen = tokio::task::spawn_blocking(move || {
        script.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut running = script.spawn().unwrap();
        let mut keyboard = running.stdin.take().unwrap();
        keyboard.write_all(typed.as_bytes()).unwrap();
        let seen = running.wait_with_output().unwrap().stdout;
        drop(keyboard);
        seen
    });
    String::from_utf8_lossy(&seen.await.unwrap()).into_owned()
}
