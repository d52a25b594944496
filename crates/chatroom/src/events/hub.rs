//! Publishing: what was committed reaches the readers on this node.
//!
//! A room that somebody reads has a channel with the frames of its last commits. Readers hold a
//! cursor into it and are woken; there is no queue for each of them, so a slow one costs nothing.
//! One that falls behind what the channel holds is cut off, and resumes from the log.

use super::{
    dirty_rooms::DirtyRooms,
    frame::{Form, Frames},
    ring::{Ring, RingRead},
    users::Users,
};
use bytes::Bytes;
use protocol::{Cursor, RoomId, UserId};
use runtime::CancellationToken;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
};
use tokio::sync::{Notify, broadcast, watch};

/// Ephemeral events held for those who listen; whoever is slower misses some.
const EPHEMERALS: usize = 64;

/// What one transaction added to a room's log.
#[derive(Debug, Clone)]
pub struct Commit {
    pub room_id: RoomId,
    /// The room's head before.
    pub from: Cursor,
    /// The room's head after.
    pub head: Cursor,
    pub frames: Frames,
}

/// An event that is in no log, and who is told of it.
#[derive(Debug, Clone)]
pub struct Ephemeral {
    pub to: Audience,
    pub frame: Bytes,
}

/// Who is told of an event that is in no log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Audience {
    /// Everybody who reads the room.
    Readers,
    /// Those who want to see what is being written.
    DeltaReaders,
    /// One member, on whatever it reads with.
    Member(UserId),
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
    channels: Mutex<HashMap<RoomId, Arc<Channel>>>,
    capacity: usize,
    /// Not a `Shutdown`: a stream that ends leaves nothing to be forced.
    shutdown: CancellationToken,
    dirty_rooms: DirtyRooms,
    /// Rooms in which something was said on this node that cannot be searched yet.
    unindexed_rooms: DirtyRooms,
    users: Arc<Users>,
}

struct Channel {
    room_id: RoomId,
    /// Of its own, so that the readers of one room do not wait for those of another at its lock.
    shutdown: CancellationToken,
    ring: Mutex<Ring>,
    wake: watch::Sender<u64>,
    recheck: AtomicU64,
    present: Mutex<HashMap<UserId, usize>>,
    readers: Mutex<Vec<Arc<RingPosition>>>,
    /// There is none until somebody listens.
    ephemerals: Mutex<Option<broadcast::Sender<Ephemeral>>>,
}

/// Where a reader stands, for those who look for readers that fell behind.
struct RingPosition {
    seq: AtomicI64,
    live: AtomicBool,
    cut: ConnectionCut,
}

impl Hub {
    /// Every stream ends when the shutdown begins.
    pub fn new(capacity: usize, shutdown: CancellationToken) -> Self {
        Self {
            channels: Mutex::default(),
            capacity: capacity.max(1),
            shutdown,
            dirty_rooms: DirtyRooms::default(),
            unindexed_rooms: DirtyRooms::default(),
            users: Arc::default(),
        }
    }

    /// Hands a commit to the room's readers.
    pub fn publish(&self, commit: Commit) {
        self.dirty_rooms.mark_if_tracked(&commit.room_id);
        self.users.mark_moved(&commit.room_id);
        if commit.head.seq > commit.from.seq {
            self.unindexed_rooms.mark_dirty(&commit.room_id);
        }
        if let Some(channel) = self.channel(&commit.room_id) {
            channel.publish(commit, self.capacity);
        }
    }

    /// Tells the room's readers that the log has grown elsewhere.
    pub fn wake_readers(&self, room: &RoomId, head: Cursor) {
        self.dirty_rooms.mark_dirty(room);
        self.users.mark_moved(room);
        if let Some(channel) = self.channel(room) {
            channel.skip_to(head);
        }
    }

    /// Whether the room's readers were told of everything up to this position.
    pub fn has_told(&self, room: &RoomId, head: Cursor) -> bool {
        self.channel(room)
            .is_none_or(|channel| lock(&channel.ring).head() >= head)
    }

    /// The rooms that are read on this node.
    pub fn rooms(&self) -> Vec<RoomId> {
        lock(&self.channels).keys().cloned().collect()
    }

    /// Makes the room's readers prove anew that they may read.
    pub fn recheck(&self, room: &RoomId) {
        if let Some(channel) = self.channel(room) {
            channel.recheck.fetch_add(1, Ordering::AcqRel);
            channel.wake.send_modify(|tick| *tick += 1);
        }
    }

    /// Makes all readers prove anew that they may read.
    pub fn recheck_all(&self) {
        for room in self.rooms() {
            self.recheck(&room);
        }
    }

    /// Which rooms have moved on, for those who track many.
    pub fn dirty_rooms(&self) -> &DirtyRooms {
        &self.dirty_rooms
    }

    /// In which rooms something was said, for the index.
    pub fn unindexed_rooms(&self) -> &DirtyRooms {
        &self.unindexed_rooms
    }

    /// Whether anybody listens for what is not worth keeping.
    pub fn has_listeners(&self, room: &RoomId) -> bool {
        self.channel(room)
            .is_some_and(|channel| channel.ephemerals().is_some())
    }

