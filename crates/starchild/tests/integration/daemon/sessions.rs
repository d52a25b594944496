//! What acts for an agent, shown to its owner and ended by them.

use crate::harness::{Owner, PARROT, Room, Server};
use client::Client;
use protocol::InviteCreated;
use serde_json::Value;

async fn joined() -> (Server, Room, Owner) {
    let server = Server::start().await;
    let room = Room::new(&server.alice()).await;
    let owner = Owner::with_handler(&server, PARROT).await;
    owner.joins(&room).await;
    (server, room, owner)
}

/// Somebody with the agent's identity token.
fn bearer(server: &Server, owner: &Owner) -> Client {
    let path = format!("identity/ext_{}.json", owner.agent);
    let file = std::fs::read(owner.home().join(path)).unwrap();
    let file: Value = serde_json::from_slice(&file).unwrap();
    let client = Client::new(&server.url()).unwrap();
    client
        .with_token(file["identity_token"].as_str().unwrap())
        .unwrap()
}

/// The owner's list, a line of cells for each session.
async fn listed(owner: &Owner) -> Vec<Vec<String>> {
    let list = owner.types(&["sessions", "list"]).await;
    let cells = |line: &str| line.split('\t').map(str::to_owned).collect();
    list.lines().map(cells).collect()
}

#[tokio::test]
async fn an_owner_sees_what_acts_for_the_agent_and_ends_all_else() {
    let (server, room, owner) = joined().await;
    let bearer = bearer(&server, &owner);
    let leaked = bearer.refresh_identity().await.unwrap().identity_token;
    let leaked = bearer.with_token(leaked).unwrap();

    let sessions = listed(&owner).await;
    let current: Vec<_> = sessions.iter().filter(|row| row[5] == "current").collect();
    assert_eq!(current.len(), 1, "{sessions:?}");
    assert_eq!(current[0][1], "identity");
    let is_key = |row: &&Vec<String>| row[1] == "member_token" && row[2] == room.id.as_str();
    assert_eq!(sessions.iter().filter(is_key).count(), 1, "{sessions:?}");
    assert_eq!(sessions.len(), 3, "{sessions:?}");

    let asked = owner.tries(&["sessions", "end"]).await;
    assert_eq!(asked.status.code(), Some(1), "a pipe is not asked");
    leaked.sessions().await.unwrap();

    owner.types(&["sessions", "end", "--yes"]).await;
    let refused = leaked.sessions().await.unwrap_err();
    assert_eq!(refused.status(), Some(401), "{refused}");
    let left = listed(&owner).await;
    assert_eq!(left.iter().collect::<Vec<_>>(), current);
    // The daemon gets a key for its room with what was kept.
    let _daemon = owner.runs().await;
    assert_eq!(room.ask("hello").await, "re hello");
}

#[tokio::test]
async fn one_session_ends_by_its_id() {
    let (server, _room, owner) = joined().await;
    let bearer = bearer(&server, &owner);
    bearer.refresh_identity().await.unwrap();
    let sessions = listed(&owner).await;
    let is_other = |row: &&Vec<String>| row[1] == "identity" && row[5] != "current";
    let other = sessions.iter().find(is_other).unwrap();
    owner.types(&["sessions", "end", &other[0], "--yes"]).await;
    let left = listed(&owner).await;
    assert!(!left.contains(other), "{left:?}");
    assert_eq!(left.len(), sessions.len() - 1);
}

#[tokio::test]
async fn after_all_sessions_are_ended_the_next_start_says_what_to_do() {
    let (server, room, owner) = joined().await;
    let all = ["sessions", "end", "--all", "--yes"];
    let ended = owner.tries(&all).await;
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{told}");
    assert!(told.contains("recovery invite"), "{told}");

    let started = owner.tries(&["run"]).await;
    let told = String::from_utf8_lossy(&started.stderr).into_owned();
    let list = owner.types(&["room", "list"]).await;
    owner.types(&["stop", "--now"]).await;
    assert!(told.contains("recovery invite"), "{told}");
    assert!(list.contains("left: its sessions were ended"), "{list}");

    let path = format!("rooms/{}/members/ext_{}/recovery", room.id, owner.agent);
    let invite = reqwest::Client::new()
        .post(format!("{}/{path}", server.url()))
        .bearer_auth(server.alice_token())
        .send()
        .await
        .unwrap();
    let invite: InviteCreated = serde_json::from_slice(&invite.bytes().await.unwrap()).unwrap();
    owner.types(&["room", "join", &invite.short_code]).await;
    let _daemon = owner.runs().await;
    assert_eq!(room.ask("back").await, "re back");
}
