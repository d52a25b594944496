//! Scoring against a real store.

use super::*;
use crate::{
    services::reputation::score::{DAY, Window},
    store::{group::NewMessage, leaderboard::Ranking, migrate::migrate},
};
use protocol::Cursor;

/// Noon of some day.
const NOON: i64 = 20_000 * DAY + DAY / 2;

async fn database() -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_sqlite(&dir.path().join("chatroom.db"))
        .await
        .unwrap();
    migrate(&db).await.unwrap();
    (dir, db)
}

/// Messages of one user at these times, as if they had been posted.
async fn posted(db: &Db, times: &[i64]) {
    let mut tx = db.begin().await.unwrap();
    tx.insert_room("rm_a", "a", "u_a", "public", 1)
        .await
        .unwrap();
    for (seq, at) in (1..).zip(times) {
        let message = NewMessage {
            room_id: "rm_a".into(),
            seq,
            sender_user_id: "u_a".into(),
            sender_user_name: None,
            via: "agent",
            r#type: "chat",
            content: "hello".into(),
            reply_to_seq: None,
            reply_chain_depth: 0,
            created_at: *at,
            client_key: None,
        };
        tx.insert_message(&message).await.unwrap();
        tx.set_head("rm_a", Cursor::at(seq)).await.unwrap();
    }
    tx.commit().await.unwrap();
}

/// Events and score over all rooms, from the totals and from the days.
async fn ranked(db: &Db, now: i64) -> Vec<(i64, f64)> {
    let window = Window::new(30, now);
    let mut conn = db.read().await.unwrap();
    let mut found = Vec::new();
    for since in [None, Some(window.first_day)] {
        let ranking = Ranking {
            since,
            of_points: window.of_points,
            of_moment: window.of_moment,
            limit: 10,
        };
        for row in conn.ranked_everywhere(ranking).await.unwrap() {
            let sums = Sums {
                events: row.events,
                points: row.points,
                moment: row.moment,
            };
            found.push((row.events, window.score(sums)));
        }
    }
    found
}

#[tokio::test]
async fn what_has_decayed_is_taken_out_of_the_totals() {
    let (_dir, db) = database().await;
    posted(&db, &[NOON, NOON + 15 * DAY, NOON + 20 * DAY]).await;
    settle_all(&db).await.unwrap();
    let then = NOON + 20 * DAY;
    // The first is boosted and a third of it is left, of the second five sixths, all of the third.
    let expected = (3, 0.25 + 0.42 + 0.5);
    assert_eq!(ranked(&db, then).await, [expected, expected]);

    let later = NOON + 40 * DAY;
    for _ in 0..2 {
        expire(&db, Now(later * 1000)).await.unwrap();
        let expected = (2, 0.25);
        assert_eq!(ranked(&db, later).await, [expected, expected]);
    }
    expire(&db, Now((NOON + 60 * DAY) * 1000)).await.unwrap();
    assert_eq!(ranked(&db, NOON + 60 * DAY).await, []);
}

#[tokio::test]
async fn a_log_of_many_batches_is_scored_once() {
    let (_dir, db) = database().await;
    let messages = BATCH + 10;
    let times: Vec<i64> = (0..messages).map(|n| NOON + n / 20 * DAY / 10).collect();
    posted(&db, &times).await;
    let (one, other) = tokio::join!(settle_all(&db), settle(&db, "rm_a"));
    one.unwrap();
    other.unwrap();
    settle_all(&db).await.unwrap();
    let days = score::day_of(times[times.len() - 1]) - score::day_of(NOON) + 1;
    let mut conn = db.read().await.unwrap();
    let kinds = conn.score_by_kind("rm_a", "u_a", 0).await.unwrap();
    assert_eq!(kinds[0].events, days * 20);
    assert_eq!(conn.scored_seq("rm_a").await.unwrap(), messages);
    assert_eq!(conn.rooms_to_score().await.unwrap(), []);
}
