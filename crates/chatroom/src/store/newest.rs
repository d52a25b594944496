//! The newest messages, looked through one by one: for words that many of them hold. The index would have
//! to put all of their matches in order first, which takes the longer the more there are.

use super::{
    Conn, DbResult,
    db::{Engine, Sql},
    postgres_tx::in_time,
    search::{Expression, FoundRow, Where, first_sort_key},
};
use sqlx::{Postgres, Sqlite};

/// So many words, phrases and marks can be looked for in one go.
const MOST_NEEDLES: usize = 6;

macro_rules! newest {
    ($sqlite_from:literal, $sqlite_filter:literal, $sqlite_order:literal, $postgres_from:literal) => {
        Sql {
            sqlite: concat!(
                "SELECT later.id AS place, x.room_id, r.name AS room_name, x.seq, x.sender_user_id, \
                 x.sender_user_name, x.via, x.content, x.created_at FROM ",
                $sqlite_from,
                " CROSS JOIN messages x ON x.room_id = later.room_id AND x.seq = later.seq \
                 CROSS JOIN rooms r ON r.room_id = later.room_id \
                 WHERE later.id >= $2 AND x.deleted = FALSE \
                 AND INSTR(' ' || later.terms || ' ', $4) > 0 AND INSTR(' ' || later.terms || ' ', $5) > 0 \
                 AND INSTR(' ' || later.terms || ' ', $6) > 0 AND INSTR(' ' || later.terms || ' ', $7) > 0 \
                 AND INSTR(' ' || later.terms || ' ', $8) > 0 AND INSTR(' ' || later.terms || ' ', $9) > 0 ",
                $sqlite_filter,
                " ORDER BY ",
                $sqlite_order,
                " DESC LIMIT $1"
            ),
            postgres: concat!(
                "SELECT later.place, x.room_id, r.name AS room_name, x.seq, x.sender_user_id, \
                 x.sender_user_name, x.via, x.content, x.created_at FROM ",
                $postgres_from,
                " JOIN messages x ON x.room_id = later.room_id AND x.seq = later.seq \
                 JOIN rooms r ON r.room_id = later.room_id \
                 WHERE later.terms @@ CAST(CAST($4 AS TEXT) AS TSQUERY) AND later.place >= $2 \
                 AND x.deleted = FALSE ORDER BY later.place DESC LIMIT $1"
            ),
        }
    };
}

const IN_ROOM: Sql = newest!(
    "search_messages later",
    "AND later.room_id = $3 AND later.seq > (SELECT indexed_seq FROM search_rooms WHERE room_id = $3) - $10",
    "later.seq",
    "(SELECT room_id, seq, place, terms FROM search_messages WHERE room_id = $3 \
     ORDER BY seq DESC LIMIT $5) AS later"
);
const IN_ROOMS_OF: Sql = newest!(
    "(SELECT id, room_id, seq, terms FROM search_messages WHERE id < 9223372036854775807 \
     ORDER BY id DESC LIMIT $10) AS later \
     CROSS JOIN room_members m ON m.room_id = later.room_id AND m.user_id = $3",
    "",
    "later.id",
    "(SELECT room_id, seq, place, terms FROM search_messages ORDER BY place DESC LIMIT $5) AS later \
     JOIN room_members m ON m.room_id = later.room_id AND m.user_id = $3"
);

impl Conn {
    /// The newest messages that fit, newest first, of the last `look_through`. Nothing where the index needs
    /// no help.
    pub async fn newest_messages(
        &mut self,
        wanted: &Expression,
        place: Where<'_>,
        since: i64,
        look_through: i64,
        limit: i64,
    ) -> DbResult<Option<Vec<FoundRow>>> {
        let needles = needles(wanted);
        // FTS5 walks the matches of whole words from the newest on by itself.
        let is_slow = matches!(self, Self::Postgres(_) | Self::PostgresTx(_))
            || wanted.phrases.iter().any(|phrase| phrase.is_prefix);
        let Some(needles) = needles.filter(|_| is_slow) else {
            return Ok(None);
        };
        let (sql, whose) = match place {
            Where::Room(room) => (IN_ROOM.noted(), room.as_str()),
            Where::RoomsOf(user) => (IN_ROOMS_OF.noted(), user.as_str()),
        };
        let since = first_sort_key(since);
        let answer_time = self.answer_time();
        let result = match self.engine() {
            Engine::Sqlite(conn) => {
                let asking = sqlx::query_as::<Sqlite, FoundRow>(sql.sqlite)
                    .bind(limit)
                    .bind(since)
                    .bind(whose);
                let asking = needles
                    .into_iter()
                    .fold(asking, |asking, one| asking.bind(one));
                asking.bind(look_through).fetch_all(conn).await
            }
            Engine::Postgres(conn) => {
                let asking = sqlx::query_as::<Postgres, FoundRow>(sql.postgres)
                    .bind(limit)
                    .bind(since)
                    .bind(whose)
                    .bind(wanted.as_tsquery())
                    .bind(look_through)
                    .fetch_all(conn);
                in_time(answer_time, asking).await
            }
        };
        self.answered(result, "store::newest").map(Some)
    }
}

/// What a message's terms must hold, as they stand there with spaces between. The rooms are known otherwise.
fn needles(wanted: &Expression) -> Option<[String; MOST_NEEDLES]> {
    let phrases = wanted.phrases.iter().map(|phrase| {
        let end = if phrase.is_prefix { "" } else { " " };
        format!(" {}{end}", phrase.words.join(" "))
    });
    let marks = wanted.marks.iter().map(|mark| format!(" {mark} "));
    let mut all: Vec<String> = phrases.chain(marks).collect();
    if all.len() > MOST_NEEDLES {
        return None;
    }
    // Every text holds an empty one.
    all.resize(MOST_NEEDLES, String::new());
    all.try_into().ok()
}
