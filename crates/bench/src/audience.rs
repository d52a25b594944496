//! The subscribers of a measurement. Each must see every message once, in order, without a gap.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::Result;
use crate::target::{Subscriber, Target};

/// How long after a post its last delivery may come.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Subscribers that read until they are dropped.
pub struct Audience(Vec<Listener>);

struct Listener {
    task: JoinHandle<Result<()>>,
    seen: Arc<Seen>,
}

/// The first and the last number a listener has seen; zero before the first.
#[derive(Default)]
struct Seen {
    first: AtomicU64,
    last: AtomicU64,
}

impl Audience {
    /// Opens so many streams; `observe` is shown the data of each delivery.
    pub async fn open<T: Target>(
        target: &T,
        subscribers: usize,
        observe: impl FnMut(&[u8]) + Clone + Send + 'static,
    ) -> Result<Self> {
        let mut listeners = Vec::with_capacity(subscribers);
        for _ in 0..subscribers {
            let subscriber = target.subscriber().await?;
            let seen = Arc::new(Seen::default());
            let task = tokio::spawn(listen(subscriber, seen.clone(), observe.clone()));
            listeners.push(Listener { task, seen });
        }
        Ok(Self(listeners))
    }

    /// Waits until every subscriber has seen this number, which must not be before its first.
    pub async fn reached(&mut self, seq: u64) -> Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        for listener in &mut self.0 {
            while listener.seen.last.load(Relaxed) < seq {
                if listener.task.is_finished() {
                    return (&mut listener.task).await?;
                }
                if Instant::now() > deadline {
                    let last = listener.seen.last.load(Relaxed);
                    return Err(format!("a subscriber is at {last} and waits for {seq}").into());
                }
                sleep(Duration::from_millis(1)).await;
            }
            let first = listener.seen.first.load(Relaxed);
            if first > seq {
                return Err(format!("a subscriber began at {first} and missed {seq}").into());
            }
        }
        Ok(())
    }
}

impl Drop for Audience {
    fn drop(&mut self) {
        for listener in &self.0 {
            listener.task.abort();
        }
    }
}

/// Reads for ever; ends only with an error.
async fn listen(
    mut subscriber: impl Subscriber,
    seen: Arc<Seen>,
    mut observe: impl FnMut(&[u8]) + Send,
) -> Result<()> {
    let mut last = 0;
    loop {
        subscriber
            .receive(&mut |message| {
                if last == 0 {
                    seen.first.store(message.seq, Relaxed);
                } else if message.seq != last + 1 {
                    return Err(format!("{} was delivered after {last}", message.seq).into());
                }
                last = message.seq;
                observe(message.data);
                Ok(())
            })
            .await?;
        seen.last.store(last, Relaxed);
    }
}
