//! `starchild mcp`: the official TypeScript SDK on standard input and output, and what a client gets that the server
//! has forgotten.

use crate::harness::{Owner, Room, Server};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Command, Stdio},
};

fn clients() -> PathBuf {
    let folder = std::env::var_os("SC_TEST_CLIENTS").unwrap_or_else(|| {
        panic!("run crates/chatroom/tests/clients/install.sh FOLDER and set SC_TEST_CLIENTS=FOLDER")
    });
    folder.into()
}

async fn agent_in_room(server: &Server) -> (Room, Owner) {
    let room = Room::new(&server.alice()).await;
    let owner = Owner::with_handler(server, "#!/bin/sh\n").await;
    owner.joins(&room).await;
    (room, owner)
}

#[tokio::test]
async fn the_typescript_sdk_takes_part_through_the_program() {
    let server = Server::start().await;
    let (room, owner) = agent_in_room(&server).await;
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../chatroom/tests/clients/mcp_sdk.mjs"
    );
    let mut node = Command::new("node");
    node.arg(script)
        .arg(clients())
        .args([room.id.as_str(), "-"]);
    node.args([env!("CARGO_BIN_EXE_starchild"), "mcp"]);
    node.env("STARCHILD_HOME", owner.home());
    let output = tokio::task::spawn_blocking(move || node.output())
        .await
        .unwrap()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        said.trim(),
        "took part",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let said = room.said().await;
    assert!(
        said.iter()
            .any(|message| message.content == "hello from TypeScript")
    );
}

#[tokio::test]
async fn a_session_that_the_server_forgot_is_opened_anew() {
    let mut server = Server::start().await;
    let (room, owner) = agent_in_room(&server).await;
    let mut program = owner.command(&["mcp"]);
    let mut program = program
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = program.stdin.take().unwrap();
    let mut output = BufReader::new(program.stdout.take().unwrap());
    let mut ask = move |message: Value| -> Value {
        writeln!(input, "{message}").unwrap();
        if message.get("id").is_none() {
            return Value::Null;
        }
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let rules = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {"name": "get_rules", "arguments": {"room_id": room.id}}});
    let asked = tokio::task::spawn_blocking(move || {
        let opened =
            ask(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}));
        assert_eq!(opened["result"]["serverInfo"]["name"], "sc-chatroom");
        ask(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(
            ask(rules.clone())["result"]["structuredContent"]["version"],
            0
        );
        server.kill();
        let away = ask(rules.clone());
        assert!(
            away["error"]["message"]
                .as_str()
                .unwrap()
                .contains("cannot be reached"),
            "{away}"
        );
        server.launch();
        let again = ask(rules);
        assert_eq!(
            again["result"]["structuredContent"]["version"], 0,
            "{again}"
        );
        drop(ask);
        // Standard input has ended.
        assert!(program.wait().unwrap().success());
        server
    });
    asked.await.unwrap();
}

#[tokio::test]
async fn whoever_is_in_no_room_is_told_how_to_join_one() {
    let server = Server::start().await;
    let owner = Owner::with_handler(&server, "#!/bin/sh\n").await;
    let output = owner.tries(&["mcp"]).await;
    assert_eq!(output.status.code(), Some(1));
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("starchild room join CODE"), "{words}");
}
