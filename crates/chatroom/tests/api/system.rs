//! The server itself: health, the operator's list, metrics, the API description, start and stop.

use crate::harness::{Engine, Setup, agent_id, both_engines, eventually, one_engine};
use serde_json::{Value, json};
use std::{collections::HashSet, path::Path, process::Command};

both_engines![
    health_counts_rooms_and_messages,
    an_admin_lists_all_rooms,
    a_terminated_server_ends_well,
    a_post_in_hand_is_finished_before_the_end,
    everything_is_there_after_a_restart,
    secrets_are_not_in_the_database_in_clear,
    tables_that_are_not_this_programs_are_refused,
];
one_engine![
    without_a_command_it_serves_with_the_options_that_are_given,
    the_metrics_are_for_internal_networks,
    every_field_of_the_api_is_described_as_it_was,
    every_part_of_a_request_has_bounds,
    the_reference_is_a_page,
    only_an_admin_lists_all_rooms,
];

async fn health_counts_rooms_and_messages(setup: Setup) {
    let server = setup.start().await;
    let visitor = server.anonymous().seen_from_outside();
    let before = visitor.get("/health").await.ok();
    assert_eq!(before["status"], "ok");
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let archived = alice.creates_a_room().await;
    alice
        .patch(format!("/rooms/{archived}"), json!({"archived": true}))
        .await
        .ok();
    for n in 0..3 {
        alice.says(&room, &n.to_string()).await;
    }
    let after = visitor.get("/health").await.ok();
    let grown = |field: &str| after[field].as_i64().unwrap() - before[field].as_i64().unwrap();
    assert_eq!((grown("active_rooms"), grown("messages_last_hour")), (1, 3));
}

async fn an_admin_lists_all_rooms(setup: Setup) {
    let server = setup.start().await;
    let admin = server.user_of_type("u_admin", "admin");
    let path = "/internal/admin/rooms";
    let before = admin.get(path).await.ok()["total"].as_i64().unwrap();
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    alice.says(&room, "hello").await;
    server.user("u_bob").creates_a_public_room().await;
    let list = admin.get(path).await.ok();
    assert_eq!(list["total"], before + 2);
    let rooms = list["rooms"].as_array().unwrap();
    let found = rooms.iter().find(|r| r["room_id"] == room).unwrap();
    assert_eq!(
        *found,
        json!({"room_id": room, "name": "strategy-sync", "owner_user_id": "u_alice",
               "visibility": "private", "archived": false, "created_at": found["created_at"],
               "member_count": 1, "message_count": 1})
    );
    let page = admin.get(format!("{path}?limit=1&offset=1")).await.ok();
    assert_eq!(page["rooms"].as_array().unwrap().len(), 1);
    assert_eq!((&page["limit"], &page["offset"]), (&json!(1), &json!(1)));
}

async fn only_an_admin_lists_all_rooms(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let path = "/internal/admin/rooms";
    alice.get(path).await.refused(403, "forbidden");
    server
        .user_of_type("u_alice", "access")
        .get(path)
        .await
        .refused(403, "forbidden");
    server
        .anonymous()
        .get(path)
        .await
        .refused(401, "missing_bearer");
    alice
        .viewer(&room)
        .await
        .get(path)
        .await
        .refused(401, "token_invalid");
    let outside = server.user_of_type("u_admin", "admin").seen_from_outside();
    outside.get(path).await.refused(403, "internal_only");
}

async fn the_metrics_are_for_internal_networks(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    alice.says(&room, "hello").await;
    let reply = server.anonymous().get("/metrics").await;
    assert_eq!(reply.status, 200);
    let kind = reply.header("content-type").unwrap();
    assert!(kind.starts_with("text/plain") || kind.starts_with("application/openmetrics-text"));
    assert!(
        reply.text().contains("# TYPE sc_chatroom_"),
        "{}",
        reply.text()
    );
    assert!(!reply.text().contains(&room), "no room is named in figures");
    let outside = server.anonymous().seen_from_outside().get("/metrics").await;
    outside.refused(403, "internal_only");
}

async fn every_field_of_the_api_is_described_as_it_was(setup: Setup) {
    let server = setup.start().await;
    let document = server
        .anonymous()
        .seen_from_outside()
        .get("/openapi.json")
        .await
        .ok();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let described = format!("{document:#}\n");
    let snapshot = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api/openapi.json");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&snapshot, &described).unwrap();
    }
    let kept = std::fs::read_to_string(&snapshot).unwrap();
    let lines = kept.lines().zip(described.lines());
    let first = lines.enumerate().find(|(_, (kept, now))| kept != now);
    assert!(
        kept == described,
        "The API is not described as it was, first in line and text: {first:?}. If that is meant, run \
         this test with UPDATE_SNAPSHOTS=1 and look at the difference of {snapshot:?}"
    );
}

