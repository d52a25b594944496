//! What posting asks: each query here serves a whole group of posts at once, so that what a post
//! costs does not grow with the number of round trips.

use super::{
    Conn, DbResult,
    db::{Sql, rows},
    members::{UserIdRow, user_ids},
    rooms::{RoomRow, select_room},
};
use protocol::{Budget, MemberKind, RoomId, Scope, UserId, Via};

row_struct! {
    /// A member who posts.
    #[derive(Debug, Clone)]
    pub struct PosterRow {
        pub room_id: RoomId,
        pub user_id: UserId,
        pub user_name: Option<String>,
        pub member_kind: MemberKind,
        /// The newest message that mentioned or answered the member since its agent's own last one.
        pub addressed_seq: Option<i64>,
        pub addressed_depth: Option<i64>,
        pub addressed_at: Option<i64>,
        /// What it may spend in a day: as it or its owner has set it, and as the room's owner has.
        pub own_turns: Option<i64>,
        pub own_tokens: Option<i64>,
        pub own_cost_usd: Option<f64>,
        pub room_turns: Option<i64>,
        pub room_tokens: Option<i64>,
        pub room_cost_usd: Option<f64>,
    }
}

row_struct! {
    /// What an answer depends on of the message that it answers.
    #[derive(Debug, Clone)]
    pub struct ParentRow {
        pub room_id: RoomId,
        pub seq: i64,
        pub sender_user_id: UserId,
        pub via: Via,
        pub reply_chain_depth: i64,
    }
}

/// A member who is mentioned or answered by a message, or, without one, has now spoken itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addressed<'a> {
    pub room: &'a RoomId,
    pub user: &'a UserId,
    pub by: Option<AddressedBy>,
}

impl Addressed<'_> {
    /// As it is stored: seq, depth and time.
    pub fn columns(&self) -> (Option<i64>, Option<i64>, Option<i64>) {
        let by = self.by;
        (by.map(|b| b.seq), by.map(|b| b.depth), by.map(|b| b.at))
    }
}

impl PosterRow {
    /// What the member has been told and not answered.
    pub fn addressed_by(&self) -> Option<AddressedBy> {
        Some(AddressedBy {
            seq: self.addressed_seq?,
            depth: self.addressed_depth?,
            at: self.addressed_at?,
        })
    }

    /// What the member may spend in a day.
    pub fn budget(&self) -> Budget {
        let own = Budget {
            turns: self.own_turns,
            tokens: self.own_tokens,
            cost_usd: self.own_cost_usd,
        };
        own.tighter(&Budget {
            turns: self.room_turns,
            tokens: self.room_tokens,
            cost_usd: self.room_cost_usd,
        })
    }

    /// The member is addressed by this message, or has answered.
    pub fn set_addressed(&mut self, by: Option<AddressedBy>) {
        self.addressed_seq = by.map(|by| by.seq);
        self.addressed_depth = by.map(|by| by.depth);
        self.addressed_at = by.map(|by| by.at);
    }
}

/// The message that addresses somebody: its seq, its depth and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressedBy {
    pub seq: i64,
    pub depth: i64,
    pub at: i64,
}

row_struct! {
    /// What posting needs to know of a room key.
    #[derive(Debug, Clone)]
    pub struct PostingKeyRow {
        pub jti: String,
        pub scope: Scope,
        pub posts_as: Via,
        pub shared: bool,
        pub expires_at: i64,
        pub revoked: bool,
    }
}

row_struct! {
    /// A message that was posted under the same client key before.
    #[derive(Debug, Clone)]
    pub struct PriorPostRow {
        pub room_id: RoomId,
        pub sender_user_id: UserId,
        pub client_key: String,
        pub seq: i64,
        pub via: Via,
        pub content: String,
        pub original_content: Option<String>,
        pub deleted: bool,
        pub reply_to_seq: Option<i64>,
        pub created_at: i64,
    }
}

/// What a query's JSON argument holds.
pub fn json<T: serde::Serialize + ?Sized>(value: &T) -> String {
    // Strings, numbers and nothing else: these always serialise.
    serde_json::to_string(value).unwrap_or_default()
}

impl Conn {
    /// These rooms, with their order of events held until the transaction ends.
    pub async fn lock_rooms(&mut self, rooms: &[&RoomId]) -> DbResult<Vec<RoomRow>> {
        const LOCK: Sql = Sql {
            sqlite: select_room!("WHERE room_id IN (SELECT value FROM json_each($1))"),
            postgres: select_room!(
                "WHERE room_id IN (SELECT jsonb_array_elements_text($1::jsonb)) ORDER BY room_id FOR UPDATE"
            ),
        };
        rows!(self, RoomRow, LOCK, json(rooms))
    }

    /// Those of these rooms that nobody else holds, held as by [`Self::lock_rooms`].
    pub async fn lock_free_rooms(&mut self, rooms: &[&RoomId]) -> DbResult<Vec<RoomRow>> {
        const LOCK: Sql = Sql {
            sqlite: select_room!("WHERE room_id IN (SELECT value FROM json_each($1))"),
            postgres: select_room!(
                "WHERE room_id IN (SELECT jsonb_array_elements_text($1::jsonb)) ORDER BY room_id \
                 FOR UPDATE SKIP LOCKED"
            ),
        };
        rows!(self, RoomRow, LOCK, json(rooms))
    }

