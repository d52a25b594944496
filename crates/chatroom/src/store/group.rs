//! Writing a group of posts.
//!
//! On SQLite this does not go through the pool: each query there changes threads twice, which
//! costs more than the write itself. The posting thread has a connection of its own instead, for
//! whoever holds the write lock.

use super::{
    Conn, DbError, DbResult, Json,
    db::exec,
    limits::{SAVE_WINDOW, WindowRow, on_window_conflict},
    messages::MessageRow,
    posting::{Addressed, json},
    rooms::RoomRow,
    skeletons::{ADD_SKELETON, FORGET_SKELETONS},
    spending::{ADD_SPENDING, SET_USAGE, SpendingRow},
};
use protocol::{Message, MessageType, RoomId, Usage, UserId, Via, mentions::fold};
use rusqlite::{Connection, params};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// A message about to be stored.
#[derive(Debug, Clone)]
pub struct NewMessage {
    pub room_id: RoomId,
    pub seq: i64,
    pub sender_user_id: UserId,
    pub sender_user_name: Option<String>,
    pub via: Via,
    pub r#type: MessageType,
    pub content: String,
    pub reply_to_seq: Option<i64>,
    pub reply_chain_depth: i64,
    pub created_at: i64,
    pub client_key: Option<String>,
    /// Whether agents are called for it.
    pub calls_agents: bool,
    /// What it cost.
    pub usage: Option<Usage>,
}

impl NewMessage {
    /// As readers get it, in a room whose rules have this version.
    pub fn into_message(self, rules_version: i64) -> Message {
        MessageRow::from(self).into_message(rules_version)
    }
}

impl From<NewMessage> for MessageRow {
    fn from(new: NewMessage) -> Self {
        Self {
            seq: new.seq,
            sender_user_id: new.sender_user_id,
            sender_user_name: new.sender_user_name,
            via: new.via,
            r#type: new.r#type,
            content: new.content,
            reply_to_seq: new.reply_to_seq,
            reply_chain_depth: new.reply_chain_depth,
            created_at: new.created_at,
            deleted: false,
            edited_at: None,
            calls_agents: new.calls_agents,
            event: None,
            usage: new.usage.map(Json),
        }
    }
}

/// A name that a member's token brought, and what it looks like.
#[derive(Debug)]
pub struct NewName {
    pub room_id: RoomId,
    pub user_id: UserId,
    pub name: String,
    pub skeletons: Vec<String>,
}

/// What a group of posts writes.
#[derive(Debug)]
pub struct Group<'a> {
    pub messages: &'a [NewMessage],
    /// The rooms of the messages, as they are after them.
    pub rooms: Vec<&'a RoomRow>,
    /// Room, user and seq of each mention.
    pub mentions: &'a [(RoomId, UserId, i64)],
    pub addressed: Vec<Addressed<'a>>,
    pub names: &'a [NewName],
    pub windows: Vec<&'a WindowRow>,
    /// What is added to what agents spent.
    pub spending: Vec<&'a SpendingRow>,
}

macro_rules! insert_message {
    ($values:literal) => {
        concat!(
            "INSERT INTO messages (room_id, seq, sender_user_id, sender_user_name, via, type, content, \
             reply_to_seq, reply_chain_depth, created_at, client_key, calls_agents) ",
            $values
        )
    };
}
const MESSAGE: &str = insert_message!("VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)");
// The message is there before whom it mentions.
const MENTION: &str = "INSERT INTO mentions (room_id, user_id, seq, at) \
     SELECT $1, $2, $3, created_at FROM messages WHERE room_id = $1 AND seq = $3 ON CONFLICT DO NOTHING";
const ADDRESSED: &str = "UPDATE room_members SET addressed_seq = $1, addressed_depth = $2, addressed_at = $3 \
     WHERE room_id = $4 AND user_id = $5";

const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The posting thread's own connection to SQLite.
pub struct GroupWriter {
    connection: Connection,
    file: PathBuf,
}

impl GroupWriter {
    pub fn open(file: &Path) -> DbResult<Self> {
        let open = || {
            let connection = Connection::open(file)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            connection.execute_batch(
                "PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; PRAGMA cache_size = -4096; \
                 PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 67108864; \
                 PRAGMA cell_size_check = ON;",
            )?;
            Ok(Self {
                connection,
                file: file.to_owned(),
            })
        };
        open().map_err(refused)
    }

    /// Empties the write-ahead log into the database file. Not where a reader is in the way: nobody
    /// waits for it.
    pub fn empty_wal(&mut self) -> DbResult<bool> {
        let empty = || {
            self.connection.busy_timeout(Duration::from_millis(100))?;
            let busy: i64 =
                self.connection
                    .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
            self.connection.busy_timeout(BUSY_TIMEOUT)?;
            Ok(busy == 0)
        };
        empty().map_err(refused)
    }

