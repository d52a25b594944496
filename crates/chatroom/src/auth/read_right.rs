//! The right to read a room, where it was proven once and is used for longer: by an open stream, and by
//! the notifications of a task.

use super::denylist::Denylist;
use crate::{
    clock::Now,
    store::{Conn, DbError},
};
use protocol::{RoomId, UserId};

/// Who reads a room, and by which credential.
#[derive(Debug, Clone)]
pub struct ReadRight {
    pub room_id: RoomId,
    pub user_id: UserId,
    /// The room key, where it is one.
    pub jti: Option<String>,
    /// When the user token was issued, where it is one and says so.
    pub issued_at: Option<i64>,
}

impl ReadRight {
    /// Whether it still holds: nobody was banned, no session ended, no key revoked, no member removed.
    pub async fn still_holds(
        &self,
        denylist: &Denylist,
        conn: &mut Conn,
        now: Now,
    ) -> Result<bool, DbError> {
        let ended = self.jti.is_none() && denylist.ended(&self.user_id, self.issued_at);
        if ended || denylist.bans_user(&self.user_id) {
            return Ok(false);
        }
        if let Some(jti) = &self.jti {
            let key = conn.key(jti).await?;
            if !key.is_some_and(|key| !key.revoked && key.expires_at > now.seconds()) {
                return Ok(false);
            }
        }
        Ok(conn.member(&self.room_id, &self.user_id).await?.is_some())
    }
}
