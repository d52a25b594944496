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
pub struct CallPermit {
    _member: OwnedSemaphorePermit,
    _host: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

/// Gives out permits.
pub struct CallPermits {
    all: Arc<Semaphore>,
    hosts: NamedSemaphores,
    members: NamedSemaphores,
}

impl CallPermits {
    pub fn new(settings: &Settings) -> Self {
        Self {
            all: Arc::new(Semaphore::new(settings.calls_at_once.max(1))),
            hosts: NamedSemaphores::new(settings.calls_per_host),
            members: NamedSemaphores::new(settings.calls_per_member),
        }
    }

    /// Waits for a permit, from the narrowest limit to the widest: whoever waits for a busy member
    /// takes nothing from the others.
    pub async fn acquire(&self, user: &str, endpoint: &str) -> CallPermit {
        let host = reqwest::Url::parse(endpoint)
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned))
            .unwrap_or_default();
        let member = self.members.of(user);
        let host = self.hosts.of(&host);
        CallPermit {
            _member: acquire(member).await,
            _host: acquire(host).await,
            _all: acquire(self.all.clone()).await,
        }
    }
}

/// A semaphore for each name.
struct NamedSemaphores {
    most: usize,
    named: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl NamedSemaphores {
    fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            named: Mutex::default(),
        }
    }

    fn of(&self, name: &str) -> Arc<Semaphore> {
        let mut named = lock(&self.named);
        if let Some(semaphore) = named.get(name) {
            return semaphore.clone();
        }
        // Those that nobody uses are forgotten before the next is made.
        if named.len() >= 1024 && named.len().is_power_of_two() {
            named.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        }
        let semaphore = Arc::new(Semaphore::new(self.most));
        named.insert(name.to_owned(), semaphore.clone());
        semaphore
    }
}

async fn acquire(semaphore: Arc<Semaphore>) -> OwnedSemaphorePermit {
    match semaphore.acquire_owned().await {
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
        let permits = CallPermits::new(&Settings {
            calls_per_member: 2,
            ..Settings::default()
        });
        let _first = permits.acquire("u_slow", "http://a.example").await;
        let _second = permits.acquire("u_slow", "http://a.example").await;
        let third = permits.acquire("u_slow", "http://a.example");
        assert!(
            tokio::time::timeout(Duration::from_millis(10), third)
                .await
                .is_err()
        );
        permits.acquire("u_other", "http://a.example").await;
    }

    #[tokio::test]
    async fn a_host_that_hangs_leaves_room_for_other_hosts() {
        let permits = CallPermits::new(&Settings {
            calls_at_once: 3,
            calls_per_host: 2,
            ..Settings::default()
        });
        let _first = permits.acquire("u_1", "http://slow.example").await;
        let _second = permits.acquire("u_2", "http://slow.example:81/x").await;
        let third = permits.acquire("u_3", "http://slow.example");
        assert!(
            tokio::time::timeout(Duration::from_millis(10), third)
                .await
                .is_err()
        );
        permits.acquire("u_4", "http://b.example").await;
    }
}
