//! The connection to one room: what is said in it, and calls that are made until they work.

use super::feed::Feed;
use crate::{
    daemon::{
        backoff::Pause,
        credentials::access::{Access, NoKey},
        retry::{Verdict, verdict},
        shutdown::Stop,
    },
    home::RoomFile,
};
use client::{Client, ClientError};
use protocol::Message;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// How long an answer in hand may wait for the room once the daemon is asked to end.
const GRACE: Duration = Duration::from_secs(30);

/// Why a room is not followed any more.
#[derive(Debug)]
pub enum End {
    /// The daemon ends, or the room is not its any more.
    Stopped,
    /// The agent has no place in the room, in words.
    Left(String),
}

/// A room's key, its messages, and the wish to stop.
pub struct Link {
    access: Access,
    feed: Feed,
    stop: Stop,
}

impl Link {
    /// A connection that follows the room from its beginning.
    pub fn new(access: Access, stop: Stop) -> Self {
        let room = access.file().room_id.clone();
        Self {
            feed: Feed::new(access.client().clone(), room, 0),
            access,
            stop,
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
    pub fn begin_at(&mut self, seq: i64) {
        let room = self.access.file().room_id.clone();
        self.feed = Feed::new(self.access.client().clone(), room, seq);
    }

    /// The next message. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Message, End> {
        let stop = self.stop.clone();
        loop {
            let next = tokio::select! {
                biased;
                () = stop.asked() => return Err(End::Stopped),
                turn = self.access.renewal_due() => {
                    if self.access.renew_early(turn).await {
                        self.feed.set_client(self.access.client().clone());
                    }
                    continue;
                }
                next = self.feed.next() => next,
            };
            match next {
                Ok(message) => return Ok(message),
                Err(error) => match verdict(&error) {
                    // Nothing is in hand that would be worth a wait.
                    Verdict::Renew => tokio::select! {
                        () = stop.asked() => return Err(End::Stopped),
                        renewed = self.renew() => renewed?,
                    },
                    Verdict::Leave(words) => return Err(End::Left(words.to_owned())),
                    Verdict::Wait(_) | Verdict::Skip => return Err(End::Left(error.to_string())),
                },
            }
        }
    }

    /// Makes a call until it works or never will; nothing where it never will for this message.
    pub async fn insist<T>(
        &mut self,
        mut call: impl AsyncFnMut(&Client) -> Result<T, ClientError>,
    ) -> Result<Option<T>, End> {
        let mut pause = Pause::default();
        let mut give_up = None;
        let mut told = false;
        loop {
            let done = tokio::select! {
                done = call(self.access.client()) => done,
                () = self.stop.hurried() => return Err(End::Stopped),
            };
            let error = match done {
                Ok(value) => return Ok(Some(value)),
                Err(error) => error,
            };
            match verdict(&error) {
                Verdict::Wait(asked) => {
                    let wait = asked.unwrap_or_else(|| pause.next());
                    if !std::mem::replace(&mut told, true) {
                        tracing::info!(%error, "waiting");
                    }
                    in_grace(&self.stop, &mut give_up, sleep(wait)).await?;
                }
                Verdict::Renew => self.renew().await?,
                Verdict::Skip => {
                    tracing::warn!(%error, "the room refuses; the message is skipped");
                    return Ok(None);
                }
                Verdict::Leave(words) => return Err(End::Left(words.to_owned())),
            }
        }
    }

    async fn renew(&mut self) -> Result<(), End> {
        let mut give_up = None;
        let mut told = false;
        loop {
            let renewed = in_grace(&self.stop, &mut give_up, self.access.renew()).await?;
            match renewed {
                Ok(()) => {
                    self.feed.set_client(self.access.client().clone());
                    return Ok(());
                }
                Err(NoKey::Never(words)) => return Err(End::Left(words)),
                Err(NoKey::Later(error)) => {
                    if !std::mem::replace(&mut told, true) {
                        tracing::warn!(%error, "the room key is refused, and there is no new one yet");
                    }
                }
            }
        }
    }
}

/// Waits for something; once the daemon is asked to end, only for so long. The answer in hand is
/// kept then.
async fn in_grace<T>(
    stop: &Stop,
    give_up: &mut Option<Instant>,
    work: impl Future<Output = T>,
) -> Result<T, End> {
    tokio::pin!(work);
    loop {
        if stop.is_asked() && give_up.is_none() {
            *give_up = Some(Instant::now() + GRACE);
        }
        let limit = async {
            match *give_up {
                Some(limit) => sleep_until(limit).await,
                None => stop.asked().await,
            }
        };
        tokio::select! {
            done = &mut work => return Ok(done),
            () = stop.hurried() => return Err(End::Stopped),
            () = limit => if give_up.is_some_and(|limit| limit <= Instant::now()) {
                tracing::info!("the answer is kept and posted at the next start");
                return Err(End::Stopped);
            },
        }
    }
}
