//! Posting. Posts that arrive together share one transaction, and so one write to the disk.
//!
//! One task takes what is waiting, loads what it depends on, lets [`rules`] decide, writes,
//! commits, answers, and publishes. While it does, the next group gathers.

pub mod exchanges;
mod load;
pub mod mentions;
pub mod rules;
#[cfg(test)]
mod rules_tests;
mod traffic;

pub use traffic::Traffic;

use super::wire;
use crate::{
    clock::Now,
    config::Limits,
    error::{Error, Result},
    events::{Bus, Commit, Hub, message_frame},
    metrics::Metrics,
    store::{
        Db, DbError,
        group::{Group, NewMessage},
    },
};
use bytes::BytesMut;
use protocol::{Cursor, Posted};
use rules::{Decided, Known, Post};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tokio::sync::{mpsc, oneshot};

/// Posts that may wait; more have to come back later.
const QUEUE: usize = 4096;
/// Posts that share a transaction, at the most.
const GROUP: usize = 256;
/// Times that a group is tried again when the database asks for it.
const TRIES: usize = 5;

type Answer = oneshot::Sender<Result<Posted>>;

/// Hands posts to the task that writes them.
#[derive(Clone)]
pub struct Poster {
    queue: mpsc::Sender<(Post, Answer)>,
    db: Db,
}

impl Poster {
    /// Posts a message. When this returns, it is on the disk and on its way to the readers.
    pub async fn post(&self, mut post: Post) -> Result<Posted> {
        // Looked up before it is this post's turn, so that nobody waits for it.
        if post.user().is_some() && post.content.as_str().contains('@') {
            let mut conn = self.db.read().await?;
            let (room, text) = (post.room.as_str(), post.content.as_str());
            post.mentions = mentions::mentioned(&mut conn, room, text).await?;
        }
        let (answer, answered) = oneshot::channel();
        self.queue
            .try_send((post, answer))
            .map_err(|full| match full {
                mpsc::error::TrySendError::Full(_) => {
                    Error::unavailable("Too many messages are waiting to be written. Try again")
                }
                mpsc::error::TrySendError::Closed(_) => {
                    Error::unavailable("The server is shutting down")
                }
            })?;
        answered
            .await
            .unwrap_or_else(|_| Err(Error::unavailable("The server is shutting down")))
    }
}

/// What the writing task needs.
pub struct Writer {
    pub db: Db,
    pub hub: Arc<Hub>,
    pub bus: Option<Arc<Bus>>,
    pub limits: Limits,
    pub metrics: Arc<Metrics>,
    pub traffic: Arc<Traffic>,
}

impl Writer {
    /// Starts it. It ends, its queue worked off, once every [`Poster`] is gone.
    pub fn start(self) -> (Poster, tokio::task::JoinHandle<()>) {
        let (queue, inbox) = mpsc::channel(QUEUE);
        let db = self.db.clone();
        // On SQLite it waits for the disk itself, so it needs a thread to itself.
        let blocks = db.is_sqlite();
        let running = Running {
            writer: self,
            known: Known::default(),
        }
        .run(inbox);
        let writing = if blocks {
            let runtime = tokio::runtime::Handle::current();
            tokio::task::spawn_blocking(move || runtime.block_on(running))
        } else {
            tokio::spawn(running)
        };
        (Poster { queue, db }, writing)
    }
}

struct Running {
    writer: Writer,
    known: Known,
}

/// What became of a group.
#[derive(Default)]
struct Outcome {
    /// One for each post.
    answers: Vec<Result<Posted>>,
    written: Vec<Written>,
}

/// Messages that are on the disk, and what is to be told in their rooms.
struct Written {
    messages: Vec<NewMessage>,
    rooms: BTreeMap<String, News>,
}

/// What a room's readers are told of a group.
struct News {
    from: Cursor,
    head: Cursor,
    rules_version: i64,
    frames: BytesMut,
}

impl Running {
    async fn run(mut self, mut inbox: mpsc::Receiver<(Post, Answer)>) {
        let mut waiting = Vec::with_capacity(GROUP);
        let (mut posts, mut askers) = (Vec::with_capacity(GROUP), Vec::with_capacity(GROUP));
        while inbox.recv_many(&mut waiting, GROUP).await > 0 {
            for (post, asker) in waiting.drain(..) {
                posts.push(post);
                askers.push(asker);
            }
            let outcome = self.write_group(&posts).await.unwrap_or_else(|error| {
                let error = Error::from(error);
                Outcome {
                    answers: posts.iter().map(|_| Err(error.clone())).collect(),
                    written: Vec::new(),
                }
            });
            posts.clear();
            for (asker, answer) in askers.drain(..).zip(outcome.answers) {
                // Whoever has hung up meanwhile finds the message in the room.
                let _ = asker.send(answer);
            }
            for commit in outcome.written.into_iter().flat_map(commits) {
                self.publish(commit);
            }
        }
    }

