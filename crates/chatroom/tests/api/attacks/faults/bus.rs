//! The bus is a convenience: without it a node starts, serves, and says what it lacks.

use crate::harness::{Engine, Setup};
use std::net::TcpListener;

/// The address of a bus that is away.
pub fn no_bus() -> String {
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("nats://{}", port.local_addr().unwrap())
}

#[tokio::test]
async fn a_node_starts_while_the_bus_is_away_and_says_so() {
    let one = Setup::new(Engine::Postgres)
        .env("BUS", &no_bus())
        .start()
        .await;
    let two = one.another_node().await;
    let health = one.anonymous().get("/health").await.ok();
    let warning = health["warnings"][0].as_str().unwrap();
    assert!(warning.contains("the bus is away"), "{warning}");
    let alice = one.user("u_alice");
    let room = alice.creates_a_room().await;
    let mut events = alice.at(&two).listens(&room).await;
    alice.says(&room, "without a bus").await;
    assert_eq!(events.expect("message").await["content"], "without a bus");
}
