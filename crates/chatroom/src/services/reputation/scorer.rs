//! Bringing scores up to date with what happened.
//!
//! A room's log is read from where it was scored last, in batches. What counts and the new position
//! are written in one transaction, so that a crash neither loses nor doubles anything.

use super::score::{self, ChatPost, Ledger, ScoreEvent, Scored, Sums, Totals};
use crate::{
    clock::Now,
    store::{
        Db, DbError, Tx,
        messages::MessageRow,
        reputation::{MentionRow, PostRow, ScoreScope},
    },
};
use protocol::{MessageType, RoomId, ScoreKind, UserId};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Messages that are scored in one transaction.
const BATCH: i64 = 4000;

/// Brings every room up to date.
pub async fn score_all_rooms(db: &Db) -> Result<(), DbError> {
    let rooms = db.read().await?.rooms_to_score().await?;
    for room in rooms {
        score_room(db, &room).await?;
    }
    Ok(())
}

/// Brings a room up to date.
pub async fn score_room(db: &Db, room: &RoomId) -> Result<(), DbError> {
    while score_batch(db, room).await? {}
    Ok(())
}

/// Scores the next messages, if there are any. They are read before the transaction, which is
/// then short: on SQLite nobody posts meanwhile.
async fn score_batch(db: &Db, room: &RoomId) -> Result<bool, DbError> {
    let mut conn = db.read().await?;
    let after = conn.scored_seq(room).await?;
    let rows = conn.posts_after(room, after, BATCH).await?;
    let Some(upto) = rows.last().map(|row| row.seq) else {
        return Ok(false);
    };
    let mentions = conn.first_mentions(room, after, upto).await?;
    let roots = roots_of(conn.posts(room, &answered(&rows)).await?);
    drop(conn);
    let posts = chat(rows, mentions);

    let mut tx = db.begin_keeping_cache().await?;
    if tx.lock_scored_seq(room).await? != after {
        // Another was faster.
        return Ok(true);
    }
    let threads: Vec<i64> = roots.keys().copied().collect();
    let mut replies: BTreeMap<i64, i64> = tx
        .thread_replies(room, &threads)
        .await?
        .into_iter()
        .collect();
    let events = score::candidates(room, &posts, &roots, &mut replies);
    write_counted(&mut tx, events).await?;
    let replies: Vec<(i64, i64)> = replies.into_iter().collect();
    tx.save_thread_replies(room, &replies).await?;
    tx.set_scored_seq(room, upto).await?;
    tx.commit().await?;
    Ok(true)
}

/// The messages that these answer.
fn answered(rows: &[PostRow]) -> Vec<i64> {
    let seqs: BTreeSet<i64> = rows.iter().filter_map(|row| row.reply_to_seq).collect();
    seqs.into_iter().collect()
}

/// Those that begin a thread, with their authors.
fn roots_of(rows: Vec<PostRow>) -> HashMap<i64, UserId> {
    rows.into_iter()
        .filter(|row| is_chat(row) && row.reply_to_seq.is_none())
        .map(|row| (row.seq, row.sender_user_id))
        .collect()
}

/// What people and agents wrote here; the server's own messages, webhooks' and imported ones score nothing.
fn chat(rows: Vec<PostRow>, mentions: Vec<MentionRow>) -> Vec<ChatPost> {
    let mut mentioned: HashMap<i64, Vec<UserId>> = HashMap::new();
    for mention in mentions {
        mentioned
            .entry(mention.seq)
            .or_default()
            .push(mention.user_id);
    }
    rows.into_iter()
        .filter(is_chat)
        .map(|row| ChatPost {
            seq: row.seq,
            author: row.sender_user_id,
            reply_to_seq: row.reply_to_seq,
            at: row.created_at,
            mentions: mentioned.remove(&row.seq).unwrap_or_default(),
        })
        .collect()
}

fn is_chat(row: &PostRow) -> bool {
    row.r#type == MessageType::Chat && !row.sender_user_id.is_nobodys()
}

/// Counts a new reaction to a message, in the reaction's own transaction.
pub async fn reacted(
    tx: &mut Tx,
    room: &RoomId,
    message: &MessageRow,
    reactor: &UserId,
    emoji: &str,
    at: i64,
) -> Result<(), DbError> {
    if message.r#type != MessageType::Chat
        || message.sender_user_id.is_nobodys()
        || tx
            .reaction_was_counted(room, message.seq, reactor, emoji)
            .await?
    {
        return Ok(());
    }
    let event = ScoreEvent {
        room_id: room.clone(),
        user_id: message.sender_user_id.clone(),
        kind: ScoreKind::ReactionReceived,
        source_user_id: reactor.clone(),
        source_seq: message.seq,
        source_emoji: Some(emoji.to_owned()),
        at,
    };
    write_counted(tx, vec![event]).await
}

/// Counts the removal of a member, in the removal's own transaction. `seq` is the message that
/// tells of it.
pub async fn kicked(
    tx: &mut Tx,
    room: &RoomId,
    user: &UserId,
    owner: &UserId,
    seq: i64,
    at: i64,
) -> Result<(), DbError> {
    let event = ScoreEvent {
        room_id: room.clone(),
        user_id: user.clone(),
        kind: ScoreKind::PenaltyKick,
        source_user_id: owner.clone(),
        source_seq: seq,
        source_emoji: None,
        at,
    };
    write_counted(tx, vec![event]).await
}

