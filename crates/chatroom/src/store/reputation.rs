//! Reputation: how far each room's log is scored, what was counted, and the sums.

use super::{
    Conn, DbResult,
    db::{Sql, exec, row, rows},
    posting::json,
    rooms::{RoomIdRow, ids},
};
use protocol::{BadId, MessageType, RoomId, ScoreKind, UserId};
use serde::{Serialize, Serializer};
use std::str::FromStr;

/// What points are summed up over.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScoreScope {
    /// All rooms.
    Everywhere,
    /// One room.
    Room(RoomId),
}

impl ScoreScope {
    /// As it is stored.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Everywhere => "*",
            Self::Room(room) => room.as_str(),
        }
    }
}

impl FromStr for ScoreScope {
    type Err = BadId;
    fn from_str(text: &str) -> Result<Self, BadId> {
        match text == Self::Everywhere.as_str() {
            true => Ok(Self::Everywhere),
            false => text.parse().map(Self::Room),
        }
    }
}

impl Serialize for ScoreScope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

row_struct! {
    /// A message, as scoring sees it.
    #[derive(Debug)]
    pub struct PostRow {
        pub seq: i64,
        pub sender_user_id: UserId,
        pub r#type: MessageType,
        pub reply_to_seq: Option<i64>,
        pub created_at: i64,
    }
}

/// An event about to be stored: room, user, kind, points, boost, source user, seq and emoji, day
/// and time.
pub type NewEvent<'a> = (
    &'a RoomId,
    &'a UserId,
    &'a str,
    f64,
    f64,
    &'a UserId,
    i64,
    Option<&'a str>,
    i64,
    i64,
);

row_struct! {
    /// A user's totals in a scope, and the newest day with events of theirs.
    #[derive(Debug)]
    pub struct TotalRow {
        pub scope: ScoreScope,
        pub user_id: UserId,
        pub events: i64,
        pub points: f64,
        pub moment: f64,
        pub last_day: i64,
    }
}

row_struct! {
    /// Whom a message mentioned.
    #[derive(Debug)]
    pub struct MentionRow {
        pub seq: i64,
        pub user_id: UserId,
    }
}

row_struct! {
    /// A user whose points are counted, and when the first of them was.
    #[derive(Debug)]
    pub struct ScoredUserRow {
        pub user_id: UserId,
        pub first_event_at: Option<i64>,
    }
}

row_struct! {
    /// How many events of a kind one user has from another on a day.
    #[derive(Debug)]
    pub struct EventCountRow {
        pub user_id: UserId,
        pub kind: ScoreKind,
        pub source_user_id: UserId,
        pub day: i64,
        pub count: i64,
    }
}

/// What to add to what the totals were when a day began: scope, day, user, events, points, moment.
pub type StartSums<'a> = (&'a ScoreScope, i64, &'a UserId, i64, f64, f64);

/// Totals to store: scope, user, events, points, moment and newest day.
pub type TotalSums<'a> = (&'a ScoreScope, &'a UserId, i64, f64, f64, i64);

impl Conn {
    /// Up to which message the room is scored.
    pub async fn scored_seq(&mut self, room: &RoomId) -> DbResult<i64> {
        const SCORED: &str = "SELECT scored_seq FROM reputation_rooms WHERE room_id = $1";
        Ok(row!(self, (i64,), SCORED, room)?.map_or(0, |(seq,)| seq))
    }

    /// The same, held until the transaction ends.
    pub async fn lock_scored_seq(&mut self, room: &RoomId) -> DbResult<i64> {
        const LOCK: Sql = Sql {
            sqlite: "SELECT scored_seq FROM reputation_rooms WHERE room_id = $1",
            postgres: "SELECT scored_seq FROM reputation_rooms WHERE room_id = $1 FOR UPDATE",
        };
        exec!(
            self,
            "INSERT INTO reputation_rooms (room_id) VALUES ($1) ON CONFLICT DO NOTHING",
            room
        )?;
        Ok(row!(self, (i64,), LOCK, room)?.map_or(0, |(seq,)| seq))
    }

    /// The room is scored up to this message; what was kept for that is let go.
    pub async fn set_scored_seq(&mut self, room: &RoomId, seq: i64) -> DbResult<()> {
        exec!(
            self,
            "UPDATE reputation_rooms SET scored_seq = $2 WHERE room_id = $1",
            room,
            seq
        )?;
        exec!(
            self,
            "DELETE FROM first_mentions WHERE room_id = $1 AND seq <= $2",
            room,
            seq
        )?;
        Ok(())
    }

