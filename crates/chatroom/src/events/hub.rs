//! Publishing: what was committed reaches the readers on this node.
//!
//! A room that somebody reads has a channel with the frames of its last commits. Readers hold a
//! cursor into it and are woken; there is no queue for each of them, so a slow one costs nothing.
//! One that falls behind what the channel holds is cut off, and resumes from the log.

use super::moves::Moves;
use bytes::{Bytes, BytesMut};
use protocol::Cursor;
use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
};
use tokio::sync::{Notify, broadcast, watch};

/// Frames held for the readers of one room, at the most.
const MAX_CHANNEL_BYTES: usize = 8 * 1024 * 1024;
/// Readers that fell behind are looked for once in so many evictions.
const CUT_EVERY: u64 = 64;
/// Whispers held for those who listen; whoever is slower misses some.
const WHISPERS: usize = 64;

/// What one transaction added to a room's log.
#[derive(Debug, Clone)]
pub struct Commit {
    pub room_id: String,
    /// The room's place before.
    pub from: Cursor,
    /// The room's place after.
    pub head: Cursor,
    pub frames: Bytes,
}

/// Ends a connection from outside: a reader that takes nothing cannot be told to go.
#[derive(Debug, Clone, Default)]
pub struct ConnectionCut(Arc<Notify>);

impl ConnectionCut {
    /// Ends the connection.
    pub fn cut(&self) {
        self.0.notify_one();
    }

    /// Returns once the connection is to end.
    pub async fn requested(&self) {
        self.0.notified().await;
    }
}

/// The channels of all rooms that are read on this node.
pub struct Hub {
    channels: Mutex<HashMap<String, Arc<Channel>>>,
    capacity: usize,
    closing: AtomicBool,
    moves: Moves,
}

struct Channel {
    room_id: String,
    ring: Mutex<Ring>,
    wake: watch::Sender<u64>,
    recheck: AtomicU64,
    present: Mutex<HashMap<String, usize>>,
    readers: Mutex<Vec<Arc<Place>>>,
    /// There is none until somebody listens.
    whispers: Mutex<Option<broadcast::Sender<Bytes>>>,
}

#[derive(Default)]
struct Ring {
    commits: VecDeque<(Cursor, Bytes)>,
    /// The frames held begin after this place; unknown until the first commit.
    tail: Option<Cursor>,
    head: Cursor,
    bytes: usize,
    /// Up to here, frames were dropped for want of room.
    evicted: Cursor,
    evictions: u64,
}

/// Where a reader stands, for those who look for readers that fell behind.
struct Place {
    seq: AtomicI64,
    live: AtomicBool,
    cut: ConnectionCut,
}

/// What a reader finds when it looks into the channel.
pub enum Look {
    /// Frames after its cursor, and where they end.
    Frames(Bytes, Cursor),
    /// Nothing new.
    UpToDate,
    /// The channel does not reach back to its cursor; the log does.
    ReadLog,
    /// It fell too far behind.
    CutOff,
}

impl Hub {
    pub fn new(capacity: usize) -> Self {
        Self {
            channels: Mutex::default(),
            capacity: capacity.max(1),
            closing: AtomicBool::new(false),
            moves: Moves::default(),
        }
    }

    /// Hands a commit to the room's readers.
    pub fn publish(&self, commit: Commit) {
        self.moves.note(&commit.room_id);
        if let Some(channel) = self.channel(&commit.room_id) {
            channel.publish(commit, self.capacity);
        }
    }

    /// Tells the room's readers that the log has grown elsewhere.
    pub fn wake(&self, room: &str, head: Cursor) {
        self.moves.note_from_elsewhere(room);
        if let Some(channel) = self.channel(room) {
            channel.skip_to(head);
        }
    }

    /// Makes the room's readers prove anew that they may read.
    pub fn recheck(&self, room: &str) {
        if let Some(channel) = self.channel(room) {
            channel.recheck.fetch_add(1, Ordering::AcqRel);
            channel.wake.send_modify(|tick| *tick += 1);
        }
    }

