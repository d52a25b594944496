//! The CLI bridge: a command line reaches its owner's agent with a short code.

use crate::harness::{Caller, PushAgent, Setup, TestServer, both_engines, eventually, one_engine};
use serde_json::{Value, json};

both_engines![
    a_short_code_reaches_the_agent_behind_it,
    codes_are_listed_and_revoked_by_their_owner,
    neither_codes_nor_bearers_are_stored_in_clear,
    calls_are_counted_for_each_container,
];
one_engine![
    the_answer_comes_byte_for_byte_as_it_arrives,
    a_body_is_bounded_in_two_ways,
    an_agent_that_is_away_is_named,
    a_bare_bearer_needs_a_container_and_a_configured_agent,
    a_code_that_has_ended_opens_nothing,
    the_agent_is_found_by_code_then_membership_then_setting,
];

const PATH: &str = "/agent/chat/stream";

fn question() -> Value {
    json!({"message": "What is up?", "thread_id": "cli-1", "channel": "starchild-cli"})
}

async fn code(user: &Caller, agent: Option<&PushAgent>) -> String {
    let mut body =
        json!({"akm_key": "sk_behind_the_code", "container_id": "568359", "label": "my laptop"});
    if let Some(agent) = agent {
        body["agent_endpoint"] = json!(agent.url());
    }
    let made = user.post("/cli-keys", body).await.created();
    made["code"].as_str().unwrap().to_owned()
}

/// The holder of a code, anywhere on the internet.
fn cli(server: &TestServer, code: &str) -> Caller {
    server.anonymous().with_token(code).seen_from_outside()
}

async fn a_short_code_reaches_the_agent_behind_it(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let agent = PushAgent::start("always");
    let code = code(&alice, Some(&agent)).await;
    assert!(code.starts_with("sc_"));
    let reply = cli(&server, &code).post(PATH, question()).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    assert!(reply.text().contains("An answer"));
    let calls = agent.calls().await;
    assert_eq!(calls[0]["body"], question());
    let headers = &calls[0]["headers"];
    assert_eq!(headers["authorization"], "Bearer sk_behind_the_code");
    assert_eq!(headers["fly-force-instance-id"], "568359");
    let keys = alice.get("/cli-keys").await.ok();
    let key = &keys["keys"][0];
    assert_eq!(key["code"], code);
    assert_eq!(
        (&key["label"], &key["use_count"]),
        (&json!("my laptop"), &json!(1))
    );
    assert!(key["last_used_at"].as_i64().is_some());
    let fields: Vec<&String> = key.as_object().unwrap().keys().collect();
    assert_eq!(fields.len(), 7, "no secret and no container: {fields:?}");
}

async fn the_answer_comes_byte_for_byte_as_it_arrives(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let agent = PushAgent::start("raw=: a comment\r\n\r\ndata: {\"x\": 1}\nid: 7\n\nhalf a fra");
    let cli = cli(&server, &code(&alice, Some(&agent)).await);
    let reply = cli.post(PATH, question()).await;
    assert_eq!(
        reply.text(),
        ": a comment\r\n\r\ndata: {\"x\": 1}\nid: 7\n\nhalf a fra"
    );
    agent.replies("slow").await;
    let request = cli.post(PATH, question());
    let mut events = crate::harness::Events::open(request).await;
    let first = String::from_utf8(events.bytes().await).unwrap();
    assert!(first.contains("The first half") && !first.contains("second"));
    assert!(
        String::from_utf8(events.bytes().await)
            .unwrap()
            .contains("and the second")
    );
    agent.replies("status=418").await;
    assert_eq!(cli.post(PATH, question()).await.status, 418);
}

async fn a_code_that_has_ended_opens_nothing(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let agent = PushAgent::start("always");
    let post = async |code: &str| cli(&server, code).post(PATH, question()).await;
    post("sc_unknown").await.refused(401, "akm_invalid");
    let revoked = code(&alice, Some(&agent)).await;
    alice.delete(format!("/cli-keys/{revoked}")).await.ok();
    post(&revoked).await.refused(401, "akm_invalid");
    let body = json!({"akm_key": "sk_x", "container_id": "1", "ttl_seconds": 1, "agent_endpoint": agent.url()});
    let made = alice.post("/cli-keys", body).await.created();
    let short = made["code"].as_str().unwrap();
    eventually("the code has expired", async || {
        (post(short).await.status == 401).then_some(())
    })
    .await;
    alice
        .delete(format!("/cli-keys/{short}"))
        .await
        .refused(410, "gone");
    server
        .anonymous()
        .post(PATH, question())
        .await
        .refused(401, "missing_bearer");
}

