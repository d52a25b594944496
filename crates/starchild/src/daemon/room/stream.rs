//! A room's stream, which reconnects: opened, read, opened again when it ends, and judged.
//!
//! Something between here and the server may refuse it, hold its bytes back or cut it again and
//! again. Such a stream is tried now and then, and does not count until it has come through for a
//! while.

use crate::daemon::retry;
use client::{Client, ClientError, Cursor, Event, EventStream, protocol::RoomId};
use runtime::Backoff;
use std::{fmt, future::Future, pin::Pin, time::Duration};
use tokio::time::{Instant, sleep_until, timeout_at};

/// How long a stream may take to say where it stands.
const FIRST_BYTES_WITHIN: Duration = Duration::from_secs(10);
/// After a failure a stream must be received for so long before it counts. The server says something
/// every 15 seconds.
const PROVEN_AFTER: Duration = Duration::from_secs(10);
/// So many failures in a row, and the stream is only tried now and then.
const MAX_FAILURES: u32 = 3;
/// How often that is.
const RETRY_EVERY: Duration = Duration::from_secs(30);

type Opening = Pin<Box<dyn Future<Output = Result<EventStream, ClientError>>>>;

/// The stream of one room.
pub struct RoomStream {
    client: Client,
    room: RoomId,
    state: State,
    /// How many streams in a row did not come through.
    failures: u32,
    backoff: Backoff,
}

enum State {
    Waiting {
        until: Instant,
    },
    Opening(Opening),
    Open {
        stream: Box<EventStream>,
        first_bytes_by: Instant,
    },
}

impl fmt::Debug for RoomStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoomStream")
            .field("room", &self.room)
            .field("failures", &self.failures)
            .finish_non_exhaustive()
    }
}

impl RoomStream {
    /// A stream that is opened when it is first listened to.
    pub fn new(client: Client, room: RoomId) -> Self {
        Self {
            client,
            room,
            state: State::Waiting {
                until: Instant::now(),
            },
            failures: 0,
            backoff: retry::backoff(),
        }
    }

    /// The same stream, opened anew with another key.
    pub fn set_client(&mut self, client: Client) {
        self.client = client;
        self.state = State::Waiting {
            until: Instant::now(),
        };
    }

    /// The next event, or nothing where the stream ended or failed. It is opened after `from` when
    /// it is time to. Dropping the future loses nothing.
    pub async fn next(&mut self, from: Cursor) -> Result<Option<Event>, ClientError> {
        loop {
            match &mut self.state {
                State::Waiting { until } => {
                    sleep_until(*until).await;
                    let (client, room) = (self.client.clone(), self.room.clone());
                    let open = async move { client.stream(&room, Some(from)).await };
                    self.state = State::Opening(Box::pin(open));
                }
                State::Opening(opening) => match opening.await {
                    Ok(stream) => {
                        self.state = State::Open {
                            stream: Box::new(stream),
                            first_bytes_by: Instant::now() + FIRST_BYTES_WITHIN,
                        }
                    }
                    Err(error) => {
                        self.back_off(self.failures + 1);
                        return Err(error);
                    }
                },
                State::Open {
                    stream,
                    first_bytes_by,
                } => {
                    let received = match stream.received_for() {
                        Some(_) => stream.next().await,
                        // The future is dropped, but what it read is kept.
                        None => match timeout_at(*first_bytes_by, stream.next()).await {
                            Ok(received) => received,
                            Err(_) if stream.received_for().is_some() => continue,
                            Err(_) => Err(ClientError::Silent(FIRST_BYTES_WITHIN)),
                        },
                    };
                    if let Ok(Some((_, event))) = received {
                        return Ok(Some(event));
                    }
                    let failures = match (&received, stream.received_for()) {
                        // Held back from some point on: the next one will be, too.
                        (Err(ClientError::Silent(_)), Some(_)) => MAX_FAILURES,
                        (_, Some(received_for)) if received_for >= PROVEN_AFTER => 0,
                        _ => self.failures + 1,
                    };
                    self.back_off(failures);
                    return received.map(|_| None);
                }
            }
        }
    }

    /// Whether what is said in the room comes this way now.
    pub fn is_live(&mut self) -> bool {
        let State::Open { stream, .. } = &self.state else {
            return false;
        };
        let Some(received_for) = stream.received_for() else {
            return false;
        };
        if received_for >= PROVEN_AFTER {
            self.reset_failures();
        }
        self.failures == 0
    }

    /// Whether the stream did not come through when it was last tried.
    pub fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// What stood in the way is gone, as far as one can tell.
    pub fn retry_now(&mut self) {
        self.reset_failures();
        if let State::Waiting { until } = &mut self.state {
            *until = Instant::now();
        }
    }

    /// Lets so much time pass before the next try, as the server asks.
    pub fn retry_no_sooner_than(&mut self, delay: Duration) {
        if let State::Waiting { until } = &mut self.state {
            *until = (*until).max(Instant::now() + delay);
        }
    }

    fn reset_failures(&mut self) {
        self.failures = 0;
        self.backoff.reset();
    }

    fn back_off(&mut self, failures: u32) {
        if failures == 0 {
            self.reset_failures();
        }
        self.failures = failures;
        let delay = match failures >= MAX_FAILURES {
            true => RETRY_EVERY,
            false => self.backoff.next_delay(),
        };
        self.state = State::Waiting {
            until: Instant::now() + delay,
        };
    }
}
