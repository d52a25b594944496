//! Every endpoint × every kind of caller, in one table.

use crate::harness::{Caller, Setup, TestServer, claims, eventually, one_engine};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;

one_engine![every_endpoint_knows_every_kind_of_caller];

/// Who calls. The rooms are the owner's; `R` is private.
const CALLERS: [&str; 19] = [
    "nobody",
    "rubbish",   // a bearer that is no token
    "expired",   // the owner's user token, expired
    "invite",    // an invite code to R, as bearer
    "outside",   // the owner's user token, from the public internet
    "stranger",  // a user token of somebody who is not in R
    "member",    // a user token of a member
    "owner",     // the owner's user token
    "agent",     // the member token of an external agent
    "viewer",    // a room key of the owner's that may only view
    "elsewhere", // a room key of the owner's for another room
    "identity",  // the agent's identity token
    "revoked",   // a room key that was revoked
    "person",    // the identity token of the owner, who signed in, from the public internet
    "shared",    // a room key of the owner's that may post, as it is given away
    "removed",   // the member token of an agent that was removed
    "outsider",  // the identity token of a person who is not in R, from the public internet
    "banned",    // a user token of a member whom the owner banned from R
    "barred",    // a user token of a member whom the operator banned
];

const IN: &str = "in";
const NONE: &str = "missing_bearer";
const TOKEN: &str = "token_invalid";
const KEY: &str = "key_invalid";
const IDENTITY: &str = "identity_invalid";
const INTERNAL: &str = "internal_only";
const ROLE: &str = "forbidden";
const MEMBER: &str = "not_a_member";
const SCOPE: &str = "key_scope_insufficient";
const HIDDEN: &str = "not_found";

