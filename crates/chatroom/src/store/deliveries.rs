//! How far each agent and webhook that is called has come in its room, and which node calls it.

use super::{
    Conn, DbResult,
    db::{Engine, Sql, exec, row, rows},
    posting::json,
};
use crate::clock;
use protocol::{RoomId, UserId};

row_struct! {
    /// An agent or a webhook in a room, as the server calls it.
    #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    pub struct Lane {
        pub room_id: RoomId,
        pub user_id: UserId,
    }
}

row_struct! {
    /// A lane that has messages before it, the node that claimed it, and whether that one lives.
    #[derive(Debug)]
    pub struct BehindRow {
        pub room_id: RoomId,
        pub user_id: UserId,
        pub claimed_by: Option<String>,
        pub held: bool,
    }
}

row_struct! {
    /// Everything a call depends on but the message.
    #[derive(Debug)]
    pub struct LaneRow {
        pub next_seq: i64,
        pub attempt: i64,
        pub due_ms: i64,
        pub generation: i64,
        /// The message that the agent is to be called for once more.
        pub answer_anew_seq: Option<i64>,
        /// Answers in the minute that began then.
        pub replies: i64,
        pub replies_since_ms: i64,
        pub user_name: Option<String>,
        pub agent_endpoint: String,
        pub endpoint_trusted: bool,
        pub akm_key: String,
        pub container_id: Option<String>,
        pub data_content: String,
    }
}

row_struct! {
    /// Why a member's last call failed.
    #[derive(Debug)]
    pub struct DeliveryErrorRow {
        pub user_id: UserId,
        pub last_error: String,
    }
}

/// Which delivery is meant, and by which right it is changed.
#[derive(Debug, Clone, Copy)]
pub struct Held<'a> {
    pub room: &'a RoomId,
    pub user: &'a UserId,
    pub generation: i64,
    pub node: &'a str,
}

/// How long the answers of an agent are counted together.
pub const REPLIES_WINDOW_MS: i64 = 60_000;
/// A lease or window that begins further in the future than this was made by a clock that has been
/// set back since, and does not hold.
pub const SKEW_MS: i64 = 10_000;

