//! Whom owners keep out of their rooms and operators out of the server, and sessions that ended.

use super::{
    Conn, DbResult,
    db::{exec, row, rows},
};
use protocol::{RoomId, UserId};

row_struct! {
    /// A ban from a room.
    #[derive(Debug)]
    pub struct RoomBanRow {
        pub user_id: UserId,
        pub user_name: Option<String>,
        pub reason: Option<String>,
        pub banned_by: UserId,
        pub banned_at: i64,
    }
}

row_struct! {
    /// A ban from the server.
    #[derive(Debug)]
    pub struct BanRow {
        pub subject: String,
        pub reason: Option<String>,
        pub banned_at: i64,
    }
}

row_struct! {
    /// From when on a user's tokens must have been issued.
    #[derive(Debug)]
    pub struct TokenCutoffRow {
        pub user_id: UserId,
        pub not_before: i64,
    }
}

impl Conn {
    pub async fn insert_room_ban(&mut self, room: &RoomId, ban: &RoomBanRow) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO room_bans (room_id, user_id, user_name, reason, banned_by, banned_at) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (room_id, user_id) DO NOTHING",
            room,
            &ban.user_id,
            &ban.user_name,
            &ban.reason,
            &ban.banned_by,
            ban.banned_at
        )?;
        Ok(())
    }

    pub async fn is_banned_from(&mut self, room: &RoomId, user: &UserId) -> DbResult<bool> {
        let found = row!(
            self,
            (String,),
            "SELECT user_id FROM room_bans WHERE room_id = $1 AND user_id = $2",
            room,
            user
        )?;
        Ok(found.is_some())
    }

    pub async fn room_bans(&mut self, room: &RoomId) -> DbResult<Vec<RoomBanRow>> {
        rows!(
            self,
            RoomBanRow,
            "SELECT user_id, user_name, reason, banned_by, banned_at FROM room_bans \
             WHERE room_id = $1 ORDER BY user_id",
            room
        )
    }

    /// Whether there was such a ban.
    pub async fn delete_room_ban(&mut self, room: &RoomId, user: &UserId) -> DbResult<bool> {
        let deleted = exec!(
            self,
            "DELETE FROM room_bans WHERE room_id = $1 AND user_id = $2",
            room,
            user
        )?;
        Ok(deleted == 1)
    }

    pub async fn insert_ban(
        &mut self,
        subject: &str,
        reason: Option<&str>,
        now: i64,
    ) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO bans (subject, reason, banned_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
            subject,
            reason,
            now
        )?;
        Ok(())
    }

    pub async fn bans(&mut self) -> DbResult<Vec<BanRow>> {
        rows!(
            self,
            BanRow,
            "SELECT subject, reason, banned_at FROM bans ORDER BY subject"
        )
    }

    /// Whether there was such a ban.
    pub async fn delete_ban(&mut self, subject: &str) -> DbResult<bool> {
        let deleted = exec!(self, "DELETE FROM bans WHERE subject = $1", subject)?;
        Ok(deleted == 1)
    }

    /// From when on a user's tokens must have been issued.
    pub async fn set_token_cutoff(&mut self, user: &UserId, not_before: i64) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO token_cutoffs (user_id, not_before) VALUES ($1, $2) \
             ON CONFLICT (user_id) DO UPDATE SET not_before = excluded.not_before",
            user,
            not_before
        )?;
        Ok(())
    }

    pub async fn token_cutoffs(&mut self) -> DbResult<Vec<TokenCutoffRow>> {
        rows!(
            self,
            TokenCutoffRow,
            "SELECT user_id, not_before FROM token_cutoffs"
        )
    }

    /// Takes the push bearers of a user's memberships away: the server calls that agent no more.
    pub async fn detach_user(&mut self, user: &UserId) -> DbResult<()> {
        exec!(
            self,
            "UPDATE room_members SET akm_key = NULL, akm_prefix = NULL WHERE user_id = $1",
            user
        )?;
        Ok(())
    }
}