    /// Which rooms have moved on, for those who follow many.
    pub fn moves(&self) -> &Moves {
        &self.moves
    }

    /// Whether anybody listens for what is not worth keeping.
    pub fn has_listeners(&self, room: &str) -> bool {
        self.channel(room)
            .is_some_and(|channel| channel.whispers().is_some())
    }

    /// Tells those who listen. Whoever does not take it in time misses it.
    pub fn whisper(&self, room: &str, frame: Bytes) {
        if let Some(listeners) = self.channel(room).and_then(|channel| channel.whispers()) {
            let _ = listeners.send(frame);
        }
    }

    /// The users with an open stream in the room.
    pub fn present(&self, room: &str) -> Vec<String> {
        self.channel(room)
            .map(|channel| lock(&channel.present).keys().cloned().collect())
            .unwrap_or_default()
    }

    /// All rooms with the users who read them on this node.
    pub fn presence(&self) -> Vec<(String, Vec<String>)> {
        let channels: Vec<_> = lock(&self.channels).values().cloned().collect();
        channels
            .iter()
            .map(|channel| {
                (
                    channel.room_id.clone(),
                    lock(&channel.present).keys().cloned().collect(),
                )
            })
            .collect()
    }

    /// How many streams are open.
    pub fn readers(&self) -> usize {
        let channels: Vec<_> = lock(&self.channels).values().cloned().collect();
        channels
            .iter()
            .map(|channel| lock(&channel.readers).len())
            .sum()
    }

    /// Ends every stream, now and from now on.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
        for channel in lock(&self.channels).values() {
            channel.wake.send_modify(|tick| *tick += 1);
        }
    }

    /// Begins to read a room. The place to read from is set once it is known.
    pub fn subscribe(self: &Arc<Self>, room: &str, user: &str, cut: ConnectionCut) -> Subscription {
        // Held until this reader is counted: a channel that looks unread is taken down.
        let mut channels = lock(&self.channels);
        let channel = channels
            .entry(room.to_owned())
            .or_insert_with(|| Arc::new(Channel::new(room)))
            .clone();
        *lock(&channel.present).entry(user.to_owned()).or_default() += 1;
        let place = Arc::new(Place {
            seq: AtomicI64::new(0),
            live: AtomicBool::new(false),
            cut,
        });
        lock(&channel.readers).push(place.clone());
        drop(channels);
        Subscription {
            wake: channel.wake.subscribe(),
            rechecked: channel.recheck.load(Ordering::Acquire),
            hub: self.clone(),
            channel,
            user: user.to_owned(),
            place,
        }
    }

    fn channel(&self, room: &str) -> Option<Arc<Channel>> {
        lock(&self.channels).get(room).cloned()
    }
}

impl Channel {
    fn new(room: &str) -> Self {
        Self {
            room_id: room.to_owned(),
            ring: Mutex::default(),
            wake: watch::Sender::new(0),
            recheck: AtomicU64::new(0),
            present: Mutex::default(),
            readers: Mutex::default(),
            whispers: Mutex::default(),
        }
    }

    fn publish(&self, commit: Commit, capacity: usize) {
        let evicted = lock(&self.ring).push(commit, capacity);
        if let Some(evicted) = evicted {
            self.cut_those_before(evicted);
        }
        self.wake.send_modify(|tick| *tick += 1);
    }

    /// Those who listen, if there are any left.
    fn whispers(&self) -> Option<broadcast::Sender<Bytes>> {
        let mut whispers = lock(&self.whispers);
        if whispers
            .as_ref()
            .is_some_and(|all| all.receiver_count() == 0)
        {
            *whispers = None;
        }
        whispers.clone()
    }

    fn skip_to(&self, head: Cursor) {
        lock(&self.ring).skip_to(head);
        self.wake.send_modify(|tick| *tick += 1);
    }

    fn cut_those_before(&self, evicted: Cursor) {
        for place in lock(&self.readers).iter() {
            let behind = place.seq.load(Ordering::Acquire) < evicted.seq;
            if behind && place.live.load(Ordering::Acquire) {
                place.cut.cut();
            }
        }
    }
}