    /// Rooms with messages that are not scored.
    pub async fn rooms_to_score(&mut self) -> DbResult<Vec<RoomId>> {
        let found = rows!(
            self,
            RoomIdRow,
            "SELECT r.room_id FROM rooms r LEFT JOIN reputation_rooms s ON s.room_id = r.room_id \
             WHERE r.last_seq > COALESCE(s.scored_seq, 0)"
        )?;
        Ok(ids(found))
    }

    /// The messages after `seq`, oldest first.
    pub async fn posts_after(
        &mut self,
        room: &RoomId,
        seq: i64,
        limit: i64,
    ) -> DbResult<Vec<PostRow>> {
        rows!(
            self,
            PostRow,
            "SELECT seq, sender_user_id, type, reply_to_seq, created_at FROM messages \
             WHERE room_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
            room,
            seq,
            limit
        )
    }

    /// These messages.
    pub async fn posts(&mut self, room: &RoomId, seqs: &[i64]) -> DbResult<Vec<PostRow>> {
        const POSTS: Sql = Sql {
            sqlite: "SELECT seq, sender_user_id, type, reply_to_seq, created_at FROM messages \
                 WHERE room_id = $1 AND seq IN (SELECT value FROM json_each($2))",
            postgres: "SELECT seq, sender_user_id, type, reply_to_seq, created_at FROM messages \
                 WHERE room_id = $1 AND seq IN (SELECT jsonb_array_elements_text($2::jsonb)::bigint)",
        };
        if seqs.is_empty() {
            return Ok(Vec::new());
        }
        rows!(self, PostRow, POSTS, room, json(seqs))
    }

    /// Whom the messages after `after` and up to `upto` mentioned when they were posted.
    pub async fn first_mentions(
        &mut self,
        room: &RoomId,
        after: i64,
        upto: i64,
    ) -> DbResult<Vec<MentionRow>> {
        rows!(
            self,
            MentionRow,
            "SELECT n.seq, n.user_id FROM mentions n \
             JOIN messages m ON m.room_id = n.room_id AND m.seq = n.seq \
             WHERE n.room_id = $1 AND n.seq > $2 AND n.seq <= $3 \
             AND m.edited_at IS NULL AND m.deleted = FALSE \
             UNION ALL SELECT f.seq, f.user_id FROM first_mentions f \
             WHERE f.room_id = $1 AND f.seq > $2 AND f.seq <= $3",
            room,
            after,
            upto
        )
    }

