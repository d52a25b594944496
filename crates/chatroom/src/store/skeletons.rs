//! What members' names look like, so that nobody picks a name that looks like another's.

use super::{
    Conn, DbResult,
    db::{Sql, exec, row, rows},
    members::MemberNameRow,
    posting::json,
};
use protocol::{RoomId, UserId};

/// Forgets what a member looked like.
pub const FORGET_SKELETONS: &str = "DELETE FROM member_looks WHERE room_id = $1 AND user_id = $2";
/// Adds a skeleton of a member.
pub const ADD_SKELETON: &str =
    "INSERT INTO member_looks (room_id, user_id, look) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";

impl Conn {
    /// Puts these skeletons in place of the member's skeletons from before.
    pub async fn set_skeletons(
        &mut self,
        room: &RoomId,
        user: &UserId,
        skeletons: &[String],
    ) -> DbResult<()> {
        exec!(self, FORGET_SKELETONS, room, user)?;
        for skeleton in skeletons {
            exec!(self, ADD_SKELETON, room, user, skeleton)?;
        }
        Ok(())
    }

    /// Whether anybody but this user has one of these skeletons in one of these rooms.
    pub async fn skeleton_is_taken(
        &mut self,
        rooms: &[&RoomId],
        skeletons: &[String],
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
        let taken = row!(self, (bool,), TAKEN, json(rooms), json(skeletons), user)?;
        Ok(taken.is_some_and(|(taken,)| taken))
    }

    /// So many members who have no skeletons.
    pub async fn members_without_skeletons(&mut self, limit: i64) -> DbResult<Vec<MemberNameRow>> {
        rows!(
            self,
            MemberNameRow,
            "SELECT m.room_id, m.user_id, m.user_name FROM room_members m WHERE NOT EXISTS \
             (SELECT 1 FROM member_looks l WHERE l.room_id = m.room_id AND l.user_id = m.user_id) LIMIT $1",
            limit
        )
    }
}
