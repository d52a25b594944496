//! The command line: what is printed, what is kept, and the exit codes.

use crate::harness::{Owner, PARROT, Room, Server, eventually, room_with};
use serde_json::Value;
use std::{os::unix::fs::PermissionsExt, process::Stdio};

#[tokio::test]
async fn adding_an_agent_prints_its_id_alone_and_twice_does_no_harm() {
    let server = Server::start().await;
    let owner = Owner::with_handler(&server, PARROT).await;
    let (prefix, suffix) = owner.agent.rsplit_once('-').unwrap();
    assert_eq!((prefix, suffix.len()), ("curious_otter", 8));
    let id = owner.types(&["id", "--prefix", "curious_otter"]).await;
    assert_eq!(id, format!("{}\n", owner.agent));

    let url = server.url();
    let mut again = vec![
        "byoa",
        "add",
        "--prefix",
        "curious_otter",
        "--backend",
        "handler",
        "--handler-path",
        "handler.sh",
        "--server",
        &url,
    ];
    assert_eq!(owner.types(&again).await, id);
    again.extend(["--model", "other"]);
    assert_eq!(owner.tries(&again).await.status.code(), Some(1));

    let list = owner.types(&["byoa", "list"]).await;
    assert_eq!(
        list,
        format!("{}\thandler\t{url}\t0\tstopped\n", owner.agent)
    );
    owner
        .types(&["byoa", "edit", &owner.agent, "--timeout-seconds", "7"])
        .await;
    let yaml = std::fs::read_to_string(owner.place().join("handler.yaml")).unwrap();
    assert!(yaml.contains("timeout_seconds: 7"), "{yaml}");
    owner
        .types(&["byoa", "remove", &owner.agent, "--yes"])
        .await;
    assert_eq!(owner.types(&["byoa", "list"]).await, "");
}

#[tokio::test]
async fn an_agent_without_a_backend_is_plain_and_the_owner_learns_how_to_change_it() {
    let server = Server::start().await;
    let owner = Owner::with_handler(&server, PARROT).await;
    let url = server.url();
    let add = ["byoa", "add", "--prefix", "sunny_willow", "--server", &url];
    let output = owner.tries(&add).await;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let id = String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned();
    let hint = format!("starchild agents edit {id} --backend");
    assert!(stderr.contains(&hint), "{stderr}");
    let list = owner.types(&["byoa", "list"]).await;
    assert!(list.contains(&format!("{id}\tplain\t{url}\t")), "{list}");
    assert_eq!(owner.types(&add).await, format!("{id}\n"), "twice");
}

#[tokio::test]
async fn editing_leaves_the_server_as_it_is_whatever_the_environment_says() {
    let server = Server::start().await;
    let owner = Owner::with_handler(&server, PARROT).await;
    let edit = ["byoa", "edit", &owner.agent, "--timeout-seconds", "7"];
    let mut command = owner.command(&edit);
    let edited = command.env("STARCHILD_SERVER", "http://elsewhere.example");
    assert!(edited.output().unwrap().status.success());
    let yaml = std::fs::read_to_string(owner.place().join("handler.yaml")).unwrap();
    assert!(yaml.contains("timeout_seconds: 7"), "{yaml}");
    assert!(
        yaml.contains(&server.url()) && !yaml.contains("elsewhere"),
        "{yaml}"
    );
    let move_it = [
        "byoa",
        "edit",
        &owner.agent,
        "--server",
        "http://b.example/",
    ];
    owner.types(&move_it).await;
    let yaml = std::fs::read_to_string(owner.place().join("handler.yaml")).unwrap();
    assert!(yaml.contains("server: \"http://b.example\""), "{yaml}");
}

