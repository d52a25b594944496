//! Posts to rooms that somebody else holds: they are put aside and tried again, so that nobody
//! else waits for them. A room's posts stay in their order.

use super::rules::Post;
use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};
use tokio::time::Instant;

/// How long a post waits for its room.
const PATIENCE: Duration = Duration::from_millis(4500);
const FIRST_BACKOFF: Duration = Duration::from_millis(20);
const LONGEST_BACKOFF: Duration = Duration::from_millis(320);
/// Posts that are put aside, at the most.
const MOST: usize = 4096;

/// A post, with whom to tell what became of it.
pub struct Waiting<A> {
    pub post: Post,
    pub asker: Asker<A>,
}

/// Whom to tell what became of a post.
pub struct Asker<A> {
    pub answer: A,
    /// Until when it waits and how often its room was tried, once it is put aside.
    patience: Option<Patience>,
}

#[derive(Clone, Copy)]
struct Patience {
    until: Instant,
    tries: u32,
}

impl<A> Waiting<A> {
    pub fn new(post: Post, answer: A) -> Self {
        Self {
            post,
            asker: Asker {
                answer,
                patience: None,
            },
        }
    }

    /// The post by itself, for those who write many.
    pub fn into_parts(self) -> (Post, Asker<A>) {
        (self.post, self.asker)
    }
}

impl<A> Asker<A> {
    /// The asker with its post again.
    pub fn with(self, post: Post) -> Waiting<A> {
        Waiting { post, asker: self }
    }
}

/// The posts that are put aside.
pub struct Aside<A> {
    rooms: HashMap<String, Room<A>>,
    posts: usize,
}

struct Room<A> {
    due: Instant,
    posts: VecDeque<Waiting<A>>,
}

impl<A> Default for Aside<A> {
    fn default() -> Self {
        Self {
            rooms: HashMap::new(),
            posts: 0,
        }
    }
}

impl<A> Aside<A> {
    pub fn is_empty(&self) -> bool {
        self.rooms.is_empty()
    }

    /// When the next room is to be tried again.
    pub fn due(&self) -> Instant {
        let due = self.rooms.values().map(|room| room.due).min();
        due.unwrap_or_else(Instant::now)
    }

    /// Puts a post aside whose room could not be had. Gives it back when it has waited too long,
    /// or when too many wait already.
    pub fn put(&mut self, mut waiting: Waiting<A>, now: Instant) -> Option<Waiting<A>> {
        let patience = waiting.asker.patience.get_or_insert(Patience {
            until: now + PATIENCE,
            tries: 0,
        });
        if self.posts >= MOST || patience.until <= now {
            return Some(waiting);
        }
        let backoff = FIRST_BACKOFF * 2u32.saturating_pow(patience.tries);
        patience.tries = patience.tries.saturating_add(1);
        let due = now + backoff.min(LONGEST_BACKOFF);
        self.push(waiting, due);
        None
    }

    /// Takes a post whose room is put aside already: it goes behind the others there. Gives back
    /// any other.
    pub fn follow(&mut self, waiting: Waiting<A>, now: Instant) -> Option<Waiting<A>> {
        match self.rooms.contains_key(waiting.post.room.as_str()) {
            true => self.put(waiting, now),
            false => Some(waiting),
        }
    }

    fn push(&mut self, waiting: Waiting<A>, due: Instant) {
        let name = waiting.post.room.as_str().to_owned();
        let room = self.rooms.entry(name).or_insert_with(|| Room {
            due,
            posts: VecDeque::new(),
        });
        room.posts.push_back(waiting);
        self.posts += 1;
    }

    /// The posts of the rooms that are to be tried again now.
    pub fn take_due(&mut self, now: Instant) -> Vec<Waiting<A>> {
        if self.rooms.is_empty() {
            return Vec::new();
        }
        let due = self.rooms.extract_if(|_, room| room.due <= now);
        let taken: Vec<_> = due.flat_map(|(_, room)| room.posts).collect();
        self.posts -= taken.len();
        taken
    }
}
