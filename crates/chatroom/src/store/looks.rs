//! What members' names look like, so that nobody picks a name that looks like another's.

use super::{
    Conn, DbResult,
    db::{Sql, exec, row, rows},
    members::MemberNameRow,
    posting::json,
};
use protocol::{RoomId, UserId};

/// Forgets what a member looked like.
pub const FORGET_LOOKS: &str = "DELETE FROM member_looks WHERE room_id = $1 AND user_id = $2";
/// Adds a look of a member.
pub const ADD_LOOK: &str =
    "INSERT INTO member_looks (room_id, user_id, look) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";

impl Conn {
    /// Puts these looks in place of the member's looks from before.
    pub async fn set_looks(
        &mut self,
        room: &RoomId,
        user: &UserId,
        looks: &[String],
    ) -> DbResult<()> {
        exec!(self, FORGET_LOOKS, room, user)?;
        for look in looks {
            exec!(self, ADD_LOOK, room, user, look)?;
        }
        Ok(())
    }

    /// Whether anybody but this user has one of these looks in one of these rooms.
    pub async fn look_is_taken(
        &mut self,
        rooms: &[&RoomId],
        looks: &[String],
        user: &UserId,
    ) -> DbResult<bool> {
        const TAKEN: Sql = Sql {
            sqlite: "SELECT EXISTS (SELECT 1 FROM member_looks \
                 WHERE room_id IN (SELECT value FROM json_each($1)) \
                 AND look IN (SELECT value FROM json_each($2)) AND user_id <> $3)",
            postgres: "SELECT EXISTS (SELECT 1 FROM member_looks \
                 WHERE room_id IN (SELECT jsonb_array_elements_text($1::jsonb)) \
                 AND look IN (SELECT jsonb_array_elements_text($2::jsonb)) AND user_id <> $3)",
        };
        let taken = row!(self, (bool,), TAKEN, json(rooms), json(looks), user)?;
        Ok(taken.is_some_and(|(taken,)| taken))
    }

    /// So many members who have no looks.
    pub async fn members_without_looks(&mut self, limit: i64) -> DbResult<Vec<MemberNameRow>> {
        rows!(
            self,
            MemberNameRow,
            "SELECT m.room_id, m.user_id, m.user_name FROM room_members m WHERE NOT EXISTS \
             (SELECT 1 FROM member_looks l WHERE l.room_id = m.room_id AND l.user_id = m.user_id) LIMIT $1",
            limit
        )
    }
}
