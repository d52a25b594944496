//! Which rooms have moved on, for those who track many rooms at once.

use protocol::RoomId;
use std::{
    collections::{HashMap, HashSet},
    mem,
    sync::{Mutex, RwLock},
    time::Instant,
};
use tokio::sync::Notify;

/// Marks the rooms that have moved on. To mark a room that nobody tracks costs a lookup.
#[derive(Default)]
pub struct DirtyRooms {
    tracked: RwLock<HashSet<RoomId>>,
    moved: Mutex<HashMap<RoomId, Instant>>,
    wakeup: Notify,
}

impl DirtyRooms {
    /// From now on the room is marked when it moves on.
    pub fn track(&self, room: &RoomId) {
        let known = |rooms: &HashSet<RoomId>| rooms.contains(room);
        if !known(
            &self
                .tracked
                .read()
                .unwrap_or_else(|poisoned| poisoned.into_inner()),
        ) {
            let mut tracked = self
                .tracked
                .write()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            tracked.insert(room.clone());
        }
    }

    /// A room has moved on.
    pub fn mark_if_tracked(&self, room: &RoomId) {
        let tracked = self
            .tracked
            .read()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .contains(room);
        if tracked {
            self.mark_dirty(room);
        }
    }

    /// A room has moved on, whether it is tracked here or not.
    pub fn mark_dirty(&self, room: &RoomId) {
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
    async fn only_rooms_that_are_tracked_are_marked() {
        let rooms = DirtyRooms::default();
        let [a, b] = ["rm_a", "rm_b"].map(|id| id.parse().unwrap());
        rooms.track(&a);
        rooms.mark_if_tracked(&b);
        rooms.mark_if_tracked(&a);
        rooms.mark_if_tracked(&a);
        assert_eq!(rooms.next().await.into_keys().collect::<Vec<_>>(), [a]);
    }
}
