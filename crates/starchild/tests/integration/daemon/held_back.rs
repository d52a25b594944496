//! A stream that does not come through: answers come all the same, and none twice.

use crate::{
    harness::{Owner, PARROT, Room, Server, eventually},
    proxy::{Proxy, Streams},
};

async fn answers_come_although_streams_are(held_back: Streams) {
    let server = Server::with(&[("STREAM__HEARTBEAT_SECONDS", "2")]).await;
    let room = Room::new(&server.alice()).await;
    let proxy = Proxy::before(&server.url(), held_back).await;
    let owner = Owner::at(&proxy.url, PARROT, &[]).await;
    owner.joins(&room).await;
    let _daemon = owner.runs().await;

    let asked = async |words: &str| {
        let mut seqs = Vec::new();
        for n in 0..5 {
            seqs.push(room.say(&format!("{words}{n}")).await);
        }
        for (n, seq) in seqs.into_iter().enumerate() {
            assert_eq!(room.answer(seq).await.content, format!("re {words}{n}"));
        }
    };
    // The reserved rooms have lines of their own.
    let line = |words: &str| format!("room{{id={}}}: {words}", room.id);
    let log_says = async |words: &str| {
        let line = line(words);
        eventually(words, async || owner.log().contains(&line).then_some(())).await;
    };
    asked("held back ").await;
    log_says("the stream does not come through; the room is read every 3 seconds instead").await;
    asked("still ").await;

    proxy.set(Streams::Pass);
    log_says("the stream comes through again").await;
    let pages = format!("/rooms/{}/messages", room.id);
    let posts_and_pages = proxy.asked(&pages);
    asked("free ").await;
    assert_eq!(
        proxy.asked(&pages),
        posts_and_pages + 5,
        "five answers are posted and no page is read"
    );

    let mut answered: Vec<_> = room.said().await;
    answered.retain(|message| message.sender_user_id.starts_with("ext_"));
    let answered: Vec<_> = answered.into_iter().map(|m| m.reply_to_seq).collect();
    assert_eq!(answered.len(), 15, "none is lost and none is doubled");
    assert!(answered.is_sorted());
}

#[tokio::test]
async fn a_proxy_that_refuses_streams_is_got_around_until_it_lets_them_through() {
    answers_come_although_streams_are(Streams::Refuse).await;
}

#[tokio::test]
async fn a_proxy_that_keeps_what_streams_say_is_got_around_until_it_lets_them_through() {
    answers_come_although_streams_are(Streams::Swallow).await;
}

#[tokio::test]
async fn a_proxy_that_keeps_what_streams_say_later_is_got_around_until_it_lets_them_through() {
    answers_come_although_streams_are(Streams::Hold).await;
}

#[tokio::test]
async fn a_proxy_that_cuts_streams_is_got_around_until_it_lets_them_through() {
    answers_come_although_streams_are(Streams::Cut).await;
}
