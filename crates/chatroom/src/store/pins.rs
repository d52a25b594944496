//! Messages that a room's owner keeps at hand.

use super::{
    Conn, DbResult,
    db::{exec, row, rows},
};
use protocol::{RoomId, UserId};

row_struct! {
    /// A pin.
    #[derive(Debug)]
    pub struct PinRow {
        pub seq: i64,
        pub pinned_by: UserId,
        pub pinned_at: i64,
    }
}

impl Conn {
    /// The room's pins, in the order of the messages.
    pub async fn pins(&mut self, room: &RoomId) -> DbResult<Vec<PinRow>> {
        rows!(
            self,
            PinRow,
            "SELECT seq, pinned_by, pinned_at FROM pins WHERE room_id = $1 ORDER BY seq",
            room
        )
    }

    pub async fn pin_count(&mut self, room: &RoomId) -> DbResult<i64> {
        let found = row!(
            self,
            (i64,),
            "SELECT COUNT(*) FROM pins WHERE room_id = $1",
            room
        )?;
        Ok(found.map_or(0, |(count,)| count))
    }

    /// Whether the message was not pinned before.
    pub async fn pin(&mut self, room: &RoomId, seq: i64, by: &UserId, now: i64) -> DbResult<bool> {
        let pinned = exec!(
            self,
            "INSERT INTO pins (room_id, seq, pinned_by, pinned_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
            room,
            seq,
            by,
            now
        )?;
        Ok(pinned == 1)
    }

    /// Whether the message was pinned.
    pub async fn unpin(&mut self, room: &RoomId, seq: i64) -> DbResult<bool> {
        let unpinned = exec!(
            self,
            "DELETE FROM pins WHERE room_id = $1 AND seq = $2",
            room,
            seq
        )?;
        Ok(unpinned == 1)
    }
}
