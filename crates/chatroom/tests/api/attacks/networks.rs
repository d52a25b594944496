//! Identity providers, networks, and what an outsider may learn of the operator's own.

use crate::harness::{Caller, PushAgent, Setup, TestServer, eventually, now, one_engine};
use serde_json::{Value, json};

one_engine![
    a_person_from_outside_reaches_nothing_private,
    where_a_name_leads_is_not_told,
];

const SECRET: &str = "a shared secret of some length, as providers give them";

fn sqlite() -> Setup {
    Setup::new(crate::harness::Engine::Sqlite)
}

fn signed(server: &TestServer, mut claims: Value) -> Caller {
    claims["exp"] = json!(now() + 600);
    let key = jsonwebtoken::EncodingKey::from_secret(SECRET.as_bytes());
    let token = jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key);
    server.anonymous().with_token(&token.unwrap())
}

#[tokio::test]
async fn a_token_for_another_service_is_refused_where_the_audience_is_set() {
    let server = sqlite()
        .env("AUTH__HS256_SECRET", SECRET)
        .env("AUTH__AUDIENCE", "rooms")
        .env(
            "AUTH__ISSUER",
            r#"["https://idp.example", "https://other.example"]"#,
        )
        .start()
        .await;
    let claims = |aud: Value, iss: Value| json!({"user_id": "u_alice", "aud": aud, "iss": iss});
    let idp = json!("https://idp.example");
    for good in [
        claims(json!("rooms"), idp.clone()),
        claims(json!(["shop", "rooms"]), idp.clone()),
        claims(json!("rooms"), json!("https://other.example")),
    ] {
        signed(&server, good).get("/rooms").await.ok();
    }
    for bad in [
        claims(json!("shop"), idp.clone()),
        claims(json!([]), idp.clone()),
        claims(json!("rooms"), json!("https://evil.example")),
        json!({"user_id": "u_alice", "iss": idp}),
        json!({"user_id": "u_alice", "aud": "rooms"}),
    ] {
        let caller = signed(&server, bad);
        caller.get("/rooms").await.refused(401, "token_invalid");
        let traded = caller.seen_from_outside().post_nothing("/auth/exchange");
        traded.await.refused(401, "token_invalid");
    }
    assert!(!server.log().contains("auth.audience"));
}

#[tokio::test]
async fn a_provider_without_an_audience_is_warned_of() {
    let server = sqlite().env("AUTH__HS256_SECRET", SECRET).start().await;
    let log = server.log();
    assert!(
        log.contains("auth.audience") && log.contains("auth.issuer"),
        "{log}"
    );
    let own = sqlite().start().await;
    assert!(!own.log().contains("auth.audience"));
}

#[tokio::test]
async fn a_secret_that_can_be_guessed_is_refused_at_the_start() {
    let server = sqlite().start().await;
    let file = server.folder().join("chatroom.toml");
    let other = server.folder().join("other");
    for (auth, named) in [
        (
            "hs256_secret = \"only thirty-one bytes of secret\"",
            "auth.hs256_secret",
        ),
        ("hs256_secret = \"\"", "auth.hs256_secret"),
        ("audience = \"rooms\"", "auth.audience"),
    ] {
        std::fs::write(&file, format!("[auth]\n{auth}\n")).unwrap();
        let (file, data) = (file.to_str().unwrap(), other.to_str().unwrap());
        let args = [
            "serve",
            "--config",
            file,
            "--data",
            data,
            "--listen",
            "127.0.0.1:0",
        ];
        let output = server.run_aside(&args).await;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(named), "{said}");
    }
}

/// A person who signed in from the public internet, as the viewer does.
async fn person_outside(server: &TestServer, id: &str) -> Caller {
    let signed_in = server.user_of_type(id, "access").seen_from_outside();
    let traded = signed_in.post_nothing("/auth/exchange").await.created();
    signed_in.with_token(traded["identity_token"].as_str().unwrap())
}

