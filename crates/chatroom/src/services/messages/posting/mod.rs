//! Posting. Posts that arrive together share one transaction, and so one write to the disk.
//!
//! One task takes what is waiting, loads what it depends on, lets [`rules`] decide, writes,
//! commits, answers, and publishes. While it does, the next group gathers. Posts to a room that
//! another node holds are put aside: nobody else waits for them.

mod deferred;
mod load;
pub mod mentions;
pub mod rules;
#[cfg(test)]
mod tests;
mod traffic;

pub use traffic::Traffic;

use crate::{
    clock::Now,
    config::Limits,
    error::{Error, Result},
    events::{Commit, Live},
    metrics::Metrics,
    services::change::PendingCommit,
    store::{
        Db, DbError,
        group::{Group, NewMessage},
        health::{Trouble, is_locked, wants_retry},
    },
};
use deferred::{DeferredPosts, PendingPost};
use load::Locking;
use protocol::{Posted, RoomId};
use rules::{Decided, Post, PostingCache};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until, timeout},
};

/// Posts that may wait; more have to come back later.
const QUEUE: usize = 4096;
/// Posts that share a transaction, at the most.
const GROUP: usize = 256;
/// Times that a group is tried again when the database asks for it.
const TRIES: usize = 5;
/// How long a group may take on PostgreSQL: a connection that went silent says nothing.
const GROUP_DEADLINE: Duration = Duration::from_secs(15);

type AnswerSender = oneshot::Sender<Result<Posted>>;

/// Hands posts to the task that writes them.
#[derive(Clone)]
pub struct Poster {
    queue: mpsc::Sender<(Post, AnswerSender)>,
    db: Db,
}

impl Poster {
    /// Posts a message. When this returns, it is on the disk and on its way to the readers.
    pub async fn post(&self, mut post: Post) -> Result<Posted> {
        if post.user().is_some() {
            let (room, text) = (&post.room, post.content.as_str());
            let mentioned = mentions::mentioned(&self.db, room, text).await?;
            (post.mentions, post.ambiguous) = (mentioned.users, mentioned.ambiguous);
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
    pub live: Arc<Live>,
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
            cache: PostingCache::default(),
            deferred: DeferredPosts::default(),
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
    cache: PostingCache,
    deferred: DeferredPosts<AnswerSender>,
}

/// What became of a group.
#[derive(Default)]
struct GroupOutcome {
    /// One for each post that was decided.
    answers: Vec<Result<Posted>>,
    written: Vec<Written>,
    /// The rooms that somebody else holds: their posts were not decided.
    busy: HashSet<RoomId>,
}

/// Messages that are on the disk, and the commits of their rooms, which have yet to be told of them.
struct Written {
    messages: Vec<NewMessage>,
    commits: BTreeMap<RoomId, PendingCommit>,
}

impl Running {
    async fn run(mut self, mut inbox: mpsc::Receiver<(Post, AnswerSender)>) {
        let mut fresh = Vec::with_capacity(GROUP);
        let mut open = true;
        while open || !self.deferred.is_empty() {
            tokio::select! {
                taken = inbox.recv_many(&mut fresh, GROUP), if open => open = taken > 0,
                () = sleep_until(self.deferred.due()), if !self.deferred.is_empty() => {}
            }
            let now = Instant::now();
            let mut group = self.deferred.take_due(now);
            let locking = match group.is_empty() {
                true => Locking::Wait,
                false => Locking::Skip,
            };
            for (post, answer) in fresh.drain(..) {
                let waiting = PendingPost::new(post, answer);
                match self.deferred.holds(&waiting.post.room) {
                    true => self.defer(waiting, now),
                    false => group.push(waiting),
                }
            }
            if !group.is_empty() {
                self.write_and_tell(group, locking).await;
            }
        }
    }

    async fn write_and_tell(&mut self, group: Vec<PendingPost<AnswerSender>>, locking: Locking) {
        let (posts, responders): (Vec<_>, Vec<_>) =
            group.into_iter().map(PendingPost::into_parts).unzip();
        let outcome = self
            .write_group(&posts, locking)
            .await
            .unwrap_or_else(|error| {
                let error = Error::from(error);
                GroupOutcome {
                    answers: posts.iter().map(|_| Err(error.clone())).collect(),
                    ..GroupOutcome::default()
                }
            });
        let now = Instant::now();
        let mut answers = outcome.answers.into_iter();
        for (post, responder) in posts.into_iter().zip(responders) {
            if outcome.busy.contains(&post.room) {
                self.defer(responder.with(post), now);
            } else if let Some(answer) = answers.next() {
                // Whoever has hung up meanwhile finds the message in the room.
                let _ = responder.answer.send(answer);
            }
        }
        for commit in outcome.written.into_iter().flat_map(Written::into_commits) {
            self.writer.live.publish(commit);
        }
    }

    fn defer(&mut self, waiting: PendingPost<AnswerSender>, now: Instant) {
        if let Some(refused) = self.deferred.put(waiting, now) {
            let _ = refused.responder.answer.send(Err(busy()));
        }
    }

    async fn write_group(
        &mut self,
        posts: &[Post],
        mut locking: Locking,
    ) -> Result<GroupOutcome, DbError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.try_group(posts, locking).await {
                Err(error) if is_locked(&error) && locking == Locking::Wait => {
                    locking = Locking::Skip;
                }
                // What is held is not a room, and not known: all of them come back later.
                Err(error) if is_locked(&error) => return Ok(GroupOutcome::all_busy(posts)),
                Err(error) if tries < TRIES && wants_retry(&error) => {}
                Err(error) if posts.len() > 1 && Trouble::of(&error).is_none() => break,
                other => return other,
            }
        }
        // What the database refuses of one post must not cost the others theirs.
        let mut outcome = GroupOutcome::default();
        for post in posts {
            if outcome.busy.contains(&post.room) {
                continue;
            }
            match self
                .try_group(std::slice::from_ref(post), Locking::Skip)
                .await
            {
                Ok(one) => {
                    outcome.answers.extend(one.answers);
                    outcome.written.extend(one.written);
                    outcome.busy.extend(one.busy);
                }
                Err(error) => outcome.answers.push(Err(error.into())),
            }
        }
        Ok(outcome)
    }