#[tokio::test]
async fn mistakes_are_1_and_a_server_that_is_away_is_2() {
    let mut server = Server::start().await;
    let room = Room::new(&server.alice()).await;
    let owner = Owner::with_handler(&server, PARROT).await;
    let code = room.invite().await.short_code;
    for (args, hint) in [
        (vec!["id", "--prefix", "short"], "8 to 20"),
        (
            vec!["byoa", "add", "--prefix", "curious_otter"],
            "agents edit",
        ),
        (vec!["room", "join", "hello"], "i_…"),
        (vec!["room", "join", "i_00000000"], "owner"),
        (vec!["room", "leave", "rm_nothere"], "room list"),
        (
            vec!["run", "--agent", "nobody_here-00000000"],
            "agents list",
        ),
        (vec!["byoa", "edit", &owner.agent], "--timeout-seconds"),
        (vec!["nonsense"], "--help"),
    ] {
        let output = owner.tries(&args).await;
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(hint), "{args:?}: {stderr}");
        assert!(output.stdout.is_empty());
    }
    server.kill();
    let output = owner.tries(&["room", "join", &code]).await;
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("onnection refused"), "{stderr}");
    server.launch();
    owner.types(&["room", "join", &code]).await;
    // The code is used up, and that does no harm either.
    owner.types(&["room", "join", &code]).await;
}

#[tokio::test]
async fn a_reader_who_has_seen_enough_is_no_failure() {
    let (_server, _room, owner, _daemon) = room_with(PARROT).await;
    for args in [
        ["id", "--prefix", "curious_otter"].as_slice(),
        &["byoa", "list"],
        &["room", "list", "--json"],
        &["status"],
        &["logs"],
        &["logs", "-f"],
        &["doctor"],
        &["completions", "bash"],
        &["gen-handler", "--output", "-"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = owner.command(args);
        let running = command.stdout(writer).stderr(Stdio::piped()).spawn();
        let ended = tokio::task::spawn_blocking(|| running.unwrap().wait_with_output());
        let output = ended.await.unwrap().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {stderr}");
        assert!(!stderr.contains("pipe"), "{args:?}: {stderr}");
    }
}

#[tokio::test]
async fn a_daemon_runs_apart_from_the_terminal_and_is_one_at_a_time() {
    let server = Server::start().await;
    let room = Room::new(&server.alice()).await;
    let owner = Owner::with_handler(&server, PARROT).await;
    let link = room.invite().await.install_url;
    owner.types(&["room", "join", &link]).await;
    owner.types(&["run"]).await;
    owner.types(&["run"]).await;
    assert_eq!(
        owner.tries(&["run", "--foreground"]).await.status.code(),
        Some(1)
    );
    assert_eq!(room.ask("hello").await, "re hello");

    let status = owner.types(&["status", "--json"]).await;
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status[0]["running"], true);
    let pid = status[0]["pid"].as_i64().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<_> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    assert_eq!(fields[3], pid.to_string(), "it leads a session of its own");
    eventually("the log says so", async || {
        let log = owner.types(&["logs"]).await;
        log.contains("answered as_seq=").then_some(())
    })
    .await;

    owner.types(&["restart"]).await;
    assert_eq!(room.ask("again").await, "re again");
    owner.types(&["stop"]).await;
    assert!(owner.types(&["status"]).await.contains("\tstopped\t"));
    eventually("the process is gone", async || {
        (!std::path::Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    })
    .await;
    // A file that a daemon left behind stops nobody.
    assert!(owner.place().join("daemon.pid").exists());
    owner.types(&["run"]).await;
    owner.types(&["stop", "--now"]).await;
}

#[tokio::test]
async fn a_daemon_whose_folder_is_removed_ends() {
    let (_server, room, owner, mut daemon) = room_with(PARROT).await;
    assert_eq!(room.ask("hello").await, "re hello");
    std::fs::rename(owner.home(), owner.folder.path().join("gone")).unwrap();
    assert!(daemon.ends().await.success());
}

#[tokio::test]
async fn secrets_are_the_owners_alone() {
    let server = Server::start().await;
    let room = Room::new(&server.alice()).await;
    let owner = Owner::with_handler(&server, PARROT).await;
    owner.joins(&room).await;
    let mode = |path: &std::path::Path| {
        let metadata = std::fs::metadata(path).unwrap();
        metadata.permissions().mode() & 0o777
    };
    let identity = owner
        .home()
        .join(format!("identity/ext_{}.json", owner.agent));
    let key = owner.place().join(format!("rooms/{}.json", room.id));
    for secret in [&identity, &key] {
        assert_eq!(mode(secret), 0o600, "{}", secret.display());
        assert_eq!(mode(secret.parent().unwrap()), 0o700);
    }
    let identity: Value = serde_json::from_slice(&std::fs::read(identity).unwrap()).unwrap();
    assert!(
        identity["identity_token"]
            .as_str()
            .unwrap()
            .starts_with("ey")
    );
}
