//! What users are told on their own streams, whichever room these read.

use super::dirty_rooms::DirtyRooms;
use bytes::Bytes;
use protocol::{RoomId, UserId};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};
use tokio::sync::broadcast::{self, error::RecvError};

/// Events held for those who listen; whoever is slower misses some.
const EVENTS: usize = 64;

/// Something that a user is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserEvent {
    /// An event as it travels.
    Frame(Bytes),
    /// Something happened in these rooms of theirs.
    Moved(Arc<[RoomId]>),
}

/// The users with streams of their own on this node.
#[derive(Default)]
pub struct Users {
    listeners: Mutex<HashMap<UserId, broadcast::Sender<UserEvent>>>,
    moved: DirtyRooms,
}

impl Users {
    /// Tells the user's own streams.
    pub fn publish(&self, user: &UserId, event: UserEvent) {
        if let Some(listeners) = self.lock().get(user) {
            let _ = listeners.send(event);
        }
    }

    /// What the user is told from now on.
    pub fn listen(self: &Arc<Self>, user: &UserId) -> UserEvents {
        let receiver = self
            .lock()
            .entry(user.clone())
            .or_insert_with(|| broadcast::Sender::new(EVENTS))
            .subscribe();
        UserEvents {
            users: self.clone(),
            user: user.clone(),
            receiver: Some(receiver),
        }
    }

    /// Who listens.
    pub fn listening(&self) -> Vec<UserId> {
        self.lock().keys().cloned().collect()
    }

    /// A room has moved on. Nothing is marked where nobody listens.
    pub fn mark_moved(&self, room: &RoomId) {
        if !self.lock().is_empty() {
            self.moved.mark_dirty(room);
        }
    }

    /// The rooms that have moved on, for whoever tells their members.
    pub fn moved_rooms(&self) -> &DirtyRooms {
        &self.moved
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<UserId, broadcast::Sender<UserEvent>>> {
        self.listeners
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// What one stream of a user is told.
pub struct UserEvents {
    users: Arc<Users>,
    user: UserId,
    receiver: Option<broadcast::Receiver<UserEvent>>,
}

impl UserEvents {
    /// The next event. Whoever is slow misses some.
    pub async fn next(&mut self) -> UserEvent {
        while let Some(receiver) = &mut self.receiver {
            match receiver.recv().await {
                Ok(event) => return event,
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => break,
            }
        }
        std::future::pending().await
    }
}

impl Drop for UserEvents {
    fn drop(&mut self) {
        let mut listeners = self.users.lock();
        self.receiver = None;
        if listeners
            .get(&self.user)
            .is_some_and(|own| own.receiver_count() == 0)
        {
            listeners.remove(&self.user);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_user_is_told_in_every_stream_and_others_are_not() {
        let users = Arc::new(Users::default());
        let [a, b]: [UserId; 2] = ["u_a", "u_b"].map(|id| id.parse().unwrap());
        let (mut one, mut two) = (users.listen(&a), users.listen(&a));
        let other = users.listen(&b);
        let event = UserEvent::Frame("x".into());
        users.publish(&a, event.clone());
        assert_eq!((one.next().await, two.next().await), (event.clone(), event));
        assert!(other.receiver.as_ref().unwrap().is_empty());
        drop((one, two, other));
        assert!(users.lock().is_empty());
    }

    #[tokio::test]
    async fn rooms_are_marked_while_somebody_listens() {
        let users = Arc::new(Users::default());
        let [a, b]: [RoomId; 2] = ["rm_a", "rm_b"].map(|id| id.parse().unwrap());
        users.mark_moved(&a);
        let _listener = users.listen(&"u_a".parse().unwrap());
        users.mark_moved(&b);
        let moved = users.moved_rooms().next().await;
        assert_eq!(moved.into_keys().collect::<Vec<_>>(), [b]);
    }
}