impl Conn {
    /// The time that schedules and leases go by, in milliseconds: the database's where nodes share
    /// one, so that it is the same for all of them; else the process's own, which nobody sets.
    pub async fn schedule_ms(&mut self) -> DbResult<i64> {
        const CLOCK: &str = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)";
        match self.engine() {
            Engine::Sqlite(_) => Ok(clock::steady_ms()),
            Engine::Postgres(conn) => sqlx::query_scalar(CLOCK).fetch_one(conn).await,
        }
    }

    /// Lets a member be called from `start` on; one who was called before goes on where it was,
    /// but not before `oldest`.
    pub async fn enable_delivery(
        &mut self,
        room: &RoomId,
        user: &UserId,
        start: i64,
        oldest: i64,
    ) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO deliveries (room_id, user_id, next_seq) VALUES ($1, $2, $3) \
             ON CONFLICT (room_id, user_id) DO UPDATE SET \
             next_seq = CASE WHEN deliveries.next_seq < $4 THEN $4 ELSE deliveries.next_seq END, \
             attempt = 0, due_ms = 0, last_error = NULL, generation = deliveries.generation + 1",
            room,
            user,
            start,
            oldest
        )?;
        Ok(())
    }

    /// Calls a member no more.
    pub async fn disable_delivery(&mut self, room: &RoomId, user: &UserId) -> DbResult<()> {
        exec!(
            self,
            "DELETE FROM deliveries WHERE room_id = $1 AND user_id = $2",
            room,
            user
        )?;
        Ok(())
    }

    /// The first message that a member has not dealt with, if it is called at all.
    pub async fn delivery_position(
        &mut self,
        room: &RoomId,
        user: &UserId,
    ) -> DbResult<Option<i64>> {
        const POSITION: &str =
            "SELECT next_seq FROM deliveries WHERE room_id = $1 AND user_id = $2";
        Ok(row!(self, (i64,), POSITION, room, user)?.map(|(seq,)| seq))
    }

    /// The next lanes in the order of their ids, from the first where none is given.
    pub async fn lanes_after(&mut self, after: Option<&Lane>, limit: i64) -> DbResult<Vec<Lane>> {
        let (room, user) = after.map_or(("", ""), |lane| {
            (lane.room_id.as_str(), lane.user_id.as_str())
        });
        rows!(
            self,
            Lane,
            "SELECT room_id, user_id FROM deliveries WHERE (room_id, user_id) > ($1, $2) \
             ORDER BY room_id, user_id LIMIT $3",
            room,
            user,
            limit
        )
    }

    /// The lanes of these rooms that have messages before them and may be called. A node lives
    /// while its lease ends within so much from now: one that ends later is from a clock that was
    /// set back.
    pub async fn lanes_behind(
        &mut self,
        rooms: &[&RoomId],
        now_ms: i64,
        lease_ms: i64,
    ) -> DbResult<Vec<BehindRow>> {
        macro_rules! behind {
            ($rooms:literal) => {
                concat!(
                    "SELECT d.room_id, d.user_id, d.claimed_by, n.node IS NOT NULL AS held FROM ",
                    $rooms,
                    " JOIN deliveries d ON d.room_id = j.room \
                     JOIN rooms r ON r.room_id = d.room_id \
                     LEFT JOIN room_members m ON m.room_id = d.room_id AND m.user_id = d.user_id \
                     AND m.key_stale = FALSE AND m.agent_endpoint IS NOT NULL AND m.akm_key IS NOT NULL \
                     LEFT JOIN webhooks w ON w.hook_id = d.user_id AND w.enabled = TRUE \
                     LEFT JOIN fanout_nodes n ON n.node = d.claimed_by \
                     AND n.lease_until_ms > $2 AND n.lease_until_ms <= $3 \
                     WHERE r.archived = FALSE AND (m.user_id IS NOT NULL OR w.hook_id IS NOT NULL) \
                     AND (d.next_seq <= r.last_seq OR d.retry_seq IS NOT NULL \
                     OR (w.hook_id IS NOT NULL AND d.next_seq = r.last_seq + 1 AND d.next_sub < r.last_sub))"
                )
            };
        }
        const BEHIND: Sql = Sql {
            sqlite: behind!("(SELECT value AS room FROM json_each($1)) AS j "),
            postgres: behind!("jsonb_array_elements_text($1::jsonb) AS j(room) "),
        };
        rows!(
            self,
            BehindRow,
            BEHIND,
            json(rooms),
            now_ms,
            now_ms + lease_ms + SKEW_MS
        )
    }

    /// Takes these lanes (room, user and who had claimed it) for a node, but for those that were
    /// claimed meanwhile. The condition is on the row itself, so PostgreSQL looks again after
    /// waiting for another node's claim.
    pub async fn claim_lanes(
        &mut self,
        lanes: &[(&RoomId, &UserId, Option<&str>)],
        node: &str,
    ) -> DbResult<Vec<Lane>> {
        const CLAIM: Sql = Sql {
            sqlite: "UPDATE deliveries SET claimed_by = $2 FROM json_each($1) AS j \
                 WHERE deliveries.room_id = j.value ->> 0 AND deliveries.user_id = j.value ->> 1 \
                 AND deliveries.claimed_by IS j.value ->> 2 \
                 RETURNING deliveries.room_id, deliveries.user_id",
            postgres: "UPDATE deliveries SET claimed_by = $2 FROM jsonb_array_elements($1::jsonb) AS j(v) \
                 WHERE deliveries.room_id = j.v ->> 0 AND deliveries.user_id = j.v ->> 1 \
                 AND deliveries.claimed_by IS NOT DISTINCT FROM j.v ->> 2 \
                 RETURNING deliveries.room_id, deliveries.user_id",
        };
        rows!(self, Lane, CLAIM, json(lanes), node)
    }

    /// Says that a node lives, until its lease ends.
    pub async fn renew_node(&mut self, node: &str, until_ms: i64) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO fanout_nodes (node, lease_until_ms) VALUES ($1, $2) \
             ON CONFLICT (node) DO UPDATE SET lease_until_ms = excluded.lease_until_ms",
            node,
            until_ms
        )?;
        Ok(())
    }

    /// Gives up what a node holds.
    pub async fn forget_node(&mut self, node: &str) -> DbResult<()> {
        exec!(self, "DELETE FROM fanout_nodes WHERE node = $1", node)?;
        Ok(())
    }

    /// Forgets nodes whose lease ended before this.
    pub async fn forget_dead_nodes(&mut self, before_ms: i64) -> DbResult<()> {
        exec!(
            self,
            "DELETE FROM fanout_nodes WHERE lease_until_ms < $1",
            before_ms
        )?;
        Ok(())
    }

    /// A lane that may be called by this node.
    pub async fn lane(
        &mut self,
        room: &RoomId,
        user: &UserId,
        node: &str,
    ) -> DbResult<Option<LaneRow>> {
        row!(
            self,
            LaneRow,
            "SELECT d.next_seq, d.attempt, d.due_ms, d.generation, d.retry_seq AS answer_anew_seq, d.replies, d.replies_since_ms, \
             m.user_name, m.endpoint_trusted, m.agent_endpoint, m.akm_key, m.container_id, r.data_content \
             FROM deliveries d JOIN rooms r ON r.room_id = d.room_id \
             JOIN room_members m ON m.room_id = d.room_id AND m.user_id = d.user_id \
             WHERE d.room_id = $1 AND d.user_id = $2 AND COALESCE(d.claimed_by, $3) = $3 \
             AND m.key_stale = FALSE AND m.agent_endpoint IS NOT NULL AND m.akm_key IS NOT NULL",
            room,
            user,
            node
        )
    }

    /// Moves these lanes (room, user and position) on, but for those that another node holds.
    pub async fn save_positions(
        &mut self,
        positions: &[(&RoomId, &UserId, i64)],
        node: &str,
    ) -> DbResult<()> {
        const SAVE: Sql = Sql {
            sqlite: "UPDATE deliveries SET next_seq = j.value ->> 2, attempt = 0, due_ms = 0, last_error = NULL \
                 FROM json_each($1) AS j \
                 WHERE deliveries.room_id = j.value ->> 0 AND deliveries.user_id = j.value ->> 1 \
                 AND deliveries.next_seq < j.value ->> 2 AND COALESCE(deliveries.claimed_by, $2) = $2",
            postgres: "UPDATE deliveries SET next_seq = (j.v ->> 2)::bigint, attempt = 0, due_ms = 0, last_error = NULL \
                 FROM jsonb_array_elements($1::jsonb) AS j(v) \
                 WHERE deliveries.room_id = j.v ->> 0 AND deliveries.user_id = j.v ->> 1 \
                 AND deliveries.next_seq < (j.v ->> 2)::bigint AND COALESCE(deliveries.claimed_by, $2) = $2",
        };
        exec!(self, SAVE, json(positions), node)?;
        Ok(())
    }

    /// Moves a lane past a message; whether it was still before it and still ours.
    pub async fn pass_message(&mut self, held: Held<'_>, seq: i64) -> DbResult<bool> {
        let moved = exec!(
            self,
            "UPDATE deliveries SET next_seq = $5 + 1, attempt = 0, due_ms = 0, last_error = NULL \
             WHERE room_id = $1 AND user_id = $2 AND generation >= $3 AND next_seq <= $5 \
             AND COALESCE(claimed_by, $4) = $4",
            held.room,
            held.user,
            held.generation,
            held.node,
            seq
        )?;
        Ok(moved == 1)
    }

    /// Moves a lane past a message that is answered now, and counts the answer; whether it was still
    /// before it and still ours.
    pub async fn answer_message(
        &mut self,
        held: Held<'_>,
        seq: i64,
        now_ms: i64,
    ) -> DbResult<bool> {
        let moved = exec!(
            self,
            "UPDATE deliveries SET next_seq = $5 + 1, attempt = 0, due_ms = 0, last_error = NULL, \
             replies = CASE WHEN replies_since_ms > $7 AND replies_since_ms <= $8 THEN replies + 1 ELSE 1 END, \
             replies_since_ms = CASE WHEN replies_since_ms > $7 AND replies_since_ms <= $8 \
             THEN replies_since_ms ELSE $6 END \
             WHERE room_id = $1 AND user_id = $2 AND generation >= $3 AND next_seq <= $5 \
             AND COALESCE(claimed_by, $4) = $4",
            held.room,
            held.user,
            held.generation,
            held.node,
            seq,
            now_ms,
            now_ms - REPLIES_WINDOW_MS,
            now_ms + SKEW_MS
        )?;
        Ok(moved == 1)
    }

    /// Notes that the call for a message failed; whether the lane was still ours and its key is
    /// the one that was called with.
    pub async fn fail_message(
        &mut self,
        held: Held<'_>,
        seq: i64,
        attempt: i64,
        due_ms: i64,
        error: &str,
    ) -> DbResult<bool> {
        let noted = exec!(
            self,
            "UPDATE deliveries SET next_seq = $5, attempt = $6, due_ms = $7, last_error = $8 \
             WHERE room_id = $1 AND user_id = $2 AND generation = $3 AND next_seq <= $5 \
             AND COALESCE(claimed_by, $4) = $4",
            held.room,
            held.user,
            held.generation,
            held.node,
            seq,
            attempt,
            due_ms,
            error
        )?;
        Ok(noted == 1)
    }

    /// From now on the member is not called, until it has a new key.
    pub async fn set_stale(&mut self, room: &RoomId, user: &UserId) -> DbResult<()> {
        exec!(
            self,
            "UPDATE room_members SET key_stale = TRUE WHERE room_id = $1 AND user_id = $2",
            room,
            user
        )?;
        Ok(())
    }

    /// Which members' last call failed, and why.
    pub async fn delivery_errors(&mut self, room: &RoomId) -> DbResult<Vec<DeliveryErrorRow>> {
        rows!(
            self,
            DeliveryErrorRow,
            "SELECT user_id, last_error FROM deliveries WHERE room_id = $1 AND last_error IS NOT NULL",
            room
        )
    }

    /// The newest message before this one that mentions the user.
    pub async fn mention_before(
        &mut self,
        room: &RoomId,
        user: &UserId,
        seq: i64,
    ) -> DbResult<Option<i64>> {
        let found = row!(
            self,
            (Option<i64>,),
            "SELECT MAX(seq) FROM mentions WHERE room_id = $1 AND user_id = $2 AND seq < $3",
            room,
            user,
            seq
        )?;
        Ok(found.and_then(|(seq,)| seq))
    }
}