/// What each kind of caller gets from each kind of endpoint, in the order of [`CALLERS`].
#[rustfmt::skip]
const RULES: [(&str, [&str; 19]); 20] = [
    // kind       nobody  rubbish   expired   invite    outside   stranger member owner agent     viewer    elsewhere identity  revoked   person shared removed outsider banned barred
    ("anyone",   [IN,     IN,       IN,       IN,       IN,       IN,      IN,    IN,   IN,       IN,       IN,       IN,       IN, IN, IN, IN, IN, IN, IN]),
    ("reader",   [NONE,   TOKEN,    TOKEN,    TOKEN,    INTERNAL, MEMBER,  IN,    IN,   IN,       IN,       HIDDEN,   TOKEN,    KEY, IN, IN, KEY, MEMBER, MEMBER, ROLE]),
    ("stream",   [NONE,   TOKEN,    TOKEN,    TOKEN,    INTERNAL, MEMBER,  IN,    IN,   IN,       IN,       HIDDEN,   TOKEN,    KEY, TOKEN, IN, KEY, TOKEN, MEMBER, ROLE]),
    ("visitor",  [HIDDEN, TOKEN,    TOKEN,    TOKEN,    INTERNAL, MEMBER,  IN,    IN,   IN,       IN,       HIDDEN,   TOKEN,    KEY, IN, IN, KEY, MEMBER, MEMBER, ROLE]),
    ("writer",   [NONE,   TOKEN,    TOKEN,    TOKEN,    INTERNAL, MEMBER,  IN,    IN,   IN,       SCOPE,    HIDDEN,   TOKEN,    KEY, IN, IN, KEY, MEMBER, MEMBER, ROLE]),
    ("poster",   [NONE,   TOKEN,    TOKEN,    TOKEN,    INTERNAL, MEMBER,  IN,    IN,   IN,       SCOPE,    HIDDEN,   TOKEN,    KEY, TOKEN, IN, KEY, TOKEN, MEMBER, ROLE]),
    ("owner",    [NONE,   TOKEN,    TOKEN,    TOKEN,    INTERNAL, MEMBER,  ROLE,  IN,   SCOPE,    SCOPE,    HIDDEN,   TOKEN,    KEY, IN, SCOPE, KEY, MEMBER, MEMBER, ROLE]),
    ("oneself",  [NONE,   TOKEN,    TOKEN,    TOKEN,    INTERNAL, MEMBER,  ROLE,  IN,   IN,       SCOPE,    HIDDEN,   TOKEN,    KEY, IN, SCOPE, KEY, MEMBER, MEMBER, ROLE]),
    ("self",     [NONE,   TOKEN,    TOKEN,    TOKEN,    INTERNAL, MEMBER,  IN,    IN,   IN,       SCOPE,    HIDDEN,   TOKEN,    KEY, IN, SCOPE, KEY, MEMBER, MEMBER, ROLE]),
    ("stopper",  [NONE,   TOKEN,    TOKEN,    TOKEN,    INTERNAL, MEMBER,  ROLE,  IN,   ROLE,     SCOPE,    HIDDEN,   TOKEN,    KEY, IN, SCOPE, KEY, MEMBER, MEMBER, ROLE]),
    ("asker",    [NONE,   TOKEN,    TOKEN,    TOKEN,    INTERNAL, MEMBER,  IN,    IN,   IN,       SCOPE,    HIDDEN,   TOKEN,    KEY, ROLE, SCOPE, KEY, MEMBER, MEMBER, ROLE]),
    ("consent",  [NONE,   TOKEN,    TOKEN,    TOKEN,    INTERNAL, MEMBER,  ROLE,  IN,   TOKEN,    TOKEN,    TOKEN,    TOKEN,    KEY, IN, TOKEN, KEY, MEMBER, MEMBER, ROLE]),
    ("user",     [NONE,   TOKEN,    TOKEN,    TOKEN,    INTERNAL, IN,      IN,    IN,   TOKEN,    TOKEN,    TOKEN,    TOKEN,    KEY, IN, TOKEN, KEY, IN, IN, ROLE]),
    ("member",   [NONE,   TOKEN,    TOKEN,    TOKEN,    INTERNAL, MEMBER,  IN,    IN,   TOKEN,    TOKEN,    TOKEN,    TOKEN,    KEY, IN, TOKEN, KEY, MEMBER, MEMBER, ROLE]),
    ("admin",    [NONE,   TOKEN,    TOKEN,    TOKEN,    INTERNAL, ROLE,    ROLE,  ROLE, TOKEN,    TOKEN,    TOKEN,    TOKEN,    KEY, ROLE, TOKEN, KEY, ROLE, ROLE, ROLE]),
    ("joiner",   [HIDDEN, TOKEN,    TOKEN,    TOKEN,    INTERNAL, IN,      IN,    IN,   HIDDEN,   HIDDEN,   HIDDEN,   HIDDEN,   KEY, IN, HIDDEN, KEY, IN, IN, ROLE]),
    ("mint",     [NONE,   KEY,      KEY,      KEY,      KEY,      KEY,     KEY,   KEY,  IN,       SCOPE,    SCOPE,    KEY,      KEY, KEY, SCOPE, KEY, KEY, KEY, KEY]),
    ("identity", [NONE,   IDENTITY, IDENTITY, IDENTITY, IDENTITY, IDENTITY, IDENTITY, IDENTITY, IDENTITY, IDENTITY, IDENTITY, IN, IDENTITY, IN, IDENTITY, IDENTITY, IN, IDENTITY, IDENTITY]),
    ("reissue",  [NONE,   KEY,      KEY,      KEY,      KEY,      KEY,     KEY,   KEY,  IN,       ROLE,     ROLE,     IN,       KEY, ROLE, ROLE, KEY, ROLE, KEY, KEY]),
    ("exchange", [NONE,   TOKEN,    TOKEN,    TOKEN,    INTERNAL, ROLE,    ROLE,  ROLE, TOKEN,    TOKEN,    TOKEN,    TOKEN,    TOKEN, TOKEN, TOKEN, TOKEN, TOKEN, ROLE, ROLE]),
];

