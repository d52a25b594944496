//! What has come for each conversation, kept until it was read and a little
//! longer, so that a reader who was cut off can go on.

use super::Refusal;
use agentserver::gateway::{Answer, CorrelationId, DeliveryError, Outlet, PendingAck};
use agentserver::{HopId, Pump};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, Stream, stream};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Answers of one conversation that are kept. When so many are unread, the next
/// one waits.
const KEPT: usize = 256;
/// Conversations.
const CONVERSATIONS: usize = 10_000;

pub struct Events {
    pump: Pump,
    logs: Mutex<HashMap<CorrelationId, Log>>,
}

/// An answer: its number, what is told of it, and what acknowledges it.
struct LoggedAnswer {
    number: u64,
    told: Value,
    pending_ack: PendingAck,
}

#[derive(Default)]
struct Log {
    answers: VecDeque<LoggedAnswer>,
    /// The newest answer that somebody was given.
    read: u64,
    /// How often it has come to rest.
    rests: u64,
    /// The newest message that is dealt with, and all that followed from it.
    done: Option<HopId>,
    changed: Arc<Notify>,
}

impl Log {
    fn newest(&self) -> u64 {
        self.answers.back().map_or(0, |kept| kept.number)
    }

    fn keep(&mut self, kept: LoggedAnswer) -> Result<(), DeliveryError> {
        if self.answers.len() >= KEPT {
            let oldest = self.answers.front();
            if oldest.is_some_and(|oldest| oldest.number > self.read) {
                return Err(DeliveryError::Retry("nobody reads".to_owned()));
            }
            self.answers.pop_front();
        }
        self.answers.push_back(kept);
        self.changed.notify_waiters();
        Ok(())
    }

    /// The answers after a number; they count as read, and need not come again after
    /// a crash.
    fn after(&mut self, number: u64) -> Vec<(u64, Value)> {
        let new = self.answers.iter().filter(|kept| kept.number > number);
        let new: Vec<_> = new.map(|kept| (kept.number, kept.told.clone())).collect();
        if let Some(newest) = self.answers.back()
            && newest.number > self.read
        {
            newest.pending_ack.acknowledge();
            self.read = newest.number;
        }
        new
    }
}

impl Events {
    pub fn new(pump: Pump) -> Self {
        Self {
            pump,
            logs: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CorrelationId, Log>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for a conversation.
    pub fn begin(&self, correlation: &CorrelationId) -> Result<(), Refusal> {
        let mut logs = self.lock();
        if logs.len() >= CONVERSATIONS && !logs.contains_key(correlation) {
            return Err(Refusal::busy("too many conversations are open"));
        }
        logs.entry(correlation.clone()).or_default();
        Ok(())
    }

    /// A conversation that did not begin after all.
    pub fn forget(&self, correlation: &CorrelationId) {
        self.lock().remove(correlation);
    }

    /// The answers that nobody has read, when all that followed from a message is
    /// dealt with, or none when the deadline has passed; and which of the two.
    pub async fn wait(
        &self,
        correlation: &CorrelationId,
        sent: HopId,
        deadline: Instant,
    ) -> (Vec<Value>, bool) {
        loop {
            let changed = match self.lock().get(correlation) {
                Some(log) => log.changed.clone(),
                None => return (Vec::new(), true),
            };
            let woken = changed.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if let Some(log) = self.lock().get_mut(correlation)
                && log.done >= Some(sent)
            {
                let answers = log.after(log.read).into_iter();
                return (answers.map(|(_, answer)| answer).collect(), true);
            }
            if tokio::time::timeout_at(deadline, woken).await.is_err() {
                // What comes later is read with the events.
                return (Vec::new(), false);
            }
        }
    }

    /// The answers after a number, and those that come.
    pub fn follow(
        self: Arc<Self>,
        correlation: CorrelationId,
        last: u64,
    ) -> Option<Sse<impl Stream<Item = Result<Event, Infallible>>>> {
        let changed = self.lock().get(&correlation)?.changed.clone();
        let reader = Reader {
            events: self,
            correlation,
            changed,
            last,
            rests: None,
            waiting: VecDeque::new(),
        };
        let events = stream::unfold(reader, |mut reader| async move {
            let event = reader.next().await?;
            Some((Ok(event), reader))
        });
        let keep_alive = KeepAlive::new().interval(Duration::from_secs(15));
        Some(Sse::new(events).keep_alive(keep_alive))
    }

    fn to_json(&self, answer: &Answer) -> Value {
        let payload = &answer.message.payload;
        let organism = self.pump.organism();
        let known = organism.payload_type(payload.namespace(), payload.root());
        let fields = known.and_then(|known| known.xml_to_json(payload).ok());
        json!({
            "number": answer.message.id.number(),
            "from": &*answer.message.from,
            "payload": fields.map(|fields| json!({ payload.root(): fields })),
            "xml": payload.xml(),
        })
    }
}

struct Reader {
    events: Arc<Events>,
    correlation: CorrelationId,
    changed: Arc<Notify>,
    last: u64,
    rests: Option<u64>,
    waiting: VecDeque<Event>,
}

impl Reader {
    /// The next event; nothing when the conversation is over.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            let changed = self.changed.clone();
            let woken = changed.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            self.read()?;
            if self.waiting.is_empty() {
                woken.await;
            }
        }
    }

    fn read(&mut self) -> Option<()> {
        let mut logs = self.events.lock();
        let log = logs.get_mut(&self.correlation)?;
        if self.last > log.newest() {
            // A number from before a restart.
            self.last = 0;
        }
        for (number, answer) in log.after(self.last) {
            let event = Event::default().event("message").id(number.to_string());
            self.waiting.push_back(event.data(answer.to_string()));
            self.last = number;
        }
        if log.rests > self.rests.unwrap_or(0) {
            self.waiting
                .push_back(Event::default().event("rest").data("{}"));
        }
        self.rests = Some(log.rests);
        Some(())
    }
}

/// What [`Events`] are to a gateway.
pub struct ToEvents(pub Arc<Events>);

impl Outlet for ToEvents {
    fn deliver<'a>(&'a self, answer: &'a Answer) -> BoxFuture<'a, Result<(), DeliveryError>> {
        let value = self.0.to_json(answer);
        let mut logs = self.0.lock();
        // There is none where it is of a conversation from before a crash.
        let log = logs.entry(answer.correlation.clone()).or_default();
        let result = log.keep(LoggedAnswer {
            number: answer.message.id.number(),
            told: value,
            pending_ack: answer.defer_ack(),
        });
        std::future::ready(result).boxed()
    }

    fn rested(&self, correlation: &CorrelationId, last: Option<HopId>) {
        if let Some(log) = self.0.lock().get_mut(correlation) {
            log.rests += 1;
            log.done = log.done.max(last);
            log.changed.notify_waiters();
        }
    }

    fn closed(&self, correlation: &CorrelationId) {
        if let Some(log) = self.0.lock().remove(correlation) {
            log.changed.notify_waiters();
        }
    }
}
