//! Fills a room faster than posting could: straight into the server's SQLite file while the server
//! is stopped. This is the one place outside the server that knows its tables.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::Result;
use crate::content::BYTES;

/// How every SQLite file begins.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// As if the one room's members had posted by turns, up to this many messages in all.
const FILL: &str = "
    CREATE TEMP TABLE bench AS
        SELECT rooms.room_id, last_seq, created_at, user_id, user_name FROM rooms
        JOIN room_members USING (room_id)
        WHERE rooms.name = 'bench' AND role <> 'owner' LIMIT 1;
    INSERT INTO messages (room_id, seq, sender_user_id, sender_user_name, via, type, content,
            reply_chain_depth, created_at)
        WITH RECURSIVE posts (seq) AS (
            SELECT last_seq + 1 FROM bench
            UNION ALL SELECT seq + 1 FROM posts WHERE seq < (SELECT messages FROM temp.target))
        SELECT room_id, seq, user_id, user_name, 'agent', 'chat', content, 0, created_at
        FROM posts, bench, temp.target;
    UPDATE rooms SET last_seq = (SELECT messages FROM temp.target), last_sub = 0
        WHERE room_id = (SELECT room_id FROM bench);";

/// Fills the bench's room in this data folder up to so many messages.
pub fn fill(data: &Path, messages: u64) -> Result<()> {
    let connection = Connection::open(database(data)?)?;
    connection.execute_batch(
        "PRAGMA synchronous = OFF;
         CREATE TEMP TABLE target (messages INTEGER, content TEXT);
         BEGIN",
    )?;
    connection.execute(
        "INSERT INTO temp.target VALUES (?1, ?2)",
        (i64::try_from(messages)?, "x".repeat(BYTES)),
    )?;
    connection.execute_batch(FILL)?;
    connection.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE);")?;
    let filled: i64 =
        connection.query_row("SELECT MAX(last_seq) FROM rooms", [], |row| row.get(0))?;
    if u64::try_from(filled)? != messages {
        return Err(format!("the room was filled to {filled}, not {messages}").into());
    }
    // What was written without care must be on the disk before anything is timed.
    File::open(database(data)?)?.sync_all()?;
    Ok(())
}

/// What the message with the number `seq` says: a word of all messages, of each fiftieth, of each hundredth,
/// and of each ten-thousandth, among others.
macro_rules! talk {
    ($seq:literal) => {
        concat!(
            "'word' || (",
            $seq,
            " % 50) || ' every message has some' || (",
            $seq,
            " % 100) || ' and rare' || (",
            $seq,
            " % 10000) || ' number ' || ",
            $seq,
            " || ' the quick brown fox jumps over the lazy dog'"
        )
    };
}

const TALK: &str = concat!(
    "CREATE TEMP TABLE bench AS
        SELECT rooms.room_id, last_seq, created_at, user_id, user_name FROM rooms
        JOIN room_members USING (room_id)
        WHERE rooms.name = 'bench' AND role <> 'owner' LIMIT 1;
    INSERT INTO messages (room_id, seq, sender_user_id, sender_user_name, via, type, content,
            reply_chain_depth, created_at)
        WITH RECURSIVE posts (seq) AS (
            SELECT last_seq + 1 FROM bench
            UNION ALL SELECT seq + 1 FROM posts WHERE seq < (SELECT messages FROM temp.target))
        SELECT room_id, seq, user_id, user_name, 'agent', 'chat',
            CASE WHEN seq = messages THEN 'newest' ELSE ",
    talk!("seq"),
    " END, 0, created_at - (messages - seq) / 10
        FROM posts, bench, temp.target;
    UPDATE rooms SET last_seq = (SELECT messages FROM temp.target), last_sub = 0
        WHERE room_id = (SELECT room_id FROM bench);"
);

/// Fills the bench's room in this data folder with so many messages that have words.
pub fn talk(data: &Path, messages: u64) -> Result<()> {
    let connection = Connection::open(database(data)?)?;
    connection.execute_batch(
        "PRAGMA synchronous = OFF;
         CREATE TEMP TABLE target (messages INTEGER);
         BEGIN",
    )?;
    connection.execute(
        "INSERT INTO temp.target VALUES (?1)",
        (i64::try_from(messages)?,),
    )?;
    connection.execute_batch(TALK)?;
    connection.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE);")?;
    File::open(database(data)?)?.sync_all()?;
    Ok(())
}