    /// Writes a group and commits it: when this returns, it is on the disk.
    pub fn write(&mut self, group: &Group<'_>) -> DbResult<()> {
        let written = self.write_rows(group);
        if written.is_err() && !self.connection.is_autocommit() && self.run("ROLLBACK").is_err() {
            // Nothing is left of a group that failed half-way, not even its connection.
            *self = Self::open(&self.file)?;
        }
        written.map_err(refused)
    }

    fn write_rows(&self, group: &Group<'_>) -> rusqlite::Result<()> {
        // Parameters are numbered in the order in which the text names them.
        const ROOM: &str = "UPDATE rooms SET last_seq = $1, last_sub = 0, exchanges = $2, last_agent = $3, \
             exchanged_ms = $4 WHERE room_id = $5";
        const NAME: &str = "UPDATE room_members SET user_name = $3, name_folded = $4 WHERE room_id = $1 AND user_id = $2";
        self.run("BEGIN IMMEDIATE")?;
        let mut insert = self.connection.prepare_cached(MESSAGE)?;
        for m in group.messages {
            insert.execute(params![
                m.room_id.as_str(),
                m.seq,
                m.sender_user_id.as_str(),
                m.sender_user_name,
                m.via.as_str(),
                m.r#type.as_str(),
                m.content,
                m.reply_to_seq,
                m.reply_chain_depth,
                m.created_at,
                m.client_key,
                m.calls_agents,
            ])?;
        }
        for r in &group.rooms {
            let mut save = self.connection.prepare_cached(ROOM)?;
            save.execute(params![
                r.last_seq,
                r.exchanges,
                r.last_agent.as_ref().map(UserId::as_str),
                r.exchanged_ms,
                r.room_id.as_str()
            ])?;
        }
        for (room, user, seq) in group.mentions {
            let mut insert = self.connection.prepare_cached(MENTION)?;
            insert.execute((room.as_str(), user.as_str(), seq))?;
        }
        for a in &group.addressed {
            let (seq, depth, at) = a.columns();
            let mut save = self.connection.prepare_cached(ADDRESSED)?;
            save.execute((seq, depth, at, a.room.as_str(), a.user.as_str()))?;
        }
        for new in group.names {
            let (room, user) = (new.room_id.as_str(), new.user_id.as_str());
            let values = (&new.name, fold(&new.name), room, user);
            self.connection.prepare_cached(NAME)?.execute(values)?;
            self.connection
                .prepare_cached(FORGET_SKELETONS)?
                .execute((room, user))?;
            for skeleton in &new.skeletons {
                self.connection
                    .prepare_cached(ADD_SKELETON)?
                    .execute((room, user, skeleton))?;
            }
        }
        for m in group.messages {
            if let Some(usage) = &m.usage {
                let mut set = self.connection.prepare_cached(SET_USAGE)?;
                set.execute((json(usage), m.room_id.as_str(), m.seq))?;
            }
        }
        for s in &group.spending {
            let mut add = self.connection.prepare_cached(ADD_SPENDING)?;
            add.execute(params![
                s.room_id.as_str(),
                s.user_id.as_str(),
                s.day,
                s.turns,
                s.input_tokens,
                s.output_tokens,
                s.cost_usd,
                s.seconds,
                s.told,
            ])?;
        }
        for w in &group.windows {
            let mut save = self.connection.prepare_cached(SAVE_WINDOW)?;
            save.execute((&w.bucket, w.started_ms, w.count, w.ends_ms))?;
        }
        self.run("COMMIT")
    }

    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }
}

/// A failure of this connection as one of the store.
fn refused(error: rusqlite::Error) -> DbError {
    DbError::AnyDriverError(Box::new(error))
}

impl Conn {
    pub async fn insert_message(&mut self, m: &NewMessage) -> DbResult<()> {
        exec!(
            self,
            MESSAGE,
            &m.room_id,
            m.seq,
            &m.sender_user_id,
            &m.sender_user_name,
            &m.via,
            &m.r#type,
            &m.content,
            m.reply_to_seq,
            m.reply_chain_depth,
            m.created_at,
            &m.client_key,
            m.calls_agents,
        )?;
        if let Some(usage) = &m.usage {
            self.set_usage(&m.room_id, m.seq, usage).await?;
        }
        Ok(())
    }

