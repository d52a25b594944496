//! Posting in groups: each query here serves a whole group of posts at once, so that what a
//! post costs does not grow with the number of round trips.

use super::{
    Conn, DbError, DbResult,
    db::{Engine, Sql, exec, rows},
    rooms::{RoomRow, select_room},
};

/// A message about to be stored.
#[derive(Debug, Clone)]
pub struct NewMessage {
    pub room_id: String,
    pub seq: i64,
    pub sender_user_id: String,
    pub sender_user_name: Option<String>,
    pub via: &'static str,
    pub r#type: &'static str,
    pub content: String,
    pub reply_to_seq: Option<i64>,
    pub reply_chain_depth: i64,
    pub created_at: i64,
    pub client_key: Option<String>,
}

/// What posting needs to know of a member.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct AuthorRow {
    pub room_id: String,
    pub user_id: String,
    pub user_name: Option<String>,
}

/// What posting needs to know of a room key.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct PostingKeyRow {
    pub jti: String,
    pub scope: String,
    pub posts_as: String,
    pub expires_at: i64,
    pub revoked: bool,
}

/// A message that was posted under the same client key before.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct PriorPostRow {
    pub room_id: String,
    pub sender_user_id: String,
    pub client_key: String,
    pub seq: i64,
    pub via: String,
    pub content: String,
    pub original_content: Option<String>,
    pub deleted: bool,
    pub reply_to_seq: Option<i64>,
    pub created_at: i64,
}

/// What a group of posts writes, as JSON arguments.
pub struct Group {
    /// Rows of [`message_json`].
    pub messages: String,
    /// Room, user and seq of each mention.
    pub mentions: String,
    /// Room and newest seq.
    pub last_seqs: String,
    /// Room, user and name of members whose token brought a new name.
    pub names: String,
    /// Bucket, start, count and end of each window.
    pub windows: String,
}

macro_rules! sqlite_messages {
    ($arg:literal) => {
        concat!(
            "INSERT INTO messages (room_id, seq, sender_user_id, sender_user_name, via, type, content, \
             reply_to_seq, reply_chain_depth, created_at, client_key) \
             SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, \
             value ->> 7, value ->> 8, value ->> 9, value ->> 10 FROM json_each(",
            $arg,
            ")"
        )
    };
}

macro_rules! sqlite_mentions {
    ($arg:literal) => {
        concat!(
            "INSERT INTO mentions (room_id, user_id, seq) SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(",
            $arg,
            ") WHERE TRUE ON CONFLICT DO NOTHING"
        )
    };
}

macro_rules! sqlite_windows {
    ($arg:literal) => {
        concat!(
            "INSERT INTO rate_windows (bucket, started_ms, count, ends_ms) \
             SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(",
            $arg,
            ") WHERE TRUE ON CONFLICT (bucket) DO UPDATE SET started_ms = excluded.started_ms, \
             count = excluded.count, ends_ms = excluded.ends_ms"
        )
    };
}

const INSERT_MESSAGES: Sql = Sql {
    sqlite: sqlite_messages!("$1"),
    postgres: "INSERT INTO messages (room_id, seq, sender_user_id, sender_user_name, via, type, content, \
         reply_to_seq, reply_chain_depth, created_at, client_key) \
         SELECT v ->> 0, (v ->> 1)::bigint, v ->> 2, v ->> 3, v ->> 4, v ->> 5, v ->> 6, \
         (v ->> 7)::bigint, (v ->> 8)::bigint, (v ->> 9)::bigint, v ->> 10 \
         FROM jsonb_array_elements($1::jsonb) AS v",
};
const INSERT_MENTIONS: Sql = Sql {
    sqlite: sqlite_mentions!("$1"),
    postgres: "INSERT INTO mentions (room_id, user_id, seq) SELECT v ->> 0, v ->> 1, (v ->> 2)::bigint \
         FROM jsonb_array_elements($1::jsonb) AS v ON CONFLICT DO NOTHING",
};
/// Upserts windows from rows of bucket, start, count and end.
pub const SAVE_WINDOWS: Sql = Sql {
    sqlite: sqlite_windows!("$1"),
    postgres: "INSERT INTO rate_windows (bucket, started_ms, count, ends_ms) \
         SELECT v ->> 0, (v ->> 1)::bigint, (v ->> 2)::bigint, (v ->> 3)::bigint \
         FROM jsonb_array_elements($1::jsonb) AS v \
         ON CONFLICT (bucket) DO UPDATE SET started_ms = excluded.started_ms, count = excluded.count, ends_ms = excluded.ends_ms",
};

