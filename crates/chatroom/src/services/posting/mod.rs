//! Posting. Posts that arrive together share one transaction, and so one write to the disk.
//!
//! One task takes what is waiting, loads what it depends on, lets [`rules`] decide, writes,
//! commits, publishes, and answers. While it does, the next group gathers.

pub mod mentions;
pub mod rules;

use super::wire;
use crate::{
    clock::Now,
    config::Limits,
    error::{Error, Result},
    events::{Bus, Commit, Hub, message_frame},
    metrics::Metrics,
    store::{
        Db, DbError,
        db::GroupTurn,
        group::{Group, NewMessage},
    },
};
use bytes::BytesMut;
use protocol::{Cursor, Posted, Via};
use rules::{Decided, Known, KnownRoom, Post};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
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
}

impl Poster {
    /// Posts a message. When this returns, it is on the disk and on its way to the readers.
    pub async fn post(&self, post: Post) -> Result<Posted> {
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
        // On SQLite it waits for the disk itself, so it needs a thread to itself.
        let blocks = self.db.is_sqlite();
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
        (Poster { queue }, writing)
    }
}

struct Running {
    writer: Writer,
    known: Known,
}

/// What became of a group: an answer for each post, and what to tell the readers.
type Outcome = (Vec<Result<Posted>>, Vec<Commit>);

