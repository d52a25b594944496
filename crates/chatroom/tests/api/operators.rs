//! What operators set and run: settings, identity providers, networks, links and sign-in.

use crate::harness::{Caller, Setup, TestServer, now, one_engine, public_jwks, public_pem};
use serde_json::{Value, json};

one_engine![
    user_tokens_may_be_signed_with_a_shared_secret,
    a_users_id_and_name_are_found_in_the_usual_claims,
    a_user_token_never_speaks_for_the_system_or_an_external_member,
    user_tokens_may_be_checked_with_a_jwks,
    user_tokens_may_be_checked_with_what_a_provider_publishes,
    user_tokens_may_be_checked_with_a_public_key,
    a_provider_that_publishes_no_key_is_told_at_the_start,
    an_expired_or_early_user_token_is_refused,
    a_forwarded_address_counts_from_a_trusted_proxy_alone,
    internal_networks_are_the_operators_to_name,
    links_begin_with_the_public_address,
    a_link_signs_a_person_in,
    removing_an_id_that_holds_nothing_is_questioned,
    a_token_is_not_signed_for_just_anybody,
    a_setting_that_does_not_exist_is_named,
    a_port_that_is_taken_is_told,
    a_new_server_makes_its_own_keys,
];

const SECRET: &str = "a shared secret of some length, as providers give them";

fn signed(secret: &[u8], claims: &Value) -> String {
    let key = jsonwebtoken::EncodingKey::from_secret(secret);
    jsonwebtoken::encode(&jsonwebtoken::Header::default(), claims, &key).unwrap()
}

fn with(server: &TestServer, mut claims: Value) -> Caller {
    if claims.get("exp").is_none() {
        claims["exp"] = json!(now() + 600);
    }
    server
        .anonymous()
        .with_token(&signed(SECRET.as_bytes(), &claims))
}

async fn user_tokens_may_be_signed_with_a_shared_secret(setup: Setup) {
    let server = setup.env("AUTH__HS256_SECRET", SECRET).start().await;
    with(&server, json!({"user_id": "u_alice"}))
        .get("/rooms")
        .await
        .ok();
    // The server's own key signs no more.
    server
        .user("u_alice")
        .get("/rooms")
        .await
        .refused(401, "token_invalid");
    let other = signed(
        b"another secret",
        &json!({"user_id": "u_alice", "exp": now() + 600}),
    );
    let other = server.anonymous().with_token(&other);
    other.get("/rooms").await.refused(401, "token_invalid");
}

async fn a_users_id_and_name_are_found_in_the_usual_claims(setup: Setup) {
    let server = setup.env("AUTH__HS256_SECRET", SECRET).start().await;
    let room = with(&server, json!({"user_id": "u_owner"}))
        .creates_a_public_room()
        .await;
    for (claims, id, name) in [
        (
            json!({"user_id": "u_a", "name": "Ann"}),
            "u_a",
            json!("Ann"),
        ),
        (
            json!({"userInfoID": "12345", "display_name": "Ben"}),
            "12345",
            json!("Ben"),
        ),
        (
            json!({"userInfoID": 678, "preferred_username": "cy"}),
            "678",
            json!("cy"),
        ),
        (json!({"sub": "u_d"}), "u_d", json!(null)),
        (
            json!({"user_id": "u_e", "name": "E", "display_name": "X"}),
            "u_e",
            json!("E"),
        ),
    ] {
        let join = json!({"adapter_type": "pull"});
        let joined = with(&server, claims)
            .post(format!("/rooms/{room}/join"), join)
            .await;
        let joined = joined.created();
        assert_eq!(
            (&joined["user_id"], &joined["user_name"]),
            (&json!(id), &name)
        );
    }
}

async fn a_user_token_never_speaks_for_the_system_or_an_external_member(setup: Setup) {
    let server = setup.env("AUTH__HS256_SECRET", SECRET).start().await;
    for claims in [
        json!({"user_id": "u_system"}),
        json!({"user_id": "hook_x9j2k7vpx9j2"}),
        json!({"user_id": "import:u_alice"}),
        json!({"user_id": "ext_curious_otter-3a9f1c20"}),
        json!({"user_id": ""}),
        json!({"user_id": "a b"}),
        json!({"name": "nobody"}),
        json!({"user_id": "u_alice", "type": "superuser"}),
    ] {
        let caller = with(&server, claims);
        caller.get("/rooms").await.refused(401, "token_invalid");
    }
}

