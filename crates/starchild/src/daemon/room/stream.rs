//! A room's stream: opened, heard, opened again when it ends, and judged.
//!
//! Something between here and the server may refuse it, hold its bytes back or cut it again and
//! again. Such a stream is tried now and then, and does not count until it has come through for a
//! while.

use crate::daemon::backoff::Pause;
use client::{Client, ClientError, Cursor, Event, EventStream, protocol::RoomId};
use std::{fmt, future::Future, pin::Pin, time::Duration};
use tokio::time::{Instant, sleep_until, timeout_at};

/// How long a stream may take to say where it stands.
const BEGIN_WITHIN: Duration = Duration::from_secs(10);
/// After trouble a stream must be heard for so long before it counts. The server says something
/// every 15 seconds.
const PROOF: Duration = Duration::from_secs(10);
/// So many troubles in a row, and the stream is only tried now and then.
const TROUBLES: u32 = 3;
/// How often that is.
const TRY_EVERY: Duration = Duration::from_secs(30);

type Opening = Pin<Box<dyn Future<Output = Result<EventStream, ClientError>>>>;

/// The stream of one room.
pub struct Line {
    client: Client,
    room: RoomId,
    state: State,
    /// How many streams in a row did not come through.
    troubles: u32,
    pause: Pause,
}

enum State {
    Resting {
        until: Instant,
    },
    Opening(Opening),
    Open {
        stream: Box<EventStream>,
        begin_by: Instant,
    },
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line")
            .field("room", &self.room)
            .field("troubles", &self.troubles)
            .finish_non_exhaustive()
    }
}

impl Line {
    /// A stream that is opened when it is first listened to.
    pub fn new(client: Client, room: RoomId) -> Self {
        Self {
            client,
            room,
            state: State::Resting {
                until: Instant::now(),
            },
            troubles: 0,
            pause: Pause::default(),
        }
    }

    /// The same stream, opened anew with another key.
    pub fn set_client(&mut self, client: Client) {
        self.client = client;
        self.state = State::Resting {
            until: Instant::now(),
        };
    }

    /// The next event, or nothing where the stream ended or failed. It is opened after `from` when
    /// it is time to. Dropping the future loses nothing.
    pub async fn next(&mut self, from: Cursor) -> Result<Option<Event>, ClientError> {
        loop {
            match &mut self.state {
                State::Resting { until } => {
                    sleep_until(*until).await;
                    let (client, room) = (self.client.clone(), self.room.clone());
                    let open = async move { client.stream(&room, Some(from)).await };
                    self.state = State::Opening(Box::pin(open));
                }
                State::Opening(opening) => match opening.await {
                    Ok(stream) => {
                        self.state = State::Open {
                            stream: Box::new(stream),
                            begin_by: Instant::now() + BEGIN_WITHIN,
                        }
                    }
                    Err(error) => {
                        self.rest(self.troubles + 1);
                        return Err(error);
                    }
                },
                State::Open { stream, begin_by } => {
                    let heard = match stream.heard_for() {
                        Some(_) => stream.next().await,
                        // The future is dropped, but what it read is kept.
                        None => match timeout_at(*begin_by, stream.next()).await {
                            Ok(heard) => heard,
                            Err(_) if stream.heard_for().is_some() => continue,
                            Err(_) => Err(ClientError::Silent(BEGIN_WITHIN)),
                        },
                    };
                    if let Ok(Some((_, event))) = heard {
                        return Ok(Some(event));
                    }
                    let troubles = match (&heard, stream.heard_for()) {
                        // Held back from some point on: the next one will be, too.
                        (Err(ClientError::Silent(_)), Some(_)) => TROUBLES,
                        (_, Some(heard_for)) if heard_for >= PROOF => 0,
                        _ => self.troubles + 1,
                    };
                    self.rest(troubles);
                    return heard.map(|_| None);
                }
            }
        }
    }

    /// Whether what is said in the room comes this way now.
    pub fn comes_through(&mut self) -> bool {
        let State::Open { stream, .. } = &self.state else {
            return false;
        };
        let Some(heard_for) = stream.heard_for() else {
            return false;
        };
        if heard_for >= PROOF {
            self.forget_trouble();
        }
        self.troubles == 0
    }

    /// Whether the stream did not come through when it was last tried.
    pub fn is_troubled(&self) -> bool {
        self.troubles > 0
    }

    /// What stood in the way is gone, as far as one can tell.
    pub fn try_now(&mut self) {
        self.forget_trouble();
        if let State::Resting { until } = &mut self.state {
            *until = Instant::now();
        }
    }

    /// Lets so much time pass before the next try, as the server asks.
    pub fn wait_at_least(&mut self, asked: Duration) {
        if let State::Resting { until } = &mut self.state {
            *until = (*until).max(Instant::now() + asked);
        }
    }

    fn forget_trouble(&mut self) {
        self.troubles = 0;
        self.pause.reset();
    }

    fn rest(&mut self, troubles: u32) {
        if troubles == 0 {
            self.forget_trouble();
        }
        self.troubles = troubles;
        let rest = match troubles >= TROUBLES {
            true => TRY_EVERY,
            false => self.pause.next(),
        };
        self.state = State::Resting {
            until: Instant::now() + rest,
        };
    }
}
