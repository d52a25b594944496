//! People: the first one, their names and pictures, how much they may write, and how agents are called.

use crate::harness::{Caller, Engine, Setup, TestServer, both_engines, eventually, one_engine};
use serde_json::{Value, json};

both_engines![
    a_person_chooses_a_name_and_a_picture,
    a_person_has_a_limit_of_their_own,
    an_agent_has_a_name_at_birth_and_is_called_by_any_part_of_it,
];
one_engine![
    a_picture_that_is_none_is_refused,
    a_name_that_pretends_is_refused,
    the_operator_renames_and_removes_an_account,
];

/// A person who signed in, from the public internet.
async fn signed_in(server: &TestServer, id: &str) -> Caller {
    let person = server.user_of_type(id, "access").seen_from_outside();
    let traded = person.post_nothing("/auth/exchange").await.created();
    person.with_token(traded["identity_token"].as_str().unwrap())
}

/// The person's own key to a room, as the page gets it.
async fn own_key(person: &Caller, room: &str) -> Caller {
    let path = format!("/rooms/{room}/members/{}/reissue-token", person.id());
    let key = person.post_nothing(path).await.ok();
    person.with_token(key["member_token"].as_str().unwrap())
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and then whatever";

async fn a_person_chooses_a_name_and_a_picture(setup: Setup) {
    let server = setup.start().await;
    let ann = signed_in(&server, "u_ann").await;
    let room = ann.creates_a_room().await;
    let renamed = ann
        .patch("/me", json!({"display_name": "Ann Lee"}))
        .await
        .ok();
    assert_eq!(renamed["display_name"], "Ann Lee");
    let member = ann.sees_member(&room, "u_ann").await.unwrap();
    assert_eq!(
        (&member["user_name"], &member["picture"]),
        (&json!("Ann Lee"), &Value::Null)
    );
    // Rooms from then on know the name too.
    let later = ann.creates_a_room().await;
    assert_eq!(
        ann.sees_member(&later, "u_ann").await.unwrap()["user_name"],
        "Ann Lee"
    );

    let chosen = ann
        .request(reqwest::Method::PUT, "/me/picture")
        .body(PNG)
        .await
        .ok();
    let path = chosen["picture"].as_str().unwrap().to_owned();
    assert!(!path.contains("u_ann"), "no id shows: {path}");
    let member = ann.sees_member(&room, "u_ann").await.unwrap();
    assert_eq!(member["picture"], path);
    let shown = server.anonymous().get(&path).await;
    assert_eq!((shown.status, shown.bytes()), (200, PNG));
    for (name, value) in [
        ("content-type", "image/png"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; sandbox"),
    ] {
        assert_eq!(shown.header(name), Some(value));
    }
    ann.delete("/me/picture").await.ok();
    server
        .anonymous()
        .get(&path)
        .await
        .refused(404, "not_found");
    // A key of Ann's changes nothing about her.
    let shared = ann.viewer(&room).await;
    shared
        .patch("/me", json!({"display_name": "Eve"}))
        .await
        .refused(401, "token_invalid");
}

async fn a_picture_that_is_none_is_refused(setup: Setup) {
    let server = setup.start().await;
    let ann = signed_in(&server, "u_ann").await;
    let put = |body: Vec<u8>| {
        ann.request(reqwest::Method::PUT, "/me/picture")
            .header("content-type", "image/png")
            .body(body)
    };
    for body in [
        b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>".to_vec(),
        b"<html><script>alert(1)</script>".to_vec(),
        Vec::new(),
    ] {
        put(body).await.refused(400, "bad_request");
    }
    let mut huge = PNG.to_vec();
    huge.resize(64 * 1024 + 1, 0);
    put(huge).await.refused(413, "payload_too_large");
    assert_eq!(ann.get("/me").await.ok()["picture"], Value::Null);
}

async fn a_name_that_pretends_is_refused(setup: Setup) {
    let server = setup.start().await;
    let (ann, bob) = (signed_in(&server, "u_ann").await, server.user("u_bob"));
    let room = ann.creates_a_room().await;
    let code = ann.invites(&room).await;
    bob.post(
        format!("/rooms/{room}/join"),
        json!({"invite_code": code, "adapter_type": "pull"}),
    )
    .await
    .created();
    for name in [
        "Bob",
        "B\u{043e}b",
        "system",
        "",
        "a\nb",
        "\u{202e}x",
        &"x".repeat(65),
    ] {
        ann.patch("/me", json!({"display_name": name}))
            .await
            .refused(400, "bad_request");
    }
}

async fn the_operator_renames_and_removes_an_account(setup: Setup) {
    let server = setup.start().await;
    let (alice, ann) = (server.user("u_alice"), signed_in(&server, "u_ann").await);
    let root = server.user_of_type("u_root", "admin");
    let (room, own) = (alice.creates_a_room().await, ann.creates_a_room().await);
    let code = alice.invites(&room).await;
    ann.post(
        format!("/rooms/{room}/join"),
        json!({"invite_code": code, "adapter_type": "pull"}),
    )
    .await
    .created();
    let path = "/internal/admin/users/u_ann";
    root.patch(path, json!({"display_name": "Annabel"}))
        .await
        .ok();
    assert_eq!(
        alice.sees_member(&room, "u_ann").await.unwrap()["user_name"],
        "Annabel"
    );
    root.delete(path).await.ok();
    assert!(alice.sees_member(&room, "u_ann").await.is_none());
    ann.get(format!("/rooms/{own}"))
        .await
        .refused(401, "identity_invalid");
}

async fn a_person_has_a_limit_of_their_own(setup: Setup) {
    let server = setup
        .limit("web_messages_per_hour_per_key", 2)
        .limit("web_messages_per_hour_per_ip", 3)
        .limit("person_messages_per_hour", 5)
        .start()
        .await;
    let ann = signed_in(&server, "u_ann").await;
    let (room, other) = (ann.creates_a_room().await, ann.creates_a_room().await);
    let (own, elsewhere) = (own_key(&ann, &room).await, own_key(&ann, &other).await);
    for n in 0..4 {
        own.says(&room, &format!("message {n}")).await;
    }
    // Over all rooms, whichever key it is.
    elsewhere.says(&other, "the fifth").await;
    let refused = own
        .post(format!("/rooms/{room}/messages"), json!({"content": "x"}))
        .await;
    assert!(
        refused
            .header("retry-after")
            .unwrap()
            .parse::<i64>()
            .unwrap()
            > 3000
    );
    let words = refused.refused(429, "rate_limited");
    assert!(words.contains("Try again in"), "{words}");
    // The address is as free as before for guests, and a key that is given away has the document's limit.
    let shared = ann.viewer(&room).await;
    for n in 0..2 {
        shared.says(&room, &format!("shared {n}")).await;
    }
    let post =
        |caller: &Caller| caller.post(format!("/rooms/{room}/messages"), json!({"content": "x"}));
    post(&shared).await.refused(429, "rate_limited");
    let guest = ann.lets_in_a_person(&room, "guest").await.caller;
    guest.says(&room, "the third from this address").await;
    let words = post(&guest).await.refused(429, "rate_limited");
    assert!(words.contains("your address"), "{words}");
}

async fn an_agent_has_a_name_at_birth_and_is_called_by_any_part_of_it(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let falcon = alice.lets_in(&room, "tidy_falcon-227a4218").await;
    assert_eq!(falcon.joined["user_name"], "Tidy Falcon");
    let otter = alice.lets_in(&room, "tidy_otter-3a9f1c20").await;
    let mentions = async |agent: &Caller| {
        let path = format!("/rooms/{room}/messages?mentions=me");
        agent.get(path).await.ok()["messages"]
            .as_array()
            .unwrap()
            .len()
    };
    for (n, text) in [
        "@falcon, hello",
        "@Tidy Falcon",
        "@tidy_falcon",
        "@ext_tidy_falcon-227a4218",
    ]
    .iter()
    .enumerate()
    {
        alice.says(&room, text).await;
        assert_eq!(mentions(&falcon).await, n + 1, "{text}");
    }
    assert_eq!(mentions(&otter).await, 0);
    let posted = alice
        .post(
            format!("/rooms/{room}/messages"),
            json!({"content": "@tidy who?"}),
        )
        .await
        .created();
    assert_eq!(posted["ambiguous_mentions"], json!(["tidy"]));
    assert_eq!((mentions(&falcon).await, mentions(&otter).await), (4, 0));
    let plain = alice
        .post(
            format!("/rooms/{room}/messages"),
            json!({"content": "@otter"}),
        )
        .await
        .created();
    assert_eq!(plain.get("ambiguous_mentions"), None);
    // A second agent of the same words keeps its id: nobody takes another's name.
    let twin = alice.lets_in(&room, "tidy_falcon-00000001").await;
    assert_eq!(twin.joined["user_name"], Value::Null);
}

/// The link that the server printed at its last start.
async fn first_link(server: &TestServer) -> String {
    eventually("a link for the first person", async || {
        let printed = server.printed();
        let line = printed
            .lines()
            .find(|line| line.contains("Sign in as the first person"))?;
        let at = line.find("/first/")?;
        Some(line[at..].to_owned())
    })
    .await
}

#[tokio::test]
async fn the_first_person_signs_in_with_a_link_that_works_once() {
    let mut server = Setup::new(Engine::Sqlite).with_its_own_keys().start().await;
    let unused = first_link(&server).await;
    // Guessing finds nothing.
    for guess in ["x", "aaaaaaaaaaaaaaaaaaaaaaaa", "%27"] {
        server
            .anonymous()
            .get(format!("/first/{guess}"))
            .await
            .refused(410, "gone");
    }
    server.restart().await;
    let link = first_link(&server).await;
    assert_ne!(link, unused);
    server.anonymous().get(&unused).await.refused(410, "gone");
    let opened = server.anonymous().seen_from_outside().get(&link).await;
    assert_eq!(opened.status, 302);
    let token = opened
        .header("location")
        .unwrap()
        .strip_prefix("/view#user_jwt=")
        .unwrap();
    let person = server.anonymous().seen_from_outside().with_token(token);
    let traded = person.post_nothing("/auth/exchange").await.created();
    assert!(traded["user_id"].as_str().unwrap().starts_with("u_"));
    server.anonymous().get(&link).await.refused(410, "gone");
    server.restart().await;
    // It prints before it answers.
    server.anonymous().get("/health").await.ok();
    assert!(
        !server.printed().contains("first person"),
        "{}",
        server.printed()
    );
}

#[tokio::test]
async fn an_account_is_not_its_name_and_a_folder_without_a_server_has_none() {
    let server = Setup::new(Engine::Sqlite).with_its_own_keys().start().await;
    let data = server.data().to_str().unwrap();
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..2 {
        let output = server
            .run_aside(&["user", "add", "Alice", "--data", data])
            .await;
        assert!(output.status.success(), "{output:?}");
        let printed = String::from_utf8(output.stdout).unwrap();
        let (_, token) = printed.trim_end().split_once("/view#user_jwt=").unwrap();
        let person = server.anonymous().with_token(token);
        let traded = person.post_nothing("/auth/exchange").await.created();
        let id = traded["user_id"].as_str().unwrap().to_owned();
        assert!(id.starts_with("u_alice_"), "{id}");
        ids.insert(id);
    }
    assert_eq!(ids.len(), 2, "two people, two accounts");
    let elsewhere = server.folder().join("elsewhere");
    let folder = elsewhere.to_str().unwrap();
    let output = server
        .run_aside(&["user", "add", "Bob", "--data", folder])
        .await;
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && output.stdout.is_empty());
    assert!(
        words.contains("no server has used") && words.contains(folder),
        "{words}"
    );
    assert!(!elsewhere.exists(), "no keys are made");
}
