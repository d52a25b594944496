//! Threads: which message one began with, and how far members have read those that they opened.

use super::{
    Conn, DbResult,
    db::{Sql, exec, row, rows},
    posting::json,
};
use protocol::{RoomId, UserId};

impl Conn {
    /// These messages and all that they answer, each with the message that it answers itself; at most
    /// `limit` of them.
    pub async fn answered_messages(
        &mut self,
        room: &RoomId,
        seqs: &[i64],
        limit: i64,
    ) -> DbResult<Vec<(i64, Option<i64>)>> {
        const UPWARDS: Sql = Sql {
            sqlite: "WITH RECURSIVE chain (seq, answered) AS ( \
                 SELECT m.seq, m.reply_to_seq FROM json_each($2) AS j \
                 JOIN messages m ON m.room_id = $1 AND m.seq = j.value \
                 UNION SELECT m.seq, m.reply_to_seq FROM chain c JOIN messages m ON m.room_id = $1 AND m.seq = c.answered) \
                 SELECT seq, answered FROM chain LIMIT $3",
            postgres: "WITH RECURSIVE chain (seq, answered) AS ( \
                 SELECT m.seq, m.reply_to_seq FROM jsonb_array_elements_text($2::jsonb) AS j \
                 JOIN messages m ON m.room_id = $1 AND m.seq = j.value::bigint \
                 UNION SELECT m.seq, m.reply_to_seq FROM chain c JOIN messages m ON m.room_id = $1 AND m.seq = c.answered) \
                 SELECT seq, answered FROM chain LIMIT $3",
        };
        rows!(self, (i64, Option<i64>), UPWARDS, room, json(seqs), limit)
    }

    /// How far the member has read each thread that they opened: its first message, and the newest read.
    pub async fn thread_positions(
        &mut self,
        room: &RoomId,
        user: &UserId,
    ) -> DbResult<Vec<(i64, i64)>> {
        rows!(
            self,
            (i64, i64),
            "SELECT root_seq, read_seq FROM thread_reads WHERE room_id = $1 AND user_id = $2",
            room,
            user
        )
    }

    /// How far the member has read one thread, if they opened it.
    pub async fn thread_position(
        &mut self,
        room: &RoomId,
        user: &UserId,
        root: i64,
    ) -> DbResult<Option<i64>> {
        let found = row!(
            self,
            (i64,),
            "SELECT read_seq FROM thread_reads WHERE room_id = $1 AND user_id = $2 AND root_seq = $3",
            room,
            user,
            root
        )?;
        Ok(found.map(|(seq,)| seq))
    }

    /// Whether the member had not read the thread so far yet.
    pub async fn advance_thread_position(
        &mut self,
        room: &RoomId,
        user: &UserId,
        root: i64,
        seq: i64,
    ) -> DbResult<bool> {
        let moved = exec!(
            self,
            "INSERT INTO thread_reads (room_id, user_id, root_seq, read_seq) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (room_id, user_id, root_seq) DO UPDATE SET read_seq = excluded.read_seq \
             WHERE thread_reads.read_seq < excluded.read_seq",
            room,
            user,
            root,
            seq
        )?;
        Ok(moved == 1)
    }

    /// Forgets one of a member's threads: it is read with its room again.
    pub async fn forget_thread(&mut self, room: &RoomId, user: &UserId, root: i64) -> DbResult<()> {
        exec!(
            self,
            "DELETE FROM thread_reads WHERE room_id = $1 AND user_id = $2 AND root_seq = $3",
            room,
            user,
            root
        )?;
        Ok(())
    }

    /// Forgets all of a member's threads.
    pub async fn forget_threads(&mut self, room: &RoomId, user: &UserId) -> DbResult<()> {
        exec!(
            self,
            "DELETE FROM thread_reads WHERE room_id = $1 AND user_id = $2",
            room,
            user
        )?;
        Ok(())
    }
}
