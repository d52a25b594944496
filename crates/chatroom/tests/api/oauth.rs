//! People let MCP clients act for them: OAuth 2.1, and the official SDK's own client of it.

use crate::harness::{
    Caller, Reply, Setup, TestServer, agent_id, both_engines, clients, one_engine,
};
use serde_json::{Value, json};
use tokio::process::Command;

both_engines![
    a_code_becomes_a_token_once,
    a_refresh_token_is_good_once_and_a_stolen_one_ends_all,
    a_person_sees_and_ends_what_was_allowed,
    signing_out_everywhere_ends_tokens_and_codes,
];
one_engine![
    a_client_is_sent_only_where_it_registered,
    only_a_person_who_signed_in_allows_anything,
    the_sdk_finds_its_way_by_itself,
];

const REDIRECT: &str = "http://127.0.0.1:33418/callback";
/// RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

async fn registered(server: &TestServer) -> String {
    let body = json!({"client_name": "Claude Code", "redirect_uris": [REDIRECT]});
    let reply = server
        .anonymous()
        .seen_from_outside()
        .post("/oauth/register", body)
        .await;
    reply.created()["client_id"].as_str().unwrap().to_owned()
}

/// A person who signed in, from the public internet.
async fn person(server: &TestServer, user: &str) -> Caller {
    let access = server.user_of_type(user, "access");
    let traded = access.post_nothing("/auth/exchange").await.created();
    access
        .with_token(traded["identity_token"].as_str().unwrap())
        .seen_from_outside()
}

fn asked(client_id: &str) -> Value {
    json!({"client_id": client_id, "redirect_uri": REDIRECT, "response_type": "code", "state": "x y",
           "code_challenge": CHALLENGE, "code_challenge_method": "S256"})
}

async fn code(person: &Caller, client_id: &str) -> String {
    let mut decision = asked(client_id);
    decision["allow"] = true.into();
    let to = person.post("/oauth/decision", decision).await.ok();
    let url = reqwest::Url::parse(to["redirect_to"].as_str().unwrap()).unwrap();
    assert!(url.as_str().starts_with(REDIRECT));
    let query: std::collections::HashMap<_, _> = url.query_pairs().into_owned().collect();
    assert_eq!(query["state"], "x y");
    query["code"].clone()
}

async fn token(server: &TestServer, fields: &[(&str, &str)]) -> Reply {
    let form: Vec<String> = fields
        .iter()
        .map(|(name, value)| {
            let value: String = value.bytes().map(|b| format!("%{b:02X}")).collect();
            format!("{name}={value}")
        })
        .collect();
    let request = server
        .anonymous()
        .seen_from_outside()
        .post_nothing("/oauth/token");
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    request.body(form.join("&")).await
}

async fn exchange(server: &TestServer, client_id: &str, code: &str) -> Reply {
    let fields = [
        ("grant_type", "authorization_code"),
        ("client_id", client_id),
        ("code", code),
        ("redirect_uri", REDIRECT),
        ("code_verifier", VERIFIER),
    ];
    token(server, &fields).await
}

async fn refresh(server: &TestServer, client_id: &str, refresh: &str) -> Reply {
    let fields = [
        ("grant_type", "refresh_token"),
        ("client_id", client_id),
        ("refresh_token", refresh),
    ];
    token(server, &fields).await
}

#[track_caller]
fn refused(reply: &Reply, error: &str) {
    assert_eq!(
        (reply.status, &reply.json()["error"]),
        (400, &json!(error)),
        "{}",
        reply.text()
    );
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap().to_owned()
}

/// Whether the token opens `/mcp`.
async fn opens(server: &TestServer, token: &str) -> u16 {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let caller = server.anonymous().seen_from_outside().with_token(token);
    let request = caller
        .post("/mcp", body)
        .header("accept", "application/json, text/event-stream");
    request.await.status
}

