//! A room's audit log. Each line's hash covers the line before it.

use super::{
    Conn, DbResult, Json,
    db::{exec, row, rows},
};
use protocol::{RoomId, UserId};
use serde_json::Value;

row_struct! {
    /// A line of the log.
    #[derive(Debug)]
    pub struct AuditRow {
        pub n: i64,
        pub at: i64,
        pub actor: UserId,
        pub action: String,
        pub target: Option<String>,
        pub detail: Json<Value>,
        pub hash: String,
    }
}

impl Conn {
    /// The newest line's number and hash.
    pub async fn audit_head(&mut self, room: &RoomId) -> DbResult<Option<(i64, String)>> {
        row!(
            self,
            (i64, String),
            "SELECT n, hash FROM room_audit_log WHERE room_id = $1 ORDER BY n DESC LIMIT 1",
            room
        )
    }

    pub async fn insert_audit(&mut self, room: &RoomId, line: &AuditRow) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO room_audit_log (room_id, n, at, actor, action, target, detail, hash) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            room,
            line.n,
            line.at,
            &line.actor,
            &line.action,
            &line.target,
            &line.detail,
            &line.hash
        )?;
        Ok(())
    }

    pub async fn audit_after(
        &mut self,
        room: &RoomId,
        n: i64,
        limit: i64,
    ) -> DbResult<Vec<AuditRow>> {
        rows!(
            self,
            AuditRow,
            "SELECT n, at, actor, action, target, detail, hash FROM room_audit_log \
             WHERE room_id = $1 AND n > $2 ORDER BY n LIMIT $3",
            room,
            n,
            limit
        )
    }
}
