//! Kills, ends and a server that goes away: nothing is lost and nothing is said twice.

use crate::harness::{OBEY, Owner, PARROT, Room, Server, eventually, room_with};
use std::{collections::HashMap, time::Duration};

const MESSAGES: usize = 500;
const KILLS: u64 = 40;

#[tokio::test]
async fn a_daemon_killed_at_random_moments_answers_every_message_once() {
    let server = Server::start().await;
    let alice = server.alice();
    let rooms = [Room::new(&alice).await, Room::new(&alice).await];
    let owner = Owner::with_handler(&server, PARROT).await;
    for room in &rooms {
        owner.joins(room).await;
    }
    let mut daemon = owner.runs().await;
    let mut chance: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut said = 0;
    for _ in 0..KILLS {
        for _ in 0..MESSAGES.div_ceil(KILLS as usize) {
            if said < MESSAGES {
                rooms[said % 2].say(&format!("m{said}")).await;
                said += 1;
            }
        }
        chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        tokio::time::sleep(Duration::from_millis(chance >> 33 & 0x3ff)).await;
        daemon.kill9();
        daemon = owner.starts();
    }
    assert_eq!(said, MESSAGES);
    let ours = async |room: &Room| {
        let mut said = room.said().await;
        said.retain(|message| message.sender_user_id.starts_with("ext_"));
        said
    };
    for room in &rooms {
        let mut before = 0;
        let mut quiet = 0;
        // As long as answers come, there is time.
        while ours(room).await.len() < MESSAGES / 2 {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let now = ours(room).await.len();
            quiet = if now > before { 0 } else { quiet + 1 };
            before = now;
            assert!(quiet < 450, "{now} answers and no more");
        }
        let asked: HashMap<i64, String> = room
            .said()
            .await
            .into_iter()
            .filter(|message| message.sender_user_id == "u_alice")
            .map(|message| (message.seq, message.content))
            .collect();
        let answers = ours(room).await;
        let mut answered: Vec<i64> = answers.iter().filter_map(|a| a.reply_to_seq).collect();
        assert!(
            answered.is_sorted(),
            "messages of one room are answered in order"
        );
        answered.dedup();
        assert_eq!(answered.len(), answers.len(), "nothing is said twice");
        assert_eq!(answered.len(), asked.len(), "nothing is lost");
        for answer in &answers {
            let asked = &asked[&answer.reply_to_seq.unwrap()];
            assert_eq!(answer.content, format!("re {asked}"));
        }
    }
}

#[tokio::test]
async fn what_was_said_while_the_daemon_was_down_is_answered() {
    let (_server, room, owner, mut daemon) = room_with(PARROT).await;
    daemon.terminate();
    assert!(daemon.ends().await.success());
    let seqs = [room.say("one").await, room.say("two").await];
    let _daemon = owner.runs().await;
    assert_eq!(room.answer(seqs[0]).await.content, "re one");
    assert_eq!(room.answer(seqs[1]).await.content, "re two");
}

#[tokio::test]
async fn what_was_said_before_the_agent_joined_is_not() {
    let server = Server::start().await;
    let room = Room::new(&server.alice()).await;
    let old = room.say("before").await;
    let owner = Owner::with_handler(&server, PARROT).await;
    owner.joins(&room).await;
    let between = room.say("between").await;
    let _daemon = owner.runs().await;
    assert_eq!(room.answer(between).await.content, "re between");
    assert!(room.answers(old).await.is_empty());
}

#[tokio::test]
async fn a_server_that_was_away_is_found_again() {
    let (mut server, room, owner, _daemon) = room_with(OBEY).await;
    assert_eq!(room.ask("echo before").await, "before");
    let in_hand = room
        .say("touch begun; while [ ! -e go ]; do sleep 0.1; done; echo in hand")
        .await;
    let folder = owner.folder.path();
    eventually("the handler runs", async || {
        folder.join("begun").exists().then_some(())
    })
    .await;
    server.kill();
    std::fs::write(folder.join("go"), "").unwrap();
    eventually("neither reading nor answering works", async || {
        let log = owner.log();
        let tried = log.contains("the room cannot be read now") && log.contains("waiting");
        tried.then_some(())
    })
    .await;
    server.launch();
    assert_eq!(room.answer(in_hand).await.content, "in hand");
    assert_eq!(room.ask("echo after").await, "after");
}

#[tokio::test]
async fn sigterm_finishes_the_message_in_hand() {
    let (_server, room, owner, mut daemon) = room_with(OBEY).await;
    let seq = room.say("touch begun; sleep 2; echo finished").await;
    let begun = owner.folder.path().join("begun");
    eventually("the handler runs", async || begun.exists().then_some(())).await;
    daemon.terminate();
    assert!(daemon.ends().await.success());
    let answers = room.answers(seq).await;
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].content, "finished");
}

#[tokio::test]
async fn a_second_sigterm_does_not_wait_and_loses_nothing() {
    let (_server, room, owner, mut daemon) = room_with(OBEY).await;
    let seq = room
        .say("[ -e begun ] || { touch begun; sleep 600; }; echo at last")
        .await;
    let begun = owner.folder.path().join("begun");
    eventually("the handler runs", async || begun.exists().then_some(())).await;
    daemon.terminate();
    eventually("it heard", async || {
        owner.log().contains("asked to end").then_some(())
    })
    .await;
    daemon.terminate();
    assert!(daemon.ends().await.success());
    assert!(room.answers(seq).await.is_empty());
    let _daemon = owner.runs().await;
    assert_eq!(room.answer(seq).await.content, "at last");
}