impl Ring {
    /// Adds a commit. Gives the place up to which frames are gone when it is time to look for
    /// readers that stand before it.
    fn push(&mut self, commit: Commit, capacity: usize) -> Option<Cursor> {
        if self.tail.is_some() && commit.head <= self.head {
            return None;
        }
        if self.tail.is_none() || self.head != commit.from {
            // Commits in between are not published yet, or came from another node.
            self.skip_to(commit.from);
        }
        self.bytes += commit.frames.len();
        self.head = commit.head;
        self.commits.push_back((commit.head, commit.frames));
        let mut look = false;
        while self.commits.len() > capacity
            || (self.bytes > MAX_CHANNEL_BYTES && self.commits.len() > 1)
        {
            let Some((head, frames)) = self.commits.pop_front() else {
                break;
            };
            self.bytes -= frames.len();
            self.tail = Some(head);
            self.evicted = head;
            self.evictions += 1;
            look |= self.evictions.is_multiple_of(CUT_EVERY);
        }
        look.then_some(self.evicted)
    }

    /// Forgets all frames: what comes next follows this place.
    fn skip_to(&mut self, place: Cursor) {
        if self.tail.is_some() && place <= self.head {
            return;
        }
        self.commits.clear();
        self.bytes = 0;
        self.tail = Some(place);
        self.head = place;
    }

    fn after(&self, cursor: Cursor) -> Look {
        let Some(tail) = self.tail else {
            return Look::UpToDate;
        };
        if cursor >= self.head {
            return Look::UpToDate;
        }
        if cursor < self.evicted {
            return Look::CutOff;
        }
        if cursor < tail {
            return Look::ReadLog;
        }
        let start = self.commits.partition_point(|(head, _)| *head <= cursor);
        let begins_at = match start.checked_sub(1) {
            Some(before) => self.commits[before].0,
            None => tail,
        };
        if cursor != begins_at {
            // A page of the log may end inside a commit, whose frames begin before that.
            return Look::ReadLog;
        }
        let mut fresh = self.commits.range(start..);
        match (fresh.next(), fresh.len()) {
            (None, _) => Look::UpToDate,
            (Some((head, frames)), 0) => Look::Frames(frames.clone(), *head),
            (Some((_, first)), _) => {
                let mut all = BytesMut::from(first.as_ref());
                fresh.for_each(|(_, frames)| all.extend_from_slice(frames));
                Look::Frames(all.freeze(), self.head)
            }
        }
    }
}

/// One reader's hold on a room's channel.
pub struct Subscription {
    hub: Arc<Hub>,
    channel: Arc<Channel>,
    wake: watch::Receiver<u64>,
    rechecked: u64,
    user: String,
    place: Arc<Place>,
}

impl Subscription {
    /// What there is after the cursor.
    pub fn look(&self, cursor: Cursor) -> Look {
        self.place.seq.store(cursor.seq, Ordering::Release);
        lock(&self.channel.ring).after(cursor)
    }

    /// What is told from now on and not worth keeping.
    pub fn listen(&self) -> broadcast::Receiver<Bytes> {
        lock(&self.channel.whispers)
            .get_or_insert_with(|| broadcast::Sender::new(WHISPERS))
            .subscribe()
    }

    /// From now on the reader keeps up or is cut off.
    pub fn live(&self) {
        self.place.live.store(true, Ordering::Release);
    }

    /// Returns once something may have happened.
    pub async fn woken(&mut self) {
        // The sender lives in the channel, which this subscription holds.
        let _ = self.wake.changed().await;
    }

    /// Whether the server shuts down.
    pub fn is_closing(&self) -> bool {
        self.hub.closing.load(Ordering::Acquire)
    }

