//! Credentials cannot grow, and end with what they were made from.

mod derived;
mod lineages;
mod push_bearers;
mod recovery;
mod repeats;
mod shared_keys;
mod visitors;

use crate::harness::{Caller, Reply, claims};

const OTTER: &str = "curious_otter-3a9f1c20";

fn reissue(room: &str, user: &str) -> String {
    format!("/rooms/{room}/members/{user}/reissue-token")
}

/// The `jti` of a caller's token.
fn jti(caller: &Caller) -> String {
    let claims = claims(caller.token().unwrap());
    claims["jti"].as_str().unwrap().to_owned()
}

/// The caller with the token that this answer brought.
fn with(caller: &Caller, reply: Reply, field: &str) -> Caller {
    assert!(matches!(reply.status, 200 | 201), "{}", reply.text());
    caller.with_token(reply.json()[field].as_str().unwrap())
}

/// A new key for a room, made with this credential.
async fn reissued(with_this: &Caller, room: &str, user: &str) -> Caller {
    let reply = with_this.post_nothing(reissue(room, user)).await;
    with(with_this, reply, "member_token")
}

/// An identity token made with this room key.
async fn minted(key: &Caller) -> Caller {
    with(
        key,
        key.post_nothing("/agent-identity").await,
        "identity_token",
    )
}

/// An identity token made with this one.
async fn refreshed(identity: &Caller) -> Caller {
    let reply = identity.post_nothing("/agent-identity/refresh").await;
    with(identity, reply, "identity_token")
}

async fn holds(key: &Caller, room: &str) -> bool {
    match key.get(format!("/rooms/{room}/me")).await {
        reply if reply.status == 200 => true,
        reply => {
            reply.refused(401, "key_invalid");
            false
        }
    }
}

async fn identity_ended(identity: &Caller) {
    let reply = identity.post_nothing("/agent-identity/refresh").await;
    reply.refused(401, "identity_invalid");
}

/// A person who signed in on the web, with the identity token that brought.
async fn signed_in(server: &crate::harness::TestServer, user: &str) -> Caller {
    let person = server.user_of_type(user, "access");
    let reply = person.post_nothing("/auth/exchange").await;
    with(&person, reply, "identity_token").seen_from_outside()
}
