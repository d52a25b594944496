//! What can be searched for. The words and marks of a message come from the services: here they are
//! written in each engine's own form, and looked up.

use super::{
    Conn, DbResult,
    db::{Engine, Sql, exec, row, rows},
    postgres_tx::in_time,
    posting::json,
    rooms::{RoomIdRow, ids},
};
use protocol::{RoomId, UserId, Via};
use sqlx::{Postgres, Sqlite};
use std::{
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
};

/// Places within one second.
const SORT_KEYS_PER_SECOND: i64 = 1 << 20;

/// What a message is found by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// Its words, in their order.
    pub words: Vec<String>,
    /// What else is known of it. A mark begins with `/`, which no word holds.
    pub marks: Vec<String>,
}

/// A message that can be searched from now on.
#[derive(Debug)]
pub struct SearchableMessage {
    pub room_id: RoomId,
    pub seq: i64,
    pub created_at: i64,
    pub terms: Terms,
}

/// Words that stand beside each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    pub words: Vec<String>,
    /// Whether the last word may go on.
    pub is_prefix: bool,
}

/// What a message must hold: all of the phrases, all of the marks, and one of `any_of`.
#[derive(Debug, Clone, Default)]
pub struct Expression {
    pub phrases: Vec<Phrase>,
    pub marks: Vec<String>,
    pub any_of: Vec<String>,
}

