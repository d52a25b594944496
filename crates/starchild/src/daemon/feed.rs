//! A room's messages, each once and in order, for as long as the room can be read.
//!
//! They come over the stream. While the stream cannot be had, for example because a proxy holds it
//! back, they are read page by page.

use super::{
    pause::Pause,
    verdict::{Verdict, verdict},
};
use client::{
    Client, ClientError, Cursor, Event, EventStream, MessageQuery,
    protocol::{Message, RoomId},
};
use std::{collections::VecDeque, time::Duration};
use tokio::time::{Instant, sleep_until, timeout};

/// How many messages are read at once.
const PAGE: u32 = 200;
/// How long a stream may take to say where it stands.
const BEGIN_WITHIN: Duration = Duration::from_secs(10);
/// How often a room is read whose stream cannot be had.
const POLL_EVERY: Duration = Duration::from_secs(3);
/// How often the stream of such a room is tried.
const STREAM_EVERY: Duration = Duration::from_secs(60);
/// So many streams in a row must fail before the room is taken for one whose stream cannot be had.
const FAILURES: u32 = 3;

/// A room's messages after a place in it.
#[derive(Debug)]
pub struct Feed {
    client: Client,
    room: RoomId,
    /// Everything up to here was given.
    seq: i64,
    stream: Option<EventStream>,
    read: VecDeque<Message>,
    /// The room is read page by page up to here.
    read_until: i64,
    stream_failures: u32,
    stream_at: Instant,
    poll_at: Instant,
    pause: Pause,
    /// Whether the server was reached when it was last tried.
    reached: bool,
}

impl Feed {
    /// The messages after `seq`.
    pub fn new(client: Client, room: RoomId, seq: i64) -> Self {
        let now = Instant::now();
        Self {
            client,
            room,
            seq,
            stream: None,
            read: VecDeque::new(),
            read_until: seq,
            stream_failures: 0,
            stream_at: now,
            poll_at: now,
            pause: Pause::default(),
            reached: true,
        }
    }

    /// The same place, read with another key.
    pub fn set_client(&mut self, client: Client) {
        self.client = client;
        self.stream = None;
        self.stream_at = Instant::now();
    }

    /// The next message. An error is final for this key; what passes is waited out. Dropping the
    /// future loses nothing.
    pub async fn next(&mut self) -> Result<Message, ClientError> {
        loop {
            if let Some(message) = self.read.pop_front() {
                if let Some(message) = self.give(message) {
                    return Ok(message);
                }
            } else if self.seq < self.read_until {
                self.read_page().await?;
            } else if self.stream.is_some() {
                if let Some(message) = self.listen().await? {
                    return Ok(message);
                }
            } else {
                self.find_a_way().await?;
            }
        }
    }

    /// Passes each message once.
    fn give(&mut self, message: Message) -> Option<Message> {
        (message.seq > self.seq).then(|| {
            self.seq = message.seq;
            message
        })
    }

    async fn listen(&mut self) -> Result<Option<Message>, ClientError> {
        let Some(stream) = &mut self.stream else {
            return Ok(None);
        };
        let heard = if stream.has_begun() {
            stream.next().await
        } else {
            // The future is dropped, but what it read is kept.
            match timeout(BEGIN_WITHIN, stream.next()).await {
                Ok(heard) => heard,
                Err(_) if stream.has_begun() => return Ok(None),
                Err(_) => Err(ClientError::Silent(BEGIN_WITHIN)),
            }
        };
        match heard {
            Ok(Some((_, event))) => {
                self.works();
                self.stream_failures = 0;
                Ok(match event {
                    Event::Message(message) => self.give(*message),
                    Event::Resync(resync) => {
                        self.read_until = resync.latest_seq;
                        None
                    }
                    _ => None,
                })
            }
            Ok(None) => {
                self.drop_stream();
                Ok(None)
            }
            Err(error) => {
                self.drop_stream();
                self.does_not_work(error)?;
                Ok(None)
            }
        }
    }

    fn drop_stream(&mut self) {
        let had_begun = self.stream.take().is_some_and(|stream| stream.has_begun());
        self.stream_failures = match had_begun {
            true => 0,
            false => self.stream_failures + 1,
        };
        self.stream_at = Instant::now() + self.pause.next();
    }

    /// Opens the stream when it is time to, and reads the room where that fails.
    async fn find_a_way(&mut self) -> Result<(), ClientError> {
        let hopeless = self.stream_failures >= FAILURES;
        let poll_at = if hopeless {
            self.poll_at
        } else {
            self.stream_at
        };
        sleep_until(poll_at.min(self.stream_at)).await;
        if Instant::now() >= self.stream_at {
            match self
                .client
                .stream(&self.room, Some(Cursor::at(self.seq)))
                .await
            {
                Ok(stream) => {
                    if !self.reached {
                        tracing::info!("the server is back");
                    }
                    self.reached = true;
                    self.stream = Some(stream);
                    return Ok(());
                }
                Err(error) => {
                    self.stream_failures += 1;
                    let wait = match self.stream_failures >= FAILURES && self.reached {
                        true => STREAM_EVERY,
                        false => self.pause.next(),
                    };
                    self.stream_at = Instant::now() + wait;
                    self.does_not_work(error)?;
                }
            }
        }
        if self.stream_failures >= FAILURES {
            self.read_page().await?;
        }
        Ok(())
    }

    async fn read_page(&mut self) -> Result<(), ClientError> {
        let query = MessageQuery {
            since: Some(self.seq),
            limit: Some(PAGE),
            ..MessageQuery::default()
        };
        match self.client.messages(&self.room, &query).await {
            Ok(page) => {
                if !self.reached {
                    tracing::info!("the server is back");
                    // Its stream may be, too.
                    self.stream_at = Instant::now();
                }
                self.works();
                self.poll_at = Instant::now() + POLL_EVERY;
                // Nothing more comes up to here, even if the page is empty.
                if page.messages.is_empty() {
                    self.read_until = self.seq;
                } else {
                    self.read_until = self.read_until.max(page.latest_seq);
                }
                self.read.extend(page.messages);
                Ok(())
            }
            Err(error) => {
                self.does_not_work(error)?;
                let wait = self.pause.next();
                self.poll_at = Instant::now() + wait;
                self.stream_at = self.stream_at.min(self.poll_at);
                tokio::time::sleep(wait).await;
                Ok(())
            }
        }
    }

    fn works(&mut self) {
        self.reached = true;
        self.pause.reset();
    }

    /// Passes on what is final, and tells of trouble once.
    fn does_not_work(&mut self, error: ClientError) -> Result<(), ClientError> {
        match verdict(&error) {
            Verdict::Wait(asked) => {
                if std::mem::replace(&mut self.reached, false) {
                    tracing::warn!(%error, "the room cannot be read now; trying on");
                }
                if let Some(asked) = asked {
                    self.stream_at = self.stream_at.max(Instant::now() + asked);
                }
                Ok(())
            }
            Verdict::Renew | Verdict::Skip | Verdict::Leave(_) => Err(error),
        }
    }
}
