//! Which rooms' readers have to prove anew that they may read, and when that was decided by the
//! database's own clock, which all nodes share.

use super::{
    Conn, DbError, DbResult,
    db::{Sql, exec, row, rows},
};
use protocol::RoomId;

row_struct! {
    /// Something was revoked that opened this room.
    #[derive(Debug)]
    pub struct RevocationRow {
        pub id: i64,
        pub room_id: RoomId,
    }
}

impl Conn {
    /// The database's clock, in unix seconds.
    pub async fn database_seconds(&mut self) -> DbResult<i64> {
        const CLOCK: Sql = Sql {
            sqlite: "SELECT unixepoch()",
            postgres: "SELECT EXTRACT(EPOCH FROM clock_timestamp())::bigint",
        };
        row!(self, (i64,), CLOCK)?
            .map(|(seconds,)| seconds)
            .ok_or(DbError::RowNotFound)
    }

    /// Somebody may have lost the right to read this room.
    pub async fn insert_revocation(&mut self, room: &RoomId) -> DbResult<()> {
        const INSERT: Sql = Sql {
            sqlite: "INSERT INTO revocations (room_id, at) VALUES ($1, unixepoch())",
            postgres: "INSERT INTO revocations (room_id, at) \
                 VALUES ($1, EXTRACT(EPOCH FROM clock_timestamp())::bigint)",
        };
        exec!(self, INSERT, room)?;
        Ok(())
    }

    /// What was revoked from this second on.
    pub async fn revocations_since(&mut self, at: i64) -> DbResult<Vec<RevocationRow>> {
        rows!(
            self,
            RevocationRow,
            "SELECT id, room_id FROM revocations WHERE at >= $1",
            at
        )
    }

    /// Forgets what was revoked before this second.
    pub async fn forget_revocations(&mut self, before: i64) -> DbResult<()> {
        exec!(self, "DELETE FROM revocations WHERE at < $1", before)?;
        Ok(())
    }
}