    /// Keeps whom a message mentions before it is changed for the first time.
    pub async fn keep_first_mentions(&mut self, room: &RoomId, seq: i64) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO first_mentions (room_id, seq, user_id) \
             SELECT n.room_id, n.seq, n.user_id FROM mentions n \
             JOIN messages m ON m.room_id = n.room_id AND m.seq = n.seq \
             WHERE n.room_id = $1 AND n.seq = $2 AND m.edited_at IS NULL AND m.deleted = FALSE \
             ON CONFLICT DO NOTHING",
            room,
            seq
        )?;
        Ok(())
    }

    /// How many replies of others these threads have, as far as the room is scored.
    pub async fn thread_replies(
        &mut self,
        room: &RoomId,
        roots: &[i64],
    ) -> DbResult<Vec<(i64, i64)>> {
        const REPLIES: Sql = Sql {
            sqlite: "SELECT root_seq, replies FROM reputation_threads \
                 WHERE room_id = $1 AND root_seq IN (SELECT value FROM json_each($2))",
            postgres: "SELECT root_seq, replies FROM reputation_threads \
                 WHERE room_id = $1 AND root_seq IN (SELECT jsonb_array_elements_text($2::jsonb)::bigint)",
        };
        if roots.is_empty() {
            return Ok(Vec::new());
        }
        rows!(self, (i64, i64), REPLIES, room, json(roots))
    }

    pub async fn save_thread_replies(
        &mut self,
        room: &RoomId,
        replies: &[(i64, i64)],
    ) -> DbResult<()> {
        const SAVE: Sql = Sql {
            sqlite: "INSERT INTO reputation_threads (room_id, root_seq, replies) \
                 SELECT $1, value ->> 0, value ->> 1 FROM json_each($2) WHERE TRUE \
                 ON CONFLICT (room_id, root_seq) DO UPDATE SET replies = excluded.replies",
            postgres: "INSERT INTO reputation_threads (room_id, root_seq, replies) \
                 SELECT $1, (v ->> 0)::bigint, (v ->> 1)::bigint FROM jsonb_array_elements($2::jsonb) AS v \
                 ON CONFLICT (room_id, root_seq) DO UPDATE SET replies = excluded.replies",
        };
        if !replies.is_empty() {
            exec!(self, SAVE, room, json(replies))?;
        }
        Ok(())
    }

    /// These users' first events, held until the transaction ends: their points are counted one
    /// transaction at a time, over all rooms.
    pub async fn lock_scored_users(&mut self, users: &[&UserId]) -> DbResult<Vec<ScoredUserRow>> {
        const OPEN: Sql = Sql {
            sqlite: "INSERT INTO reputation_users (user_id) SELECT value FROM json_each($1) \
                 WHERE TRUE ON CONFLICT DO NOTHING",
            postgres: "INSERT INTO reputation_users (user_id) \
                 SELECT u FROM jsonb_array_elements_text($1::jsonb) AS u ORDER BY u ON CONFLICT DO NOTHING",
        };
        const LOCK: Sql = Sql {
            sqlite: "SELECT user_id, first_event_at FROM reputation_users \
                 WHERE user_id IN (SELECT value FROM json_each($1))",
            postgres: "SELECT user_id, first_event_at FROM reputation_users \
                 WHERE user_id IN (SELECT jsonb_array_elements_text($1::jsonb)) ORDER BY user_id FOR UPDATE",
        };
        let users = json(users);
        exec!(self, OPEN, &users)?;
        rows!(self, ScoredUserRow, LOCK, users)
    }

    /// User and first event of each.
    pub async fn save_first_events(&mut self, first: &[(&UserId, i64)]) -> DbResult<()> {
        const SAVE: Sql = Sql {
            sqlite: "UPDATE reputation_users SET first_event_at = j.value ->> 1 FROM json_each($1) AS j \
                 WHERE reputation_users.user_id = j.value ->> 0",
            postgres: "UPDATE reputation_users SET first_event_at = (j.v ->> 1)::bigint \
                 FROM jsonb_array_elements($1::jsonb) AS j(v) WHERE reputation_users.user_id = j.v ->> 0",
        };
        if !first.is_empty() {
            exec!(self, SAVE, json(first))?;
        }
        Ok(())
    }

    pub async fn first_event_at(&mut self, user: &UserId) -> DbResult<Option<i64>> {
        const FIRST: &str = "SELECT first_event_at FROM reputation_users WHERE user_id = $1";
        Ok(row!(self, (Option<i64>,), FIRST, user)?.and_then(|(at,)| at))
    }

    /// How many events were counted, for each user, kind, source and day.
    pub async fn event_counts(
        &mut self,
        pairs: &[(&UserId, &str, &UserId, i64)],
    ) -> DbResult<Vec<EventCountRow>> {
        const COUNTS: Sql = Sql {
            sqlite: "SELECT j.value ->> 0 AS user_id, j.value ->> 1 AS kind, \
                 j.value ->> 2 AS source_user_id, j.value ->> 3 AS day, \
                 (SELECT COUNT(*) FROM reputation_events e WHERE e.user_id = j.value ->> 0 \
                 AND e.kind = j.value ->> 1 AND e.source_user_id = j.value ->> 2 AND e.day = j.value ->> 3) AS count \
                 FROM json_each($1) AS j",
            postgres: "SELECT j.v ->> 0 AS user_id, j.v ->> 1 AS kind, \
                 j.v ->> 2 AS source_user_id, (j.v ->> 3)::bigint AS day, \
                 (SELECT COUNT(*) FROM reputation_events e WHERE e.user_id = j.v ->> 0 \
                 AND e.kind = j.v ->> 1 AND e.source_user_id = j.v ->> 2 AND e.day = (j.v ->> 3)::bigint) AS count \
                 FROM jsonb_array_elements($1::jsonb) AS j(v)",
        };
        rows!(self, EventCountRow, COUNTS, json(pairs))
    }

    /// Whether this reaction was counted before, be it there now or not.
    pub async fn reaction_was_counted(
        &mut self,
        room: &RoomId,
        seq: i64,
        reactor: &UserId,
        emoji: &str,
    ) -> DbResult<bool> {
        let found = row!(
            self,
            (i64,),
            "SELECT id FROM reputation_events WHERE kind = 'reaction_received' \
             AND room_id = $1 AND source_seq = $2 AND source_user_id = $3 AND source_emoji = $4",
            room,
            seq,
            reactor,
            emoji
        )?;
        Ok(found.is_some())
    }

    pub async fn insert_score_events(&mut self, events: &[NewEvent<'_>]) -> DbResult<()> {
        const INSERT: Sql = Sql {
            sqlite: "INSERT INTO reputation_events (room_id, user_id, kind, points, boost, \
                 source_user_id, source_seq, source_emoji, day, created_at) \
                 SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, \
                 value ->> 5, value ->> 6, value ->> 7, value ->> 8, value ->> 9 FROM json_each($1)",
            postgres: "INSERT INTO reputation_events (room_id, user_id, kind, points, boost, \
                 source_user_id, source_seq, source_emoji, day, created_at) \
                 SELECT v ->> 0, v ->> 1, v ->> 2, (v ->> 3)::double precision, (v ->> 4)::double precision, \
                 v ->> 5, (v ->> 6)::bigint, v ->> 7, (v ->> 8)::bigint, (v ->> 9)::bigint \
                 FROM jsonb_array_elements($1::jsonb) AS v",
        };
        exec!(self, INSERT, json(events))?;
        Ok(())
    }

    /// These users' totals in these scopes, of those who have any.
    pub async fn score_totals(
        &mut self,
        scopes: &[&ScoreScope],
        users: &[&UserId],
    ) -> DbResult<Vec<TotalRow>> {
        const TOTALS: Sql = Sql {
            sqlite: "SELECT scope, user_id, events, points, moment, last_day FROM reputation_totals \
                 WHERE scope IN (SELECT value FROM json_each($1)) \
                 AND user_id IN (SELECT value FROM json_each($2))",
            postgres: "SELECT scope, user_id, events, points, moment, last_day FROM reputation_totals \
                 WHERE scope IN (SELECT jsonb_array_elements_text($1::jsonb)) \
                 AND user_id IN (SELECT jsonb_array_elements_text($2::jsonb))",
        };
        rows!(self, TotalRow, TOTALS, json(scopes), json(users))
    }

    pub async fn save_score_totals(&mut self, totals: &[TotalSums<'_>]) -> DbResult<()> {
        const SAVE: Sql = Sql {
            sqlite: "INSERT INTO reputation_totals (scope, user_id, events, points, moment, last_day) \
                 SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 \
                 FROM json_each($1) WHERE TRUE ON CONFLICT (scope, user_id) DO UPDATE SET \
                 events = excluded.events, points = excluded.points, moment = excluded.moment, \
                 last_day = excluded.last_day",
            postgres: "INSERT INTO reputation_totals (scope, user_id, events, points, moment, last_day) \
                 SELECT v ->> 0, v ->> 1, (v ->> 2)::bigint, (v ->> 3)::double precision, \
                 (v ->> 4)::double precision, (v ->> 5)::bigint FROM jsonb_array_elements($1::jsonb) AS v \
                 ON CONFLICT (scope, user_id) DO UPDATE SET \
                 events = excluded.events, points = excluded.points, moment = excluded.moment, \
                 last_day = excluded.last_day",
        };
        exec!(self, SAVE, json(totals))?;
        Ok(())
    }

    /// Adds to what the totals were when days began.
    pub async fn add_to_starts(&mut self, starts: &[StartSums<'_>]) -> DbResult<()> {
        const ADD: Sql = Sql {
            sqlite: "INSERT INTO reputation_starts (scope, day, user_id, events, points, moment) \
                 SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 \
                 FROM json_each($1) WHERE TRUE ON CONFLICT (scope, day, user_id) DO UPDATE SET \
                 events = reputation_starts.events + excluded.events, \
                 points = reputation_starts.points + excluded.points, \
                 moment = reputation_starts.moment + excluded.moment",
            postgres: "INSERT INTO reputation_starts (scope, day, user_id, events, points, moment) \
                 SELECT v ->> 0, (v ->> 1)::bigint, v ->> 2, (v ->> 3)::bigint, \
                 (v ->> 4)::double precision, (v ->> 5)::double precision \
                 FROM jsonb_array_elements($1::jsonb) AS v ON CONFLICT (scope, day, user_id) DO UPDATE SET \
                 events = reputation_starts.events + excluded.events, \
                 points = reputation_starts.points + excluded.points, \
                 moment = reputation_starts.moment + excluded.moment",
        };
        if !starts.is_empty() {
            exec!(self, ADD, json(starts))?;
        }
        Ok(())
    }

    /// Whether it is kept how days before this one began.
    pub async fn has_starts_before(&mut self, day: i64) -> DbResult<bool> {
        const OLD: &str = "SELECT day FROM reputation_starts WHERE day < $1 LIMIT 1";
        Ok(row!(self, (i64,), OLD, day)?.is_some())
    }

    /// Forgets how days before this one began.
    pub async fn forget_starts_before(&mut self, day: i64) -> DbResult<()> {
        exec!(self, "DELETE FROM reputation_starts WHERE day < $1", day)?;
        Ok(())
    }
}
