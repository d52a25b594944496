//! How far members have read, and what waits for them.

use super::{
    Conn, DbResult,
    db::{Sql, exec, row, rows},
    posting::json,
};
use protocol::{MessageType, Role, RoomId, UserId, Via, Visibility};

row_struct! {
    /// A room, with what its member has not read.
    #[derive(Debug)]
    pub struct InboxRoomRow {
        pub room_id: RoomId,
        pub name: String,
        pub visibility: Visibility,
        pub archived: bool,
        pub role: Role,
        pub active_at: i64,
        pub last_seq: i64,
        pub read_seq: i64,
        pub unread: i64,
        pub mentions: i64,
        pub sender_user_id: Option<UserId>,
        pub sender_user_name: Option<String>,
        pub via: Option<Via>,
        pub r#type: Option<MessageType>,
        pub preview: Option<String>,
    }
}

row_struct! {
    /// A message that mentions somebody.
    #[derive(Debug)]
    pub struct InboxMentionRow {
        pub room_id: RoomId,
        pub room_name: String,
        pub seq: i64,
        pub sender_user_id: UserId,
        pub sender_user_name: Option<String>,
        pub via: Via,
        pub preview: String,
        pub created_at: i64,
        pub read_seq: i64,
    }
}

row_struct! {
    /// Somebody who is in a room.
    #[derive(Debug)]
    pub struct MembershipRow {
        pub room_id: RoomId,
        pub user_id: UserId,
    }
}

/// A cursor among somebody's mentions: newest first, then by room and seq.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MentionCursor {
    pub at: i64,
    pub room: RoomId,
    pub seq: i64,
}

impl Conn {
    /// How far the member has read.
    pub async fn read_position(&mut self, room: &RoomId, user: &UserId) -> DbResult<Option<i64>> {
        let found = row!(
            self,
            (i64,),
            "SELECT read_seq FROM room_members WHERE room_id = $1 AND user_id = $2",
            room,
            user
        )?;
        Ok(found.map(|(seq,)| seq))
    }

    /// Whether the member had not read so far yet.
    pub async fn advance_read_position(
        &mut self,
        room: &RoomId,
        user: &UserId,
        seq: i64,
    ) -> DbResult<bool> {
        let moved = exec!(
            self,
            "UPDATE room_members SET read_seq = $3 WHERE room_id = $1 AND user_id = $2 AND read_seq < $3",
            room,
            user,
            seq
        )?;
        Ok(moved == 1)
    }

    /// Who of these users is in which of these rooms now.
    pub async fn memberships(
        &mut self,
        rooms: &[RoomId],
        users: &[UserId],
    ) -> DbResult<Vec<MembershipRow>> {
        // By room: a room seldom has as many members as there are users who listen.
        const FOUND: Sql = Sql {
            sqlite: "SELECT room_id, user_id FROM room_members \
                 WHERE room_id IN (SELECT value FROM json_each($1)) \
                 AND +user_id IN (SELECT value FROM json_each($2))",
            postgres: "SELECT room_id, user_id FROM room_members \
                 WHERE room_id IN (SELECT jsonb_array_elements_text($1::jsonb)) \
                 AND user_id IN (SELECT jsonb_array_elements_text($2::jsonb))",
        };
        rows!(self, MembershipRow, FOUND, json(rooms), json(users))
    }

    /// The user's rooms by activity, at most `limit`. What is unread is counted up to `most`, and
    /// looked for no further than that many messages or mentions.
    pub async fn inbox_rooms(
        &mut self,
        user: &UserId,
        limit: i64,
        most: i64,
    ) -> DbResult<Vec<InboxRoomRow>> {
        rows!(
            self,
            InboxRoomRow,
            "WITH mine AS (SELECT r.room_id, r.name, r.visibility, r.archived, r.last_seq, m.role, m.read_seq, \
             COALESCE(l.created_at, r.created_at) AS active_at, l.sender_user_id, l.sender_user_name, l.via, \
             l.type, SUBSTR(l.content, 1, 200) AS preview \
             FROM room_members m JOIN rooms r ON r.room_id = m.room_id \
             LEFT JOIN messages l ON l.room_id = r.room_id AND l.seq = r.last_seq \
             WHERE m.user_id = $1 ORDER BY active_at DESC, r.room_id LIMIT $2) \
             SELECT mine.*, \
             (SELECT COUNT(*) FROM (SELECT x.sender_user_id, x.type, x.deleted FROM messages x \
             WHERE x.room_id = mine.room_id AND x.seq > mine.read_seq ORDER BY x.seq LIMIT $3) AS later \
             WHERE later.type = 'chat' AND later.deleted = FALSE AND later.sender_user_id <> $1) AS unread, \
             (SELECT COUNT(*) FROM (SELECT n.seq FROM mentions n WHERE n.room_id = mine.room_id \
             AND n.user_id = $1 AND n.seq > mine.read_seq ORDER BY n.seq LIMIT $3) AS later \
             JOIN messages x ON x.room_id = mine.room_id AND x.seq = later.seq \
             WHERE x.sender_user_id <> $1) AS mentions \
             FROM mine ORDER BY mine.active_at DESC, mine.room_id",
            user,
            limit,
            most
        )
    }

    /// What mentions the user in rooms that they are still in, newest first, before a cursor or from the newest on.
    pub async fn inbox_mentions(
        &mut self,
        user: &UserId,
        before: Option<&MentionCursor>,
        limit: i64,
    ) -> DbResult<Vec<InboxMentionRow>> {
        let (at, room, seq) = before.map_or((i64::MAX, "", i64::MAX), |before| {
            (before.at, before.room.as_str(), before.seq)
        });
        rows!(
            self,
            InboxMentionRow,
            "SELECT n.room_id, r.name AS room_name, n.seq, x.sender_user_id, x.sender_user_name, x.via, \
             SUBSTR(x.content, 1, 200) AS preview, n.at AS created_at, m.read_seq \
             FROM mentions n JOIN room_members m ON m.room_id = n.room_id AND m.user_id = n.user_id \
             JOIN rooms r ON r.room_id = n.room_id \
             JOIN messages x ON x.room_id = n.room_id AND x.seq = n.seq \
             WHERE n.user_id = $1 AND (n.at, n.room_id, n.seq) < ($2, $3, $4) AND x.sender_user_id <> $1 \
             ORDER BY n.at DESC, n.room_id DESC, n.seq DESC LIMIT $5",
            user,
            at,
            room,
            seq,
            limit
        )
    }
}
