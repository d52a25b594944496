//! Rooms, with their rules and data.

use super::{
    Conn, DbResult,
    db::{Sql, exec, row, rows},
};
use protocol::{Cursor, Role, RoomId, UserId, Visibility};

row_struct! {
    /// A room as it is stored, without its texts.
    #[derive(Debug, Clone)]
    pub struct RoomRow {
        pub room_id: RoomId,
        pub name: String,
        pub owner_user_id: UserId,
        pub visibility: Visibility,
        pub archived: bool,
        pub created_at: i64,
        pub max_reply_chain_depth: i64,
        pub last_seq: i64,
        pub last_sub: i64,
        pub pruned_seq: i64,
        pub pruned_sub: i64,
        pub rules_version: i64,
        /// The owner's own limit on exchanges between agents, where there is one.
        pub exchange_limit: Option<i64>,
        /// Messages of one agent after another's since a person spoke.
        pub exchanges: i64,
        /// Whose message was the last one, where that was an agent's.
        pub last_agent: Option<UserId>,
        /// When the last exchange was.
        pub exchanged_ms: i64,
        /// What the room is about.
        pub topic: String,
    }
}

impl RoomRow {
    pub fn is_public(&self) -> bool {
        self.visibility == Visibility::Public
    }

    /// Whether the room belongs to the system.
    pub fn is_reserved(&self) -> bool {
        self.room_id.is_reserved()
    }

    /// The newest cursor of the room.
    pub fn head(&self) -> Cursor {
        Cursor {
            seq: self.last_seq,
            sub: self.last_sub,
        }
    }

    /// The seq of the message that comes next, which the room has come to with this.
    pub fn next_seq(&mut self) -> i64 {
        self.last_seq += 1;
        self.last_sub = 0;
        self.last_seq
    }

    /// The cursor of the event without a seq that comes next, likewise.
    pub fn next_sub(&mut self) -> Cursor {
        self.last_sub += 1;
        self.head()
    }

    /// Up to here, events without a seq are no longer kept.
    pub fn pruned_to(&self) -> Cursor {
        Cursor {
            seq: self.pruned_seq,
            sub: self.pruned_sub,
        }
    }
}

row_struct! {
    /// A room with the caller's place in it.
    #[derive(Debug)]
    pub struct MyRoomRow {
        pub room_id: RoomId,
        pub name: String,
        pub owner_user_id: UserId,
        pub archived: bool,
        pub role: Role,
        pub joined_at: i64,
        pub agent_endpoint: Option<String>,
        pub has_akm_key: bool,
        pub key_stale: bool,
    }
}

row_struct! {
    /// A room's id alone.
    #[derive(Debug)]
    pub struct RoomIdRow {
        pub room_id: RoomId,
    }
}

/// The ids of rows that hold nothing else.
pub(super) fn ids(rows: Vec<RoomIdRow>) -> Vec<RoomId> {
    rows.into_iter().map(|row| row.room_id).collect()
}

row_struct! {
    /// A room in the operator's list.
    #[derive(Debug)]
    pub struct AdminRoomRow {
        pub room_id: RoomId,
        pub name: String,
        pub owner_user_id: UserId,
        pub visibility: Visibility,
        pub archived: bool,
        pub created_at: i64,
        pub last_seq: i64,
        pub member_count: i64,
    }
}

row_struct! {
    /// The rules, or the data.
    #[derive(Debug)]
    pub struct TextRow {
        pub content: String,
        pub version: i64,
        pub updated_at: Option<i64>,
        pub updated_by: Option<UserId>,
    }
}

/// Which of a room's two texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text {
    Rules,
    Data,
}

impl Text {
    fn as_str(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Data => "data",
        }
    }
}

/// What a [`RoomRow`] is read from.
macro_rules! select_room {
    ($rest:literal) => {
        concat!(
            "SELECT room_id, name, owner_user_id, visibility, archived, created_at, max_reply_chain_depth, \
             last_seq, last_sub, pruned_seq, pruned_sub, rules_version, exchange_limit, exchanges, \
             last_agent, exchanged_ms, topic FROM rooms ",
            $rest
        )
    };
}
pub(super) use select_room;

const FIND: &str = select_room!("WHERE room_id = $1");

impl Conn {
    pub async fn room(&mut self, room: &RoomId) -> DbResult<Option<RoomRow>> {
        row!(self, RoomRow, FIND, room)
    }

    /// The room, with its order of events held until the transaction ends.
    pub async fn lock_room(&mut self, room: &RoomId) -> DbResult<Option<RoomRow>> {
        const LOCK: Sql = Sql {
            sqlite: FIND,
            postgres: select_room!("WHERE room_id = $1 FOR UPDATE"),
        };
        row!(self, RoomRow, LOCK, room)
    }

    /// Whether the id was free and the room was made.
    pub async fn insert_room(
        &mut self,
        room: &RoomId,
        name: &str,
        owner: &UserId,
        visibility: Visibility,
        now: i64,
    ) -> DbResult<bool> {
        let inserted = exec!(
            self,
            "INSERT INTO rooms (room_id, name, owner_user_id, visibility, created_at) \
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
            room,
            name,
            owner,
            &visibility,
            now
        )?;
        Ok(inserted == 1)
    }