async fn every_part_of_a_request_has_bounds(setup: Setup) {
    let server = setup.start().await;
    let document = server.anonymous().get("/openapi.json").await.ok();
    let mut without = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                if !is_bounded(&parameter["schema"]) {
                    without.push(format!("{method} {path}: {}", parameter["name"]));
                }
            }
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            let Some(name) = body["$ref"].as_str().and_then(|r| r.rsplit('/').next()) else {
                continue;
            };
            let fields = &document["components"]["schemas"][name]["properties"];
            for (field, schema) in fields.as_object().into_iter().flatten() {
                if !is_bounded(schema) {
                    without.push(format!("{name}.{field}"));
                }
            }
        }
    }
    without.sort();
    without.dedup();
    assert!(
        without.is_empty(),
        "give these bounds in src/api/bounds.rs: {without:#?}"
    );
}

/// Whether a schema says how much of it there may be.
fn is_bounded(schema: &Value) -> bool {
    let has = |name: &str| schema.get(name).is_some();
    let kind = |name: &str| match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == name),
        kind => kind == name,
    };
    let all = |name: &str| {
        schema[name]
            .as_array()
            .is_some_and(|all| all.iter().all(is_bounded))
    };
    has("$ref") // words, or an object whose fields are looked at themselves
        || has("enum")
        || kind("boolean")
        || (kind("string") && has("maxLength"))
        || (kind("integer") && has("minimum"))
        || (kind("array") && has("maxItems"))
        || kind("null")
        || kind("object")
        || all("oneOf")
}

#[tokio::test]
async fn a_validator_that_others_made_finds_no_fault_with_the_description() {
    let python = std::env::var("SC_TEST_A2A_PYTHON").unwrap_or_else(|_| {
        panic!("run crates/chatroom/tests/a2a/install.sh FOLDER and set SC_TEST_A2A_PYTHON=FOLDER/bin/python")
    });
    let server = Setup::new(Engine::Sqlite).start().await;
    let document = server.anonymous().get("/openapi.json").await;
    let file = server.folder().join("openapi.json");
    std::fs::write(&file, document.bytes()).unwrap();
    let checked = Command::new(python)
        .args(["-m", "openapi_spec_validator"])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stdout);
    let wrong = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{said}{wrong}");
    let mut names = HashSet::new();
    let document = document.ok();
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} names two operations");
        }
    }
}

async fn the_reference_is_a_page(setup: Setup) {
    let server = setup.start().await;
    let reply = server
        .anonymous()
        .seen_from_outside()
        .get("/docs/api-reference")
        .await;
    assert_eq!(reply.status, 200);
    assert!(
        reply
            .header("content-type")
            .unwrap()
            .starts_with("text/html")
    );
    let document = server.anonymous().get("/openapi.json").await.ok();
    for path in document["paths"].as_object().unwrap().keys() {
        let shown = format!("<code>{path}</code>");
        assert!(reply.text().contains(&shown), "{path} is in no section");
    }
}

async fn without_a_command_it_serves_with_the_options_that_are_given(setup: Setup) {
    let server = setup.start().await;
    let data = server.data().to_str().unwrap();
    let second = ["--listen", "127.0.0.1:0", "--data", data];
    let ended = server.run_aside(&second).await;
    let told = String::from_utf8(ended.stderr).unwrap();
    assert!(
        told.contains("another server uses the data folder"),
        "{told}"
    );
    let both = server.run_aside(&["--data", data, "token"]).await;
    assert!(!both.status.success(), "options stand after their command");
}

async fn a_terminated_server_ends_well(setup: Setup) {
    let mut server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let _stream = alice.listens(&room).await;
    let status = server.terminate().await;
    assert!(status.success(), "{status}");
}