/// The same as PostgreSQL's SQL.
pub fn talk_in_postgres(messages: u64) -> String {
    format!(
        concat!(
            "INSERT INTO messages (room_id, seq, sender_user_id, sender_user_name, via, type, content,
                reply_chain_depth, created_at)
             SELECT b.room_id, p.seq, b.user_id, b.user_name, 'agent', 'chat',
                CASE WHEN p.seq = {messages} THEN 'newest' ELSE ",
            talk!("p.seq"),
            " END, 0, b.created_at - ({messages} - p.seq) / 10
             FROM (SELECT r.room_id, r.last_seq, r.created_at, m.user_id, m.user_name FROM rooms r
                JOIN room_members m ON m.room_id = r.room_id
                WHERE r.name = 'bench' AND m.role <> 'owner' ORDER BY r.created_at DESC LIMIT 1) b,
             LATERAL generate_series(b.last_seq + 1, {messages}) AS p(seq);
             UPDATE rooms SET last_seq = {messages}, last_sub = 0 WHERE name = 'bench'; ANALYZE messages;"
        ),
        messages = messages
    )
}

/// As if so many members of the welcome room had come by so many points in the last 29 days.
const SCORE: &str = "
    INSERT INTO room_members (room_id, user_id, user_name, member_kind, role, adapter_type, joined_at)
        WITH RECURSIVE members (n) AS (
            SELECT 0 UNION ALL SELECT n + 1 FROM members WHERE n + 1 < (SELECT users FROM temp.target))
        SELECT 'rm_welcome', printf('ext_bench_member-%08x', n), printf('member-%d', n),
            'external_agent', 'member', 'pull', unixepoch() FROM members;
    INSERT INTO reputation_events (room_id, user_id, kind, points, boost, source_user_id, source_seq,
            source_emoji, day, created_at)
        WITH RECURSIVE events (n, at) AS (
            SELECT 0, unixepoch() UNION ALL
            SELECT n + 1, unixepoch() - ((n + 1) * 7368787) % (29 * 86400) FROM events
            WHERE n + 1 < (SELECT events FROM temp.target))
        SELECT 'rm_welcome', printf('ext_bench_member-%08x', n % (SELECT users FROM temp.target)),
            'reaction_received', 3.0, 1.0, printf('ext_bench_member-%08x', n / 7919),
            n, 'x', at / 86400, at FROM events;
    INSERT INTO reputation_users (user_id, first_event_at)
        SELECT user_id, MIN(created_at) FROM reputation_events GROUP BY user_id;
    CREATE TEMP TABLE days AS
        SELECT scope, user_id, day, COUNT(*) AS events, SUM(points) AS points,
            SUM(points * created_at) AS moment
        FROM reputation_events, (SELECT 'rm_welcome' AS scope UNION ALL SELECT '*')
        GROUP BY scope, user_id, day;
    INSERT INTO reputation_starts (scope, day, user_id, events, points, moment)
        WITH RECURSIVE calendar (day) AS (
            SELECT MIN(day) FROM days
            UNION ALL SELECT day + 1 FROM calendar WHERE day < (SELECT MAX(day) FROM days)),
        runs AS (
            SELECT scope, user_id, day, LAG(day) OVER upto AS day_before,
                SUM(events) OVER upto - events AS events, SUM(points) OVER upto - points AS points,
                SUM(moment) OVER upto - moment AS moment
            FROM days WINDOW upto AS (PARTITION BY scope, user_id ORDER BY day))
        SELECT r.scope, c.day, r.user_id, r.events, r.points, r.moment FROM runs r
        JOIN calendar c ON c.day > r.day_before AND c.day <= r.day;
    INSERT INTO reputation_totals (scope, user_id, events, points, moment, last_day)
        SELECT scope, user_id, SUM(events), SUM(points), SUM(moment), MAX(day)
        FROM days GROUP BY scope, user_id;";

/// Gives so many members of the welcome room so many events.
pub fn score(data: &Path, events: u64, users: u64) -> Result<()> {
    let connection = Connection::open(database(data)?)?;
    connection.execute_batch(
        "PRAGMA synchronous = OFF;
         CREATE TEMP TABLE target (events INTEGER, users INTEGER);
         BEGIN",
    )?;
    connection.execute(
        "INSERT INTO temp.target VALUES (?1, ?2)",
        (i64::try_from(events)?, i64::try_from(users)?),
    )?;
    connection.execute_batch(SCORE)?;
    connection.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE);")?;
    File::open(database(data)?)?.sync_all()?;
    Ok(())
}

/// The SQLite file in a data folder.
fn database(data: &Path) -> Result<PathBuf> {
    for entry in std::fs::read_dir(data)? {
        let path = entry?.path();
        let mut begin = [0; MAGIC.len()];
        if path.is_file() && File::open(&path)?.read_exact(&mut begin).is_ok() && begin == *MAGIC {
            return Ok(path);
        }
    }
    Err(format!("no SQLite file in {}", data.display()).into())
}
