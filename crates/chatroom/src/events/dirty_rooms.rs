//! Which rooms have moved on, for those who follow many rooms at once.

use protocol::RoomId;
use std::{
    collections::{HashMap, HashSet},
    mem,
    sync::{Mutex, RwLock},
    time::Instant,
};
use tokio::sync::Notify;

/// Notes the rooms that have moved on. To note a room that nobody follows costs a look.
#[derive(Default)]
pub struct DirtyRooms {
    followed: RwLock<HashSet<RoomId>>,
    moved: Mutex<HashMap<RoomId, Instant>>,
    wakeup: Notify,
}

impl DirtyRooms {
    /// From now on the room's moves are noted.
    pub fn follow(&self, room: &RoomId) {
        let known = |rooms: &HashSet<RoomId>| rooms.contains(room);
        if !known(
            &self
                .followed
                .read()
                .unwrap_or_else(|poisoned| poisoned.into_inner()),
        ) {
            let mut followed = self
                .followed
                .write()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            followed.insert(room.clone());
        }
    }

    /// A room has moved on.
    pub fn note(&self, room: &RoomId) {
        let followed = self
            .followed
            .read()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .contains(room);
        if followed {
            self.note_always(room);
        }
    }

    /// A room has moved on, whether it is followed here or not.
    pub fn note_always(&self, room: &RoomId) {
        let mut moved = self
            .moved
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if !moved.contains_key(room) {
            moved.insert(room.clone(), Instant::now());
            self.wakeup.notify_one();
        }
    }

    /// The rooms that have moved on since the last time, and when; waits until there is one.
    pub async fn next(&self) -> HashMap<RoomId, Instant> {
        loop {
            let moved = mem::take(
                &mut *self
                    .moved
                    .lock()
                    .unwrap_or_else(|poisoned| poisoned.into_inner()),
            );
            if !moved.is_empty() {
                return moved;
            }
            self.wakeup.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_rooms_that_are_followed_are_noted() {
        let rooms = DirtyRooms::default();
        let [a, b] = ["rm_a", "rm_b"].map(|id| id.parse().unwrap());
        rooms.follow(&a);
        rooms.note(&b);
        rooms.note(&a);
        rooms.note(&a);
        assert_eq!(rooms.next().await.into_keys().collect::<Vec<_>>(), [a]);
    }
}
