//! Posting. Posts that arrive together share one transaction, and so one write to the disk.
//!
//! One task takes what is waiting, loads what it depends on, lets [`rules`] decide, writes,
//! commits, publishes, and answers. While it does, the next group gathers.

pub mod mentions;
pub mod rules;

use super::{limits::Windows, wire};
use crate::{
    clock::Now,
    config::Limits,
    error::{Error, Result},
    events::{Bus, Commit, Hub, message_frame},
    metrics::Metrics,
    store::{Db, DbError, Tx, posting::NewMessage},
};
use bytes::BytesMut;
use protocol::{Cursor, Posted, Via};
use rules::{Decided, Known, Post};
use std::{
    collections::{BTreeMap, HashMap},
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
    /// This node's name.
    pub node: String,
}

impl Writer {
    /// Starts the task. It ends, its queue worked off, once every [`Poster`] is gone.
    pub fn start(self) -> (Poster, tokio::task::JoinHandle<()>) {
        let (queue, inbox) = mpsc::channel(QUEUE);
        (Poster { queue }, tokio::spawn(self.run(inbox)))
    }

    async fn run(self, mut inbox: mpsc::Receiver<(Post, Answer)>) {
        let mut waiting = Vec::with_capacity(GROUP);
        while inbox.recv_many(&mut waiting, GROUP).await > 0 {
            let (posts, answers): (Vec<Post>, Vec<Answer>) = waiting.drain(..).unzip();
            let results = match self.write_group(&posts).await {
                Ok(results) => results,
                Err(error) => {
                    let error = Error::from(error);
                    posts.iter().map(|_| Err(error.clone())).collect()
                }
            };
            for (answer, result) in answers.into_iter().zip(results) {
                // Whoever has hung up meanwhile finds the message in the room.
                let _ = answer.send(result);
            }
        }
    }