    async fn try_group(
        &mut self,
        posts: &[Post],
        locking: Locking,
    ) -> Result<GroupOutcome, DbError> {
        let tried = match self.writer.db.is_sqlite() {
            true => self.decide_and_write(posts, locking).await,
            false => timeout(GROUP_DEADLINE, self.decide_and_write(posts, locking))
                .await
                .unwrap_or(Err(DbError::PoolTimedOut)),
        };
        if tried.is_err() {
            // What was decided did not happen.
            self.cache = PostingCache::default();
        }
        tried
    }

    async fn decide_and_write(
        &mut self,
        posts: &[Post],
        locking: Locking,
    ) -> Result<GroupOutcome, DbError> {
        let now = Now::get();
        let mut tx = self.writer.db.begin_group().await?;
        let single_writer = tx.writes_by_others().is_some();
        self.cache.begin_group(tx.writes_by_others(), now);
        let limits = &self.writer.limits;
        let busy = load::lock_rooms(&mut self.cache, &mut tx, posts, locking).await?;
        let posts = &*without(posts, &busy);
        load::load(&mut self.cache, &mut tx, posts, limits, single_writer).await?;
        load::load_spending(&mut self.cache, &mut tx, posts, now).await?;
        let commits = self.begin_commits(posts);
        let decided = rules::decide(posts, &mut self.cache, limits, single_writer, now);
        if decided.messages.is_empty() {
            return Ok(GroupOutcome {
                answers: decided.answers,
                busy,
                ..GroupOutcome::default()
            });
        }
        tx.write(&self.group(&decided)).await?;
        self.writer.metrics.committed(decided.messages.len());
        self.writer.traffic.add(decided.messages.len());
        let written = Written {
            messages: decided.messages,
            commits,
        };
        Ok(GroupOutcome {
            answers: decided.answers,
            written: vec![written],
            busy,
        })
    }

    /// The commits of a group's rooms before it is decided.
    fn begin_commits(&self, posts: &[Post]) -> BTreeMap<RoomId, PendingCommit> {
        let mut commits = BTreeMap::new();
        for post in posts {
            if !commits.contains_key(&post.room)
                && let Some(room) = self.cache.rooms.get(&post.room)
            {
                commits.insert(post.room.clone(), PendingCommit::new(&room.row));
            }
        }
        commits
    }

    fn group<'a>(&'a self, decided: &'a Decided) -> Group<'a> {
        let rooms: BTreeSet<&RoomId> = decided.messages.iter().map(|m| &m.room_id).collect();
        let rooms = rooms
            .into_iter()
            .filter_map(|room| self.cache.rooms.get(room));
        Group {
            messages: &decided.messages,
            rooms: rooms.map(|room| &room.row).collect(),
            mentions: &decided.mentions,
            addressed: decided.addressed(),
            names: &decided.names,
            windows: self.cache.windows.changed(),
            spending: decided.spending.iter().collect(),
        }
    }
}

impl Written {
    /// What to publish: one commit for each room.
    fn into_commits(mut self) -> impl Iterator<Item = Commit> {
        for message in self.messages {
            if let Some(commit) = self.commits.get_mut(&message.room_id) {
                commit.message(message, None);
            }
        }
        let commits = self.commits.into_values();
        commits
            .filter(|commit| !commit.is_empty())
            .map(PendingCommit::finish)
    }
}

impl GroupOutcome {
    fn all_busy(posts: &[Post]) -> Self {
        Self {
            busy: posts.iter().map(|post| post.room.clone()).collect(),
            ..Self::default()
        }
    }
}

/// The posts that go to other rooms than these.
fn without<'a>(posts: &'a [Post], busy: &HashSet<RoomId>) -> Cow<'a, [Post]> {
    if busy.is_empty() {
        return Cow::Borrowed(posts);
    }
    let free = posts.iter().filter(|post| !busy.contains(&post.room));
    Cow::Owned(free.cloned().collect())
}

fn busy() -> Error {
    Error::unavailable("Another node holds this room and does not let go of it. Try again")
}
