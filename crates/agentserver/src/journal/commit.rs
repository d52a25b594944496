//! Group commit: one thread writes to the disk. While it waits for the disk,
//! inputs gather, and the next write makes all of them safe at once.

use super::Log;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// A journal is replaced by a shorter one when it has grown by this much since its
/// snapshot, and by several times what the snapshot holds.
const GROWTH: usize = 16 << 20;

/// A journal at work.
pub(crate) struct Journal {
    queue: Arc<Queue>,
    progress: watch::Receiver<Progress>,
}

/// What is told of each write.
pub(crate) trait Commits: Send + 'static {
    /// All inputs up to this number are safe.
    fn committed(&self, number: u64);
}

#[derive(Debug, Clone)]
enum Progress {
    Committed(u64),
    Failed(Arc<str>),
}

#[derive(Default)]
struct Queue {
    pending: Mutex<Pending>,
    changed: Condvar,
}

#[derive(Default)]
struct Pending {
    items: Vec<Item>,
    /// How many times something was appended.
    number: u64,
    /// Bytes since the last snapshot.
    growth: usize,
    snapshot: usize,
    is_closed: bool,
}

enum Item {
    Records(Vec<u8>),
    Snapshot(Vec<u8>),
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for something to write; nothing when there will be none any more.
    fn next(&self) -> Option<(Vec<Item>, u64)> {
        let mut pending = self.lock();
        loop {
            if !pending.items.is_empty() {
                return Some((std::mem::take(&mut pending.items), pending.number));
            }
            if pending.is_closed {
                return None;
            }
            let waited = self.changed.wait(pending);
            pending = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Journal {
    /// Writes from now on, on a thread of its own.
    pub fn start(log: Log, commits: impl Commits) -> Self {
        let queue = Arc::new(Queue::default());
        let (sender, progress) = watch::channel(Progress::Committed(0));
        let work = queue.clone();
        std::thread::spawn(move || write_all(log, &work, &sender, &commits));
        Self { queue, progress }
    }

    /// Appends inputs, and gives their number.
    pub fn append(&self, records: Vec<u8>) -> u64 {
        let mut pending = self.queue.lock();
        pending.growth += records.len();
        match pending.items.last_mut() {
            Some(Item::Records(before)) => before.extend_from_slice(&records),
            _ => pending.items.push(Item::Records(records)),
        }
        pending.number += 1;
        let number = pending.number;
        drop(pending);
        self.queue.changed.notify_one();
        number
    }

    /// Whether a snapshot should take the place of what was appended.
    pub fn is_long(&self) -> bool {
        let pending = self.queue.lock();
        pending.growth > GROWTH.max(4 * pending.snapshot)
    }

    /// Puts a snapshot in the place of all that was appended.
    pub fn compact(&self, snapshot: Vec<u8>) {
        let mut pending = self.queue.lock();
        pending.growth = 0;
        pending.snapshot = snapshot.len();
        pending.items.push(Item::Snapshot(snapshot));
        drop(pending);
        self.queue.changed.notify_one();
    }

    /// Waits until all that was appended is safe; an error when it never will be.
    pub async fn committed(&self) -> Result<(), Arc<str>> {
        let number = self.queue.lock().number;
        let mut progress = self.progress.clone();
        let reached = progress.wait_for(|progress| match progress {
            Progress::Committed(committed) => *committed >= number,
            Progress::Failed(_) => true,
        });
        match reached.await.as_deref() {
            Ok(Progress::Committed(_)) => Ok(()),
            Ok(Progress::Failed(reason)) => Err(reason.clone()),
            Err(_) => Err("its writer has ended".into()),
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.queue.lock().is_closed = true;
        self.queue.changed.notify_one();
    }
}

fn write_all(
    mut log: Log,
    queue: &Queue,
    progress: &watch::Sender<Progress>,
    commits: &impl Commits,
) {
    while let Some((items, number)) = queue.next() {
        if let Err(error) = write(&mut log, items) {
            tracing::error!(%error, "the journal cannot be written; nothing moves any more");
            progress.send_replace(Progress::Failed(error.to_string().into()));
            return;
        }
        commits.committed(number);
        progress.send_replace(Progress::Committed(number));
    }
}

fn write(log: &mut Log, items: Vec<Item>) -> std::io::Result<()> {
    for item in items {
        match item {
            Item::Records(records) => log.append(&records)?,
            Item::Snapshot(snapshot) => log.compact(&snapshot)?,
        }
    }
    log.sync()
}