/// Where to look.
#[derive(Debug, Clone, Copy)]
pub enum Where<'a> {
    Room(&'a RoomId),
    /// In the rooms that this user is a member of.
    RoomsOf(&'a UserId),
}

/// Which of the messages that fit to read, newest first.
#[derive(Debug, Clone, Copy)]
pub struct SearchPage {
    /// Below this sort key.
    pub below: i64,
    /// At this time or later.
    pub since: i64,
    pub has_reaction: bool,
    /// Whether few messages hold the words.
    pub is_rare: bool,
    pub limit: i64,
}

row_struct! {
    /// A message that fits.
    #[derive(Debug, Clone)]
    pub struct FoundRow {
        pub place: i64,
        pub room_id: RoomId,
        pub room_name: String,
        pub seq: i64,
        pub sender_user_id: UserId,
        pub sender_user_name: Option<String>,
        pub via: Via,
        pub content: String,
        pub created_at: i64,
    }
}

/// The first sort key of a second.
pub fn first_sort_key(seconds: i64) -> i64 {
    // No clock comes so far; whoever writes such a date means "any".
    seconds.clamp(0, i64::MAX / SORT_KEYS_PER_SECOND - 1) * SORT_KEYS_PER_SECOND
}

impl Terms {
    fn as_text(&self) -> String {
        let terms = self.words.iter().chain(&self.marks);
        terms.map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    /// As PostgreSQL reads a tsvector: each word once, with its positions.
    fn as_tsvector(&self) -> String {
        let mut positions: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (at, word) in self.words.iter().enumerate() {
            positions
                .entry(word)
                .or_default()
                .push((at + 1).to_string());
        }
        let words = positions
            .into_iter()
            .map(|(word, at)| format!("{}:{}", quoted(word), at.join(",")));
        let marks = self.marks.iter().map(|mark| quoted(mark));
        words.chain(marks).collect::<Vec<_>>().join(" ")
    }
}

/// A lexeme in PostgreSQL's quotes.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\\', "\\\\").replace('\'', "''"))
}

impl Expression {
    /// In FTS5's words: strings and operators, so that nothing a caller wrote is one.
    fn as_fts5(&self) -> String {
        let string = |text: &str| format!("\"{}\"", text.replace('"', ""));
        let phrases = self.phrases.iter().map(|phrase| {
            let star = if phrase.is_prefix { " *" } else { "" };
            format!("{}{star}", string(&phrase.words.join(" ")))
        });
        let marks = self.marks.iter().map(|mark| string(mark));
        let any_of: Vec<_> = self.any_of.iter().map(|mark| string(mark)).collect();
        let any_of = (!any_of.is_empty()).then(|| format!("({})", any_of.join(" OR ")));
        let all: Vec<_> = phrases.chain(marks).chain(any_of).collect();
        all.join(" AND ")
    }

    /// The same as a tsquery.
    pub(super) fn as_tsquery(&self) -> String {
        let phrases = self.phrases.iter().map(|phrase| {
            let mut words: Vec<_> = phrase.words.iter().map(|word| quoted(word)).collect();
            if let Some(last) = words.last_mut().filter(|_| phrase.is_prefix) {
                last.push_str(":*");
            }
            format!("({})", words.join(" <-> "))
        });
        let marks = self.marks.iter().map(|mark| quoted(mark));
        let any_of: Vec<_> = self.any_of.iter().map(|mark| quoted(mark)).collect();
        let any_of = (!any_of.is_empty()).then(|| format!("({})", any_of.join(" | ")));
        let all: Vec<_> = phrases.chain(marks).chain(any_of).collect();
        all.join(" & ")
    }
}

/// On SQLite the index is walked from its newest entry, each looked up by its keys.
macro_rules! find {
    ($members_sqlite:literal, $members_postgres:literal, $filter:literal, $order_postgres:literal) => {
        Sql {
            sqlite: concat!(
                "SELECT w.rowid AS place, x.room_id, r.name AS room_name, x.seq, x.sender_user_id, \
                 x.sender_user_name, x.via, x.content, x.created_at \
                 FROM search_words w CROSS JOIN search_messages s ON s.id = w.rowid ",
                $members_sqlite,
                " CROSS JOIN messages x ON x.room_id = s.room_id AND x.seq = s.seq \
                 CROSS JOIN rooms r ON r.room_id = s.room_id \
                 WHERE w.search_words MATCH $1 AND w.rowid < $2 AND w.rowid >= $3 AND x.deleted = FALSE \
                 AND ($4 = FALSE OR EXISTS (SELECT 1 FROM reactions e WHERE e.room_id = s.room_id AND e.seq = s.seq)) ",
                $filter,
                " ORDER BY w.rowid DESC LIMIT $6"
            ),
            postgres: concat!(
                "SELECT s.place, x.room_id, r.name AS room_name, x.seq, x.sender_user_id, \
                 x.sender_user_name, x.via, x.content, x.created_at FROM search_messages s ",
                $members_postgres,
                " JOIN messages x ON x.room_id = s.room_id AND x.seq = s.seq \
                 JOIN rooms r ON r.room_id = s.room_id \
                 WHERE s.terms @@ CAST(CAST($1 AS TEXT) AS TSQUERY) AND s.place < $2 AND s.place >= $3 \
                 AND x.deleted = FALSE \
                 AND ($4 = FALSE OR EXISTS (SELECT 1 FROM reactions e WHERE e.room_id = s.room_id AND e.seq = s.seq)) ",
                $filter,
                " ORDER BY ",
                $order_postgres,
                " DESC LIMIT $6"
            ),
        }
    };
}

const IN_ROOM: Sql = find!("", "", "AND s.room_id = $5", "s.place");
const IN_ROOMS_OF: Sql = find!(
    "CROSS JOIN room_members m ON m.room_id = s.room_id AND m.user_id = $5",
    "JOIN room_members m ON m.room_id = s.room_id AND m.user_id = $5",
    "",
    "s.place"
);
// PostgreSQL knows nothing of how rare a word is that it has not counted, and may walk through all messages to
// find it. Where the order is none of an index, it finds the messages by their words and sorts those.
const RARE_IN_ROOM: Sql = find!("", "", "AND s.room_id = $5", "s.place + 0");
const RARE_IN_ROOMS_OF: Sql = find!(
    "CROSS JOIN room_members m ON m.room_id = s.room_id AND m.user_id = $5",
    "JOIN room_members m ON m.room_id = s.room_id AND m.user_id = $5",
    "",
    "s.place + 0"
);

impl Conn {
    /// The messages that fit, newest first.
    pub async fn found_messages(
        &mut self,
        wanted: &Expression,
        place: Where<'_>,
        page: SearchPage,
    ) -> DbResult<Vec<FoundRow>> {
        let (sql, whose) = match (place, page.is_rare) {
            (Where::Room(room), false) => (IN_ROOM.noted(), room.as_str()),
            (Where::Room(room), true) => (RARE_IN_ROOM.noted(), room.as_str()),
            (Where::RoomsOf(user), false) => (IN_ROOMS_OF.noted(), user.as_str()),
            (Where::RoomsOf(user), true) => (RARE_IN_ROOMS_OF.noted(), user.as_str()),
        };
        let since = first_sort_key(page.since);
        let answer_time = self.answer_time();
        let result = match self.engine() {
            Engine::Sqlite(conn) => {
                sqlx::query_as::<Sqlite, FoundRow>(sql.sqlite)
                    .bind(wanted.as_fts5())
                    .bind(page.below)
                    .bind(since)
                    .bind(page.has_reaction)
                    .bind(whose)
                    .bind(page.limit)
                    .fetch_all(conn)
                    .await
            }
            Engine::Postgres(conn) => {
                // Planned for these words each time: a rare one and a common one take different ways.
                let asking = sqlx::query_as::<Postgres, FoundRow>(sql.postgres)
                    .persistent(false)
                    .bind(wanted.as_tsquery())
                    .bind(page.below)
                    .bind(since)
                    .bind(page.has_reaction)
                    .bind(whose)
                    .bind(page.limit)
                    .fetch_all(conn);
                in_time(answer_time, asking).await
            }
        };
        self.answered(result, "store::search")
    }

    /// Up to which message the room can be searched. Until the transaction ends, nobody else changes
    /// what is found in it.
    pub async fn lock_indexed_seq(&mut self, room: &RoomId) -> DbResult<i64> {
        const LOCK: Sql = Sql {
            sqlite: "SELECT indexed_seq FROM search_rooms WHERE room_id = $1",
            postgres: "SELECT indexed_seq FROM search_rooms WHERE room_id = $1 FOR UPDATE",
        };
        exec!(
            self,
            "INSERT INTO search_rooms (room_id, indexed_seq) VALUES ($1, 0) ON CONFLICT DO NOTHING",
            room
        )?;
        let locked = row!(self, (i64,), LOCK, room)?;
        Ok(locked.map_or(0, |(seq,)| seq))
    }

    pub async fn set_indexed_seq(&mut self, room: &RoomId, seq: i64) -> DbResult<()> {
        exec!(
            self,
            "UPDATE search_rooms SET indexed_seq = $2 WHERE room_id = $1",
            room,
            seq
        )?;
        Ok(())
    }

    /// Rooms in which something was said that cannot be searched yet.
    pub async fn rooms_to_index(&mut self, limit: i64) -> DbResult<Vec<RoomId>> {
        let found = rows!(
            self,
            RoomIdRow,
            "SELECT r.room_id FROM rooms r LEFT JOIN search_rooms s ON s.room_id = r.room_id \
             WHERE r.last_seq > COALESCE(s.indexed_seq, 0) LIMIT $1",
            limit
        )?;
        Ok(ids(found))
    }

    /// Makes these messages searchable. Oldest first is cheapest.
    pub async fn index_messages(&mut self, messages: &[SearchableMessage]) -> DbResult<()> {
        if messages.is_empty() {
            return Ok(());
        }
        if let Self::Postgres(_) | Self::PostgresTx(_) = self {
            let rows: Vec<_> = messages
                .iter()
                .map(|m| (&m.room_id, m.seq, sort_key_of(m), m.terms.as_tsvector()))
                .collect();
            exec!(
                self,
                Sql {
                    sqlite: "SELECT 1",
                    postgres: "INSERT INTO search_messages (room_id, seq, place, terms) \
                         SELECT v ->> 0, (v ->> 1)::bigint, (v ->> 2)::bigint, (v ->> 3)::tsvector \
                         FROM jsonb_array_elements($1::jsonb) AS v ON CONFLICT DO NOTHING",
                },
                json(&rows)
            )?;
            return Ok(());
        }
        // Within a second, one id after the other.
        let mut in_second = HashMap::new();
        let mut rows = Vec::with_capacity(messages.len());
        for m in messages {
            let place = first_sort_key(m.created_at);
            let before: &mut i64 = in_second.entry(place).or_default();
            rows.push((&m.room_id, m.seq, place, *before, m.terms.as_text()));
            *before += 1;
        }
        let added = rows!(
            self,
            (i64,),
            "INSERT INTO search_messages (id, room_id, seq, terms) \
             SELECT COALESCE((SELECT MAX(s.id) + 1 FROM search_messages s WHERE s.id >= j.value ->> 2 \
             AND s.id < (j.value ->> 2) + 1048576), j.value ->> 2) + (j.value ->> 3), \
             j.value ->> 0, j.value ->> 1, j.value ->> 4 FROM json_each($1) AS j WHERE TRUE \
             ON CONFLICT (room_id, seq) DO NOTHING RETURNING id",
            json(&rows)
        )?;
        exec!(
            self,
            "INSERT INTO search_words (rowid, terms) SELECT id, terms FROM search_messages \
             WHERE id IN (SELECT value FROM json_each($1))",
            json(&added.iter().map(|(id,)| id).collect::<Vec<_>>())
        )?;
        Ok(())
    }

    /// Takes a message out of the index: from now on nobody finds it.
    pub async fn unindex_message(&mut self, room: &RoomId, seq: i64) -> DbResult<()> {
        if let Self::Sqlite(_) | Self::SqliteTx(..) = self {
            // FTS5 wants to know what it indexed.
            exec!(
                self,
                "INSERT INTO search_words (search_words, rowid, terms) \
                 SELECT 'delete', id, terms FROM search_messages WHERE room_id = $1 AND seq = $2",
                room,
                seq
            )?;
        }
        exec!(
            self,
            "DELETE FROM search_messages WHERE room_id = $1 AND seq = $2",
            room,
            seq
        )?;
        Ok(())
    }
}

/// On PostgreSQL sort keys need not be unique; it is enough that two seldom share one.
fn sort_key_of(message: &SearchableMessage) -> i64 {
    let mut hasher = DefaultHasher::new();
    (message.room_id.as_str(), message.seq).hash(&mut hasher);
    let within = i64::try_from(hasher.finish() % (1 << 20)).unwrap_or(0);
    first_sort_key(message.created_at) + within
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phrase(words: &[&str], is_prefix: bool) -> Phrase {
        Phrase {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            is_prefix,
        }
    }

    #[test]
    fn what_is_searched_for_is_never_an_operator() {
        let wanted = Expression {
            phrases: vec![phrase(&["a\" OR b"], false), phrase(&["it's", "x\\"], true)],
            marks: vec!["/is_agent".into()],
            any_of: vec!["/in_rm_a".into(), "/in_rm_b".into()],
        };
        assert_eq!(
            wanted.as_fts5(),
            r#""a OR b" AND "it's x\" * AND "/is_agent" AND ("/in_rm_a" OR "/in_rm_b")"#
        );
        assert_eq!(
            wanted.as_tsquery(),
            r#"('a" OR b') & ('it''s' <-> 'x\\':*) & '/is_agent' & ('/in_rm_a' | '/in_rm_b')"#
        );
    }

    #[test]
    fn a_word_has_all_its_positions() {
        let terms = Terms {
            words: ["to", "be", "to"].map(str::to_owned).into(),
            marks: vec!["/is_agent".into()],
        };
        assert_eq!(terms.as_text(), "to be to /is_agent");
        assert_eq!(terms.as_tsvector(), "'be':2 'to':1,3 '/is_agent'");
    }
}
