//! Rooms that come and go, and limits.

use crate::harness::{OBEY, Owner, PARROT, Room, Server, eventually, room_with};
use client::protocol::UpdateRoom;

#[tokio::test]
async fn a_room_that_is_joined_while_the_daemon_runs_is_taken_up() {
    let (_server, room, owner, _daemon) = room_with(PARROT).await;
    let second = Room::new(&room.alice).await;
    owner.joins(&second).await;
    assert_eq!(second.ask("hello").await, "re hello");
    assert_eq!(room.ask("still here").await, "re still here");

    owner.types(&["room", "leave", second.id.as_str()]).await;
    let members = second.alice.members(&second.id).await.unwrap().members;
    assert_eq!(members.len(), 1);
    assert_eq!(room.ask("and here").await, "re and here");
}

#[tokio::test]
async fn a_slow_room_does_not_hold_up_another() {
    let (_server, room, owner, _daemon) = room_with(OBEY).await;
    let second = Room::new(&room.alice).await;
    owner.joins(&second).await;
    let slow = room
        .say("while [ ! -e go ]; do sleep 0.1; done; echo slow")
        .await;
    assert_eq!(second.ask("echo quick").await, "quick");
    assert!(room.answers(slow).await.is_empty());
    std::fs::write(owner.folder.path().join("go"), "").unwrap();
    assert_eq!(room.answer(slow).await.content, "slow");
}

#[tokio::test]
async fn a_cooldown_is_waited_out() {
    let server = Server::with(&[("LIMITS__AGENT_COOLDOWN_SECONDS", "2")]).await;
    let alice = server.alice();
    let room = Room::new(&alice).await;
    let owner = Owner::with_handler(&server, PARROT).await;
    owner.joins(&room).await;
    let mut seqs = Vec::new();
    for n in 0..3 {
        let say = async || {
            let message = client::PostMessage {
                content: format!("m{n}"),
                ..Default::default()
            };
            room.alice.post_message(&room.id, &message, None).await.ok()
        };
        seqs.push(eventually("Alice may speak", say).await.seq);
    }
    let _daemon = owner.runs().await;
    for (n, seq) in seqs.into_iter().enumerate() {
        assert_eq!(room.answer(seq).await.content, format!("re m{n}"));
    }
    assert!(owner.log().contains("agent_cooldown"), "{}", owner.log());
}

#[tokio::test]
async fn an_agent_that_answers_itself_comes_to_an_end() {
    let (_server, room, owner, _daemon) =
        room_with("#!/bin/sh\ncat > /dev/null\necho again\n").await;
    room.say("go").await;
    eventually("the room says stop", async || {
        owner.log().contains("chain_too_deep").then_some(())
    })
    .await;
    let said = room.said().await;
    let deepest = said.iter().map(|message| message.reply_chain_depth).max();
    assert_eq!(deepest, Some(5));
}

#[tokio::test]
async fn being_removed_is_said_in_words_and_ends_the_following() {
    let (_server, room, owner, _daemon) = room_with(PARROT).await;
    let user = format!("ext_{}", owner.agent).parse().unwrap();
    room.alice.remove_member(&room.id, &user).await.unwrap();
    eventually("the log says so", async || {
        owner
            .log()
            .contains("the agent was removed from it")
            .then_some(())
    })
    .await;
    eventually("the list says so", async || {
        let rooms = owner.types(&["room", "list"]).await;
        rooms.contains("left: ").then_some(())
    })
    .await;
    // Invited again, it is back without a restart.
    owner.joins(&room).await;
    assert_eq!(room.ask("welcome back").await, "re welcome back");
}

#[tokio::test]
async fn an_archived_room_is_said_in_words_and_answered_when_it_is_open_again() {
    let (_server, room, owner, _daemon) = room_with(OBEY).await;
    let seq = room
        .say("touch begun; while [ ! -e go ]; do sleep 0.1; done; echo late")
        .await;
    let folder = owner.folder.path();
    eventually("the handler runs", async || {
        folder.join("begun").exists().then_some(())
    })
    .await;
    let archived = |archived| UpdateRoom {
        archived: Some(archived),
        ..Default::default()
    };
    room.alice
        .update_room(&room.id, &archived(true))
        .await
        .unwrap();
    std::fs::write(folder.join("go"), "").unwrap();
    eventually("the log says so", async || {
        owner.log().contains("archived").then_some(())
    })
    .await;
    room.alice
        .update_room(&room.id, &archived(false))
        .await
        .unwrap();
    assert_eq!(room.ask("echo open").await, "open");
    assert!(room.answers(seq).await.is_empty());
}
