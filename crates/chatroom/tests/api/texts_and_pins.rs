//! Older texts, saves that come too late, topics, pins, and messages around one.

use crate::harness::{Setup, both_engines};
use serde_json::{Value, json};

both_engines![
    older_rules_are_kept_and_a_stale_save_is_refused,
    a_room_has_a_topic_and_pins,
    messages_around_one_are_read_at_once,
];

async fn older_rules_are_kept_and_a_stale_save_is_refused(setup: Setup) {
    let server = setup.shared().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    for kind in ["rules", "data"] {
        let path = format!("/rooms/{room}/{kind}");
        assert_eq!(
            bob.get(format!("{path}/history")).await.ok()["versions"],
            json!([])
        );
        let text = |n: i64| json!({"content": format!("text {n}")});
        for n in 1..=3 {
            alice.patch(&path, text(n)).await.ok();
        }
        let stale = alice
            .patch(&path, text(9))
            .header("if-match", "\"2\"")
            .await;
        let words = stale.refused(412, "precondition_failed");
        assert!(words.contains("version 3"), "{words}");
        assert_eq!(
            alice
                .patch(&path, text(4))
                .header("if-match", "\"3\"")
                .await
                .ok()["version"],
            4
        );
        alice
            .patch(&path, text(5))
            .header("if-match", "x")
            .await
            .refused(400, "bad_request");
        let history = bob.get(format!("{path}/history")).await.ok();
        let versions: Vec<(i64, &str)> = history["versions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|v| {
                (
                    v["version"].as_i64().unwrap(),
                    v["content"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(
            versions,
            [(4, "text 4"), (3, "text 3"), (2, "text 2"), (1, "text 1")]
        );
    }
    // Bounded: the newest fifty before the one that holds.
    let path = format!("/rooms/{room}/rules");
    for n in 0..55 {
        alice
            .patch(&path, json!({"content": format!("more {n}")}))
            .await
            .ok();
    }
    let history = bob.get(format!("{path}/history")).await.ok();
    assert_eq!(history["versions"].as_array().unwrap().len(), 51);
}

async fn a_room_has_a_topic_and_pins(setup: Setup) {
    let server = setup.shared().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    alice.lets_in_user(&room, &bob).await;
    alice
        .patch(
            format!("/rooms/{room}"),
            json!({"topic": " Ship it on Friday "}),
        )
        .await
        .ok();
    assert_eq!(
        bob.get(format!("/rooms/{room}")).await.ok()["topic"],
        "Ship it on Friday"
    );
    alice
        .patch(format!("/rooms/{room}"), json!({"topic": "x".repeat(251)}))
        .await
        .refused(400, "bad_request");
    alice
        .patch(format!("/rooms/{room}"), json!({"topic": ""}))
        .await
        .ok();
    assert_eq!(
        bob.get(format!("/rooms/{room}")).await.ok()["topic"],
        Value::Null
    );

    let (one, two) = (
        alice.says(&room, "first").await,
        alice.says(&room, "second").await,
    );
    let pin = |seq: i64| format!("/rooms/{room}/pins/{seq}");
    let mut events = bob.listens(&room).await;
    bob.put(pin(one), Value::Null)
        .await
        .refused(403, "forbidden");
    for seq in [two, one, one] {
        alice.put(pin(seq), Value::Null).await.ok();
    }
    let told = events.expect("pin_updated").await;
    assert_eq!(
        told,
        json!({"seq": two, "pinned": true, "by_user_id": "u_alice"})
    );
    let list = async || {
        let pins = bob.get(format!("/rooms/{room}/pins")).await.ok();
        let pins = pins["pins"].as_array().unwrap().clone();
        pins.iter()
            .map(|pin| {
                (
                    pin["seq"].as_i64().unwrap(),
                    pin["content"].as_str().unwrap().to_owned(),
                )
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(
        list().await,
        [(one, "first".to_owned()), (two, "second".to_owned())]
    );
    // A deleted message is no longer pinned.
    alice
        .delete(format!("/rooms/{room}/messages/{one}"))
        .await
        .ok();
    alice.delete(pin(two)).await.ok();
    assert_eq!(list().await, []);
    alice
        .put(pin(one), Value::Null)
        .await
        .refused(404, "not_found");
    alice
        .put(pin(9999), Value::Null)
        .await
        .refused(404, "not_found");
}

async fn messages_around_one_are_read_at_once(setup: Setup) {
    let server = setup.shared().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    for n in 0..20 {
        alice.says(&room, &format!("message {n}")).await;
    }
    let seqs = async |query: &str| {
        let page = alice
            .get(format!("/rooms/{room}/messages?{query}"))
            .await
            .ok();
        let messages = page["messages"].as_array().unwrap().clone();
        messages
            .iter()
            .map(|m| m["seq"].as_i64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(seqs("around=10&limit=5").await, [8, 9, 10, 11, 12]);
    assert_eq!(seqs("around=1&limit=5").await, [1, 2, 3]);
    assert_eq!(seqs("around=20&limit=4").await, [19, 20]);
    assert_eq!(seqs("around=9223372036854775807&limit=2").await, [20]);
    let both = format!("/rooms/{room}/messages?around=3&since=1");
    alice.get(both).await.refused(400, "bad_request");
}