    fn publish(&self, commit: Commit) {
        if let Some(bus) = &self.writer.bus {
            bus.committed(&commit.room_id, commit.head);
        }
        self.writer.hub.publish(commit);
    }

    async fn write_group(&mut self, posts: &[Post]) -> Result<Outcome, DbError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.try_group(posts).await {
                Err(error) if tries < TRIES && wants_retry(&error) => {}
                Err(DbError::Database(_) | DbError::AnyDriverError(_)) if posts.len() > 1 => break,
                other => return other,
            }
        }
        // What the database refuses of one post must not cost the others theirs.
        let mut outcome = Outcome::default();
        for post in posts {
            match self.try_group(std::slice::from_ref(post)).await {
                Ok(one) => {
                    outcome.answers.extend(one.answers);
                    outcome.written.extend(one.written);
                }
                Err(error) => outcome.answers.push(Err(error.into())),
            }
        }
        Ok(outcome)
    }

    async fn try_group(&mut self, posts: &[Post]) -> Result<Outcome, DbError> {
        let tried = self.decide_and_write(posts).await;
        if tried.is_err() {
            // What was decided did not happen.
            self.known = Known::default();
        }
        tried
    }

    async fn decide_and_write(&mut self, posts: &[Post]) -> Result<Outcome, DbError> {
        let now = Now::get();
        let mut turn = self.writer.db.begin_group().await?;
        let alone = turn.writes_by_others().is_some();
        self.known.begin_group(turn.writes_by_others(), now);
        let limits = &self.writer.limits;
        load::load(&mut self.known, &mut turn, posts, limits, alone).await?;
        let rooms = self.rooms_before(posts);
        let decided = rules::decide(posts, &mut self.known, limits, alone, now);
        if decided.messages.is_empty() {
            return Ok(Outcome {
                answers: decided.answers,
                written: Vec::new(),
            });
        }
        turn.write(&self.group(&decided)).await?;
        self.writer.metrics.committed(decided.messages.len());
        self.writer.traffic.add(decided.messages.len());
        let written = Written {
            messages: decided.messages,
            rooms,
        };
        Ok(Outcome {
            answers: decided.answers,
            written: vec![written],
        })
    }

    /// The rooms of a group before it is decided, with nothing to tell yet.
    fn rooms_before(&self, posts: &[Post]) -> BTreeMap<String, News> {
        let mut rooms = BTreeMap::new();
        for post in posts {
            let name = post.room.as_str();
            if !rooms.contains_key(name)
                && let Some(room) = self.known.rooms.get(name)
            {
                let nothing = News {
                    from: room.row.head(),
                    head: room.row.head(),
                    rules_version: room.row.rules_version,
                    frames: BytesMut::new(),
                };
                rooms.insert(name.to_owned(), nothing);
            }
        }
        rooms
    }

    fn group<'a>(&'a self, decided: &'a Decided) -> Group<'a> {
        let rooms: BTreeSet<&str> = decided
            .messages
            .iter()
            .map(|m| m.room_id.as_str())
            .collect();
        let rooms = rooms
            .into_iter()
            .filter_map(|room| self.known.rooms.get(room));
        Group {
            messages: &decided.messages,
            rooms: rooms.map(|room| &room.row).collect(),
            mentions: &decided.mentions,
            addressed: decided.addressed(),
            names: &decided.names,
            windows: self.known.windows.changed(),
        }
    }
}

/// What to publish: one commit for each room, its frames encoded once for all readers.
fn commits(written: Written) -> impl Iterator<Item = Commit> {
    let Written {
        messages,
        mut rooms,
    } = written;
    for message in messages {
        if let Some(news) = rooms.get_mut(&message.room_id) {
            news.head = Cursor::at(message.seq);
            let message = wire::new_message(message, news.rules_version);
            message_frame(&mut news.frames, &message);
        }
    }
    rooms
        .into_iter()
        .filter(|(_, news)| !news.frames.is_empty())
        .map(|(room_id, news)| Commit {
            room_id,
            from: news.from,
            head: news.head,
            frames: news.frames.freeze(),
        })
}

/// Whether the database undid the transaction only because another was in its way.
fn wants_retry(error: &DbError) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    matches!(code.as_deref(), Some("40001" | "40P01"))
}
