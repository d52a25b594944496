//! A room's rules and how a change of them is told.

use crate::harness::{Setup, agent_id, both_engines, now, one_engine};
use serde_json::{Value, json};

both_engines![
    rules_have_a_version_that_grows_by_one,
    a_change_is_told_twice_on_the_stream,
    a_change_reaches_those_who_backfill,
    every_message_carries_the_current_version,
];

one_engine![
    members_and_key_holders_read_the_rules,
    only_the_owner_writes_the_rules,
    rules_hold_16_kb_of_utf8,
];

const TEXT: &str = "Be concise. Default to silent. Reply only when @-mentioned.";

async fn rules_have_a_version_that_grows_by_one(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let path = format!("/rooms/{room}/rules");
    let none = alice.get(&path).await.ok();
    assert_eq!(none["content"], "");
    let first = none["version"].as_i64().unwrap();
    for n in 1..=3 {
        let written = alice.patch(&path, json!({"content": TEXT})).await.ok();
        let updated_at = written["updated_at"].as_i64().unwrap();
        assert!((now() - updated_at).abs() < 60);
        assert_eq!(
            written,
            json!({"content": TEXT, "version": first + n, "updated_at": updated_at,
                   "updated_by": "u_alice"})
        );
        assert_eq!(alice.get(&path).await.ok(), written);
    }
}

async fn members_and_key_holders_read_the_rules(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let path = format!("/rooms/{room}/rules");
    alice.patch(&path, json!({"content": TEXT})).await.ok();
    let agent = alice.lets_in(&room, &agent_id("curious_otter")).await;
    let viewer = alice.viewer_with(&room, "view").await.seen_from_outside();
    for caller in [&alice, &agent.caller, &viewer] {
        assert_eq!(caller.get(&path).await.ok()["content"], TEXT);
    }
    server
        .user("u_eve")
        .get(&path)
        .await
        .refused(403, "not_a_member");
    server
        .anonymous()
        .get(&path)
        .await
        .refused(401, "missing_bearer");
}

async fn only_the_owner_writes_the_rules(setup: Setup) {
    let server = setup.shared().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    let path = format!("/rooms/{room}/rules");
    let body = json!({"content": TEXT});
    bob.patch(&path, body.clone())
        .await
        .refused(403, "forbidden");
    let key = alice.viewer(&room).await;
    key.patch(&path, body.clone())
        .await
        .refused(403, "key_scope_insufficient");
    server
        .anonymous()
        .patch(&path, body.clone())
        .await
        .refused(401, "missing_bearer");
    server
        .user("u_eve")
        .patch(&path, body)
        .await
        .refused(403, "not_a_member");
    assert_eq!(alice.get(&path).await.ok()["content"], "");
}

async fn rules_hold_16_kb_of_utf8(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let path = format!("/rooms/{room}/rules");
    let longest = "€".repeat(5461) + "x";
    assert_eq!(longest.len(), 16 * 1024);
    let written = alice.patch(&path, json!({"content": longest})).await.ok();
    let over = json!({"content": longest + "x"});
    alice.patch(&path, over).await.refused(400, "too_large");
    assert_eq!(alice.get(&path).await.ok(), written);
}

async fn a_change_is_told_twice_on_the_stream(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let mut events = alice.listens(&room).await;
    let path = format!("/rooms/{room}/rules");
    let rules = alice.patch(&path, json!({"content": TEXT})).await.ok();
    let version = &rules["version"];

    let told = events.expect("rules_updated").await;
    assert_eq!(
        told,
        json!({"version": version, "updated_by": "u_alice", "updated_at": rules["updated_at"]}),
        "metadata only"
    );
    let message = events.expect("message").await;
    assert_eq!(
        (&message["via"], &message["type"]),
        (&json!("system"), &json!("system"))
    );
    assert_eq!(
        message["content"],
        format!("Rules updated to v{version} by Alice")
    );
}

async fn a_change_reaches_those_who_backfill(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let seq = alice.says(&room, "before").await;
    let path = format!("/rooms/{room}/rules");
    let rules = alice.patch(&path, json!({"content": TEXT})).await.ok();

    let message = alice.reads(&room, seq + 1).await;
    let version = &rules["version"];
    assert_eq!(
        message["content"],
        format!("Rules updated to v{version} by Alice")
    );
    assert_eq!(
        (&message["via"], &message["type"]),
        (&json!("system"), &json!("system"))
    );
    assert_eq!(alice.says(&room, "after").await, seq + 2);
}

async fn every_message_carries_the_current_version(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let seq = alice.says(&room, "old").await;
    let path = format!("/rooms/{room}/rules");
    let rules = alice.patch(&path, json!({"content": TEXT})).await.ok();
    let version: &Value = &rules["version"];
    assert_eq!(alice.reads(&room, seq).await["rules_version"], *version);
    let mut events = alice.listens(&room).await;
    alice.says(&room, "new").await;
    assert_eq!(events.expect("message").await["rules_version"], *version);
    let me = alice.get(format!("/rooms/{room}/me")).await.ok();
    assert_eq!(me["room"]["rules_version"], *version);
}