    /// Notes who is addressed by which message, or has answered.
    pub async fn note_addressed(&mut self, addressed: &[Addressed<'_>]) -> DbResult<()> {
        for a in addressed {
            let (seq, depth, at) = a.columns();
            exec!(self, ADDRESSED, seq, depth, at, a.room, a.user)?;
        }
        Ok(())
    }

    /// Room, user and seq of each mention.
    pub async fn insert_mentions(&mut self, mentions: &[(&RoomId, &UserId, i64)]) -> DbResult<()> {
        for (room, user, seq) in mentions {
            exec!(self, MENTION, *room, *user, *seq)?;
        }
        Ok(())
    }

    /// Writes a group of posts to PostgreSQL.
    pub async fn write_group(&mut self, group: &Group<'_>) -> DbResult<()> {
        const MESSAGES: &str = insert_message!(
            "SELECT v ->> 0, (v ->> 1)::bigint, v ->> 2, v ->> 3, v ->> 4, v ->> 5, v ->> 6, \
             (v ->> 7)::bigint, (v ->> 8)::bigint, (v ->> 9)::bigint, v ->> 10, (v ->> 11)::boolean \
             FROM jsonb_array_elements($1::jsonb) AS v"
        );
        const ROOMS: &str = "UPDATE rooms SET last_seq = (j.v ->> 1)::bigint, last_sub = 0, \
             exchanges = (j.v ->> 2)::bigint, last_agent = j.v ->> 3, exchanged_ms = (j.v ->> 4)::bigint \
             FROM jsonb_array_elements($1::jsonb) AS j(v) WHERE rooms.room_id = j.v ->> 0";
        const MENTIONS: &str = "INSERT INTO mentions (room_id, user_id, seq, at) \
             SELECT m.room_id, j.v ->> 1, m.seq, m.created_at FROM jsonb_array_elements($1::jsonb) AS j(v) \
             JOIN messages m ON m.room_id = j.v ->> 0 AND m.seq = (j.v ->> 2)::bigint ON CONFLICT DO NOTHING";
        const ADDRESSED_ALL: &str = "UPDATE room_members SET addressed_seq = (j.v -> 2 ->> 0)::bigint, \
             addressed_depth = (j.v -> 2 ->> 1)::bigint, addressed_at = (j.v -> 2 ->> 2)::bigint \
             FROM jsonb_array_elements($1::jsonb) AS j(v) \
             WHERE room_members.room_id = j.v ->> 0 AND room_members.user_id = j.v ->> 1";
        const WINDOWS: &str = concat!(
            "INSERT INTO rate_windows (bucket, started_ms, count, ends_ms) \
             SELECT v ->> 0, (v ->> 1)::bigint, (v ->> 2)::bigint, (v ->> 3)::bigint \
             FROM jsonb_array_elements($1::jsonb) AS v ",
            on_window_conflict!()
        );
        exec!(self, MESSAGES, message_json(group.messages))?;
        let rooms: Vec<_> = group
            .rooms
            .iter()
            .map(|r| {
                (
                    &r.room_id,
                    r.last_seq,
                    r.exchanges,
                    &r.last_agent,
                    r.exchanged_ms,
                )
            })
            .collect();
        exec!(self, ROOMS, json(&rooms))?;
        if !group.mentions.is_empty() {
            exec!(self, MENTIONS, json(group.mentions))?;
        }
        if !group.addressed.is_empty() {
            let rows: Vec<_> = group
                .addressed
                .iter()
                .map(|a| (a.room, a.user, a.columns()))
                .collect();
            exec!(self, ADDRESSED_ALL, json(&rows))?;
        }
        for new in group.names {
            self.set_member_name(&new.room_id, &new.user_id, &new.name)
                .await?;
            self.set_skeletons(&new.room_id, &new.user_id, &new.skeletons)
                .await?;
        }
        for m in group.messages {
            if let Some(usage) = &m.usage {
                self.set_usage(&m.room_id, m.seq, usage).await?;
            }
        }
        for added in &group.spending {
            self.add_spending(added).await?;
        }
        if !group.windows.is_empty() {
            let rows: Vec<_> = group
                .windows
                .iter()
                .map(|w| (&w.bucket, w.started_ms, w.count, w.ends_ms))
                .collect();
            exec!(self, WINDOWS, json(&rows))?;
        }
        Ok(())
    }
}

/// Messages as rows of a JSON argument.
fn message_json(messages: &[NewMessage]) -> String {
    let rows: Vec<_> = messages
        .iter()
        .map(|m| {
            (
                &m.room_id,
                m.seq,
                &m.sender_user_id,
                &m.sender_user_name,
                m.via.as_str(),
                m.r#type.as_str(),
                &m.content,
                m.reply_to_seq,
                m.reply_chain_depth,
                m.created_at,
                &m.client_key,
                m.calls_agents,
            )
        })
        .collect();
    json(&rows)
}
