//! A room's log: its messages, and the events that have no seq of their own, in one order.

use super::{
    Conn, DbResult, Json,
    db::{Sql, exec, row, rows},
    posting::json,
    rooms::{RoomIdRow, ids},
};
use protocol::{Cursor, EventKind, RoomId};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Borrow;

row_struct! {
    /// An event without a seq of its own.
    #[derive(Debug)]
    pub struct EventRow {
        pub seq: i64,
        pub sub: i64,
        pub kind: EventKind,
        pub about: Option<i64>,
        /// JSON, or nothing where the event is about a message.
        pub data: String,
    }
}

impl EventRow {
    pub fn cursor(&self) -> Cursor {
        Cursor {
            seq: self.seq,
            sub: self.sub,
        }
    }

    /// The data, read.
    pub fn value(&self) -> DbResult<Value> {
        Json::read(&self.data, "data")
    }
}

row_struct! {
    /// Where a room has come to.
    #[derive(Debug)]
    pub struct HeadRow {
        pub room_id: RoomId,
        pub last_seq: i64,
        pub last_sub: i64,
    }
}

impl HeadRow {
    pub fn cursor(&self) -> Cursor {
        Cursor {
            seq: self.last_seq,
            sub: self.last_sub,
        }
    }
}

impl Conn {
    pub async fn insert_event(
        &mut self,
        room: &RoomId,
        at: Cursor,
        kind: EventKind,
        about: Option<i64>,
        data: &str,
    ) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO events (room_id, seq, sub, kind, about, data) VALUES ($1, $2, $3, $4, $5, $6)",
            room,
            at.seq,
            at.sub,
            &kind,
            about,
            data
        )?;
        Ok(())
    }

    /// Where these rooms have come to.
    pub async fn heads(
        &mut self,
        rooms: &[impl Borrow<RoomId> + Serialize],
    ) -> DbResult<Vec<HeadRow>> {
        const HEADS: Sql = Sql {
            sqlite: "SELECT room_id, last_seq, last_sub FROM rooms \
                 WHERE room_id IN (SELECT value FROM json_each($1))",
            postgres: "SELECT room_id, last_seq, last_sub FROM rooms \
                 WHERE room_id IN (SELECT jsonb_array_elements_text($1::jsonb))",
        };
        rows!(self, HeadRow, HEADS, json(rooms))
    }

    /// The events without a seq after `after` and up to `upto`.
    pub async fn events_between(
        &mut self,
        room: &RoomId,
        after: Cursor,
        upto: Cursor,
        limit: i64,
    ) -> DbResult<Vec<EventRow>> {
        rows!(
            self,
            EventRow,
            "SELECT seq, sub, kind, about, data FROM events WHERE room_id = $1 \
             AND (seq, sub) > ($2, $3) AND (seq, sub) <= ($4, $5) ORDER BY seq, sub LIMIT $6",
            room,
            after.seq,
            after.sub,
            upto.seq,
            upto.sub,
            limit
        )
    }

    /// Drops all but the newest `keep` events without a seq, and remembers up to where.
    pub async fn prune_events(&mut self, room: &RoomId, keep: i64) -> DbResult<()> {
        let oldest_to_drop = row!(
            self,
            (i64, i64),
            "SELECT seq, sub FROM events WHERE room_id = $1 ORDER BY seq DESC, sub DESC LIMIT 1 OFFSET $2",
            room,
            keep
        )?;
        let Some((seq, sub)) = oldest_to_drop else {
            return Ok(());
        };
        exec!(
            self,
            "DELETE FROM events WHERE room_id = $1 AND (seq, sub) <= ($2, $3)",
            room,
            seq,
            sub
        )?;
        exec!(
            self,
            "UPDATE rooms SET pruned_seq = $2, pruned_sub = $3 WHERE room_id = $1",
            room,
            seq,
            sub
        )?;
        Ok(())
    }

    /// Rooms that hold more than `keep` events without a seq.
    pub async fn rooms_to_prune(&mut self, keep: i64) -> DbResult<Vec<RoomId>> {
        let found = rows!(
            self,
            RoomIdRow,
            "SELECT room_id FROM events GROUP BY room_id HAVING COUNT(*) > $1",
            keep
        )?;
        Ok(ids(found))
    }
}