    pub async fn update_room(&mut self, room: &RoomRow) -> DbResult<()> {
        exec!(
            self,
            "UPDATE rooms SET name = $2, archived = $3, visibility = $4, max_reply_chain_depth = $5, \
             exchange_limit = $6, exchanges = $7, topic = $8 WHERE room_id = $1",
            &room.room_id,
            &room.name,
            room.archived,
            &room.visibility,
            room.max_reply_chain_depth,
            room.exchange_limit,
            room.exchanges,
            &room.topic
        )?;
        Ok(())
    }

    /// Moves the room's order of events on.
    pub async fn set_head(&mut self, room: &RoomId, head: Cursor) -> DbResult<()> {
        exec!(
            self,
            "UPDATE rooms SET last_seq = $2, last_sub = $3 WHERE room_id = $1",
            room,
            head.seq,
            head.sub
        )?;
        Ok(())
    }

    /// Writes how much the room's agents have said to each other.
    pub async fn save_exchanges(&mut self, room: &RoomRow) -> DbResult<()> {
        exec!(
            self,
            "UPDATE rooms SET exchanges = $2, last_agent = $3, exchanged_ms = $4 WHERE room_id = $1",
            &room.room_id,
            room.exchanges,
            &room.last_agent,
            room.exchanged_ms
        )?;
        Ok(())
    }

    pub async fn rooms_of(&mut self, user: &UserId) -> DbResult<Vec<MyRoomRow>> {
        rows!(
            self,
            MyRoomRow,
            "SELECT r.room_id, r.name, r.owner_user_id, r.archived, m.role, m.joined_at, m.agent_endpoint, \
             (m.akm_key IS NOT NULL) AS has_akm_key, m.key_stale \
             FROM room_members m JOIN rooms r ON r.room_id = m.room_id \
             WHERE m.user_id = $1 ORDER BY m.joined_at, r.room_id",
            user
        )
    }

    pub async fn public_rooms(&mut self, limit: i64, offset: i64) -> DbResult<Vec<RoomRow>> {
        rows!(
            self,
            RoomRow,
            select_room!(
                "WHERE visibility = 'public' AND archived = FALSE \
             ORDER BY created_at DESC, room_id DESC LIMIT $1 OFFSET $2"
            ),
            limit,
            offset
        )
    }

    pub async fn all_rooms(&mut self, limit: i64, offset: i64) -> DbResult<Vec<AdminRoomRow>> {
        rows!(
            self,
            AdminRoomRow,
            "SELECT r.room_id, r.name, r.owner_user_id, r.visibility, r.archived, r.created_at, r.last_seq, \
             (SELECT COUNT(*) FROM room_members m WHERE m.room_id = r.room_id) AS member_count \
             FROM rooms r ORDER BY r.created_at DESC, r.room_id DESC LIMIT $1 OFFSET $2",
            limit,
            offset
        )
    }

    pub async fn text(&mut self, room: &RoomId, text: Text) -> DbResult<Option<TextRow>> {
        let sql = match text {
            Text::Rules => {
                "SELECT rules_content AS content, rules_version AS version, rules_updated_at AS updated_at, \
                 rules_updated_by AS updated_by FROM rooms WHERE room_id = $1"
            }
            Text::Data => {
                "SELECT data_content AS content, data_version AS version, data_updated_at AS updated_at, \
                 data_updated_by AS updated_by FROM rooms WHERE room_id = $1"
            }
        };
        row!(self, TextRow, sql, room)
    }

    /// Keeps a text that is about to be replaced, and no more than the newest `most` of its kind.
    pub async fn keep_text(
        &mut self,
        room: &RoomId,
        text: Text,
        row: &TextRow,
        most: i64,
    ) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO room_texts (room_id, kind, version, content, updated_at, updated_by) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
            room,
            text.as_str(),
            row.version,
            &row.content,
            row.updated_at,
            &row.updated_by
        )?;
        exec!(
            self,
            "DELETE FROM room_texts WHERE room_id = $1 AND kind = $2 AND version <= $3",
            room,
            text.as_str(),
            row.version - most
        )?;
        Ok(())
    }

    /// The texts that were replaced, newest first.
    pub async fn older_texts(&mut self, room: &RoomId, text: Text) -> DbResult<Vec<TextRow>> {
        rows!(
            self,
            TextRow,
            "SELECT content, version, updated_at, updated_by FROM room_texts \
             WHERE room_id = $1 AND kind = $2 ORDER BY version DESC",
            room,
            text.as_str()
        )
    }

    /// Replaces the text and gives its new version.
    pub async fn set_text(
        &mut self,
        room: &RoomId,
        text: Text,
        content: &str,
        by: &UserId,
        now: i64,
    ) -> DbResult<i64> {
        let sql = match text {
            Text::Rules => {
                "UPDATE rooms SET rules_content = $2, rules_version = rules_version + 1, rules_updated_at = $4, \
                 rules_updated_by = $3 WHERE room_id = $1 RETURNING rules_version"
            }
            Text::Data => {
                "UPDATE rooms SET data_content = $2, data_version = data_version + 1, data_updated_at = $4, \
                 data_updated_by = $3 WHERE room_id = $1 RETURNING data_version"
            }
        };
        let version = row!(self, (i64,), sql, room, content, by, now)?;
        version
            .map(|(version,)| version)
            .ok_or(super::DbError::RowNotFound)
    }
}