/// Every endpoint, with what a good request to it looks like. `{seq}` is a message of the
/// agent's, `{agent}` its id.
fn endpoints() -> Vec<(&'static str, Method, &'static str, Value)> {
    use Method as M;
    let none = Value::Null;
    let text = json!({"content": "text"});
    vec![
        ("user", M::POST, "/rooms", json!({"name": "x"})),
        ("user", M::GET, "/rooms", none.clone()),
        ("user", M::GET, "/inbox", none.clone()),
        ("user", M::GET, "/search?q=text", none.clone()),
        ("visitor", M::GET, "/rooms/{id}/search?q=text", none.clone()),
        ("self", M::PUT, "/rooms/{id}/read", json!({"seq": 1})),
        (
            "self",
            M::PUT,
            "/rooms/{id}/messages/{seq}/thread/read",
            json!({"seq": 1}),
        ),
        ("visitor", M::GET, "/rooms/{id}/pins", none.clone()),
        ("visitor", M::GET, "/rooms/{id}/export", none.clone()),
        ("owner", M::GET, "/rooms/{id}/webhooks", none.clone()),
        (
            "owner",
            M::POST,
            "/rooms/{id}/webhooks",
            json!({"kind": "in", "name": "CI"}),
        ),
        (
            "owner",
            M::PATCH,
            "/rooms/{id}/webhooks/{webhook_id}",
            json!({"enabled": true}),
        ),
        (
            "owner",
            M::DELETE,
            "/rooms/{id}/webhooks/{webhook_id}",
            none.clone(),
        ),
        (
            "owner",
            M::POST,
            "/rooms/{id}/webhooks/{webhook_id}/rotate",
            none.clone(),
        ),
        (
            "owner",
            M::GET,
            "/rooms/{id}/webhooks/{webhook_id}/deliveries",
            none.clone(),
        ),
        ("anyone", M::POST, "/hooks/{code}", json!({"text": "x"})),
        (
            "admin",
            M::POST,
            "/internal/admin/imports",
            json!({"name": "x", "owner_user_id": "u_owner"}),
        ),
        (
            "admin",
            M::POST,
            "/internal/admin/imports/{id}",
            json!({"after_seq": 0, "messages": []}),
        ),
        ("owner", M::PUT, "/rooms/{id}/pins/{seq}", none.clone()),
        ("owner", M::DELETE, "/rooms/{id}/pins/{seq}", none.clone()),
        ("reader", M::GET, "/rooms/{id}/rules/history", none.clone()),
        ("reader", M::GET, "/rooms/{id}/data/history", none.clone()),
        ("user", M::GET, "/me", none.clone()),
        ("user", M::PATCH, "/me", json!({"display_name": "{me} x"})),
        ("user", M::PUT, "/me/picture", json!({})),
        ("user", M::DELETE, "/me/picture", none.clone()),
        ("anyone", M::GET, "/avatars/{seed}", none.clone()),
        ("anyone", M::GET, "/first/{code}", none.clone()),
        (
            "admin",
            M::PATCH,
            "/internal/admin/users/{agent}",
            json!({"display_name": "x"}),
        ),
        (
            "admin",
            M::DELETE,
            "/internal/admin/users/{agent}",
            none.clone(),
        ),
        ("anyone", M::GET, "/rooms/public", none.clone()),
        ("reader", M::GET, "/rooms/{id}", none.clone()),
        ("owner", M::PATCH, "/rooms/{id}", json!({"name": "y"})),
        ("reader", M::GET, "/rooms/{id}/rules", none.clone()),
        ("owner", M::PATCH, "/rooms/{id}/rules", text.clone()),
        ("reader", M::GET, "/rooms/{id}/data", none.clone()),
        ("owner", M::PATCH, "/rooms/{id}/data", text.clone()),
        ("reader", M::GET, "/rooms/{id}/state", none.clone()),
        ("owner", M::GET, "/rooms/{id}/audit", none.clone()),
        ("owner", M::POST, "/rooms/{id}/invites", json!({})),
        ("owner", M::GET, "/rooms/{id}/bans", none.clone()),
        (
            "owner",
            M::POST,
            "/rooms/{id}/bans",
            json!({"user_id": "u_nobody"}),
        ),
        ("owner", M::DELETE, "/rooms/{id}/bans/{agent}", none.clone()),
        ("owner", M::GET, "/rooms/{id}/invites", none.clone()),
        (
            "owner",
            M::DELETE,
            "/rooms/{id}/invites/{code_jti}",
            none.clone(),
        ),
        (
            "joiner",
            M::POST,
            "/rooms/{id}/join",
            json!({"adapter_type": "pull"}),
        ),
        ("reader", M::GET, "/rooms/{id}/members", none.clone()),
        ("reader", M::GET, "/rooms/{id}/me", none.clone()),
        ("reader", M::GET, "/rooms/{id}/me/score", none.clone()),
        ("reader", M::GET, "/rooms/{id}/leaderboard", none.clone()),
        ("anyone", M::GET, "/leaderboard", none.clone()),
        ("anyone", M::GET, "/scoring-rules", none.clone()),
        (
            "anyone",
            M::GET,
            "/rooms/rm_welcome/checklist",
            none.clone(),
        ),
        (
            "owner",
            M::PATCH,
            "/rooms/{id}/members/{agent}/name",
            json!({"name": "Bot"}),
        ),
        (
            "oneself",
            M::PUT,
            "/rooms/{id}/members/{agent}/endpoint",
            json!({"agent_endpoint": ""}),
        ),
        (
            "oneself",
            M::PATCH,
            "/rooms/{id}/members/{agent}/agent-card",
            json!({"agent_card_url": ""}),
        ),
        (
            "consent",
            M::POST,
            "/rooms/{id}/members/{agent}/recovery",
            none.clone(),
        ),
        (
            "reissue",
            M::POST,
            "/rooms/{id}/members/{agent}/reissue-token",
            none.clone(),
        ),
        ("poster", M::POST, "/rooms/{id}/messages", text),
        ("visitor", M::GET, "/rooms/{id}/messages", none.clone()),
        (
            "visitor",
            M::GET,
            "/rooms/{id}/messages/{seq}/thread",
            none.clone(),
        ),
        (
            "writer",
            M::POST,
            "/rooms/{id}/messages/{seq}/reactions",
            json!({"emoji": "👍"}),
        ),
        (
            "writer",
            M::DELETE,
            "/rooms/{id}/messages/{seq}/reactions/{emoji}",
            none.clone(),
        ),
        ("stream", M::GET, "/rooms/{id}/stream", none.clone()),
        (
            "self",
            M::POST,
            "/rooms/{id}/typing",
            json!({"state": "thinking"}),
        ),
        (
            "stopper",
            M::POST,
            "/rooms/{id}/members/{agent}/stop",
            json!({}),
        ),
        (
            "oneself",
            M::POST,
            "/rooms/{id}/messages/{seq}/retry",
            json!({}),
        ),
        (
            "asker",
            M::POST,
            "/rooms/{id}/consents",
            json!({"tool": "write_file", "summary": "Writes notes.md"}),
        ),
        ("reader", M::GET, "/rooms/{id}/consents", none.clone()),
        ("reader", M::GET, "/rooms/{id}/usage", none.clone()),
        ("user", M::GET, "/usage", none.clone()),
        (
            "reader",
            M::GET,
            "/rooms/{id}/members/{agent}/wake",
            none.clone(),
        ),
        (
            "oneself",
            M::PUT,
            "/rooms/{id}/members/{agent}/wake",
            json!({"wake": "everything"}),
        ),
        (
            "reader",
            M::GET,
            "/rooms/{id}/consents/{consent_id}",
            none.clone(),
        ),
        (
            "self",
            M::POST,
            "/rooms/{id}/consents/{consent_id}",
            json!({"decision": "allow"}),
        ),
        (
            "self",
            M::DELETE,
            "/rooms/{id}/consents/{consent_id}",
            none.clone(),
        ),
        (
            "member",
            M::POST,
            "/rooms/{id}/room-keys",
            json!({"for_user_id": "{me}"}),
        ),
        ("member", M::GET, "/rooms/{id}/room-keys", none.clone()),
        (
            "member",
            M::DELETE,
            "/rooms/{id}/room-keys/{jti}",
            none.clone(),
        ),
        ("user", M::DELETE, "/share-keys/{code}", none.clone()),
        ("mint", M::POST, "/agent-identity", none.clone()),
        ("identity", M::POST, "/agent-identity/refresh", none.clone()),
        ("identity", M::DELETE, "/agent-identity/{jti}", none.clone()),
        ("exchange", M::POST, "/auth/exchange", none.clone()),
        (
            "user",
            M::POST,
            "/cli-keys",
            json!({"akm_key": "sk_x", "container_id": "1"}),
        ),
        ("user", M::GET, "/cli-keys", none.clone()),
        ("user", M::DELETE, "/cli-keys/{code}", none.clone()),
        ("anyone", M::GET, "/k/{code}", none.clone()),
        ("anyone", M::GET, "/i/{short_code}", none.clone()),
        ("anyone", M::GET, "/i/{short_code}/summary", none.clone()),
        ("anyone", M::GET, "/i/{short_code}/qr.svg", none.clone()),
        ("anyone", M::GET, "/health", none.clone()),
        ("anyone", M::GET, "/docs-version", none.clone()),
        ("anyone", M::GET, "/docs/{name}", none.clone()),
        (
            "anyone",
            M::GET,
            "/.well-known/agent-card.json",
            none.clone(),
        ),
        ("anyone", M::GET, "/skills/index.json", none.clone()),
        ("anyone", M::GET, "/skills/{archive}", none.clone()),
        ("anyone", M::GET, "/starchild-{platform}", none.clone()),
        ("anyone", M::GET, "/install/cli", none.clone()),
        ("admin", M::GET, "/internal/admin/rooms", none.clone()),
        ("admin", M::GET, "/internal/admin/users", none.clone()),
        (
            "admin",
            M::GET,
            "/internal/admin/users/{agent}/sessions",
            none.clone(),
        ),
        (
            "admin",
            M::DELETE,
            "/internal/admin/users/{agent}/sessions",
            none.clone(),
        ),
        (
            "admin",
            M::DELETE,
            "/internal/admin/credentials/{jti}",
            none.clone(),
        ),
        ("admin", M::GET, "/internal/admin/bans", none),
        (
            "admin",
            M::POST,
            "/internal/admin/bans",
            json!({"subject": "u_nobody"}),
        ),
    ]
}