async fn codes_are_listed_and_revoked_by_their_owner(setup: Setup) {
    let server = setup.start().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let mine = code(&alice, None).await;
    bob.delete(format!("/cli-keys/{mine}"))
        .await
        .refused(404, "not_found");
    assert_eq!(bob.get("/cli-keys").await.ok(), json!({"keys": []}));
    alice.delete(format!("/cli-keys/{mine}")).await.ok();
    alice
        .delete(format!("/cli-keys/{mine}"))
        .await
        .refused(404, "not_found");
    assert_eq!(alice.get("/cli-keys").await.ok(), json!({"keys": []}));
    let all = alice.get("/cli-keys?include_revoked=true").await.ok();
    assert_eq!(all["keys"][0]["revoked"], true);
    for bad in [
        json!({"container_id": "1"}),
        json!({"akm_key": "sk_x"}),
        json!({"akm_key": "", "container_id": "1"}),
        json!({"akm_key": "sk_x", "container_id": "1", "ttl_seconds": 0}),
        json!({"akm_key": "sk_x", "container_id": "1", "agent_endpoint": "ftp://x"}),
    ] {
        alice
            .post("/cli-keys", bad)
            .await
            .refused(400, "bad_request");
    }
}

async fn neither_codes_nor_bearers_are_stored_in_clear(setup: Setup) {
    let server = setup.start().await;
    let code = code(&server.user("u_alice"), None).await;
    let stored = server.stored_bytes().await;
    for secret in [code.as_str(), "sk_behind_the_code"] {
        let found = stored
            .windows(secret.len())
            .any(|bytes| bytes == secret.as_bytes());
        assert!(!found, "{secret}");
    }
    assert!(!server.log().contains(&code));
}

async fn the_agent_is_found_by_code_then_membership_then_setting(setup: Setup) {
    let configured = PushAgent::start("raw=data: the setting\n\n");
    let server = setup
        .env("BRIDGE__AGENT_URL", configured.url())
        .start()
        .await;
    let alice = server.user("u_alice");
    let code_alone = code(&alice, None).await;
    let ask = async |code: &str| {
        let reply = cli(&server, code).post(PATH, question()).await;
        reply.text().to_owned()
    };
    assert!(ask(&code_alone).await.contains("the setting"));
    let member = PushAgent::start("raw=data: the membership\n\n");
    let room = alice.creates_a_room().await;
    let body = json!({"agent_endpoint": member.url(), "akm_key": "sk_x", "container_id": "568359"});
    alice
        .put(format!("/rooms/{room}/members/u_alice/endpoint"), body)
        .await
        .ok();
    assert!(ask(&code_alone).await.contains("the membership"));
    let named = PushAgent::start("raw=data: the code\n\n");
    assert!(
        ask(&code(&alice, Some(&named)).await)
            .await
            .contains("the code")
    );
}

async fn a_bare_bearer_needs_a_container_and_a_configured_agent(setup: Setup) {
    let server = setup.clone().start().await;
    let direct = cli(&server, "sk_the_agents_own");
    direct
        .post(PATH, question())
        .await
        .refused(400, "bad_request");
    let request = direct
        .post(PATH, question())
        .header("x-starchild-container", "77");
    let words = request.await.refused(404, "not_found");
    assert!(words.contains("bridge.agent_url"), "{words}");
    let agent = PushAgent::start("always");
    let server = setup.env("BRIDGE__AGENT_URL", agent.url()).start().await;
    let direct = cli(&server, "sk_the_agents_own");
    let reply = direct
        .post(PATH, question())
        .header("x-starchild-container", "77")
        .await;
    assert_eq!(reply.status, 200);
    let headers = agent.calls().await[0]["headers"].clone();
    assert_eq!(headers["authorization"], "Bearer sk_the_agents_own");
    assert_eq!(headers["fly-force-instance-id"], "77");
}

async fn a_body_is_bounded_in_two_ways(setup: Setup) {
    let server = setup.shared().await;
    let agent = PushAgent::start("always");
    let cli = cli(&server, &code(&server.user("u_alice"), Some(&agent)).await);
    let long = json!({"message": "x".repeat(200_000)});
    cli.post(PATH, long).await.refused(400, "payload_too_large");
    let huge = json!({"message": "hi", "more": "x".repeat(300_000)});
    cli.post(PATH, huge).await.refused(413, "payload_too_large");
    for bad in ["", "{}", "[1]", "{\"message\":"] {
        let reply = cli.post_nothing(PATH).body(bad).await;
        reply.refused(400, "bad_request");
    }
    assert_eq!(agent.calls().await.len(), 0);
}

async fn calls_are_counted_for_each_container(setup: Setup) {
    let server = setup.limit("bridge_per_minute", 2).start().await;
    let alice = server.user("u_alice");
    let agent = PushAgent::start("silent");
    // Two codes for one container share its limit.
    let (one, two) = (
        code(&alice, Some(&agent)).await,
        code(&alice, Some(&agent)).await,
    );
    for code in [&one, &two] {
        assert_eq!(cli(&server, code).post(PATH, question()).await.status, 200);
    }
    cli(&server, &one)
        .post(PATH, question())
        .await
        .refused(429, "rate_limited");
}

async fn an_agent_that_is_away_is_named(setup: Setup) {
    let server = setup.shared().await;
    let agent = PushAgent::start("always");
    let code = code(&server.user("u_alice"), Some(&agent)).await;
    drop(agent);
    let words = cli(&server, &code)
        .post(PATH, question())
        .await
        .refused(503, "unavailable");
    assert!(words.contains("Is it running"), "{words}");
}