macro_rules! sqlite_last_seqs {
    ($arg:literal) => {
        concat!(
            "UPDATE rooms SET last_seq = j.value ->> 1, last_sub = 0 FROM json_each(",
            $arg,
            ") AS j WHERE rooms.room_id = j.value ->> 0"
        )
    };
}

/// A whole group in one hand-over to SQLite, from begin to commit: each further one would cost more
/// than the writes themselves.
const SQLITE_GROUP: &str = concat!(
    "BEGIN IMMEDIATE; ",
    sqlite_messages!("$1"),
    "; ",
    sqlite_last_seqs!("$2"),
    "; ",
    sqlite_mentions!("$3"),
    "; UPDATE room_members SET user_name = j.value ->> 2 FROM json_each($4) AS j \
     WHERE room_members.room_id = j.value ->> 0 AND room_members.user_id = j.value ->> 1; ",
    sqlite_windows!("$5"),
    "; COMMIT"
);
/// The same for a group that is messages and nothing else, as most are.
const SQLITE_PLAIN_GROUP: &str = concat!(
    "BEGIN IMMEDIATE; ",
    sqlite_messages!("$1"),
    "; ",
    sqlite_last_seqs!("$2"),
    "; COMMIT"
);
const POSTGRES_LAST_SEQS: &str = "UPDATE rooms SET last_seq = (j.v ->> 1)::bigint, last_sub = 0 \
     FROM jsonb_array_elements($1::jsonb) AS j(v) WHERE rooms.room_id = j.v ->> 0";
const POSTGRES_NAMES: &str = "UPDATE room_members SET user_name = j.v ->> 2 \
     FROM jsonb_array_elements($1::jsonb) AS j(v) \
     WHERE room_members.room_id = j.v ->> 0 AND room_members.user_id = j.v ->> 1";
const NOTHING: &str = "[]";

/// What a query's JSON argument holds.
pub fn json<T: serde::Serialize + ?Sized>(value: &T) -> String {
    // Strings, numbers and nothing else: these always serialise.
    serde_json::to_string(value).unwrap_or_default()
}

impl Conn {
    /// These rooms, with their order of events held until the transaction ends.
    pub async fn lock_rooms(&mut self, rooms: &[&str]) -> DbResult<Vec<RoomRow>> {
        const LOCK: Sql = Sql {
            sqlite: select_room!("WHERE room_id IN (SELECT value FROM json_each($1))"),
            postgres: select_room!(
                "WHERE room_id IN (SELECT jsonb_array_elements_text($1::jsonb)) ORDER BY room_id FOR UPDATE"
            ),
        };
        rows!(self, RoomRow, LOCK, json(rooms))
    }

    /// The members among these pairs of room and user.
    pub async fn authors(&mut self, pairs: &[(&str, &str)]) -> DbResult<Vec<AuthorRow>> {
        const AUTHORS: Sql = Sql {
            sqlite: "SELECT m.room_id, m.user_id, m.user_name FROM json_each($1) AS j \
                 JOIN room_members m ON m.room_id = j.value ->> 0 AND m.user_id = j.value ->> 1",
            postgres: "SELECT m.room_id, m.user_id, m.user_name FROM jsonb_array_elements($1::jsonb) AS j(v) \
                 JOIN room_members m ON m.room_id = j.v ->> 0 AND m.user_id = j.v ->> 1",
        };
        rows!(self, AuthorRow, AUTHORS, json(pairs))
    }

    /// All members of these rooms, for mentions.
    pub async fn names_in(&mut self, rooms: &[&str]) -> DbResult<Vec<AuthorRow>> {
        const NAMES: Sql = Sql {
            sqlite: "SELECT room_id, user_id, user_name FROM room_members \
                 WHERE room_id IN (SELECT value FROM json_each($1))",
            postgres: "SELECT room_id, user_id, user_name FROM room_members \
                 WHERE room_id IN (SELECT jsonb_array_elements_text($1::jsonb))",
        };
        rows!(self, AuthorRow, NAMES, json(rooms))
    }

    pub async fn posting_keys(&mut self, jtis: &[&str]) -> DbResult<Vec<PostingKeyRow>> {
        const KEYS: Sql = Sql {
            sqlite: "SELECT jti, scope, posts_as, expires_at, revoked FROM room_keys \
                 WHERE jti IN (SELECT value FROM json_each($1))",
            postgres: "SELECT jti, scope, posts_as, expires_at, revoked FROM room_keys \
                 WHERE jti IN (SELECT jsonb_array_elements_text($1::jsonb))",
        };
        if jtis.is_empty() {
            return Ok(Vec::new());
        }
        rows!(self, PostingKeyRow, KEYS, json(jtis))
    }