/// Writes those of the events that count.
async fn write_counted(tx: &mut Tx, events: Vec<ScoreEvent>) -> Result<(), DbError> {
    if events.is_empty() {
        return Ok(());
    }
    let mut ledger = Ledger::default();
    let users: BTreeSet<&UserId> = events.iter().map(|event| &event.user_id).collect();
    let users: Vec<&UserId> = users.into_iter().collect();
    for row in tx.lock_scored_users(&users).await? {
        let first = row.first_event_at;
        ledger.first.extend(first.map(|first| (row.user_id, first)));
    }
    let before = ledger.first.clone();
    let capped: BTreeSet<_> = events
        .iter()
        .filter(|event| score::daily_cap(event.kind).is_some())
        .map(|event| {
            let (user, source) = (&event.user_id, &event.source_user_id);
            (user, event.kind.as_str(), source, score::day_of(event.at))
        })
        .collect();
    let capped: Vec<_> = capped.into_iter().collect();
    for row in tx.event_counts(&capped).await? {
        let pair = (row.user_id, row.kind, row.source_user_id, row.day);
        ledger.counts.insert(pair, row.count);
    }
    let scored = ledger.apply_caps(events);
    if scored.is_empty() {
        return Ok(());
    }
    write(tx, &scored).await?;
    let moved: Vec<(&UserId, i64)> = ledger
        .first
        .iter()
        .filter(|(user, first)| before.get(*user) != Some(first))
        .map(|(user, first)| (user, *first))
        .collect();
    tx.save_first_events(&moved).await
}

async fn write(tx: &mut Tx, scored: &[Scored]) -> Result<(), DbError> {
    let mut days: BTreeMap<(ScoreScope, &UserId, i64), Sums> = BTreeMap::new();
    let mut rows = Vec::with_capacity(scored.len());
    for one in scored {
        let event = &one.event;
        let (user, day) = (&event.user_id, score::day_of(event.at));
        let room = ScoreScope::Room(event.room_id.clone());
        for scope in [room, ScoreScope::Everywhere] {
            days.entry((scope, user, day)).or_default().add(one);
        }
        rows.push((
            &event.room_id,
            user,
            event.kind.as_str(),
            one.points,
            one.boost,
            &event.source_user_id,
            event.source_seq,
            event.source_emoji.as_deref(),
            day,
            event.at,
        ));
    }
    tx.insert_score_events(&rows).await?;
    add_days(tx, days).await
}

/// Adds what came about on these days to the totals, and to what they were when later days began.
async fn add_days(
    tx: &mut Tx,
    days: BTreeMap<(ScoreScope, &UserId, i64), Sums>,
) -> Result<(), DbError> {
    let scopes: BTreeSet<&ScoreScope> = days.keys().map(|(scope, ..)| scope).collect();
    let users: BTreeSet<&UserId> = days.keys().map(|(_, user, _)| *user).collect();
    let (scopes, users): (Vec<&ScoreScope>, Vec<&UserId>) =
        (scopes.into_iter().collect(), users.into_iter().collect());
    let mut known: HashMap<(ScoreScope, UserId), Totals> = HashMap::new();
    for row in tx.score_totals(&scopes, &users).await? {
        let sums = Sums {
            events: row.events,
            points: row.points,
            moment: row.moment,
        };
        let last_day = Some(row.last_day);
        known.insert((row.scope, row.user_id), Totals { sums, last_day });
    }
    let mut totals: BTreeMap<(&ScoreScope, &UserId), Totals> = BTreeMap::new();
    let mut starts: BTreeMap<(&ScoreScope, i64, &UserId), Sums> = BTreeMap::new();
    for ((scope, user, day), sums) in &days {
        let total = totals.entry((scope, user)).or_insert_with(|| {
            let stored = known.remove(&(scope.clone(), (*user).clone()));
            stored.unwrap_or_default()
        });
        let (later_days, more) = total.add(*day, *sums);
        for later in later_days {
            *starts.entry((scope, later, user)).or_default() += more;
        }
    }
    let starts: Vec<_> = starts
        .into_iter()
        .map(|((scope, day, user), s)| (scope, day, user, s.events, s.points, s.moment))
        .collect();
    tx.add_to_starts(&starts).await?;
    let totals: Vec<_> = totals
        .into_iter()
        .map(|((scope, user), total)| {
            let (s, last_day) = (total.sums, total.last_day.unwrap_or_default());
            (scope, user, s.events, s.points, s.moment, last_day)
        })
        .collect();
    tx.save_score_totals(&totals).await
}

/// Forgets how days began that count no more.
pub async fn expire(db: &Db, now: Now) -> Result<(), DbError> {
    let first_day = score::first_day_that_counts(now.seconds());
    if !db.read().await?.has_starts_before(first_day).await? {
        return Ok(());
    }
    let mut tx = db.begin_keeping_cache().await?;
    tx.forget_starts_before(first_day).await?;
    tx.commit().await
}

#[cfg(test)]
#[path = "scorer_tests.rs"]
mod tests;