/// Endpoints whose answer depends on more than the kind of caller; their own sections test them.
const ELSEWHERE: [(&str, &str); 16] = [
    ("post", "/rooms/public/auto-join"), // changes what the others see
    ("post", "/rooms/rm_welcome/checklist/refresh"), // members of that room
    ("get", "/rooms/{id}/public-summary"), // public rooms only
    ("post", "/rooms/{id}/auto-invite"), // public rooms only
    ("delete", "/rooms/{id}/members/{user_id}"), // oneself or the owner
    ("patch", "/rooms/{id}/messages/{seq}"), // the sender
    ("delete", "/rooms/{id}/messages/{seq}"), // the sender
    ("delete", "/rooms/{id}/room-keys"), // would revoke the viewer's key
    ("post", "/agent/chat/stream"),      // by short code
    ("get", "/install/{short_code}"),    // errors are scripts
    ("get", "/metrics"),                 // by network
    ("get", "/openapi.json"),            // describes the others
    ("get", "/auth/sessions"),           // see attacks::bans
    ("delete", "/auth/sessions"),        // would end the others' credentials
    ("delete", "/auth/sessions/{id}"),
    ("delete", "/internal/admin/bans"), // names its subject in the query
];

struct World {
    room: String,
    agent: String,
    seq: i64,
    callers: Vec<Caller>,
}

