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
