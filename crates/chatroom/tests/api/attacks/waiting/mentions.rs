//! Finding who is mentioned costs the others nothing.

use crate::harness::{Setup, both_engines};
use serde_json::json;
use std::time::Duration;

both_engines!(
    four_thousand_at_signs_in_a_room_of_thousands_hold_up_nobody,
    a_message_mentions_so_many_and_no_more,
    names_from_before_are_mentioned_too,
);

/// So many members join behind the server's back; `%` is their number.
fn members(room: &str, from: u32, to: u32, name: &str, folded: &str) -> (String, String) {
    let columns =
        "room_id, user_id, user_name, name_folded, member_kind, role, adapter_type, joined_at";
    let text = |template: &str| match template {
        "NULL" => "NULL".to_owned(),
        template => format!("REPLACE('{template}', '%', CAST(n AS TEXT))"),
    };
    let (name, folded) = (text(name), text(folded));
    let row = format!(
        "SELECT '{room}', 'ext_many-' || n, {name}, {folded}, 'external_agent', 'member', 'pull', 1"
    );
    let sqlite = format!(
        "INSERT INTO room_members ({columns}) WITH RECURSIVE c (n) AS \
         (SELECT {from} UNION ALL SELECT n + 1 FROM c WHERE n < {to}) {row} FROM c"
    );
    let postgres = format!(
        "INSERT INTO room_members ({columns}) {row} FROM generate_series({from}, {to}) AS n"
    );
    (sqlite, postgres)
}

async fn four_thousand_at_signs_in_a_room_of_thousands_hold_up_nobody(setup: Setup) {
    let server = setup.start().await;
    let (alice, bob) = (server.user("u_alice"), server.user("u_bob"));
    let room = alice.creates_a_room().await;
    let elsewhere = bob.creates_a_room().await;
    let (sqlite, postgres) = members(&room, 1, 9900, "@@@@ %", "@@@@ %");
    server.run_sql(&sqlite, &postgres).await;
    let seq = alice.says(&room, "hello").await;
    let path = format!("/rooms/{room}/messages/{seq}");
    let before = server.processor_time();
    for text in ["@".repeat(4096), "@@@@ 1".repeat(682), "@a.".repeat(1365)] {
        let attack = tokio::spawn({
            let (alice, path, room) = (alice.clone(), path.clone(), room.clone());
            async move {
                alice.patch(&path, json!({"content": text})).await.ok();
                alice.says(&room, &text).await;
            }
        });
        bob.says(&elsewhere, "still here").await;
        attack.await.unwrap();
    }
    // Each of the six took two seconds, and bob waited for it.
    let spent = server.processor_time() - before;
    assert!(spent < Duration::from_secs(3), "{spent:?}");
}

async fn a_message_mentions_so_many_and_no_more(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let (sqlite, postgres) = members(&room, 1, 200, "Twin", "twin");
    server.run_sql(&sqlite, &postgres).await;
    alice.says(&room, "hello @twin").await;
    let count = "SELECT COUNT(*) FROM mentions";
    assert_eq!(server.count(count).await, 50);
    let everybody: String = (1..=200).map(|n| format!("@ext_many-{n} ")).collect();
    alice.says(&room, &everybody).await;
    assert_eq!(server.count(count).await, 100);
}

async fn names_from_before_are_mentioned_too(setup: Setup) {
    let mut server = setup.start().await;
    let room = server.user("u_alice").creates_a_room().await;
    let (sqlite, postgres) = members(&room, 1, 700, "Élodie %", "NULL");
    server.run_sql(&sqlite, &postgres).await;
    server.restart().await;
    let alice = server.user("u_alice");
    alice
        .says(&room, "where is @ÉLODIE 699, and @ext_MANY-7?")
        .await;
    assert_eq!(server.count("SELECT COUNT(*) FROM mentions").await, 2);
}
