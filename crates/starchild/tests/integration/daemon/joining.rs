//! Joining over a connection that breaks before the answer is there.

use crate::{
    harness::{Owner, PARROT, Room, Server},
    proxy::{Proxy, Streams},
};

async fn behind_a_proxy() -> (Server, Room, Proxy, Owner) {
    let server = Server::start().await;
    let room = Room::new(&server.alice()).await;
    let proxy = Proxy::before(&server.url(), Streams::Pass).await;
    let owner = Owner::at(&proxy.url, PARROT, &[]).await;
    (server, room, proxy, owner)
}

#[tokio::test]
async fn a_lost_answer_to_joining_is_asked_for_again() {
    let (_server, room, proxy, owner) = behind_a_proxy().await;
    proxy.lose_answers("join", 1);
    owner.joins(&room).await;
    assert_eq!(proxy.asked(&format!("/rooms/{}/join", room.id)), 2);
    let kept = std::fs::read_dir(owner.place().join("joins")).unwrap();
    assert_eq!(kept.count(), 0, "an answered request is forgotten");
    let _daemon = owner.runs().await;
    assert_eq!(room.ask("hello").await, "re hello");
}

#[tokio::test]
async fn joining_again_after_every_answer_was_lost_gives_the_token_and_misses_nothing() {
    let (_server, room, proxy, owner) = behind_a_proxy().await;
    let code = room.invite().await.short_code;
    let join = ["room", "join", &code, "--display-name", "Otter"];
    proxy.lose_answers("join", usize::MAX);
    let failed = owner.tries(&join).await;
    assert_eq!(failed.status.code(), Some(2), "it may pass");
    let members = room.alice.members(&room.id).await.unwrap().members;
    assert_eq!(members.len(), 2, "the agent is a member without a token");

    let between = room.say("between").await;
    proxy.lose_answers("join", 0);
    owner.types(&join).await;
    let _daemon = owner.runs().await;
    assert_eq!(room.answer(between).await.content, "re between");
}