    /// Whether the reader has to prove anew that it may read. Tells so once for each demand.
    pub fn must_recheck(&mut self) -> bool {
        let demanded = self.channel.recheck.load(Ordering::Acquire);
        std::mem::replace(&mut self.rechecked, demanded) != demanded
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut channels = lock(&self.hub.channels);
        lock(&self.channel.readers).retain(|place| !Arc::ptr_eq(place, &self.place));
        let mut present = lock(&self.channel.present);
        if let Some(count) = present.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                present.remove(&self.user);
            }
        }
        if present.is_empty() {
            channels.remove(&self.channel.room_id);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(from: i64, head: i64) -> Commit {
        Commit {
            room_id: "rm_a".into(),
            from: Cursor::at(from),
            head: Cursor::at(head),
            frames: Bytes::from(format!("[{from}-{head}]")),
        }
    }

    fn frames(look: Look) -> String {
        match look {
            Look::Frames(bytes, _) => String::from_utf8(bytes.to_vec()).unwrap(),
            Look::UpToDate => "up to date".into(),
            Look::ReadLog => "read the log".into(),
            Look::CutOff => "cut off".into(),
        }
    }

    #[test]
    fn a_reader_gets_what_came_after_its_cursor() {
        let mut ring = Ring::default();
        ring.push(commit(4, 5), 10);
        ring.push(commit(5, 7), 10);
        assert_eq!(frames(ring.after(Cursor::at(4))), "[4-5][5-7]");
        assert_eq!(frames(ring.after(Cursor::at(5))), "[5-7]");
        assert_eq!(frames(ring.after(Cursor::at(7))), "up to date");
    }

    #[test]
    fn a_reader_from_before_the_channel_reads_the_log() {
        let mut ring = Ring::default();
        ring.push(commit(4, 5), 10);
        assert_eq!(frames(ring.after(Cursor::at(3))), "read the log");
    }

    #[test]
    fn a_commit_published_too_early_leaves_no_hole() {
        let mut ring = Ring::default();
        ring.push(commit(1, 2), 10);
        ring.push(commit(3, 4), 10);
        assert_eq!(frames(ring.after(Cursor::at(2))), "read the log");
        assert_eq!(frames(ring.after(Cursor::at(3))), "[3-4]");
        ring.push(commit(2, 3), 10);
        assert_eq!(frames(ring.after(Cursor::at(3))), "[3-4]");
    }

    #[test]
    fn a_reader_that_stands_inside_a_commit_reads_the_log() {
        let mut ring = Ring::default();
        ring.push(commit(1, 4), 10);
        ring.push(commit(4, 8), 10);
        assert_eq!(frames(ring.after(Cursor::at(2))), "read the log");
        assert_eq!(frames(ring.after(Cursor::at(6))), "read the log");
        assert_eq!(frames(ring.after(Cursor::at(4))), "[4-8]");
    }

    #[test]
    fn a_commit_published_twice_is_read_once() {
        let mut ring = Ring::default();
        ring.push(commit(1, 2), 10);
        ring.push(commit(1, 2), 10);
        assert_eq!(frames(ring.after(Cursor::at(1))), "[1-2]");
    }

    #[test]
    fn a_reader_that_falls_behind_is_cut_off() {
        let mut ring = Ring::default();
        for n in 0..20 {
            ring.push(commit(n, n + 1), 4);
        }
        assert_eq!(ring.commits.len(), 4);
        assert_eq!(frames(ring.after(Cursor::at(3))), "cut off");
        assert_eq!(
            frames(ring.after(Cursor::at(16))),
            "[16-17][17-18][18-19][19-20]"
        );
    }

    #[test]
    fn the_channel_of_a_room_nobody_reads_is_gone() {
        let hub = Arc::new(Hub::new(8));
        let reader = hub.subscribe("rm_a", "u_a", ConnectionCut::default());
        let second = hub.subscribe("rm_a", "u_a", ConnectionCut::default());
        assert_eq!(hub.present("rm_a"), ["u_a"]);
        drop(reader);
        assert_eq!(hub.present("rm_a"), ["u_a"]);
        drop(second);
        assert_eq!(lock(&hub.channels).len(), 0);
    }
}