/// The identity token of a person who signed in, from the public internet.
async fn signed_in(server: &TestServer, user: &str) -> Caller {
    let person = server.user_of_type(user, "access");
    let traded = person.post_nothing("/auth/exchange").await.created();
    person
        .with_token(traded["identity_token"].as_str().unwrap())
        .seen_from_outside()
}

async fn world(server: &TestServer) -> World {
    let owner = server.user("u_owner");
    let room = owner.creates_a_room().await;
    let other = owner.creates_a_room().await;
    let member = server.user("u_member");
    owner.lets_in_user(&room, &member).await;
    let agent = owner.lets_in(&room, "curious_otter-3a9f1c20").await;
    let seq = agent.says(&room, "hello").await;
    let viewer = owner.viewer_with(&room, "view").await;
    let elsewhere = owner.viewer(&other).await;
    let revoked = owner.viewer(&room).await;
    let jti = claims(revoked.token().unwrap())["jti"]
        .as_str()
        .unwrap()
        .to_owned();
    owner
        .delete(format!("/rooms/{room}/room-keys/{jti}"))
        .await
        .ok();
    let code = owner.invites(&room).await;
    let person = signed_in(server, "u_owner").await;
    let outsider = signed_in(server, "u_outsider").await;
    let shared = owner.viewer(&room).await;
    let removed = owner.lets_in(&room, "sunny_willow-7e2bd401").await;
    let path = format!("/rooms/{room}/members/{}", removed.id());
    owner.delete(path).await.ok();
    let banned = server.user("u_banned");
    owner.lets_in_user(&room, &banned).await;
    let ban = json!({"user_id": banned.id()});
    owner
        .post(format!("/rooms/{room}/bans"), ban)
        .await
        .created();
    let barred = server.user("u_barred");
    owner.lets_in_user(&room, &barred).await;
    server
        .user_of_type("u_root", "admin")
        .post("/internal/admin/bans", json!({"subject": barred.id()}))
        .await
        .created();
    let nobody = server.anonymous();
    let expired = server.token(&["--user", "u_owner", "--ttl", "0s"]);
    let callers = vec![
        nobody.clone(),
        nobody.with_token("rubbish"),
        nobody.with_token(&expired),
        nobody.with_token(&code),
        owner.seen_from_outside(),
        server.user("u_stranger"),
        member,
        owner,
        agent.caller.clone(),
        viewer,
        elsewhere,
        agent.identity(),
        revoked,
        person,
        shared,
        removed.caller.clone(),
        outsider,
        banned,
        barred,
    ];
    eventually("the token has expired", async || {
        let reply = callers[2].get("/rooms").await;
        (reply.status == 401).then_some(())
    })
    .await;
    let agent = agent.id().to_owned();
    World {
        room,
        agent,
        seq,
        callers,
    }
}

