//! Readers of event streams that others made.

use crate::harness::{Setup, agent_id, clients, one_engine};
use tokio::process::Command;

one_engine![every_reader_gets_the_opening_and_the_message_and_nothing_else];

async fn every_reader_gets_the_opening_and_the_message_and_nothing_else(setup: Setup) {
    let server = setup.env("STREAM__HEARTBEAT_SECONDS", "1").start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let token = agent.token().unwrap();
    let mut python = Command::new(clients().join("bin/python"));
    python.args([
        "tests/clients/sse_readers.py",
        server.base_url(),
        &room,
        token,
    ]);
    let mut node = Command::new("node");
    node.arg("tests/clients/sse_readers.mjs").arg(clients());
    node.args([server.base_url(), &room, token]);
    for mut reader in [python, node] {
        let output = reader.kill_on_drop(true).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.trim(), "read", "{wrong}");
    }
}