async fn a_code_becomes_a_token_once(setup: Setup) {
    let server = setup.start().await;
    let client = registered(&server).await;
    let alice = person(&server, "u_alice").await;
    let code = code(&alice, &client).await;
    // Whoever has the code alone has nothing.
    let wrong = [
        ("grant_type", "authorization_code"),
        ("client_id", client.as_str()),
        ("code", &code),
        ("redirect_uri", REDIRECT),
        (
            "code_verifier",
            "another-verifier-of-more-than-forty-three-characters",
        ),
    ];
    refused(&token(&server, &wrong).await, "invalid_grant");
    let elsewhere = [
        ("grant_type", "authorization_code"),
        ("client_id", client.as_str()),
        ("code", &code),
        ("redirect_uri", "http://127.0.0.1:1/callback"),
        ("code_verifier", VERIFIER),
    ];
    refused(&token(&server, &elsewhere).await, "invalid_grant");
    refused(&refresh(&server, &client, &code).await, "invalid_grant");
    let given = exchange(&server, &client, &code).await.ok();
    assert_eq!(
        (&given["token_type"], &given["expires_in"]),
        (&json!("Bearer"), &json!(3600))
    );
    let access = text(&given, "access_token");
    assert_eq!(opens(&server, &access).await, 200);
    // It opens /mcp and nothing else.
    let bearer = server.anonymous().with_token(&access);
    bearer.get("/rooms").await.refused(401, "token_invalid");
    bearer
        .post_nothing("/agent-identity/refresh")
        .await
        .refused(401, "identity_invalid");
    bearer
        .get("/auth/sessions")
        .await
        .refused(401, "token_invalid");
    // The code again: somebody stole it, so what it gave is over.
    refused(&exchange(&server, &client, &code).await, "invalid_grant");
    assert_eq!(opens(&server, &access).await, 401);
    refused(
        &refresh(&server, &client, &text(&given, "refresh_token")).await,
        "invalid_grant",
    );
}

async fn a_refresh_token_is_good_once_and_a_stolen_one_ends_all(setup: Setup) {
    let server = setup.start().await;
    let client = registered(&server).await;
    let alice = person(&server, "u_alice").await;
    let first = exchange(&server, &client, &code(&alice, &client).await)
        .await
        .ok();
    let old = text(&first, "refresh_token");
    let other = registered_as(&server, "Another").await;
    refused(&refresh(&server, &other, &old).await, "invalid_grant");
    let second = refresh(&server, &client, &old).await.ok();
    assert_eq!(opens(&server, &text(&second, "access_token")).await, 200);
    refused(&refresh(&server, &client, &old).await, "invalid_grant");
    for access in [&first, &second] {
        assert_eq!(opens(&server, &text(access, "access_token")).await, 401);
    }
    refused(
        &refresh(&server, &client, &text(&second, "refresh_token")).await,
        "invalid_grant",
    );
}

async fn registered_as(server: &TestServer, name: &str) -> String {
    let body = json!({"client_name": name, "redirect_uris": [REDIRECT]});
    let reply = server.anonymous().post("/oauth/register", body).await;
    text(&reply.created(), "client_id")
}

async fn a_person_sees_and_ends_what_was_allowed(setup: Setup) {
    let server = setup.start().await;
    let client = registered(&server).await;
    let alice = person(&server, "u_alice").await;
    let given = exchange(&server, &client, &code(&alice, &client).await)
        .await
        .ok();
    let sessions = alice.get("/auth/sessions").await.ok();
    let sessions = sessions["sessions"].as_array().unwrap();
    let allowed = sessions
        .iter()
        .find(|session| session["label"] == "Claude Code")
        .unwrap();
    let path = format!("/auth/sessions/{}", text(allowed, "id"));
    alice.delete(path).await.ok();
    assert_eq!(opens(&server, &text(&given, "access_token")).await, 401);
    refused(
        &refresh(&server, &client, &text(&given, "refresh_token")).await,
        "invalid_grant",
    );
}

