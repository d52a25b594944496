//! The one writer: posts that wait together are committed together.

use std::path::Path;
use std::thread;

use axum::body::Bytes;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::hub::Hub;

/// How many posts may wait, and so the most that one commit can hold.
const QUEUE: usize = 1024;

struct Post {
    body: Bytes,
    committed: oneshot::Sender<i64>,
}

/// The way to the writer's thread.
#[derive(Clone)]
pub struct Writer(mpsc::Sender<Post>);

impl Writer {
    /// Opens the database and starts the thread that alone writes to it.
    pub fn start(database: &Path, hub: Hub) -> rusqlite::Result<Self> {
        let connection = open(database)?;
        let (sender, posts) = mpsc::channel(QUEUE);
        thread::spawn(move || {
            if let Err(error) = run(&connection, posts, &hub) {
                eprintln!("ceiling: the writer stopped: {error}");
            }
        });
        Ok(Self(sender))
    }

    /// Waits until the body is on the disk and gives its number; nothing if the writer has failed.
    pub async fn commit(&self, body: Bytes) -> Option<i64> {
        let (committed, done) = oneshot::channel();
        self.0.send(Post { body, committed }).await.ok()?;
        done.await.ok()
    }
}

fn open(database: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(database)?;
    connection.execute_batch(
        "PRAGMA locking_mode = EXCLUSIVE;
         PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         CREATE TABLE IF NOT EXISTS messages (seq INTEGER PRIMARY KEY, body BLOB NOT NULL);",
    )?;
    Ok(connection)
}

fn run(
    connection: &Connection,
    mut posts: mpsc::Receiver<Post>,
    hub: &Hub,
) -> rusqlite::Result<()> {
    let mut seq: i64 =
        connection.query_row("SELECT COALESCE(MAX(seq), 0) FROM messages", [], |row| {
            row.get(0)
        })?;
    let mut begin = connection.prepare("BEGIN IMMEDIATE")?;
    let mut insert = connection.prepare("INSERT INTO messages (seq, body) VALUES (?1, ?2)")?;
    let mut commit = connection.prepare("COMMIT")?;
    let mut group = Vec::with_capacity(QUEUE);
    while posts.blocking_recv_many(&mut group, QUEUE) > 0 {
        let first = seq + 1;
        let mut frames = Vec::with_capacity(group.len() * 256);
        begin.execute([])?;
        for post in &group {
            seq += 1;
            insert.execute((seq, &post.body[..]))?;
            frame(&mut frames, seq, &post.body);
        }
        commit.execute([])?;
        for (seq, post) in (first..).zip(group.drain(..)) {
            // A poster that went away does not wait for its number.
            let _ = post.committed.send(seq);
        }
        hub.publish(&frames.into());
    }
    Ok(())
}

/// Appends one SSE frame; the body is JSON on one line and goes out as it came in.
fn frame(frames: &mut Vec<u8>, seq: i64, body: &[u8]) {
    let seq = seq.to_string();
    for part in [
        b"id: ",
        seq.as_bytes(),
        b"\nevent: message\ndata: {\"seq\":",
        seq.as_bytes(),
        b",\"message\":",
        body,
        b"}\n\n",
    ] {
        frames.extend_from_slice(part);
    }
}
