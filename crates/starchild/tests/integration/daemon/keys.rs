//! Keys that are lost, refused or about to end, and the agent's own credential.

use crate::{
    harness::{Owner, PARROT, Room, Server, eventually, room_with},
    proxy::{Proxy, Streams},
};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

const DAY: i64 = 24 * 3600;

fn room_file(owner: &Owner, room: &Room) -> PathBuf {
    let rooms = owner.place().join("rooms");
    rooms.join(format!("{}.json", room.id))
}

fn identity_file(owner: &Owner) -> PathBuf {
    let folder = owner.home().join("identity");
    folder.join(format!("ext_{}.json", owner.agent))
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn change(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut json = read(path);
    change(&mut json);
    std::fs::write(path, json.to_string()).unwrap();
}

/// Says that the token was made long ago and ends in two days. It holds for longer.
fn seems_old(json: &mut Value) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = i64::try_from(now.as_secs()).unwrap();
    json["issued_at"] = json!(now - 5 * DAY);
    json["expires_at"] = json!(now + 2 * DAY);
}

#[tokio::test]
async fn a_lost_room_file_comes_back_by_itself() {
    let (_server, room, owner, mut daemon) = room_with(PARROT).await;
    let file = owner
        .place()
        .join("rooms")
        .join(format!("{}.json", room.id));
    std::fs::remove_file(&file).unwrap();
    eventually("the file is back", async || file.exists().then_some(())).await;
    assert_eq!(room.ask("while running").await, "re while running");

    daemon.kill9();
    std::fs::write(&file, "{ \"half").unwrap();
    let seq = room.say("while down").await;
    let _daemon = owner.starts();
    assert_eq!(room.answer(seq).await.content, "re while down");
}

#[tokio::test]
async fn keys_are_replaced_before_they_end() {
    let ttl = [("TOKENS__ROOM_KEY_TTL_SECONDS", "12")];
    let server = Server::with(&ttl).await;
    let room = Room::new(&server.alice()).await;
    let owner = Owner::with_handler(&server, PARROT).await;
    owner.joins(&room).await;
    let _daemon = owner.runs().await;
    eventually("the key is renewed twice", async || {
        (owner.log().matches("the room key is renewed").count() >= 2).then_some(())
    })
    .await;
    assert_eq!(room.ask("hello").await, "re hello");
    assert!(!owner.log().contains("refused"), "{}", owner.log());
}

#[tokio::test]
async fn an_identity_that_ends_soon_is_renewed_at_the_start() {
    let server = Server::start().await;
    let room = Room::new(&server.alice()).await;
    let owner = Owner::with_handler(&server, PARROT).await;
    owner.joins(&room).await;
    let file = identity_file(&owner);
    change(&file, seems_old);
    let old = read(&file);
    let _daemon = owner.runs().await;
    eventually("there is a new identity", async || {
        (read(&file)["identity_token"] != old["identity_token"]).then_some(())
    })
    .await;
    let new = read(&file);
    let life = new["expires_at"].as_i64().unwrap() - new["issued_at"].as_i64().unwrap();
    assert!((89 * DAY..=90 * DAY).contains(&life), "{life}");
    assert_eq!(new["rooms"], old["rooms"]);
}

#[tokio::test]
async fn an_identity_is_renewed_for_as_long_as_the_daemon_runs_and_gives_lost_keys_back() {
    let server = Server::with(&[("TOKENS__IDENTITY_TTL_SECONDS", "12")]).await;
    let room = Room::new(&server.alice()).await;
    let owner = Owner::with_handler(&server, PARROT).await;
    owner.joins(&room).await;
    let _daemon = owner.runs().await;
    // By the third time, the first one has ended.
    eventually("the identity is renewed", async || {
        (owner.log().matches("the identity token is renewed").count() >= 3).then_some(())
    })
    .await;
    let file = room_file(&owner, &room);
    std::fs::remove_file(&file).unwrap();
    eventually("the file is back", async || file.exists().then_some(())).await;
    assert_eq!(room.ask("hello").await, "re hello");
}