async fn a_person_from_outside_reaches_nothing_private(setup: Setup) {
    let server = setup.env("FANOUT__RETRY_SECONDS", "[0]").start().await;
    let internal = PushAgent::start("raw=data: {\"text\": \"the internal body\"}\n\n");
    let mallory = person_outside(&server, "u_mallory").await;
    let question = json!({"message": "hi", "thread_id": "t", "channel": "starchild-cli"});
    let bridge = async |code: &Value| {
        let cli = server.anonymous().with_token(code.as_str().unwrap());
        cli.seen_from_outside()
            .post("/agent/chat/stream", question.clone())
            .await
    };

    // By a short code that names it.
    let named = json!({"akm_key": "sk_x", "container_id": "1", "agent_endpoint": internal.url()});
    let made = mallory.post("/cli-keys", named).await.created();
    bridge(&made["code"]).await.refused(503, "unavailable");

    // As the endpoint of a membership, named when joining or afterwards; and by a short code that
    // finds it there.
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let push = json!({"adapter_type": "clawd", "agent_endpoint": internal.url(), "akm_key": "sk_x",
                      "container_id": "2"});
    mallory
        .post(format!("/rooms/{room}/join"), push)
        .await
        .created();
    let found = json!({"akm_key": "sk_x", "container_id": "2"});
    let made = mallory.post("/cli-keys", found).await.created();
    bridge(&made["code"]).await.refused(503, "unavailable");
    let own = mallory
        .post("/rooms", json!({"name": "mine"}))
        .await
        .created();
    let own = own["room_id"].as_str().unwrap();
    let endpoint = json!({"agent_endpoint": internal.url(), "akm_key": "sk_x"});
    mallory
        .put(
            format!("/rooms/{own}/members/u_mallory/endpoint"),
            endpoint.clone(),
        )
        .await
        .ok();
    alice.says(&room, "Hello").await;
    let view = mallory.viewer(own).await;
    view.says(own, "Hello").await;
    for (caller, room) in [(&alice, room.as_str()), (&view, own)] {
        eventually("the call has failed", async || {
            let member = caller.sees_member(room, "u_mallory").await?;
            member.get("last_error").is_some().then_some(())
        })
        .await;
    }
    assert_eq!(internal.calls().await.len(), 0);

    // The same person inside may.
    let inside = mallory.from("10.0.0.7");
    inside
        .put(format!("/rooms/{own}/members/u_mallory/endpoint"), endpoint)
        .await
        .ok();
    view.says(own, "Hello again").await;
    eventually("the agent is called", async || {
        (!internal.calls().await.is_empty()).then_some(())
    })
    .await;
}

async fn where_a_name_leads_is_not_told(setup: Setup) {
    let server = setup.env("FANOUT__RETRY_SECONDS", "[0]").start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let internal = PushAgent::start("always");
    let port = internal.url().rsplit_once(':').unwrap().1;
    let hosts = ["localhost", "no-such-name.invalid"];
    for (n, host) in hosts.iter().enumerate() {
        let body = json!({"invite_code": alice.invites(&room).await, "adapter_type": "clawd",
                          "client_kind": "external_agent", "user_id": format!("prober_no-{n:08x}"),
                          "agent_endpoint": format!("http://{host}:{port}"), "akm_key": "sk_x"});
        let join = server.anonymous().post(format!("/rooms/{room}/join"), body);
        join.await.created();
    }
    alice.says(&room, "Hello").await;
    let mut told = Vec::new();
    for n in 0..hosts.len() {
        let user = format!("ext_prober_no-{n:08x}");
        let error = eventually("the call has failed", async || {
            let member = alice.sees_member(&room, &user).await?;
            member.get("last_error").cloned()
        });
        told.push(error.await);
    }
    assert_eq!(told[0], told[1]);
    assert!(!told[0].as_str().unwrap().contains("127.0.0.1"));
    assert_eq!(internal.calls().await.len(), 0);
}

#[tokio::test]
async fn an_address_that_a_proxy_garbles_is_outside() {
    let server = sqlite().start().await;
    let alice = server.user("u_alice");
    alice.get("/rooms").await.ok();
    for garbled in [
        "unknown",
        "",
        "127.0.0.1,",
        "127.0.0.1, not an address",
        "10.0.0.1:http",
    ] {
        let reply = alice.from(garbled).get("/rooms").await;
        reply.refused(403, "internal_only");
        assert_eq!(alice.from(garbled).get("/metrics").await.status, 403);
    }
    alice.from("[::1]:4711").get("/rooms").await.ok();
    let spoofed = alice.get("/rooms").header("forwarded", "for=203.0.113.9");
    spoofed.await.refused(403, "internal_only");
    let spoofed = alice.seen_from_outside().get("/rooms");
    let spoofed = spoofed.header("forwarded", "for=127.0.0.1").await;
    spoofed.refused(403, "internal_only");
}

#[tokio::test]
async fn a_room_cannot_be_found_by_trying() {
    let server = sqlite().start().await;
    let alice = server.user("u_alice");
    let (one, two) = (alice.creates_a_room().await, alice.creates_a_room().await);
    assert_ne!(one, two);
    for id in [&one, &two] {
        let tail = id.strip_prefix("rm_").unwrap();
        // Five bits for each character of an alphabet of 32.
        assert!(tail.len() >= 12, "{id}");
        assert!(
            tail.bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()),
            "{id}"
        );
    }
}
