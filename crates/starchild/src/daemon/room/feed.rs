//! A room's messages, each once and in order, for as long as the room can be read.
//!
//! They come over the stream. While the stream does not come through, for example because a proxy
//! holds it back, they are read page by page.

use super::stream::Line;
use crate::daemon::{
    backoff::Pause,
    retry::{Verdict, verdict},
};
use client::{
    Client, ClientError, Cursor, Event, MessageQuery,
    protocol::{Message, RoomId},
};
use std::{collections::VecDeque, mem, time::Duration};
use tokio::time::{Instant, sleep_until};

/// How many messages are read at once.
const PAGE: u32 = 200;
/// How often a room is read whose stream does not come through.
const READ_EVERY: Duration = Duration::from_secs(3);

/// A room's messages after a place in it.
#[derive(Debug)]
pub struct Feed {
    client: Client,
    room: RoomId,
    /// Everything up to here was given.
    seq: i64,
    line: Line,
    read: VecDeque<Message>,
    /// The room must be read page by page up to here.
    read_until: i64,
    /// When the next page is read; nothing while the stream comes through.
    read_at: Option<Instant>,
    pause: Pause,
    /// Whether the server was reached when it was last tried.
    reached: bool,
    /// Why the stream failed last.
    why: Option<ClientError>,
    /// Whether it was said that the stream does not come through.
    told: bool,
}

impl Feed {
    /// The messages after `seq`.
    pub fn new(client: Client, room: RoomId, seq: i64) -> Self {
        Self {
            line: Line::new(client.clone(), room.clone()),
            client,
            room,
            seq,
            read: VecDeque::new(),
            read_until: seq,
            read_at: None,
            pause: Pause::default(),
            reached: true,
            why: None,
            told: false,
        }
    }

    /// The same place, read with another key.
    pub fn set_client(&mut self, client: Client) {
        self.line.set_client(client.clone());
        self.client = client;
    }

    /// The next message. An error is final for this key; what passes is waited out. Dropping the
    /// future loses nothing.
    pub async fn next(&mut self) -> Result<Message, ClientError> {
        loop {
            if let Some(message) = self.read.pop_front() {
                if let Some(message) = self.give(message) {
                    return Ok(message);
                }
                continue;
            }
            let behind = self.seq < self.read_until;
            let read_at = self.read_at(behind);
            tokio::select! {
                heard = self.line.next(Cursor::at(self.seq)), if !behind => {
                    if let Some(message) = self.hear(heard)? {
                        return Ok(message);
                    }
                }
                () = sleep_until(read_at.unwrap_or_else(Instant::now)), if read_at.is_some() => {
                    // It may have come through meanwhile.
                    if behind || !self.line.comes_through() {
                        self.read_page().await?;
                    }
                }
            }
        }
    }

    /// When to read the next page, if at all.
    fn read_at(&mut self, behind: bool) -> Option<Instant> {
        let comes_through = self.line.comes_through();
        if comes_through {
            self.is_back();
            if mem::take(&mut self.told) {
                tracing::info!("the stream comes through again");
            }
        }
        self.read_at = match (behind, comes_through) {
            (true, _) => self.read_at.or_else(|| Some(Instant::now())),
            (false, true) => None,
            (false, false) => self.read_at.or_else(|| Some(Instant::now() + READ_EVERY)),
        };
        self.read_at
    }

    /// Passes each message once.
    fn give(&mut self, message: Message) -> Option<Message> {
        (message.seq > self.seq).then(|| {
            self.seq = message.seq;
            message
        })
    }

    fn hear(
        &mut self,
        heard: Result<Option<Event>, ClientError>,
    ) -> Result<Option<Message>, ClientError> {
        match heard {
            Ok(Some(Event::Message(message))) => return Ok(self.give(*message)),
            Ok(Some(Event::Resync(resync))) => {
                self.read_until = resync.latest_seq;
                self.read_at = Some(Instant::now());
            }
            Ok(_) => {}
            Err(error) => {
                let Verdict::Wait(asked) = verdict(&error) else {
                    return Err(error);
                };
                if let Some(asked) = asked {
                    self.line.wait_at_least(asked);
                }
                // Whether a stream that fails otherwise means more, reading the room will show.
                if error.is_connect() {
                    self.is_away(&error);
                }
                self.why = Some(error);
            }
        }
        Ok(None)
    }

    async fn read_page(&mut self) -> Result<(), ClientError> {
        let query = MessageQuery {
            since: Some(self.seq),
            limit: Some(PAGE),
            ..MessageQuery::default()
        };
        let page = match self.client.messages(&self.room, &query).await {
            Ok(page) => page,
            Err(error) => {
                let Verdict::Wait(asked) = verdict(&error) else {
                    return Err(error);
                };
                self.is_away(&error);
                let wait = asked.unwrap_or_default().max(self.pause.next());
                self.read_at = Some(Instant::now() + wait);
                return Ok(());
            }
        };
        let was_away = self.is_back();
        if !was_away && self.line.is_troubled() && !mem::replace(&mut self.told, true) {
            let why = self.why.take().map(|error| error.to_string());
            let why = why.as_deref().unwrap_or("it was cut");
            tracing::warn!(
                why,
                "the stream does not come through; the room is read every {} seconds instead",
                READ_EVERY.as_secs()
            );
        }
        // Nothing more comes up to here, even if the page is empty.
        self.read_until = match page.messages.is_empty() {
            true => self.seq,
            false => self.read_until.max(page.latest_seq),
        };
        let more = page
            .messages
            .last()
            .is_some_and(|m| m.seq < page.latest_seq);
        let wait = if more { Duration::ZERO } else { READ_EVERY };
        self.read_at = Some(Instant::now() + wait);
        self.read.extend(page.messages);
        Ok(())
    }

    /// The server was reached; whether it was away before.
    fn is_back(&mut self) -> bool {
        self.pause.reset();
        let was_away = !mem::replace(&mut self.reached, true);
        if was_away {
            tracing::info!("the server is back");
            self.line.try_now();
        }
        was_away
    }

    /// Tells of it once.
    fn is_away(&mut self, error: &ClientError) {
        if mem::replace(&mut self.reached, false) {
            tracing::warn!(%error, "the room cannot be read now; trying on");
        }
    }
}