async fn user_tokens_may_be_checked_with_a_jwks(setup: Setup) {
    let jwks = tempfile::NamedTempFile::new().unwrap();
    let text = public_jwks();
    std::fs::write(jwks.path(), &text).unwrap();
    let server = setup
        .env("AUTH__JWKS_FILE", jwks.path().to_str().unwrap())
        .start()
        .await;
    server.user("u_alice").get("/rooms").await.ok();
    // What is public must not do as a secret.
    let claims = json!({"user_id": "u_alice", "exp": now() + 600});
    let document: Value = serde_json::from_str(&text).unwrap();
    for known in [
        text.as_str(),
        document["keys"][0]["n"].as_str().unwrap(),
        "",
    ] {
        let forged = server
            .anonymous()
            .with_token(&signed(known.as_bytes(), &claims));
        forged.get("/rooms").await.refused(401, "token_invalid");
    }
}

/// A provider that publishes this at the address given back.
async fn provider(published: String) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/jwks.json", listener.local_addr().unwrap());
    let document = axum::routing::get(async move || published.clone());
    let provider = axum::Router::new().route("/jwks.json", document);
    tokio::spawn(async move { axum::serve(listener, provider).await });
    url
}

async fn user_tokens_may_be_checked_with_what_a_provider_publishes(setup: Setup) {
    let url = provider(public_jwks()).await;
    let server = setup.env("AUTH__JWKS_URL", &url).start().await;
    server.user("u_alice").get("/rooms").await.ok();
    let claims = json!({"user_id": "u_alice", "exp": now() + 600});
    let forged = server
        .anonymous()
        .with_token(&signed(public_jwks().as_bytes(), &claims));
    forged.get("/rooms").await.refused(401, "token_invalid");
}

async fn a_provider_that_publishes_no_key_is_told_at_the_start(setup: Setup) {
    let url = provider(json!({"keys": []}).to_string()).await;
    let server = setup.start().await;
    let (data, file) = (
        server.folder().join("another"),
        server.folder().join("chatroom.toml"),
    );
    std::fs::write(&file, format!("[auth]\njwks_url = \"{url}\"\n")).unwrap();
    let (data, file) = (data.to_str().unwrap(), file.to_str().unwrap());
    let output = server
        .run_aside(&[
            "serve",
            "--config",
            file,
            "--data",
            data,
            "--listen",
            "127.0.0.1:0",
        ])
        .await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(&url), "{said}");
}

async fn user_tokens_may_be_checked_with_a_public_key(setup: Setup) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), public_pem()).unwrap();
    let server = setup
        .env("AUTH__PUBLIC_KEY_FILE", file.path().to_str().unwrap())
        .start()
        .await;
    server.user("u_alice").get("/rooms").await.ok();
    let claims = json!({"user_id": "u_alice", "exp": now() + 600});
    let forged = server
        .anonymous()
        .with_token(&signed(public_pem().as_bytes(), &claims));
    forged.get("/rooms").await.refused(401, "token_invalid");
}

async fn an_expired_or_early_user_token_is_refused(setup: Setup) {
    let server = setup.env("AUTH__HS256_SECRET", SECRET).start().await;
    for claims in [
        json!({"user_id": "u_alice", "exp": now() - 5}),
        json!({"user_id": "u_alice", "exp": 0}),
        json!({"user_id": "u_alice", "exp": now() + 600, "nbf": now() + 300}),
    ] {
        with(&server, claims)
            .get("/rooms")
            .await
            .refused(401, "token_invalid");
    }
    let forever = signed(SECRET.as_bytes(), &json!({"user_id": "u_alice"}));
    let forever = server.anonymous().with_token(&forever);
    forever.get("/rooms").await.refused(401, "token_invalid");
}

async fn a_forwarded_address_counts_from_a_trusted_proxy_alone(setup: Setup) {
    let server = setup.env("NETWORK__TRUSTED_PROXIES", "[]").start().await;
    let alice = server.user("u_alice");
    alice.seen_from_outside().get("/rooms").await.ok();
    let server = Setup::new(server.engine()).start().await;
    let alice = server.user("u_alice");
    alice
        .from("127.0.0.1, 203.0.113.9")
        .get("/rooms")
        .await
        .refused(403, "internal_only");
    alice.from("203.0.113.9, 10.0.0.5").get("/rooms").await.ok();
}