async fn a_post_in_hand_is_finished_before_the_end(setup: Setup) {
    let mut server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let posters: Vec<_> = (0..8)
        .map(|task| {
            let (alice, room) = (alice.clone(), room.clone());
            tokio::spawn(async move {
                let mut answered = Vec::new();
                for n in 0.. {
                    let content = format!("{task} {n}");
                    let body = json!({"content": content});
                    let post = alice
                        .post(format!("/rooms/{room}/messages"), body)
                        .attempt();
                    match post.await {
                        Ok(reply) if reply.status == 201 => answered.push(content),
                        Ok(reply) if reply.status == 503 => {}
                        Ok(reply) => panic!("{} {}", reply.status, reply.text()),
                        Err(_) => break,
                    }
                }
                answered
            })
        })
        .collect();
    eventually("some messages are posted", async || {
        (alice.latest_seq(&room).await > 20).then_some(())
    })
    .await;
    assert!(server.terminate().await.success());
    let mut answered = Vec::new();
    for poster in posters {
        answered.extend(poster.await.unwrap());
    }
    server.restart().await;
    let alice = alice.at(&server);
    let mut there = Vec::new();
    let last = alice.latest_seq(&room).await;
    for since in (0..last).step_by(200) {
        let path = format!("/rooms/{room}/messages?since={since}&limit=200");
        let page = alice.get(path).await.ok();
        let texts = page["messages"].as_array().unwrap().iter();
        there.extend(texts.map(|m| m["content"].as_str().unwrap().to_owned()));
    }
    for content in &answered {
        assert!(
            there.contains(content),
            "{content} was answered 201 and is not there"
        );
    }
}

async fn everything_is_there_after_a_restart(setup: Setup) {
    let mut server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_public_room().await;
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let seq = agent.says(&room, "hello").await;
    let path = format!("/rooms/{room}/messages/{seq}/reactions");
    alice.post(path, json!({"emoji": "👍"})).await;
    alice
        .patch(
            format!("/rooms/{room}/rules"),
            json!({"content": "Be kind."}),
        )
        .await
        .ok();
    alice
        .patch(format!("/rooms/{room}/data"), json!({"content": "facts"}))
        .await
        .ok();
    alice.invites(&room).await;
    let looks = [
        "",
        "/members",
        "/messages",
        "/rules",
        "/data",
        "/invites",
        "/audit",
        "/me",
    ];
    let mut before = Vec::new();
    for look in looks {
        before.push(alice.get(format!("/rooms/{room}{look}")).await.ok());
    }
    server.restart().await;
    let alice = alice.at(&server);
    for (look, before) in looks.iter().zip(before) {
        assert_eq!(
            alice.get(format!("/rooms/{room}{look}")).await.ok(),
            before,
            "{look}"
        );
    }
    agent.at(&server).says(&room, "still here").await;
}

async fn secrets_are_not_in_the_database_in_clear(setup: Setup) {
    const PUSH_BEARER: &str = "sk_live_thisisaverysecretpushbearer";
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let endpoint = json!({"akm_key": PUSH_BEARER, "agent_endpoint": "https://a.example"});
    alice
        .put(format!("/rooms/{room}/members/u_alice/endpoint"), endpoint)
        .await
        .ok();
    let invite = alice
        .post(format!("/rooms/{room}/invites"), json!({}))
        .await
        .created();
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let key = json!({"for_user_id": "u_alice"});
    let key = alice
        .post(format!("/rooms/{room}/room-keys"), key)
        .await
        .created();
    let mut secrets = vec![PUSH_BEARER.to_owned()];
    for token in [
        &invite["invite_code"],
        &key["token"],
        &agent.joined["identity_token"],
    ] {
        secrets.push(signature(token.as_str().unwrap()));
    }
    secrets.push(signature(agent.token().unwrap()));
    secrets.push(key["code"].as_str().unwrap().to_owned());
    secrets.push(invite["short_code"].as_str().unwrap().to_owned());
    let stored = server.stored_bytes().await;
    assert!(contains(&stored, b"strategy-sync"), "this is the database");
    for secret in secrets {
        assert!(
            !contains(&stored, secret.as_bytes()),
            "{secret} is stored in clear"
        );
    }
}

fn signature(token: &str) -> String {
    token.rsplit_once('.').unwrap().1.to_owned()
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack
        .windows(needle.len())
        .any(|window| window == needle)
}

async fn tables_that_are_not_this_programs_are_refused(setup: Setup) {
    let mut server = setup.start().await;
    server.terminate().await;
    let data = server.data().to_owned();
    let data = data.to_str().unwrap();
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 VALUES (9999, 'newer', TRUE, '', 0)";
    let no_newer = "DELETE FROM _sqlx_migrations WHERE version = 9999";
    let half = "UPDATE _sqlx_migrations SET success = FALSE WHERE version = 1";
    let whole = "UPDATE _sqlx_migrations SET success = TRUE WHERE version = 1";
    for (change, undo, told) in [
        (newer, no_newer, "newer program's: it has migration 9999"),
        (half, whole, "migration 1 is partially applied"),
    ] {
        server.run_sql(change, change).await;
        let refused = server.run_aside(&["serve", "--data", data]).await;
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains(told), "{said}");
        server.run_sql(undo, undo).await;
    }
    server.restart().await;
}
