//! The welcome checklist: what members have done in the room, and what is noted of it.

use super::{
    Conn, DbResult,
    db::{Sql, exec, row, rows},
    posting::json,
};
use protocol::{RoomId, UserId, WelcomeCheck};

row_struct! {
    /// A check that was passed.
    #[derive(Debug)]
    pub struct ProgressRow {
        pub check_id: WelcomeCheck,
        pub passed_at: i64,
    }
}

row_struct! {
    /// A check that a user passed.
    #[derive(Debug)]
    pub struct UserProgressRow {
        pub user_id: UserId,
        pub check_id: WelcomeCheck,
        pub passed_at: i64,
    }
}

row_struct! {
    /// What a member has done in a room.
    #[derive(Debug, Default)]
    pub struct Probe {
        pub posted: bool,
        pub edited: bool,
        pub deleted: bool,
        pub replied: bool,
        pub reacted: bool,
    }
}

impl Conn {
    /// What the member has done in the room. On SQLite the index by sender is in blocks.
    pub async fn welcome_probe(&mut self, room: &RoomId, user: &UserId) -> DbResult<Probe> {
        const PROBE: Sql = Sql {
            sqlite: "WITH RECURSIVE block (b) AS (SELECT 0 UNION ALL SELECT b + 1 FROM block \
                 WHERE b < (SELECT last_seq / 512 FROM rooms WHERE room_id = $1)) \
                 SELECT COUNT(*) > 0 AS posted, COALESCE(MAX(m.edited_at IS NOT NULL), FALSE) AS edited, \
                 COALESCE(MAX(m.deleted), FALSE) AS deleted, \
                 COALESCE(MAX(m.reply_to_seq IS NOT NULL), FALSE) AS replied, \
                 EXISTS (SELECT 1 FROM reactions WHERE room_id = $1 AND user_id = $2) AS reacted \
                 FROM block CROSS JOIN messages m \
                 ON m.room_id = $1 AND m.seq / 512 = block.b AND m.sender_user_id = $2",
            postgres: "SELECT COUNT(*) > 0 AS posted, COALESCE(BOOL_OR(edited_at IS NOT NULL), FALSE) AS edited, \
                 COALESCE(BOOL_OR(deleted), FALSE) AS deleted, \
                 COALESCE(BOOL_OR(reply_to_seq IS NOT NULL), FALSE) AS replied, \
                 EXISTS (SELECT 1 FROM reactions WHERE room_id = $1 AND user_id = $2) AS reacted \
                 FROM messages WHERE room_id = $1 AND sender_user_id = $2",
        };
        Ok(row!(self, Probe, PROBE, room, user)?.unwrap_or_default())
    }

    /// Notes these checks as passed; those noted before keep their time.
    pub async fn stamp_checks(
        &mut self,
        user: &UserId,
        checks: &[WelcomeCheck],
        now: i64,
    ) -> DbResult<()> {
        const STAMP: Sql = Sql {
            sqlite: "INSERT INTO welcome_checklist_progress (user_id, check_id, passed_at) \
                 SELECT $1, value, $3 FROM json_each($2) WHERE TRUE ON CONFLICT DO NOTHING",
            postgres: "INSERT INTO welcome_checklist_progress (user_id, check_id, passed_at) \
                 SELECT $1, check_id, $3 FROM jsonb_array_elements_text($2::jsonb) AS check_id \
                 ON CONFLICT DO NOTHING",
        };
        exec!(self, STAMP, user, json(checks), now)?;
        Ok(())
    }

    pub async fn welcome_progress(&mut self, user: &UserId) -> DbResult<Vec<ProgressRow>> {
        rows!(
            self,
            ProgressRow,
            "SELECT check_id, passed_at FROM welcome_checklist_progress WHERE user_id = $1",
            user
        )
    }

    /// What these users have passed.
    pub async fn welcome_progress_of(
        &mut self,
        users: &[&UserId],
    ) -> DbResult<Vec<UserProgressRow>> {
        const PROGRESS: Sql = Sql {
            sqlite: "SELECT user_id, check_id, passed_at FROM welcome_checklist_progress \
                 WHERE user_id IN (SELECT value FROM json_each($1))",
            postgres: "SELECT user_id, check_id, passed_at FROM welcome_checklist_progress \
                 WHERE user_id IN (SELECT jsonb_array_elements_text($1::jsonb))",
        };
        rows!(self, UserProgressRow, PROGRESS, json(users))
    }
}
