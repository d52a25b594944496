//! How many calls there may be at once: in all, to one host, and to one member, so that an agent
//! that hangs, or a host full of them, holds up itself and nobody else.

use super::lock;
use crate::config::Fanout as Settings;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The right to make a call; given back when dropped.
pub struct Permit {
    _member: OwnedSemaphorePermit,
    _host: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

/// Gives out permits.
pub struct Permits {
    all: Arc<Semaphore>,
    hosts: Bounds,
    members: Bounds,
}

impl Permits {
    pub fn new(settings: &Settings) -> Self {
        Self {
            all: Arc::new(Semaphore::new(settings.calls_at_once.max(1))),
            hosts: Bounds::new(settings.calls_per_host),
            members: Bounds::new(settings.calls_per_member),
        }
    }

    /// Waits for its turn, from the narrowest bound to the widest: whoever waits for a busy member
    /// takes nothing from the others.
    pub async fn take(&self, user: &str, endpoint: &str) -> Permit {
        let host = reqwest::Url::parse(endpoint)
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned))
            .unwrap_or_default();
        let member = self.members.of(user);
        let host = self.hosts.of(&host);
        Permit {
            _member: acquire(member).await,
            _host: acquire(host).await,
            _all: acquire(self.all.clone()).await,
        }
    }
}

/// A bound for each name.
struct Bounds {
    most: usize,
    named: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Bounds {
    fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            named: Mutex::default(),
        }
    }

    fn of(&self, name: &str) -> Arc<Semaphore> {
        let mut named = lock(&self.named);
        if let Some(bound) = named.get(name) {
            return bound.clone();
        }
        // Those that nobody uses are forgotten before the next is made.
        if named.len() >= 1024 && named.len().is_power_of_two() {
            named.retain(|_, bound| Arc::strong_count(bound) > 1);
        }
        let bound = Arc::new(Semaphore::new(self.most));
        named.insert(name.to_owned(), bound.clone());
        bound
    }
}

async fn acquire(bound: Arc<Semaphore>) -> OwnedSemaphorePermit {
    match bound.acquire_owned().await {
        Ok(permit) => permit,
        Err(_) => unreachable!("these semaphores are never closed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn a_member_who_hangs_holds_up_itself_alone() {
        let permits = Permits::new(&Settings {
            calls_per_member: 2,
            ..Settings::default()
        });
        let _first = permits.take("u_slow", "http://a.example").await;
        let _second = permits.take("u_slow", "http://a.example").await;
        let third = permits.take("u_slow", "http://a.example");
        assert!(
            tokio::time::timeout(Duration::from_millis(10), third)
                .await
                .is_err()
        );
        permits.take("u_other", "http://a.example").await;
    }

    #[tokio::test]
    async fn a_host_that_hangs_leaves_room_for_other_hosts() {
        let permits = Permits::new(&Settings {
            calls_at_once: 3,
            calls_per_host: 2,
            ..Settings::default()
        });
        let _first = permits.take("u_1", "http://slow.example").await;
        let _second = permits.take("u_2", "http://slow.example:81/x").await;
        let third = permits.take("u_3", "http://slow.example");
        assert!(
            tokio::time::timeout(Duration::from_millis(10), third)
                .await
                .is_err()
        );
        permits.take("u_4", "http://b.example").await;
    }
}