impl Running {
    async fn run(mut self, mut inbox: mpsc::Receiver<(Post, Answer)>) {
        let mut waiting = Vec::with_capacity(GROUP);
        while inbox.recv_many(&mut waiting, GROUP).await > 0 {
            let (posts, answers): (Vec<Post>, Vec<Answer>) = waiting.drain(..).unzip();
            let (results, commits) = match self.write_group(&posts).await {
                Ok(outcome) => outcome,
                Err(error) => {
                    let error = Error::from(error);
                    let all = posts.iter().map(|_| Err(error.clone())).collect();
                    (all, Vec::new())
                }
            };
            for (answer, result) in answers.into_iter().zip(results) {
                // Whoever has hung up meanwhile finds the message in the room.
                let _ = answer.send(result);
            }
            for commit in commits {
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
        let (mut results, mut commits) = (Vec::with_capacity(posts.len()), Vec::new());
        for post in posts {
            match self.try_group(std::slice::from_ref(post)).await {
                Ok((result, commit)) => {
                    results.extend(result);
                    commits.extend(commit);
                }
                Err(error) => results.push(Err(error.into())),
            }
        }
        Ok((results, commits))
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
        self.load(&mut turn, posts, alone).await?;
        let heads: HashMap<&str, Cursor> = posts
            .iter()
            .filter_map(|post| {
                Some((
                    post.room.as_str(),
                    self.known.rooms.get(post.room.as_str())?.row.head(),
                ))
            })
            .collect();
        let decided = rules::decide(posts, &mut self.known, &self.writer.limits, alone, now);
        if decided.messages.is_empty() {
            return Ok((decided.answers, Vec::new()));
        }
        turn.write(&self.group(&decided)).await?;
        self.writer.metrics.committed(decided.messages.len());
        self.writer.traffic.add(decided.messages.len());
        let commits = commits(&decided.messages, &self.known, &heads);
        Ok((decided.answers, commits))
    }

    /// Asks the store for what the group depends on and is not known yet.
    async fn load(
        &mut self,
        turn: &mut GroupTurn,
        posts: &[Post],
        alone: bool,
    ) -> Result<(), DbError> {
        let known = &mut self.known;
        let rooms = unique(
            posts
                .iter()
                .map(|p| p.room.as_str())
                .filter(|room| !known.rooms.contains_key(*room)),
        );
        if !rooms.is_empty() {
            for row in turn.conn().await?.lock_rooms(&rooms).await? {
                let room = KnownRoom {
                    row,
                    authors: HashMap::new(),
                    names: None,
                };
                known.rooms.insert(room.row.room_id.clone(), room);
            }
        }
        let pairs = unique(posts.iter().filter_map(|post| {
            let (room, user) = (known.rooms.get(post.room.as_str())?, post.user()?);
            (!room.authors.contains_key(user)).then_some((post.room.as_str(), user))
        }));
        if !pairs.is_empty() {
            for row in turn.conn().await?.authors(&pairs).await? {
                if let Some(room) = known.rooms.get_mut(&row.room_id) {
                    room.authors.insert(row.user_id.clone(), row);
                }
            }
        }
        let jtis = unique(
            posts
                .iter()
                .filter_map(Post::jti)
                .filter(|jti| !known.keys.contains_key(*jti)),
        );
        if !jtis.is_empty() {
            for row in turn.conn().await?.posting_keys(&jtis).await? {
                known.keys.insert(row.jti.clone(), row);
            }
        }
        let parents = unique(
            posts
                .iter()
                .filter_map(|post| Some((post.room.as_str(), post.reply_to_seq?))),
        );
        if !parents.is_empty() {
            for (room, seq, depth) in turn.conn().await?.depths(&parents).await? {
                known.depths.insert((room, seq), depth);
            }
        }
        let keyed = unique(
            posts
                .iter()
                .filter_map(|p| Some((p.room.as_str(), p.user()?, p.client_key.as_deref()?))),
        );
        if !keyed.is_empty() {
            for row in turn.conn().await?.prior_posts(&keyed).await? {
                let at = (
                    row.room_id.clone(),
                    row.sender_user_id.clone(),
                    row.client_key.clone(),
                );
                known.prior.insert(at, row);
            }
        }
        self.load_names(turn, posts).await?;
        self.load_windows(turn, posts, alone).await
    }

    async fn load_names(&mut self, turn: &mut GroupTurn, posts: &[Post]) -> Result<(), DbError> {
        let rooms = &mut self.known.rooms;
        let mentioning = unique(
            posts
                .iter()
                .filter(|p| p.content.as_str().contains('@'))
                .filter_map(|post| {
                    rooms
                        .get(post.room.as_str())
                        .filter(|room| room.names.is_none())
                        .map(|_| post.room.as_str())
                }),
        );
        if mentioning.is_empty() {
            return Ok(());
        }
        for room in &mentioning {
            if let Some(room) = rooms.get_mut(*room) {
                room.names = Some(Vec::new());
            }
        }
        for row in turn.conn().await?.names_in(&mentioning).await? {
            if let Some(names) = rooms
                .get_mut(&row.room_id)
                .and_then(|room| room.names.as_mut())
            {
                names.push(row);
            }
        }
        Ok(())
    }

    async fn load_windows(
        &mut self,
        turn: &mut GroupTurn,
        posts: &[Post],
        alone: bool,
    ) -> Result<(), DbError> {
        let known = &mut self.known;
        let stored: Vec<_> = posts
            .iter()
            .filter_map(|post| {
                let key = post.jti().and_then(|jti| known.keys.get(jti));
                let web = key.is_some_and(|key| key.posts_as == Via::Web.as_str());
                // What agents are counted by is in memory where nobody else counts.
                (web || !alone).then(|| {
                    post.limits(
                        if web { Via::Web } else { Via::Agent },
                        &self.writer.limits,
                        alone,
                    )
                })
            })
            .flatten()
            .filter(|limit| limit.most > 0 && !known.windows.has(&limit.bucket))
            .collect();
        let buckets = unique(stored.iter().map(|limit| limit.bucket.as_str()));
        if !buckets.is_empty() {
            let rows = turn.conn().await?.windows(&buckets).await?;
            known.windows.add(rows);
        }
        Ok(())
    }

    fn group<'a>(&'a self, decided: &'a Decided) -> Group<'a> {
        let mut last_seqs: BTreeMap<&str, i64> = BTreeMap::new();
        for message in &decided.messages {
            last_seqs.insert(&message.room_id, message.seq);
        }
        Group {
            messages: &decided.messages,
            last_seqs: last_seqs.into_iter().collect(),
            mentions: &decided.mentions,
            names: &decided.names,
            windows: self.known.windows.changed(),
        }
    }
}

/// Messages of this node that `/health` counts: written to the store now and then, not with each.
#[derive(Debug, Default)]
pub struct Traffic(AtomicI64);

impl Traffic {
    /// So many messages were posted.
    pub fn add(&self, messages: usize) {
        self.0.fetch_add(
            i64::try_from(messages).unwrap_or(i64::MAX),
            Ordering::Relaxed,
        );
    }

    /// Those not written yet.
    pub fn pending(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Writes them.
    pub async fn save(&self, db: &Db, node: &str, now: Now) -> Result<(), DbError> {
        let messages = self.0.swap(0, Ordering::Relaxed);
        if messages == 0 {
            return Ok(());
        }
        let saved = async {
            let mut tx = db.begin().await?;
            tx.add_traffic(now.minutes(), node, messages).await?;
            tx.commit().await
        };
        saved.await.inspect_err(|_| {
            self.0.fetch_add(messages, Ordering::Relaxed);
        })
    }
}

/// What to publish: one commit for each room, its frames encoded once for all readers.
fn commits(messages: &[NewMessage], known: &Known, heads: &HashMap<&str, Cursor>) -> Vec<Commit> {
    let mut frames: BTreeMap<&str, (Cursor, BytesMut)> = BTreeMap::new();
    for message in messages {
        let version = known
            .rooms
            .get(&message.room_id)
            .map_or(0, |room| room.row.rules_version);
        let (head, buffer) = frames.entry(&message.room_id).or_default();
        *head = Cursor::at(message.seq);
        message_frame(buffer, &wire::new_message(message, version));
    }
    frames
        .into_iter()
        .map(|(room, (head, buffer))| Commit {
            room_id: room.to_owned(),
            from: heads.get(room).copied().unwrap_or_default(),
            head,
            frames: buffer.freeze(),
        })
        .collect()
}

/// Whether the database undid the transaction only because another was in its way.
fn wants_retry(error: &DbError) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    matches!(code.as_deref(), Some("40001" | "40P01"))
}

fn unique<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}