    async fn write_group(&self, posts: &[Post]) -> Result<Vec<Result<Posted>>, DbError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.try_group(posts).await {
                Err(error) if tries < TRIES && wants_retry(&error) => {}
                Err(DbError::Database(_)) if posts.len() > 1 => break,
                other => return other,
            }
        }
        // What the database refuses of one post must not cost the others theirs.
        let mut results = Vec::with_capacity(posts.len());
        for post in posts {
            let alone = self.try_group(std::slice::from_ref(post)).await;
            results.push(alone.map_or_else(
                |error| Err(error.into()),
                |mut one| {
                    one.pop()
                        .unwrap_or_else(|| Err(Error::internal("a post got no answer")))
                },
            ));
        }
        Ok(results)
    }

    async fn try_group(&self, posts: &[Post]) -> Result<Vec<Result<Posted>>, DbError> {
        let now = Now::get();
        let mut tx = self.db.begin().await?;
        let mut known = self.load(&mut tx, posts).await?;
        let heads: HashMap<String, Cursor> = known
            .rooms
            .iter()
            .map(|(id, room)| (id.clone(), room.head()))
            .collect();
        let decided = rules::decide(posts, &mut known, &self.limits, now);
        if decided.messages.is_empty() {
            return Ok(decided.answers);
        }
        self.save(&mut tx, &known, &decided, now).await?;
        tx.commit().await?;
        self.metrics.committed(decided.messages.len());
        for commit in commits(&decided.messages, &known, &heads) {
            if let Some(bus) = &self.bus {
                bus.committed(&commit.room_id, commit.head);
            }
            self.hub.publish(commit);
        }
        Ok(decided.answers)
    }

    async fn load(&self, tx: &mut Tx, posts: &[Post]) -> Result<Known, DbError> {
        let rooms = unique(posts.iter().map(|post| post.room.as_str()));
        let pairs = unique(
            posts
                .iter()
                .filter_map(|post| Some((post.room.as_str(), post.user()?))),
        );
        let jtis = unique(posts.iter().filter_map(Post::jti));
        let parents = unique(
            posts
                .iter()
                .filter_map(|post| Some((post.room.as_str(), post.reply_to_seq?))),
        );
        let keyed = unique(posts.iter().filter_map(|post| {
            Some((
                post.room.as_str(),
                post.user()?,
                post.client_key.as_deref()?,
            ))
        }));
        let mentioning = unique(
            posts
                .iter()
                .filter(|p| p.content.as_str().contains('@'))
                .map(|p| p.room.as_str()),
        );

        let mut known = Known {
            rooms: tx
                .lock_rooms(&rooms)
                .await?
                .into_iter()
                .map(|row| (row.room_id.clone(), row))
                .collect(),
            authors: tx
                .authors(&pairs)
                .await?
                .into_iter()
                .map(|row| ((row.room_id.clone(), row.user_id.clone()), row))
                .collect(),
            keys: tx
                .posting_keys(&jtis)
                .await?
                .into_iter()
                .map(|row| (row.jti.clone(), row))
                .collect(),
            depths: tx
                .depths(&parents)
                .await?
                .into_iter()
                .map(|(room, seq, depth)| ((room, seq), depth))
                .collect(),
            prior: tx
                .prior_posts(&keyed)
                .await?
                .into_iter()
                .map(|row| {
                    (
                        (
                            row.room_id.clone(),
                            row.sender_user_id.clone(),
                            row.client_key.clone(),
                        ),
                        row,
                    )
                })
                .collect(),
            ..Known::default()
        };
        if !mentioning.is_empty() {
            for row in tx.names_in(&mentioning).await? {
                known
                    .names
                    .entry(row.room_id.clone())
                    .or_default()
                    .push(row);
            }
        }
        known.windows = self.load_windows(tx, posts, &known).await?;
        Ok(known)
    }

    async fn load_windows(
        &self,
        tx: &mut Tx,
        posts: &[Post],
        known: &Known,
    ) -> Result<Windows, DbError> {
        let limits: Vec<_> = posts
            .iter()
            .flat_map(|post| {
                let web = post
                    .jti()
                    .and_then(|jti| known.keys.get(jti))
                    .is_some_and(|key| key.posts_as == Via::Web.as_str());
                post.limits(if web { Via::Web } else { Via::Agent }, &self.limits)
            })
            .filter(|limit| limit.most > 0)
            .collect();
        let buckets = unique(limits.iter().map(|limit| limit.bucket.as_str()));
        Ok(Windows::new(tx.windows(&buckets).await?))
    }

    async fn save(
        &self,
        tx: &mut Tx,
        known: &Known,
        decided: &Decided,
        now: Now,
    ) -> Result<(), DbError> {
        let mut last_seqs: BTreeMap<&str, i64> = BTreeMap::new();
        let mut authors: BTreeMap<(&str, &str), (i64, Option<&str>)> = BTreeMap::new();
        for message in &decided.messages {
            last_seqs.insert(&message.room_id, message.seq);
            authors.insert(
                (&message.room_id, &message.sender_user_id),
                (message.seq, message.sender_user_name.as_deref()),
            );
        }
        let last_seqs: Vec<_> = last_seqs.into_iter().collect();
        let authors: Vec<_> = authors
            .into_iter()
            .map(|((room, user), (seq, name))| (room, user, seq, name))
            .collect();
        let mentions: Vec<_> = decided
            .mentions
            .iter()
            .map(|(room, user, seq)| (room.as_str(), user.as_str(), *seq))
            .collect();
        tx.insert_messages(&decided.messages).await?;
        tx.insert_mentions(&mentions).await?;
        tx.set_last_seqs(&last_seqs).await?;
        tx.set_authors(&authors).await?;
        tx.save_windows(&known.windows.changed()).await?;
        let count = i64::try_from(decided.messages.len()).unwrap_or(i64::MAX);
        tx.add_traffic(now.minutes(), &self.node, count).await
    }
}

/// What to publish: one commit for each room, its frames encoded once for all readers.
fn commits(messages: &[NewMessage], known: &Known, heads: &HashMap<String, Cursor>) -> Vec<Commit> {
    let mut frames: BTreeMap<&str, (Cursor, BytesMut)> = BTreeMap::new();
    for message in messages {
        let version = known
            .rooms
            .get(&message.room_id)
            .map_or(0, |room| room.rules_version);
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
