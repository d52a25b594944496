//! Scoring against a real store.

use super::{
    score::{DAY, Window},
    *,
};
use crate::store::{group::NewMessage, leaderboard::Ranking, migrate::migrate};
use protocol::{Cursor, Via, Visibility};
use std::time::Duration;

/// Noon of some day.
const NOON: i64 = 20_000 * DAY + DAY / 2;

fn room() -> RoomId {
    "rm_a".parse().unwrap()
}

fn user() -> UserId {
    "u_a".parse().unwrap()
}

async fn database() -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_sqlite(&dir.path().join("chatroom.db"), Duration::from_secs(10))
        .await
        .unwrap();
    migrate(&db).await.unwrap();
    (dir, db)
}

/// Messages of one user at these times, as if they had been posted.
async fn posted(db: &Db, times: &[i64]) {
    let mut tx = db.begin().await.unwrap();
    tx.insert_room(&room(), "a", &user(), Visibility::Public, 1)
        .await
        .unwrap();
    for (seq, at) in (1..).zip(times) {
        let message = NewMessage {
            room_id: room(),
            seq,
            sender_user_id: user(),
            sender_user_name: None,
            via: Via::Agent,
            r#type: MessageType::Chat,
            content: "hello".into(),
            reply_to_seq: None,
            reply_chain_depth: 0,
            created_at: *at,
            client_key: None,
            calls_agents: true,
            usage: None,
        };
        tx.insert_message(&message).await.unwrap();
        tx.set_head(&room(), Cursor::at(seq)).await.unwrap();
    }
    tx.commit().await.unwrap();
}

/// Events and score over all rooms in so many days.
async fn ranked(db: &Db, days: i64, now: i64) -> Vec<(i64, f64)> {
    let window = Window::new(days, now);
    let ranking = Ranking {
        since: window.first_day,
        of_points: window.of_points,
        of_moment: window.of_moment,
        limit: 10,
    };
    let mut conn = db.read().await.unwrap();
    let rows = conn.ranked_everywhere(ranking).await.unwrap();
    rows.into_iter()
        .map(|row| {
            let sums = Sums {
                events: row.events,
                points: row.points,
                moment: row.moment,
            };
            (row.events, window.score(sums))
        })
        .collect()
}

#[tokio::test]
async fn a_window_counts_its_days_and_no_others() {
    let (_dir, db) = database().await;
    posted(&db, &[NOON, NOON + 15 * DAY, NOON + 20 * DAY]).await;
    score_all_rooms(&db).await.unwrap();
    let then = NOON + 20 * DAY;
    // The first is boosted and a third of it is left, of the second five sixths, all of the third.
    for (days, events, score) in [
        (1, 1, 0.5),
        (5, 1, 0.5),
        (6, 2, 0.92),
        (20, 2, 0.92),
        (21, 3, 1.17),
        (90, 3, 1.17),
    ] {
        assert_eq!(ranked(&db, days, then).await, [(events, score)], "{days}");
    }
    assert_eq!(ranked(&db, 7, then + 10 * DAY).await, []);
}

#[tokio::test]
async fn what_has_decayed_counts_no_more_be_it_forgotten_or_not() {
    let (_dir, db) = database().await;
    posted(&db, &[NOON, NOON + 15 * DAY, NOON + 20 * DAY]).await;
    score_all_rooms(&db).await.unwrap();
    let later = NOON + 40 * DAY;
    for _ in 0..3 {
        assert_eq!(ranked(&db, 30, later).await, [(2, 0.25)]);
        expire(&db, Now(later * 1000)).await.unwrap();
    }
    assert_eq!(ranked(&db, 30, NOON + 60 * DAY).await, []);
    expire(&db, Now((NOON + 60 * DAY) * 1000)).await.unwrap();
    assert_eq!(ranked(&db, 30, NOON + 60 * DAY).await, []);
}

/// Rooms are scored one after the other, so an earlier day's events may come later.
#[tokio::test]
async fn it_does_not_matter_in_which_order_days_are_scored() {
    let orders = [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]];
    let mut boards = Vec::new();
    for order in orders {
        let (_dir, db) = database().await;
        let mut tx = db.begin().await.unwrap();
        for n in order {
            let at = NOON + n * 3 * DAY;
            let sums = Sums {
                events: 1,
                points: 0.5,
                moment: 0.5 * at as f64,
            };
            let user = user();
            let days = [0, 1, 7].map(|day| {
                let day = score::day_of(at) + day;
                ((ScoreScope::Everywhere, &user, day), sums)
            });
            add_days(&mut tx, days.into()).await.unwrap();
        }
        tx.commit().await.unwrap();
        let now = NOON + 20 * DAY;
        let mut board = Vec::new();
        for days in 1..=30 {
            board.push(ranked(&db, days, now).await);
        }
        boards.push(board);
    }
    // Days 0, 1, 3, 4, 6, 7 (twice), 9, 10 (twice), 13 and 16 of 20.
    let events: Vec<i64> = [5, 8, 11, 12, 14, 15, 18, 20, 21]
        .map(|days: usize| boards[0][days - 1][0].0)
        .into();
    assert_eq!(events, [1, 2, 4, 5, 7, 8, 10, 11, 12]);
    for board in &boards[1..] {
        assert_eq!(board, &boards[0]);
    }
}

#[tokio::test]
async fn a_log_of_many_batches_is_scored_once() {
    let (_dir, db) = database().await;
    let messages = BATCH + 10;
    let times: Vec<i64> = (0..messages).map(|n| NOON + n / 20 * DAY / 10).collect();
    posted(&db, &times).await;
    let room = room();
    let (one, other) = tokio::join!(score_all_rooms(&db), score_room(&db, &room));
    one.unwrap();
    other.unwrap();
    score_all_rooms(&db).await.unwrap();
    let days = score::day_of(times[times.len() - 1]) - score::day_of(NOON) + 1;
    let mut conn = db.read().await.unwrap();
    let kinds = conn.score_by_kind(&room, &user(), 0).await.unwrap();
    assert_eq!(kinds[0].events, days * 20);
    assert_eq!(conn.scored_seq(&room).await.unwrap(), messages);
    assert_eq!(conn.rooms_to_score().await.unwrap(), []);
}
