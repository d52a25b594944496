//! A room's messages, each once and in order, for as long as the room can be read.
//!
//! They come over the stream. While the stream does not come through, for example because a proxy
//! holds it back, they are read page by page.

use super::stream::RoomStream;
use crate::daemon::retry::{self, ErrorAction, action_for};
use client::{
    Client, ClientError, Cursor, Event, MessageQuery,
    protocol::{Message, RoomId},
};
use runtime::Backoff;
use std::{collections::VecDeque, mem, time::Duration};
use tokio::time::{Instant, sleep_until};

/// How many messages are read at once.
const PAGE_SIZE: u32 = 200;
/// How often a room is read whose stream does not come through.
const POLL_EVERY: Duration = Duration::from_secs(3);

/// What comes from a room.
#[derive(Debug)]
pub enum Received {
    /// A message, in its order.
    Message(Box<Message>),
    /// Something else that concerns the agent; it may be missed.
    Event(Box<Event>),
}

/// A room's messages after a position in it.
#[derive(Debug)]
pub struct Feed {
    client: Client,
    room: RoomId,
    /// Everything up to here was given.
    seq: i64,
    stream: RoomStream,
    page: VecDeque<Message>,
    /// The room must be read page by page up to here.
    poll_until: i64,
    /// When the next page is read; nothing while the stream comes through.
    poll_at: Option<Instant>,
    backoff: Backoff,
    /// Whether the server was reached when it was last tried.
    is_reachable: bool,
    /// Why the stream failed last.
    stream_error: Option<ClientError>,
    /// Whether it was said that the stream does not come through.
    polling_announced: bool,
}

impl Feed {
    /// The messages after `seq`.
    pub fn new(client: Client, room: RoomId, seq: i64) -> Self {
        Self {
            stream: RoomStream::new(client.clone(), room.clone()),
            client,
            room,
            seq,
            page: VecDeque::new(),
            poll_until: seq,
            poll_at: None,
            backoff: retry::backoff(),
            is_reachable: true,
            stream_error: None,
            polling_announced: false,
        }
    }

    /// The same position, read with another key.
    pub fn set_client(&mut self, client: Client) {
        self.stream.set_client(client.clone());
        self.client = client;
    }

    /// The next message or event. An error is final for this key; what passes is waited out. Dropping
    /// the future loses no message.
    pub async fn next(&mut self) -> Result<Received, ClientError> {
        loop {
            if let Some(message) = self.page.pop_front() {
                if let Some(message) = self.advance_to(message) {
                    return Ok(message);
                }
                continue;
            }
            let behind = self.seq < self.poll_until;
            let poll_at = self.poll_at(behind);
            tokio::select! {
                received = self.stream.next(Cursor::at(self.seq)), if !behind => {
                    if let Some(received) = self.on_stream(received)? {
                        return Ok(received);
                    }
                }
                () = sleep_until(poll_at.unwrap_or_else(Instant::now)), if poll_at.is_some() => {
                    // It may have come through meanwhile.
                    if behind || !self.stream.is_live() {
                        self.poll().await?;
                    }
                }
            }
        }
    }

    /// When to read the next page, if at all.
    fn poll_at(&mut self, behind: bool) -> Option<Instant> {
        let is_live = self.stream.is_live();
        if is_live {
            self.mark_reachable();
            if mem::take(&mut self.polling_announced) {
                tracing::info!("the stream comes through again");
            }
        }
        self.poll_at = match (behind, is_live) {
            (true, _) => self.poll_at.or_else(|| Some(Instant::now())),
            (false, true) => None,
            (false, false) => self.poll_at.or_else(|| Some(Instant::now() + POLL_EVERY)),
        };
        self.poll_at
    }

    /// Passes each message once.
    fn advance_to(&mut self, message: Message) -> Option<Received> {
        (message.seq > self.seq).then(|| {
            self.seq = message.seq;
            Received::Message(Box::new(message))
        })
    }

    fn on_stream(
        &mut self,
        received: Result<Option<Event>, ClientError>,
    ) -> Result<Option<Received>, ClientError> {
        match received {
            Ok(Some(Event::Message(message))) => return Ok(self.advance_to(*message)),
            Ok(Some(Event::Resync(resync))) => {
                self.poll_until = resync.latest_seq;
                self.poll_at = Some(Instant::now());
            }
            Ok(Some(
                event @ (Event::AgentStop(_) | Event::AgentRetry(_) | Event::ConsentUpdated(_)),
            )) => return Ok(Some(Received::Event(Box::new(event)))),
            Ok(_) => {}
            Err(error) => {
                let ErrorAction::Retry(retry_after) = action_for(&error) else {
                    return Err(error);
                };
                if let Some(retry_after) = retry_after {
                    self.stream.retry_no_sooner_than(retry_after);
                }
                // Whether a stream that fails otherwise means more, reading the room will show.
                if error.is_connect() {
                    self.mark_unreachable(&error);
                }
                self.stream_error = Some(error);
            }
        }
        Ok(None)
    }

    async fn poll(&mut self) -> Result<(), ClientError> {
        let query = MessageQuery {
            since: Some(self.seq),
            limit: Some(PAGE_SIZE),
            ..MessageQuery::default()
        };
        let page = match self.client.messages(&self.room, &query).await {
            Ok(page) => page,
            Err(error) => {
                let ErrorAction::Retry(retry_after) = action_for(&error) else {
                    return Err(error);
                };
                self.mark_unreachable(&error);
                let wait = retry_after
                    .unwrap_or_default()
                    .max(self.backoff.next_delay());
                self.poll_at = Some(Instant::now() + wait);
                return Ok(());
            }
        };
        let was_unreachable = self.mark_reachable();
        if !was_unreachable
            && self.stream.is_failing()
            && !mem::replace(&mut self.polling_announced, true)
        {
            let why = self.stream_error.take().map(|error| error.to_string());
            let why = why.as_deref().unwrap_or("it was cut");
            tracing::warn!(
                why,
                "the stream does not come through; the room is read every {} seconds instead",
                POLL_EVERY.as_secs()
            );
        }
        // Nothing more comes up to here, even if the page is empty.
        self.poll_until = match page.messages.is_empty() {
            true => self.seq,
            false => self.poll_until.max(page.latest_seq),
        };
        let more = page
            .messages
            .last()
            .is_some_and(|m| m.seq < page.latest_seq);
        let wait = if more { Duration::ZERO } else { POLL_EVERY };
        self.poll_at = Some(Instant::now() + wait);
        self.page.extend(page.messages);
        Ok(())
    }

    /// The server was reached; whether it was not before.
    fn mark_reachable(&mut self) -> bool {
        self.backoff.reset();
        let was_unreachable = !mem::replace(&mut self.is_reachable, true);
        if was_unreachable {
            tracing::info!("the server is back");
            self.stream.retry_now();
        }
        was_unreachable
    }

    /// Tells of it once.
    fn mark_unreachable(&mut self, error: &ClientError) {
        if mem::replace(&mut self.is_reachable, false) {
            tracing::warn!(%error, "the room cannot be read now; trying on");
        }
    }
}
