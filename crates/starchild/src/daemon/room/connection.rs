//! The connection to one room: its messages, and calls that are retried until they work.

use super::feed::{Feed, Received};
use crate::{
    daemon::{
        credentials::access::{Access, RenewError},
        retry::{self, ErrorAction, action_for},
    },
    home::RoomFile,
};
use client::{Client, ClientError};
use protocol::Event;
use runtime::Shutdown;
use std::{collections::VecDeque, time::Duration};
use tokio::time::{Instant, sleep, sleep_until};

/// How long an answer in hand may wait for the room once the daemon is asked to end.
const GRACE_PERIOD: Duration = Duration::from_secs(30);

/// How much is kept of what comes while an answer is being made.
const MAX_KEPT: usize = 1000;

/// Why a room is not followed any more.
#[derive(Debug)]
pub enum End {
    /// The daemon ends, or the room is not its any more.
    Stopped,
    /// The agent has no place in the room, in words.
    Left(String),
}

/// A room's key, its messages, and when to stop.
pub struct Connection {
    access: Access,
    feed: Feed,
    /// What came while an answer was being made.
    kept: VecDeque<Received>,
    shutdown: Shutdown,
}

impl Connection {
    /// A connection that follows the room from its beginning.
    pub fn new(access: Access, shutdown: Shutdown) -> Self {
        let room = access.file().room_id.clone();
        Self {
            feed: Feed::new(access.client().clone(), room, 0),
            kept: VecDeque::new(),
            access,
            shutdown,
        }
    }

    /// What is known of the room.
    pub fn file(&self) -> &RoomFile {
        self.access.file()
    }

    /// The server, with the key that the room has now.
    pub fn client(&self) -> &Client {
        self.access.client()
    }

    /// Follows the room from here.
    pub fn follow_from(&mut self, seq: i64) {
        let room = self.access.file().room_id.clone();
        self.feed = Feed::new(self.access.client().clone(), room, seq);
    }

    /// The next message, or an event that the agent has to see to. Dropping the future loses no
    /// message.
    pub async fn next(&mut self) -> Result<Received, End> {
        let shutdown = self.shutdown.clone();
        loop {
            if !shutdown.has_begun()
                && let Some(kept) = self.kept.pop_front()
            {
                return Ok(kept);
            }
            let next = tokio::select! {
                biased;
                () = shutdown.begun() => return Err(End::Stopped),
                turn = self.access.renewal_due() => {
                    if self.access.renew_early(turn).await {
                        self.feed.set_client(self.access.client().clone());
                    }
                    continue;
                }
                next = self.feed.next() => next,
            };
            match next {
                Ok(received) => return Ok(received),
                Err(error) => match action_for(&error) {
                    // Nothing is in hand that would be worth a wait.
                    ErrorAction::RenewKey => tokio::select! {
                        () = shutdown.begun() => return Err(End::Stopped),
                        renewed = self.renew() => renewed?,
                    },
                    ErrorAction::LeaveRoom(words) => return Err(End::Left(words.to_owned())),
                    ErrorAction::Retry(_) | ErrorAction::SkipMessage => {
                        return Err(End::Left(error.to_string()));
                    }
                },
            }
        }
    }

    /// The next event that concerns the answer in the making. What else comes is kept for later, so
    /// much and no more: the rest waits at the server.
    pub async fn next_event(&mut self) -> Result<Event, End> {
        while self.kept.len() < MAX_KEPT {
            match self.feed.next().await {
                Ok(Received::Event(event)) if !matches!(*event, Event::AgentRetry(_)) => {
                    return Ok(*event);
                }
                Ok(received) => self.kept.push_back(received),
                Err(error) => match action_for(&error) {
                    ErrorAction::LeaveRoom(words) => return Err(End::Left(words.to_owned())),
                    // A new key is got once the answer is there, and posted with it.
                    _ => break,
                },
            }
        }
        std::future::pending().await
    }

    /// Makes a call until it works or never will; nothing where it never will for this message.
    pub async fn retry<T>(
        &mut self,
        mut call: impl AsyncFnMut(&Client) -> Result<T, ClientError>,
    ) -> Result<Option<T>, End> {
        let mut backoff = retry::backoff();
        let mut grace_ends = None;
        let mut announced = false;
        loop {
            let done = tokio::select! {
                done = call(self.access.client()) => done,
                () = self.shutdown.forced() => return Err(End::Stopped),
            };
            let error = match done {
                Ok(value) => return Ok(Some(value)),
                Err(error) => error,
            };
            match action_for(&error) {
                ErrorAction::Retry(retry_after) => {
                    let wait = retry_after.unwrap_or_else(|| backoff.next_delay());
                    if !std::mem::replace(&mut announced, true) {
                        tracing::info!(%error, "waiting");
                    }
                    within_grace(&self.shutdown, &mut grace_ends, sleep(wait)).await?;
                }
                ErrorAction::RenewKey => self.renew().await?,
                ErrorAction::SkipMessage => {
                    tracing::warn!(%error, "the room refuses; the message is skipped");
                    return Ok(None);
                }
                ErrorAction::LeaveRoom(words) => return Err(End::Left(words.to_owned())),
            }
        }
    }

    async fn renew(&mut self) -> Result<(), End> {
        let mut grace_ends = None;
        let mut announced = false;
        loop {
            let renewed =
                within_grace(&self.shutdown, &mut grace_ends, self.access.renew()).await?;
            match renewed {
                Ok(()) => {
                    self.feed.set_client(self.access.client().clone());
                    return Ok(());
                }
                Err(RenewError::Permanent(words)) => return Err(End::Left(words)),
                Err(RenewError::Transient(error)) => {
                    if !std::mem::replace(&mut announced, true) {
                        tracing::warn!(%error, "the room key is refused, and there is no new one yet");
                    }
                }
            }
        }
    }
}

/// Waits for something; once the daemon is asked to end, only for so long. The answer in hand is
/// kept then.
async fn within_grace<T>(
    shutdown: &Shutdown,
    grace_ends: &mut Option<Instant>,
    work: impl Future<Output = T>,
) -> Result<T, End> {
    tokio::pin!(work);
    loop {
        if shutdown.has_begun() && grace_ends.is_none() {
            *grace_ends = Some(Instant::now() + GRACE_PERIOD);
        }
        let limit = async {
            match *grace_ends {
                Some(limit) => sleep_until(limit).await,
                None => shutdown.begun().await,
            }
        };
        tokio::select! {
            done = &mut work => return Ok(done),
            () = shutdown.forced() => return Err(End::Stopped),
            () = limit => if grace_ends.is_some_and(|limit| limit <= Instant::now()) {
                tracing::info!("the answer is kept and posted at the next start");
                return Err(End::Stopped);
            },
        }
    }
}