    /// The members among these pairs of room and user.
    pub async fn posters(&mut self, pairs: &[(&RoomId, &UserId)]) -> DbResult<Vec<PosterRow>> {
        macro_rules! posters {
            ($members:literal) => {
                concat!(
                    "SELECT m.room_id, m.user_id, m.user_name, m.member_kind, m.addressed_seq, \
                     m.addressed_depth, m.addressed_at, w.own_turns, w.own_tokens, w.own_cost_usd, \
                     w.room_turns, w.room_tokens, w.room_cost_usd FROM ",
                    $members,
                    " LEFT JOIN wake_policies w ON w.room_id = m.room_id AND w.user_id = m.user_id"
                )
            };
        }
        const POSTERS: Sql = Sql {
            sqlite: posters!(
                "json_each($1) AS j \
                 JOIN room_members m ON m.room_id = j.value ->> 0 AND m.user_id = j.value ->> 1"
            ),
            postgres: posters!(
                "jsonb_array_elements($1::jsonb) AS j(v) \
                 JOIN room_members m ON m.room_id = j.v ->> 0 AND m.user_id = j.v ->> 1"
            ),
        };
        rows!(self, PosterRow, POSTERS, json(pairs))
    }

    /// The members of the room whose folded name or id is one of these, at most `limit`.
    pub async fn members_called(
        &mut self,
        room: &RoomId,
        folded: &[String],
        limit: usize,
    ) -> DbResult<Vec<UserId>> {
        const CALLED: Sql = Sql {
            sqlite: "SELECT m.user_id FROM json_each($2) AS j \
                 CROSS JOIN room_members m ON m.room_id = $1 AND m.name_folded = j.value \
                 UNION SELECT m.user_id FROM json_each($2) AS j \
                 CROSS JOIN room_members m ON m.room_id = $1 AND m.user_id = j.value COLLATE NOCASE LIMIT $3",
            postgres: "SELECT m.user_id FROM room_members m WHERE m.room_id = $1 \
                 AND m.name_folded IN (SELECT jsonb_array_elements_text($2::jsonb)) \
                 UNION SELECT m.user_id FROM room_members m WHERE m.room_id = $1 \
                 AND LOWER(m.user_id) IN (SELECT jsonb_array_elements_text($2::jsonb)) LIMIT $3",
        };
        let found = rows!(self, UserIdRow, CALLED, room, json(folded), limit as i64)?;
        Ok(user_ids(found))
    }

    pub async fn posting_keys(&mut self, jtis: &[&str]) -> DbResult<Vec<PostingKeyRow>> {
        const KEYS: Sql = Sql {
            sqlite: "SELECT jti, scope, posts_as, shared, expires_at, revoked FROM room_keys \
                 WHERE jti IN (SELECT value FROM json_each($1))",
            postgres: "SELECT jti, scope, posts_as, shared, expires_at, revoked FROM room_keys \
                 WHERE jti IN (SELECT jsonb_array_elements_text($1::jsonb))",
        };
        rows!(self, PostingKeyRow, KEYS, json(jtis))
    }

    /// The messages among these pairs of room and seq, as what answers them sees them.
    pub async fn parents(&mut self, messages: &[(&RoomId, i64)]) -> DbResult<Vec<ParentRow>> {
        macro_rules! parents {
            ($messages:literal) => {
                concat!(
                    "SELECT m.room_id, m.seq, m.sender_user_id, m.via, m.reply_chain_depth FROM ",
                    $messages
                )
            };
        }
        const PARENTS: Sql = Sql {
            sqlite: parents!(
                "json_each($1) AS j \
                 JOIN messages m ON m.room_id = j.value ->> 0 AND m.seq = j.value ->> 1"
            ),
            postgres: parents!(
                "jsonb_array_elements($1::jsonb) AS j(v) \
                 JOIN messages m ON m.room_id = j.v ->> 0 AND m.seq = (j.v ->> 1)::bigint"
            ),
        };
        rows!(self, ParentRow, PARENTS, json(messages))
    }

    /// What was posted before under these triples of room, sender and client key.
    pub async fn prior_posts(
        &mut self,
        keys: &[(&RoomId, &UserId, &str)],
    ) -> DbResult<Vec<PriorPostRow>> {
        const PRIOR: Sql = Sql {
            sqlite: "SELECT m.room_id, m.sender_user_id, m.client_key, m.seq, m.via, m.content, m.original_content, \
                 m.deleted, m.reply_to_seq, m.created_at FROM json_each($1) AS j \
                 JOIN messages m ON m.room_id = j.value ->> 0 AND m.sender_user_id = j.value ->> 1 \
                 AND m.client_key = j.value ->> 2",
            postgres: "SELECT m.room_id, m.sender_user_id, m.client_key, m.seq, m.via, m.content, m.original_content, \
                 m.deleted, m.reply_to_seq, m.created_at FROM jsonb_array_elements($1::jsonb) AS j(v) \
                 JOIN messages m ON m.room_id = j.v ->> 0 AND m.sender_user_id = j.v ->> 1 \
                 AND m.client_key = j.v ->> 2",
        };
        rows!(self, PriorPostRow, PRIOR, json(keys))
    }
}
