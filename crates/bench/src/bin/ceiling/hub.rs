//! The open streams. Every commit reaches each of them as one piece of bytes, encoded once.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use futures_util::Stream;
use futures_util::stream::poll_fn;
use tokio::sync::mpsc;

/// How many commits a stream may lie behind before it is cut off.
const QUEUE: usize = 256;

/// The open streams' queues.
#[derive(Clone, Default)]
pub struct Hub(Arc<Mutex<Vec<mpsc::Sender<Bytes>>>>);

impl Hub {
    /// Opens a stream of everything that is committed from now on.
    pub fn subscribe(&self) -> impl Stream<Item = Result<Bytes, Infallible>> + use<> {
        let (sender, mut receiver) = mpsc::channel(QUEUE);
        self.streams().push(sender);
        poll_fn(move |context| receiver.poll_recv(context).map(|frames| frames.map(Ok)))
    }

    /// Hands a commit's frames to every stream, and forgets those that are gone or full.
    pub fn publish(&self, frames: &Bytes) {
        self.streams()
            .retain(|stream| stream.try_send(frames.clone()).is_ok());
    }

    fn streams(&self) -> MutexGuard<'_, Vec<mpsc::Sender<Bytes>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
