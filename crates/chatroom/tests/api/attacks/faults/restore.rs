//! A restored copy does not call real agents until it is told to.

use crate::harness::{Engine, Setup, eventually, stand_in};
use axum::{Router, routing::post};
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

#[tokio::test]
async fn a_restored_copy_calls_nobody_until_it_is_told_to() {
    let mut server = Setup::new(Engine::Sqlite).start().await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let agent = Router::new().route(
        "/chat/stream",
        post(async move || {
            counted.fetch_add(1, Ordering::SeqCst);
            "data: [DONE]\n\n"
        }),
    );
    let agent = stand_in(agent).await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let (bob, code) = (server.user("u_bob"), alice.invites(&room).await);
    let body = json!({"invite_code": code, "agent_endpoint": agent, "akm_key": "sk_secret_of_bob"});
    bob.post(format!("/rooms/{room}/join"), body)
        .await
        .created();
    alice.says(&room, "for the original").await;
    let called = async |times: usize| {
        eventually("the agent is called", async || {
            (calls.load(Ordering::SeqCst) >= times).then_some(())
        })
        .await;
    };
    called(1).await;

    let (file, copy) = (
        server.folder().join("copy.tar"),
        server.folder().join("copy"),
    );
    let (file, copy) = (
        file.to_str().unwrap().to_owned(),
        copy.to_str().unwrap().to_owned(),
    );
    let data = server.data().to_str().unwrap().to_owned();
    for args in [
        ["backup", &file, "--data", &data],
        ["restore", &file, "--data", &copy],
    ] {
        let output = server.run_aside(&args).await;
        assert!(output.status.success(), "{output:?}");
    }
    assert!(server.terminate().await.success());
    server.move_to(copy.as_ref());
    server.restart().await;
    let health = eventually("the copy says that it calls nobody", async || {
        let health = server.anonymous().get("/health").await.ok();
        health["warnings"][0].as_str().map(str::to_owned)
    })
    .await;
    assert!(health.contains("calls resume"), "{health}");
    let before = calls.load(Ordering::SeqCst);
    alice.at(&server).says(&room, "for the copy").await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!(calls.load(Ordering::SeqCst), before);

    let output = server
        .run_aside(&["calls", "resume", "--data", &copy])
        .await;
    assert!(output.status.success(), "{output:?}");
    called(before + 1).await;
    let health = server.anonymous().get("/health").await.ok();
    assert_eq!(health.get("warnings"), None);

    // And a server that was told not to calls nobody after its next start.
    let output = server.run_aside(&["calls", "pause", "--data", &copy]).await;
    assert!(output.status.success(), "{output:?}");
    server.restart().await;
    let before = calls.load(Ordering::SeqCst);
    alice.at(&server).says(&room, "for nobody").await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!(calls.load(Ordering::SeqCst), before);
}