async fn signing_out_everywhere_ends_tokens_and_codes(setup: Setup) {
    let server = setup.start().await;
    let client = registered(&server).await;
    let alice = person(&server, "u_alice").await;
    let given = exchange(&server, &client, &code(&alice, &client).await).await;
    let kept = code(&alice, &client).await;
    alice.delete("/auth/sessions").await.ok();
    let access = text(&given.ok(), "access_token");
    assert_eq!(opens(&server, &access).await, 401);
    refused(&exchange(&server, &client, &kept).await, "invalid_grant");
}

async fn a_client_is_sent_only_where_it_registered(setup: Setup) {
    let server = setup.start().await;
    let anonymous = server.anonymous().seen_from_outside();
    for bad in [
        json!({"redirect_uris": []}),
        json!({"redirect_uris": ["http://evil.example/cb"]}),
        json!({"redirect_uris": ["javascript:alert(1)"]}),
        json!({"redirect_uris": [format!("https://a.example/{}", "x".repeat(600))]}),
        json!({"redirect_uris": vec!["https://a.example/cb"; 9]}),
        json!({"redirect_uris": [REDIRECT], "client_name": "\u{202e}edualC"}),
        json!([]),
    ] {
        let reply = anonymous.post("/oauth/register", bad.clone()).await;
        assert_eq!(reply.status, 400, "{bad}");
    }
    let client = registered(&server).await;
    let shown = anonymous.post("/oauth/client", asked(&client)).await.ok();
    assert_eq!(
        shown,
        json!({"client_name": "Claude Code", "redirect_host": "127.0.0.1"})
    );
    let alice = person(&server, "u_alice").await;
    for (field, value) in [
        ("redirect_uri", "https://evil.example/callback"),
        ("redirect_uri", "http://127.0.0.1:33418/callback/../x"),
        ("client_id", "eyJhbGciOiJIUzI1NiJ9.e30.x"),
        ("code_challenge_method", "plain"),
        ("code_challenge", ""),
        ("response_type", "token"),
        ("resource", "https://evil.example/mcp"),
    ] {
        let mut decision = asked(&client);
        decision[field] = value.into();
        decision["allow"] = true.into();
        alice
            .post("/oauth/decision", decision)
            .await
            .refused(400, "bad_request");
    }
    let mut no = asked(&client);
    no["allow"] = false.into();
    let to = anonymous.post("/oauth/decision", no).await.ok();
    assert!(
        text(&to, "redirect_to").starts_with(&format!("{REDIRECT}?error=access_denied&state=x+y"))
    );
    let page = anonymous.get("/oauth/authorize?client_id=x").await;
    assert!(
        page.header("content-security-policy")
            .unwrap()
            .contains("frame-ancestors 'none'")
    );
}

async fn only_a_person_who_signed_in_allows_anything(setup: Setup) {
    let server = setup.start().await;
    let client = registered(&server).await;
    let mut decision = asked(&client);
    decision["allow"] = true.into();
    let owner = server.user("u_alice");
    let room = owner.creates_a_room().await;
    let agent = owner.lets_in(&room, &agent_id("curious_otter")).await;
    let nobody = server.anonymous();
    nobody
        .post("/oauth/decision", decision.clone())
        .await
        .refused(401, "missing_bearer");
    for program in [
        owner.clone(),
        owner.viewer(&room).await,
        agent.caller.clone(),
        agent.identity(),
    ] {
        program
            .post("/oauth/decision", decision.clone())
            .await
            .refused(403, "forbidden");
    }
}

async fn the_sdk_finds_its_way_by_itself(setup: Setup) {
    let server = setup.start().await;
    let alice = person(&server, "u_alice").await;
    let room = alice.creates_a_room().await;
    let mut sdk = Command::new(clients().join("bin/python"));
    sdk.args([
        "tests/clients/mcp_oauth.py",
        server.base_url(),
        &room,
        alice.token().unwrap(),
    ]);
    let output = sdk.kill_on_drop(true).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.trim(), "signed in and posted as agent", "{wrong}");
}