async fn internal_networks_are_the_operators_to_name(setup: Setup) {
    let setup = setup.env("NETWORK__INTERNAL", r#"["10.1.0.0/16"]"#);
    let server = setup.start().await;
    let alice = server.user("u_alice");
    alice.get("/rooms").await.refused(403, "internal_only");
    alice
        .from("10.2.0.1")
        .get("/rooms")
        .await
        .refused(403, "internal_only");
    alice.from("10.1.0.1").get("/rooms").await.ok();
}

async fn links_begin_with_the_public_address(setup: Setup) {
    let server = setup
        .env("PUBLIC_URL", "https://rooms.example.org")
        .start()
        .await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let key = json!({"for_user_id": "u_alice"});
    let key = alice
        .post(format!("/rooms/{room}/room-keys"), key)
        .await
        .created();
    let invite = alice
        .post(format!("/rooms/{room}/invites"), json!({}))
        .await
        .created();
    for (link, begins) in [
        (&key["viewer_url"], "https://rooms.example.org/k/ck_"),
        (&key["direct_url"], "https://rooms.example.org/view?room="),
        (
            &invite["install_url"],
            "https://rooms.example.org/install/i_",
        ),
    ] {
        assert!(link.as_str().unwrap().starts_with(begins), "{link}");
    }
}

async fn a_link_signs_a_person_in(setup: Setup) {
    let server = setup.start().await;
    let data = server.data().to_str().unwrap();
    let output = server
        .run_aside(&["user", "add", "Alice Cooper", "--data", data])
        .await;
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let (page, token) = printed.trim_end().split_once("/view#user_jwt=").unwrap();
    assert_eq!(page, server.base_url());
    let person = server.anonymous().seen_from_outside().with_token(token);
    let traded = person.post_nothing("/auth/exchange").await.created();
    let id = traded["user_id"].as_str().unwrap();
    assert!(id.starts_with("u_alice_cooper_"), "{id}");
}

async fn removing_an_id_that_holds_nothing_is_questioned(setup: Setup) {
    let server = setup.start().await;
    let data = server.data().to_str().unwrap();
    let remove = async |user: &str| {
        let output = server
            .run_aside(&["user", "remove", user, "--data", data])
            .await;
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let signed_in = server.user_of_type("u_bob", "access");
    signed_in.post_nothing("/auth/exchange").await.created();
    assert!(remove("u_bobb").await.contains("sc-chatroom user list"));
    let told = remove("u_bob").await;
    assert!(!told.contains("user list"), "{told}");
    assert!(
        remove("u_bob").await.contains("sc-chatroom user list"),
        "nothing is left"
    );
}

async fn a_token_is_not_signed_for_just_anybody(setup: Setup) {
    let server = setup.start().await;
    let data = server.data().to_str().unwrap();
    for user in ["ext_curious_otter-3a9f1c20", "u_system", "a b", ""] {
        let output = server
            .run_aside(&["token", "--data", data, "--user", user])
            .await;
        assert!(
            !output.status.success() && output.stdout.is_empty(),
            "{output:?}"
        );
        assert!(!output.stderr.is_empty());
    }
}

async fn a_setting_that_does_not_exist_is_named(setup: Setup) {
    let server = setup.start().await;
    let file = server.folder().join("chatroom.toml");
    for (text, named) in [
        (
            "[limits]\nagent_cooldwn_seconds = 3\n",
            "agent_cooldwn_seconds",
        ),
        (
            "[limits]\nmembers_per_room = \"many\"\n",
            "members_per_room",
        ),
        ("listen = \n", "listen"),
    ] {
        std::fs::write(&file, text).unwrap();
        let config = file.to_str().unwrap();
        let output = server.run_aside(&["serve", "--config", config]).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(named), "{said}");
    }
}

async fn a_port_that_is_taken_is_told(setup: Setup) {
    let server = setup.start().await;
    let address = server.base_url().strip_prefix("http://").unwrap();
    let other = server.folder().join("other");
    let other = other.to_str().unwrap();
    let output = server
        .run_aside(&["serve", "--listen", address, "--data", other])
        .await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains(address), "{said}");
}

async fn a_new_server_makes_its_own_keys(setup: Setup) {
    use std::os::unix::fs::PermissionsExt;
    let server = setup.with_its_own_keys().start().await;
    let token = server.token(&["--user", "u_alice"]);
    server
        .anonymous()
        .with_token(&token)
        .get("/rooms")
        .await
        .ok();
    let stranger = server.user("u_alice").get("/rooms").await;
    stranger.refused(401, "token_invalid");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o077;
    assert_eq!(mode(server.data()), 0, "nobody else may read the rooms");
    for file in std::fs::read_dir(server.data().join("keys")).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0, "nobody else may read a key");
    }
}
