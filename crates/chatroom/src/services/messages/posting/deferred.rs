//! Posts to rooms that somebody else holds: they are put aside and tried again, so that nobody
//! else waits for them. A room's posts stay in their order.

use super::rules::Post;
use protocol::RoomId;
use runtime::Backoff;
use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};
use tokio::time::Instant;

/// How long a post waits for its room.
const LONGEST_DEFERRAL: Duration = Duration::from_millis(4500);
const LONGEST_BACKOFF: Duration = Duration::from_millis(320);
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(20), LONGEST_BACKOFF);
/// Posts that are put aside, at the most.
const MOST: usize = 4096;

/// A post, with whom to tell what became of it.
pub struct PendingPost<A> {
    pub post: Post,
    pub responder: Responder<A>,
}

/// Whom to tell what became of a post.
pub struct Responder<A> {
    pub answer: A,
    /// Until when it waits and how often its room was tried, once it is put aside.
    deferral: Option<Deferral>,
}

#[derive(Clone, Copy)]
struct Deferral {
    until: Instant,
    tries: u32,
}

impl<A> PendingPost<A> {
    pub fn new(post: Post, answer: A) -> Self {
        Self {
            post,
            responder: Responder {
                answer,
                deferral: None,
            },
        }
    }

    /// The post by itself, for those who write many.
    pub fn into_parts(self) -> (Post, Responder<A>) {
        (self.post, self.responder)
    }
}

impl<A> Responder<A> {
    /// The responder with its post again.
    pub fn with(self, post: Post) -> PendingPost<A> {
        PendingPost {
            post,
            responder: self,
        }
    }
}

/// The posts that are put aside.
pub struct DeferredPosts<A> {
    rooms: HashMap<RoomId, Room<A>>,
    posts: usize,
}

struct Room<A> {
    due: Instant,
    posts: VecDeque<PendingPost<A>>,
}

impl<A> Default for DeferredPosts<A> {
    fn default() -> Self {
        Self {
            rooms: HashMap::new(),
            posts: 0,
        }
    }
}

impl<A> DeferredPosts<A> {
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
    pub fn put(&mut self, mut waiting: PendingPost<A>, now: Instant) -> Option<PendingPost<A>> {
        let deferral = waiting.responder.deferral.get_or_insert(Deferral {
            until: now + LONGEST_DEFERRAL,
            tries: 0,
        });
        if self.posts >= MOST || deferral.until <= now {
            return Some(waiting);
        }
        let due = now + BACKOFF.after(deferral.tries);
        deferral.tries = deferral.tries.saturating_add(1);
        self.push(waiting, due);
        None
    }

    /// Whether posts to this room are put aside: those that come later go behind them.
    pub fn holds(&self, room: &RoomId) -> bool {
        self.rooms.contains_key(room)
    }

    fn push(&mut self, waiting: PendingPost<A>, due: Instant) {
        let room = waiting.post.room.clone();
        let room = self.rooms.entry(room).or_insert_with(|| Room {
            due,
            posts: VecDeque::new(),
        });
        room.posts.push_back(waiting);
        self.posts += 1;
    }

    /// The posts of the rooms that are to be tried again now.
    pub fn take_due(&mut self, now: Instant) -> Vec<PendingPost<A>> {
        if self.rooms.is_empty() {
            return Vec::new();
        }
        let due = self.rooms.extract_if(|_, room| room.due <= now);
        let taken: Vec<_> = due.flat_map(|(_, room)| room.posts).collect();
        self.posts -= taken.len();
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{auth::Credential, services::checks::Content};
    use std::net::Ipv4Addr;

    fn post(text: &str) -> Post {
        Post {
            room: "rm_abcdef".parse().unwrap(),
            credential: Credential::None,
            ip: Ipv4Addr::LOCALHOST.into(),
            content: Content::new(text.to_owned()).unwrap(),
            reply_to_seq: None,
            depth: 0,
            client_key: None,
            mentions: Vec::new(),
            usage: None,
            ambiguous: Vec::new(),
        }
    }

    fn texts(posts: Vec<PendingPost<()>>) -> Vec<String> {
        let text = |waiting: PendingPost<()>| waiting.post.content.as_str().to_owned();
        posts.into_iter().map(text).collect()
    }

    #[test]
    fn a_room_that_is_put_aside_keeps_the_order_of_its_posts() {
        let (mut deferred, now) = (DeferredPosts::default(), Instant::now());
        for text in ["first", "second", "third"] {
            assert!(
                deferred
                    .put(PendingPost::new(post(text), ()), now)
                    .is_none()
            );
        }
        assert!(deferred.take_due(now).is_empty());
        let due = deferred.take_due(deferred.due());
        assert_eq!(texts(due), ["first", "second", "third"]);
        assert!(deferred.is_empty());
    }

    #[test]
    fn a_post_waits_for_its_room_no_longer_than_it_is_told() {
        let (mut deferred, mut now) = (DeferredPosts::default(), Instant::now());
        let mut waiting = PendingPost::new(post("a post"), ());
        let began = now;
        while deferred.put(waiting, now).is_none() {
            now = deferred.due();
            waiting = deferred.take_due(now).remove(0);
            assert!(now <= began + LONGEST_DEFERRAL + LONGEST_BACKOFF);
        }
        assert!(now >= began + LONGEST_DEFERRAL);
    }

    #[test]
    fn a_post_that_finds_no_place_is_given_back_and_not_let_past() {
        let (mut deferred, now) = (DeferredPosts::default(), Instant::now());
        for _ in 0..MOST {
            assert!(
                deferred
                    .put(PendingPost::new(post("early"), ()), now)
                    .is_none()
            );
        }
        let room = post("late").room;
        assert!(deferred.holds(&room));
        assert!(
            deferred
                .put(PendingPost::new(post("late"), ()), now)
                .is_some()
        );
    }
}