    /// Room, seq and depth of these messages.
    pub async fn depths(&mut self, messages: &[(&str, i64)]) -> DbResult<Vec<(String, i64, i64)>> {
        const DEPTHS: Sql = Sql {
            sqlite: "SELECT m.room_id, m.seq, m.reply_chain_depth FROM json_each($1) AS j \
                 JOIN messages m ON m.room_id = j.value ->> 0 AND m.seq = j.value ->> 1",
            postgres: "SELECT m.room_id, m.seq, m.reply_chain_depth FROM jsonb_array_elements($1::jsonb) AS j(v) \
                 JOIN messages m ON m.room_id = j.v ->> 0 AND m.seq = (j.v ->> 1)::bigint",
        };
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        rows!(self, (String, i64, i64), DEPTHS, json(messages))
    }

    /// What was posted before under these triples of room, sender and client key.
    pub async fn prior_posts(
        &mut self,
        keys: &[(&str, &str, &str)],
    ) -> DbResult<Vec<PriorPostRow>> {
        const PRIOR: Sql = Sql {
            sqlite: "SELECT m.room_id, m.sender_user_id, m.client_key, m.seq, m.via, m.content, m.original_content, \
                 m.deleted, m.reply_to_seq, m.created_at FROM json_each($1) AS j \
                 JOIN messages m ON m.room_id = j.value ->> 0 AND m.sender_user_id = j.value ->> 1 \
                 AND m.client_key = j.value ->> 2",
            postgres: "SELECT m.room_id, m.sender_user_id, m.client_key, m.seq, m.via, m.content, m.original_content, \
                 m.deleted, m.reply_to_seq, m.created_at FROM jsonb_array_elements($1::jsonb) AS j(v) \
                 JOIN messages m ON m.room_id = j.v ->> 0 AND m.sender_user_id = j.v ->> 1 \
                 AND m.client_key = j.v ->> 2",
        };
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        rows!(self, PriorPostRow, PRIOR, json(keys))
    }

    pub async fn insert_message(&mut self, message: &NewMessage) -> DbResult<()> {
        exec!(
            self,
            INSERT_MESSAGES,
            message_json(std::slice::from_ref(message))
        )?;
        Ok(())
    }

    /// Room, user and seq of each mention.
    pub async fn insert_mentions(&mut self, mentions: &[(&str, &str, i64)]) -> DbResult<()> {
        if !mentions.is_empty() {
            exec!(self, INSERT_MENTIONS, json(mentions))?;
        }
        Ok(())
    }

    /// Writes a group of posts. On SQLite it is committed when this returns.
    pub async fn write_group(&mut self, group: &Group) -> DbResult<()> {
        match self.engine() {
            Engine::Sqlite(conn) => {
                let rest = [&group.mentions, &group.names, &group.windows];
                let plain = rest.iter().all(|rows| *rows == NOTHING);
                let sql = if plain {
                    SQLITE_PLAIN_GROUP
                } else {
                    SQLITE_GROUP
                };
                let query = sqlx::query(sql)
                    .bind(&group.messages)
                    .bind(&group.last_seqs);
                let query = rest
                    .into_iter()
                    .filter(|_| !plain)
                    .fold(query, |query, rows| query.bind(rows));
                let written = query.execute(&mut *conn).await;
                if written.is_err() {
                    // Nothing is left of a group that failed half-way.
                    let undone = sqlx::query("ROLLBACK").execute(conn).await;
                    undone.or_else(|error| match error {
                        DbError::Database(_) => Ok(Default::default()),
                        other => Err(other),
                    })?;
                }
                written.map(drop)
            }
            Engine::Postgres(_) => {
                let statements = [
                    (INSERT_MESSAGES.postgres, &group.messages),
                    (INSERT_MENTIONS.postgres, &group.mentions),
                    (POSTGRES_LAST_SEQS, &group.last_seqs),
                    (POSTGRES_NAMES, &group.names),
                    (SAVE_WINDOWS.postgres, &group.windows),
                ];
                for (sql, rows) in statements {
                    if rows != NOTHING {
                        exec!(self, sql, rows)?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// Messages as rows of a JSON argument.
pub fn message_json(messages: &[NewMessage]) -> String {
    let rows: Vec<_> = messages
        .iter()
        .map(|m| {
            (
                &m.room_id,
                m.seq,
                &m.sender_user_id,
                &m.sender_user_name,
                m.via,
                m.r#type,
                &m.content,
                m.reply_to_seq,
                m.reply_chain_depth,
                m.created_at,
                &m.client_key,
            )
        })
        .collect();
    json(&rows)
}