async fn every_endpoint_knows_every_kind_of_caller(setup: Setup) {
    let server = setup.start().await;
    let world = world(&server).await;
    let mut wrong = Vec::new();
    for (kind, method, route, body) in endpoints() {
        let (_, expected) = RULES.iter().find(|(name, _)| *name == kind).unwrap();
        let path = route
            .replace("{id}", &world.room)
            .replace("{agent}", &world.agent)
            .replace("{seq}", &world.seq.to_string())
            .replace("{name}", "api")
            .replace("{emoji}", "👍")
            .replace(['{', '}'], "");
        for ((who, caller), expected) in CALLERS.iter().zip(&world.callers).zip(expected) {
            let got = outcome(caller, &method, &path, &body).await;
            if got != *expected {
                wrong.push(format!("{method} {route} by {who}: {got}, not {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{:#?}", wrong);
    assert_eq!(
        forgotten(&server).await,
        BTreeSet::new(),
        "endpoints in no table"
    );
}

/// `in`, or the code with which the caller was turned away.
async fn outcome(caller: &Caller, method: &Method, path: &str, body: &Value) -> String {
    let request = caller.request(method.clone(), path);
    let request = match body {
        Value::Null => request,
        body => {
            let text = body.to_string().replace("{me}", caller.id());
            request.json(&serde_json::from_str(&text).unwrap())
        }
    };
    if path.ends_with("/stream") {
        return match request.opens().await {
            Ok(()) => IN.to_owned(),
            Err(reply) => reply.error().to_owned(),
        };
    }
    let reply = request.await;
    let let_in = match reply.status {
        401 | 403 => false,
        // The room is hidden; anything else that is missing was looked for.
        404 => reply.json()["message"] != "Room not found",
        500.. => panic!("{method} {path}: {}", reply.text()),
        _ => true,
    };
    match let_in {
        true => IN.to_owned(),
        false => reply.error().to_owned(),
    }
}

/// Endpoints that the server describes and no table names.
async fn forgotten(server: &TestServer) -> BTreeSet<String> {
    let document = server.anonymous().get("/openapi.json").await.ok();
    let mut known: BTreeSet<String> = ELSEWHERE
        .iter()
        .map(|(method, path)| format!("{method} {path}"))
        .collect();
    known.extend(endpoints().iter().map(|(_, method, path, _)| {
        let path = path.replace("{agent}", "{user_id}");
        let path = path.split('?').next().unwrap();
        format!("{} {path}", method.as_str().to_lowercase())
    }));
    let paths = document["paths"].as_object().unwrap().iter();
    let described = paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().keys();
        methods.map(move |method| format!("{method} {path}"))
    });
    described
        .filter(|endpoint| !known.contains(endpoint))
        .collect()
}
