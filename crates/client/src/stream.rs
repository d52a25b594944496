//! A room's live events: one connection, or as many as it takes.

use crate::{
    Client, ClientError, Cursor, Event, Result, RoomId,
    sse::{Frame, Parser},
};
use reqwest::{Response, header::CONTENT_TYPE};
use runtime::Backoff;
use std::time::Duration;
use tokio::time::Instant;

/// How long a stream may be silent. The server sends a heartbeat far more often.
const MAX_SILENCE: Duration = Duration::from_secs(60);
/// The delay before the first reconnect, where the server asks for no other.
const FIRST_DELAY: Duration = Duration::from_millis(200);
/// The longest delay between two tries.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

impl Client {
    /// Opens the room's stream: what comes after `since`, or what comes from now on.
    pub async fn stream(&self, room: &RoomId, since: Option<Cursor>) -> Result<EventStream> {
        self.open_stream(room, since, false).await
    }

    /// The same, with what agents have written so far ([`Event::AgentDelta`]).
    pub async fn stream_with_deltas(
        &self,
        room: &RoomId,
        since: Option<Cursor>,
    ) -> Result<EventStream> {
        self.open_stream(room, since, true).await
    }

    async fn open_stream(
        &self,
        room: &RoomId,
        since: Option<Cursor>,
        deltas: bool,
    ) -> Result<EventStream> {
        let reply = self
            .get(&["rooms", room.as_str(), "stream"])
            .query("deltas", deltas.then_some(1))
            .header("accept", Some("text/event-stream"))
            .header("last-event-id", since)
            .open()
            .await?;
        let kind = reply.headers().get(CONTENT_TYPE);
        if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
            return Err(ClientError::Protocol(format!("the stream is {kind:?}")));
        }
        Ok(EventStream {
            reply,
            parser: Parser::new(),
            cursor: since,
            received: None,
        })
    }

    /// Follows the room: like [`Client::stream`], but a connection that breaks is replaced by one
    /// that resumes where it broke.
    pub fn follow(&self, room: &RoomId, since: Option<Cursor>) -> Follow {
        Follow {
            client: self.clone(),
            room: room.clone(),
            stream: None,
            cursor: since,
            backoff: Backoff::new(FIRST_DELAY, LONGEST_DELAY),
            retry_at: None,
        }
    }
}

/// One connection to a room's stream.
#[derive(Debug)]
pub struct EventStream {
    reply: Response,
    parser: Parser,
    cursor: Option<Cursor>,
    /// When the first bytes came, and the newest.
    received: Option<(Instant, Instant)>,
}

impl EventStream {
    /// How long bytes have come, from the first to the newest; nothing before there were any. A
    /// server says where the stream stands at once and something every few seconds; a stream
    /// without that is held back by something in between.
    pub fn received_for(&self) -> Option<Duration> {
        self.received.map(|(first, newest)| newest - first)
    }

    /// The next event and its cursor, or nothing once the server has closed the stream.
    ///
    /// Dropping the future loses nothing: the next call goes on from there.
    pub async fn next(&mut self) -> Result<Option<(Option<Cursor>, Event)>> {
        loop {
            while let Some(frame) = self.parser.next_frame() {
                if let Some(item) = self.read(frame) {
                    return Ok(Some(item));
                }
            }
            let chunk = tokio::time::timeout(MAX_SILENCE, self.reply.chunk())
                .await
                .map_err(|_| ClientError::Silent(MAX_SILENCE))??;
            let Some(bytes) = chunk else {
                return Ok(None);
            };
            let now = Instant::now();
            self.received = Some((self.received.map_or(now, |(first, _)| first), now));
            self.parser.push(&bytes)?;
        }
    }

    /// The cursor from which a new stream would go on.
    pub fn cursor(&self) -> Option<Cursor> {
        self.cursor
    }

    /// An event that cannot be read is passed over: asked for again, it would come again.
    fn read(&mut self, frame: Frame) -> Option<(Option<Cursor>, Event)> {
        let id = frame.id.as_deref().filter(|id| !id.is_empty());
        let cursor = id.and_then(|id| id.parse().ok());
        if id.is_some() && cursor.is_none() {
            tracing::warn!(?id, "the stream names a cursor that is none");
        }
        self.cursor = cursor.or(self.cursor);
        let kind = frame.event.as_deref().unwrap_or("message");
        match Event::parse(kind, frame.data.as_deref()?) {
            // It tells a cursor and nothing else.
            Ok(Event::Ready(_)) => None,
            Ok(event) => Some((cursor, event)),
            Err(error) => {
                tracing::warn!(kind, ?cursor, %error, "an event cannot be read and is passed over");
                None
            }
        }
    }
}

/// A room's events for as long as anybody asks for them.
#[derive(Debug)]
pub struct Follow {
    client: Client,
    room: RoomId,
    stream: Option<EventStream>,
    cursor: Option<Cursor>,
    backoff: Backoff,
    retry_at: Option<Instant>,
}

impl Follow {
    /// The next event and its cursor.
    ///
    /// An error is final for this caller (the token is revoked, the room is gone); what passes,
    /// such as a server that restarts, is retried with a backoff. Dropping the future
    /// loses nothing.
    pub async fn next(&mut self) -> Result<(Option<Cursor>, Event)> {
        loop {
            if let Some(instant) = self.retry_at {
                tokio::time::sleep_until(instant).await;
                self.retry_at = None;
            }
            match self.next_on_connection().await {
                Ok(Some(item)) => {
                    self.backoff.reset();
                    return Ok(item);
                }
                Ok(None) => self.reconnect_later(None),
                Err(error) if error.is_transient() => {
                    let retry_after = match &error {
                        ClientError::Api { retry_after, .. } => *retry_after,
                        _ => None,
                    };
                    tracing::debug!(%error, room = %self.room, "stream broken, will resume");
                    self.reconnect_later(retry_after);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The cursor up to which events have been given.
    pub fn cursor(&self) -> Option<Cursor> {
        self.cursor
    }

    async fn next_on_connection(&mut self) -> Result<Option<(Option<Cursor>, Event)>> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(self.client.stream(&self.room, self.cursor).await?),
        };
        let result = stream.next().await;
        self.cursor = stream.cursor();
        if let Some(retry) = stream.parser.retry() {
            self.backoff.set_first(retry);
        }
        result
    }

    fn reconnect_later(&mut self, retry_after: Option<Duration>) {
        if let Some(stream) = self.stream.take() {
            self.cursor = stream.cursor();
        }
        let delay = retry_after
            .unwrap_or_default()
            .max(self.backoff.next_delay());
        self.retry_at = Some(Instant::now() + delay);
    }
}