    /// Tells those who listen. Whoever does not take it in time misses it.
    pub fn publish_ephemeral(&self, room: &RoomId, ephemeral: Ephemeral) {
        if let Some(listeners) = self.channel(room).and_then(|channel| channel.ephemerals()) {
            let _ = listeners.send(ephemeral);
        }
    }

    /// The users with streams of their own, whichever room these read.
    pub fn users(&self) -> &Arc<Users> {
        &self.users
    }

    /// The users with an open stream in the room.
    pub fn present(&self, room: &RoomId) -> Vec<UserId> {
        self.channel(room)
            .map(|channel| lock(&channel.present).keys().cloned().collect())
            .unwrap_or_default()
    }

    /// All rooms with the users who read them on this node.
    pub fn presence(&self) -> Vec<(RoomId, Vec<UserId>)> {
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

    /// Begins to read a room. The cursor to read from is set once it is known.
    pub fn subscribe(
        self: &Arc<Self>,
        room: &RoomId,
        user: &UserId,
        cut: ConnectionCut,
    ) -> Subscription {
        // Held until this reader is counted: a channel that looks unread is taken down.
        let mut channels = lock(&self.channels);
        let channel = channels
            .entry(room.clone())
            .or_insert_with(|| Arc::new(Channel::new(room, &self.shutdown)))
            .clone();
        *lock(&channel.present).entry(user.clone()).or_default() += 1;
        let position = Arc::new(RingPosition {
            seq: AtomicI64::new(0),
            live: AtomicBool::new(false),
            cut,
        });
        lock(&channel.readers).push(position.clone());
        drop(channels);
        Subscription {
            wake: channel.wake.subscribe(),
            rechecked: channel.recheck.load(Ordering::Acquire),
            hub: self.clone(),
            channel,
            user: user.clone(),
            position,
        }
    }

    fn channel(&self, room: &RoomId) -> Option<Arc<Channel>> {
        lock(&self.channels).get(room).cloned()
    }
}

impl Channel {
    fn new(room: &RoomId, shutdown: &CancellationToken) -> Self {
        Self {
            room_id: room.clone(),
            shutdown: shutdown.child_token(),
            ring: Mutex::default(),
            wake: watch::Sender::new(0),
            recheck: AtomicU64::new(0),
            present: Mutex::default(),
            readers: Mutex::default(),
            ephemerals: Mutex::default(),
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
    fn ephemerals(&self) -> Option<broadcast::Sender<Ephemeral>> {
        let mut ephemerals = lock(&self.ephemerals);
        if ephemerals
            .as_ref()
            .is_some_and(|all| all.receiver_count() == 0)
        {
            *ephemerals = None;
        }
        ephemerals.clone()
    }

    fn skip_to(&self, head: Cursor) {
        lock(&self.ring).skip_to(head);
        self.wake.send_modify(|tick| *tick += 1);
    }

    fn cut_those_before(&self, evicted: Cursor) {
        for position in lock(&self.readers).iter() {
            let behind = position.seq.load(Ordering::Acquire) < evicted.seq;
            if behind && position.live.load(Ordering::Acquire) {
                position.cut.cut();
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
    user: UserId,
    position: Arc<RingPosition>,
}

impl Subscription {
    /// What there is after the cursor, in this form.
    pub fn frames_after(&self, cursor: Cursor, form: Form) -> RingRead {
        self.position.seq.store(cursor.seq, Ordering::Release);
        lock(&self.channel.ring).read_after(cursor, form)
    }

    /// What is told from now on and not worth keeping.
    pub fn listen(&self) -> broadcast::Receiver<Ephemeral> {
        lock(&self.channel.ephemerals)
            .get_or_insert_with(|| broadcast::Sender::new(EPHEMERALS))
            .subscribe()
    }

    /// From now on the reader keeps up or is cut off.
    pub fn live(&self) {
        self.position.live.store(true, Ordering::Release);
    }

    /// Returns once something may have happened, or the server shuts down.
    pub async fn woken(&mut self) {
        tokio::select! {
            biased;
            // The sender lives in the channel, which this subscription holds.
            _ = self.wake.changed() => {}
            () = self.channel.shutdown.cancelled() => {}
        }
    }

    /// Whether the server shuts down.
    pub fn is_shutting_down(&self) -> bool {
        self.channel.shutdown.is_cancelled()
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
        lock(&self.channel.readers).retain(|position| !Arc::ptr_eq(position, &self.position));
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

    #[test]
    fn the_channel_of_a_room_nobody_reads_is_gone() {
        let hub = Arc::new(Hub::new(8, CancellationToken::new()));
        let room: RoomId = "rm_a".parse().unwrap();
        let user: UserId = "u_a".parse().unwrap();
        let reader = hub.subscribe(&room, &user, ConnectionCut::default());
        let second = hub.subscribe(&room, &user, ConnectionCut::default());
        assert_eq!(hub.present(&room), std::slice::from_ref(&user));
        drop(reader);
        assert_eq!(hub.present(&room), std::slice::from_ref(&user));
        drop(second);
        assert_eq!(lock(&hub.channels).len(), 0);
    }
}
