//! What makes the terminal short to use: one command to join, parts of ids, words for slips.

use crate::harness::{OBEY, Owner, PARROT, Room, Server, eventually};
use std::process::Output;

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[tokio::test]
async fn a_mistyped_command_is_never_a_question() {
    let server = Server::start().await;
    let owner = Owner::with_handler(&server, OBEY).await;
    for (typed, meant) in [
        (&["stauts"][..], "status"),
        (&["agnets"], "agents"),
        (&["boya"], "byoa"),
        (&["jion"], "join"),
        (
            &["jion", "https://rooms.example/install/i_x9j2k7vp"],
            "join",
        ),
        (&["agnets", "list"], "agents"),
        (&["statsu", "--agent", "otter"], "status"),
    ] {
        let output = owner.tries(typed).await;
        assert_eq!(output.status.code(), Some(1));
        let said = said(&output);
        assert!(
            said.contains(&format!("did you mean starchild {meant}?")),
            "{said}"
        );
    }
    let unquoted = said(&owner.tries(&["what", "is", "this?"]).await);
    assert!(
        unquoted.contains("in quotes: starchild \"what is this?\""),
        "{unquoted}"
    );
    let wrong = said(&owner.tries(&["run", "--agnet", "x"]).await);
    assert!(wrong.contains("--agent"), "{wrong}");
    // More than a word, or a word that is like no command, is a question, and nobody is logged in.
    for question in ["what is the stauts?", "hello"] {
        let said = said(&owner.tries(&[question]).await);
        assert!(said.contains("login"), "{said}");
    }
}

#[tokio::test]
async fn a_link_is_all_it_takes_to_join() {
    let server = Server::start().await;
    let room = Room::new(&server.alice()).await;
    let mut owner = Owner::without_agent();
    let link = format!(
        "{}/install/{}",
        server.url(),
        room.invite().await.short_code
    );
    let wrong = owner.tries(&["join", "https://example.org/nothing"]).await;
    assert_eq!(wrong.status.code(), Some(1));
    assert!(
        owner.types(&["agents", "list"]).await.is_empty(),
        "what is no link makes no agent"
    );
    let printed = owner.types(&["join", &link]).await;
    owner.agent = printed.lines().next().unwrap().to_owned();
    let agent = owner.agent.clone();
    let member = eventually("it is in the room", async || {
        let members = room.alice.members(&room.id).await.unwrap().members;
        members
            .into_iter()
            .find(|one| one.user_id.as_str() == format!("ext_{agent}"))
    })
    .await;
    let answer = room.ask(&format!("@{} help", member.user_id)).await;
    assert!(!answer.is_empty());
    // The same link again changes nothing, nor does the one for people, and any part of the id will do.
    owner.types(&["join", &link]).await;
    let for_people = link.replace("/install/", "/view#invite=");
    owner.types(&["join", &for_people]).await;
    let part = &agent[2..agent.len() - 3];
    let status = owner.types(&["status", "--agent", part]).await;
    assert!(status.contains("running"), "{status}");
    assert!(
        status.contains(&format!("\t{} reached", server.url())),
        "{status}"
    );
    let rooms = owner.types(&["room", "list", "--agent", part]).await;
    let line = rooms
        .lines()
        .find(|line| line.starts_with(room.id.as_str()))
        .unwrap();
    assert!(line.ends_with("\ta room"), "{rooms}");
    owner.types(&["stop", "--now"]).await;
}

#[tokio::test]
async fn a_part_that_several_agents_share_is_asked_about() {
    let mut server = Server::start().await;
    let owner = Owner::with_handler(&server, PARROT).await;
    owner
        .types(&["agents", "add", "--prefix", "curious_badger"])
        .await;
    let output = owner.tries(&["status", "--agent", "curious"]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("several"), "{}", said(&output));
    let status = owner.types(&["status", "--agent", "Curious Otter"]).await;
    assert!(
        status.contains(&format!("{} reached", server.url())),
        "{status}"
    );
    server.kill();
    let status = owner.types(&["status", "--agent", "otter"]).await;
    assert!(status.contains("not reached"), "{status}");
    let listed = owner.types(&["byoa", "list"]).await;
    assert_eq!(listed.lines().count(), 2, "the old name does too: {listed}");
}

#[tokio::test]
async fn a_service_is_written_that_systemd_takes() {
    let server = Server::start().await;
    let owner = Owner::with_handler(&server, PARROT).await;
    let config = owner.folder.path().join("config");
    let types = |args: &[&str]| {
        let mut command = owner.command(args);
        command.env("XDG_CONFIG_HOME", &config).output().unwrap()
    };
    let installed = types(&["service", "install", "--agent", "otter", "--no-start"]);
    assert!(installed.status.success(), "{}", said(&installed));
    let file = String::from_utf8(installed.stdout).unwrap();
    let unit = std::fs::read_to_string(file.trim()).unwrap();
    let run = format!("\"run\" \"--foreground\" \"--agent\" \"{}\"", owner.agent);
    assert!(unit.contains(&run), "{unit}");
    // What systemd itself says of it, where it is here.
    let verify = std::process::Command::new("systemd-analyze")
        .args(["--user", "verify", file.trim()])
        // Without one it looks at nothing.
        .env("XDG_RUNTIME_DIR", owner.folder.path())
        .output();
    if let Ok(verified) = verify {
        assert!(
            verified.status.success() && verified.stderr.is_empty(),
            "{}",
            said(&verified)
        );
    }
    let listed = said(&types(&["service", "status"]));
    assert!(listed.contains(&owner.agent), "{listed}");
    assert!(
        types(&["service", "uninstall", "--agent", "otter"])
            .status
            .success()
    );
    assert!(!std::path::Path::new(file.trim()).exists());
    assert_eq!(
        types(&["service", "uninstall", "--agent", "otter"])
            .status
            .code(),
        Some(1)
    );
}