#[tokio::test]
async fn an_identity_that_does_not_hold_is_made_anew_with_a_room_key() {
    let server = Server::start().await;
    let room = Room::new(&server.alice()).await;
    let owner = Owner::with_handler(&server, PARROT).await;
    owner.joins(&room).await;
    let file = identity_file(&owner);
    change(&file, |json| {
        seems_old(json);
        json["identity_token"] = json!("eyJmb3JnZWQi.e30.x");
    });
    let _daemon = owner.runs().await;
    eventually("the identity is renewed", async || {
        let log = owner.log();
        log.contains("the identity token is renewed").then_some(())
    })
    .await;
    let key = room_file(&owner, &room);
    std::fs::remove_file(&key).unwrap();
    eventually("the file is back", async || key.exists().then_some(())).await;
}

#[tokio::test]
async fn a_key_that_ends_unforeseen_is_replaced_without_a_message_lost() {
    let server = Server::with(&[("TOKENS__ROOM_KEY_TTL_SECONDS", "8")]).await;
    let room = Room::new(&server.alice()).await;
    let owner = Owner::with_handler(&server, PARROT).await;
    owner.joins(&room).await;
    change(&room_file(&owner, &room), |json| {
        let issued_at = json["issued_at"].as_i64().unwrap();
        json["expires_at"] = json!(issued_at + 7 * DAY);
    });
    let _daemon = owner.runs().await;
    eventually("the key is refused", async || {
        assert_eq!(room.ask("hello").await, "re hello");
        owner
            .log()
            .contains("the room key was refused")
            .then_some(())
    })
    .await;
    assert_eq!(room.ask("hello again").await, "re hello again");
}

#[tokio::test]
async fn keys_that_the_server_gives_one_a_minute_are_waited_for() {
    let server = Server::with(&[("LIMITS__TOKEN_MINTS_PER_MINUTE", "1")]).await;
    let alice = server.alice();
    let owner = Owner::with_handler(&server, PARROT).await;
    let rooms = [Room::new(&alice).await, Room::new(&alice).await];
    for room in &rooms {
        owner.joins(room).await;
    }
    // The reserved rooms would queue for keys, too.
    change(&identity_file(&owner), |json| {
        json["rooms"] = json!(rooms.each_ref().map(|room| room.id.to_string()));
    });
    let [lost, refused] = rooms.each_ref().map(|room| room_file(&owner, room));
    std::fs::remove_file(&lost).unwrap();
    change(&refused, |json| {
        json["member_token"] = json!("eyJmb3JnZWQi.e30.x")
    });
    let _daemon = owner.starts();
    let mut seqs = Vec::new();
    for room in &rooms {
        seqs.push(room.say("is anybody there").await);
    }
    for (room, seq) in rooms.iter().zip(seqs) {
        assert_eq!(room.answer(seq).await.content, "re is anybody there");
    }
    let log = owner.log();
    assert!(log.contains("rate_limited"), "{log}");
    assert!(!log.contains("is not followed"), "{log}");
    assert!(!log.contains("left:"), "{log}");
}

#[tokio::test]
async fn keys_of_many_rooms_that_end_together_are_renewed_one_after_the_other() {
    const ROOMS: usize = 12;
    let server = Server::start().await;
    let alice = server.alice();
    let proxy = Proxy::before(&server.url(), Streams::Pass).await;
    let owner = Owner::at(&proxy.url, PARROT, &[]).await;
    let mut rooms = Vec::new();
    for _ in 0..ROOMS {
        let room = Room::new(&alice).await;
        owner.joins(&room).await;
        change(&room_file(&owner, &room), seems_old);
        rooms.push(room);
    }
    let _daemon = owner.runs().await;
    eventually("every key is renewed", async || {
        (owner.log().matches("the room key is renewed").count() >= ROOMS).then_some(())
    })
    .await;
    assert_eq!(proxy.most_at_once("reissue-token"), 1);
    for room in &rooms {
        let user = format!("ext_{}", owner.agent);
        let path = format!("/rooms/{}/members/{user}/reissue-token", room.id);
        assert_eq!(proxy.asked(&path), 1, "{path}");
        assert_eq!(room.ask("hello").await, "re hello");
    }
}
