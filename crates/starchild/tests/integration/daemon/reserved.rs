//! The rooms that every agent is in.

use crate::harness::{OBEY, Owner, PARROT, Room, Server, eventually};

const RESERVED: [&str; 3] = ["rm_welcome", "rm_feedback", "rm_bugs"];

#[tokio::test]
async fn the_daemon_follows_the_reserved_rooms_and_answers_there() {
    let server = Server::start().await;
    let room = Room::new(&server.alice()).await;
    let owner = Owner::with_handler(&server, PARROT).await;
    owner.joins(&room).await;
    let _daemon = owner.runs().await;
    for id in RESERVED {
        let file = owner.place().join("rooms").join(format!("{id}.json"));
        eventually("there is a key", async || file.exists().then_some(())).await;
    }
    let listed = owner.types(&["room", "list"]).await;
    assert_eq!(listed.matches("\tjoined").count(), 4, "{listed}");
    for id in RESERVED {
        let room = Room::reserved(&server.alice(), id).await;
        assert_eq!(room.ask("hello").await, "re hello", "{id}");
    }
}

#[tokio::test]
async fn what_is_said_in_a_reserved_room_before_its_key_is_there_is_answered_and_nothing_older() {
    let server = Server::start().await;
    let room = Room::new(&server.alice()).await;
    let owner = Owner::with_handler(&server, OBEY).await;
    let welcome = Room::reserved(&server.alice(), "rm_welcome").await;
    let before = welcome.say("echo too early").await;
    owner.joins(&room).await;
    let listed = owner.types(&["room", "list"]).await;
    assert_eq!(
        listed.matches("the daemon fetches its key").count(),
        3,
        "{listed}"
    );
    let after = welcome.say("echo in time").await;
    let _daemon = owner.runs().await;
    assert_eq!(welcome.answer(after).await.content, "in time");
    assert!(welcome.answers(before).await.is_empty());
}

#[tokio::test]
async fn a_reserved_room_can_be_left() {
    let server = Server::start().await;
    let room = Room::new(&server.alice()).await;
    let owner = Owner::with_handler(&server, PARROT).await;
    owner.joins(&room).await;
    let early = owner.tries(&["room", "leave", "rm_bugs"]).await;
    assert_eq!(early.status.code(), Some(2), "it may work later");
    let _daemon = owner.runs().await;
    let file = owner.place().join("rooms/rm_bugs.json");
    eventually("there is a key", async || file.exists().then_some(())).await;
    owner.types(&["room", "leave", "rm_bugs"]).await;
    let listed = owner.types(&["room", "list"]).await;
    assert!(!listed.contains("rm_bugs"), "{listed}");
    let bugs = Room::reserved(&server.alice(), "rm_bugs").await;
    let members = bugs.alice.members(&bugs.id).await.unwrap().members;
    let agent = format!("ext_{}", owner.agent);
    assert!(
        members
            .iter()
            .all(|member| member.user_id.as_str() != agent)
    );
}

#[tokio::test]
async fn a_reserved_room_that_was_left_is_joined_again_only_on_purpose() {
    let server = Server::start().await;
    let alice = server.alice();
    let room = Room::new(&alice).await;
    let owner = Owner::with_handler(&server, PARROT).await;
    owner.joins(&room).await;
    let _daemon = owner.runs().await;
    let file = owner.place().join("rooms/rm_bugs.json");
    eventually("there is a key", async || file.exists().then_some(())).await;
    owner.types(&["room", "leave", "rm_bugs"]).await;

    let second = Room::new(&alice).await;
    owner.joins(&second).await;
    assert_eq!(second.ask("hello").await, "re hello");
    let listed = owner.types(&["room", "list"]).await;
    assert!(!listed.contains("rm_bugs"), "{listed}");
    let bugs = Room::reserved(&alice, "rm_bugs").await;
    let seq = bugs.say("is it here?").await;

    // Anybody gets an invite to a public room.
    let code = alice.auto_invite(&bugs.id).await.unwrap().invite_code;
    owner.types(&["room", "join", &code]).await;
    assert_eq!(bugs.ask("and now?").await, "re and now?");
    assert!(bugs.answers(seq).await.is_empty());
}
