//! Invites. The code is not stored; a row holds what is needed to check, count, revoke and
//! sign it again.

use super::{
    Conn, DbResult,
    db::{exec, row, rows},
};
use protocol::{RoomId, UserId};

row_struct! {
    /// What is known of an invite.
    #[derive(Debug, Clone)]
    pub struct InviteRow {
        pub jti: String,
        pub room_id: RoomId,
        pub created_by: UserId,
        pub display_name: Option<String>,
        pub max_uses: i64,
        pub uses: i64,
        pub issued_at: i64,
        pub expires_at: i64,
        pub revoked: bool,
        /// The member whose place it gives back; it lets nobody else in.
        pub recovers: Option<UserId>,
    }
}

/// What a [`InviteRow`] is read from.
macro_rules! select_invite {
    ($rest:literal) => {
        concat!("SELECT jti, room_id, created_by, display_name, max_uses, uses, issued_at, expires_at, revoked, recovers \
             FROM invites ", $rest)
    };
}

impl Conn {
    pub async fn insert_invite(&mut self, invite: &InviteRow, code_hash: &str) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO invites (jti, room_id, created_by, display_name, max_uses, uses, issued_at, expires_at, revoked, recovers, code_hash) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            &invite.jti,
            &invite.room_id,
            &invite.created_by,
            &invite.display_name,
            invite.max_uses,
            invite.uses,
            invite.issued_at,
            invite.expires_at,
            invite.revoked,
            &invite.recovers,
            code_hash
        )?;
        Ok(())
    }

    pub async fn invite(&mut self, jti: &str) -> DbResult<Option<InviteRow>> {
        row!(self, InviteRow, select_invite!("WHERE jti = $1"), jti)
    }

    pub async fn invite_by_code(&mut self, code_hash: &str) -> DbResult<Option<InviteRow>> {
        row!(
            self,
            InviteRow,
            select_invite!("WHERE code_hash = $1"),
            code_hash
        )
    }

    /// The invites that somebody could still join with, newest first.
    pub async fn active_invites(&mut self, room: &RoomId, now: i64) -> DbResult<Vec<InviteRow>> {
        rows!(
            self,
            InviteRow,
            select_invite!(
                "WHERE room_id = $1 AND revoked = FALSE AND uses < max_uses AND expires_at > $2 \
             ORDER BY issued_at DESC, jti"
            ),
            room,
            now
        )
    }

    /// Takes one use, if one is left; whether it was.
    pub async fn use_invite(&mut self, jti: &str, room: &RoomId, now: i64) -> DbResult<bool> {
        let used = exec!(
            self,
            "UPDATE invites SET uses = uses + 1 WHERE jti = $1 AND room_id = $2 AND revoked = FALSE \
             AND uses < max_uses AND expires_at > $3",
            jti,
            room,
            now
        )?;
        Ok(used == 1)
    }

    /// Whether there was an invite to revoke.
    pub async fn revoke_invite(&mut self, room: &RoomId, jti: &str) -> DbResult<bool> {
        let revoked = exec!(
            self,
            "UPDATE invites SET revoked = TRUE WHERE jti = $2 AND room_id = $1 AND revoked = FALSE",
            room,
            jti
        )?;
        Ok(revoked == 1)
    }

    /// Revokes all invites to a room that this user made.
    pub async fn revoke_invites_by(&mut self, room: &RoomId, user: &UserId) -> DbResult<()> {
        exec!(
            self,
            "UPDATE invites SET revoked = TRUE WHERE room_id = $1 AND created_by = $2 AND revoked = FALSE",
            room,
            user
        )?;
        Ok(())
    }
}
