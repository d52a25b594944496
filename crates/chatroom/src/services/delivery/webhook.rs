//! One webhook of one room: the room's events in order, one delivery at a time. What cannot be delivered is
//! tried again on the schedule of agents' calls, then at its last interval, and nothing after it is sent
//! before it. A webhook that fails for days is switched off, and the room is told.

use super::{
    Lane, Wakeup,
    lane::{Wait, longest_retry_delay, next_wait, retry_delay_ms, time_until, wait_for_wakeup},
};
use crate::{
    app::App,
    clock::Now,
    error::{Error, Result},
    metrics::WebhookSent,
    outbound::{Redirects, Trust},
    services::{
        change::{RoomLog, RoomTx},
        webhooks::{DELIVERIES_KEPT, delivery_id, signature},
    },
    store::{
        Conn,
        deliveries::Held,
        messages::Page,
        rooms::RoomRow,
        webhooks::{SentEvent, WebhookDeliveryRow, WebhookLaneRow, WebhookRow},
    },
};
use protocol::{Cursor, DeliveryState, MessageType, Resync, Via, WebhookEvent};
use reqwest::{StatusCode, Url, header};
use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

/// Rows of the log that are read at once to find the next event.
const PAGE: i64 = 50;
/// How long an address may take to answer. What it answers is not read.
const DEADLINE: Duration = Duration::from_secs(15);

/// What a webhook's task needs.
pub struct WebhookTask {
    app: App,
    lane: Lane,
    wakeup: Arc<Wakeup>,
    /// How often in a row something went wrong here.
    failures: u32,
}

/// The next thing to do in the room's order of events.
enum Next {
    /// There is nothing after the position.
    Nothing,
    /// Nothing up to here is for this webhook.
    Pass(Cursor),
    Send(OutgoingEvent),
}

/// An event to deliver.
struct OutgoingEvent {
    at: Cursor,
    kind: SentEvent,
    body: String,
}

/// Why a delivery failed, in words that hold no address.
struct DeliveryFailure {
    status: Option<i64>,
    why: String,
    /// The address says that nobody is there any more.
    gone: bool,
}

impl OutgoingEvent {
    /// What it means that this was delivered.
    fn outcome(&self) -> WebhookSent {
        match self.kind {
            SentEvent::Resync => WebhookSent::Dropped,
            SentEvent::Told(_) => WebhookSent::Delivered,
        }
    }
}

impl WebhookTask {
    pub fn new(app: App, lane: Lane, wakeup: Arc<Wakeup>) -> Self {
        Self {
            app,
            lane,
            wakeup,
            failures: 0,
        }
    }

    /// Works until nothing is left to do.
    pub async fn run(mut self) {
        while !self.app.shutdown.has_begun() {
            let worked = self.work().await;
            let wait = next_wait(worked, &self.lane, &mut self.failures);
            if wait_for_wakeup(&self.app, &self.lane, &self.wakeup, wait).await {
                return;
            }
        }
    }

    async fn work(&self) -> Result<Wait> {
        let (room, id) = (&self.lane.room_id, &self.lane.user_id);
        while !self.app.shutdown.has_begun() {
            self.wakeup.clear();
            let mut conn = self.app.db.read().await?;
            let Some(lane) = conn.webhook_lane(room, id, &self.app.node).await? else {
                return Ok(Wait::Idle);
            };
            let hook = conn.webhook(id).await?;
            let hook =
                hook.filter(|hook| hook.enabled && !self.app.denylist.bans_user(&hook.created_by));
            let row = conn.room(room).await?.filter(|room| !room.archived);
            let (Some(hook), Some(row)) = (hook, row) else {
                return Ok(Wait::Idle);
            };
            if lane.attempt > 0 {
                let longest = longest_retry_delay(&self.app.config.fanout.retry_seconds);
                let now_ms = conn.schedule_ms().await?;
                if let Some(wait) = time_until(lane.due_ms, now_ms, longest) {
                    return Ok(Wait::For(wait));
                }
            }
            let next = next_event(&mut conn, &row, lane.position(), &hook.events.0).await?;
            drop(conn);
            match next {
                Next::Nothing => return Ok(Wait::Idle),
                Next::Pass(at) => {
                    let mut tx = self.app.db.begin_keeping_cache().await?;
                    tx.pass_event(self.held(&lane), at).await?;
                    tx.commit().await?;
                }
                Next::Send(event) => self.deliver(&hook, &lane, &event).await?,
            }
        }
        Ok(Wait::Idle)
    }

    fn held(&self, lane: &WebhookLaneRow) -> Held<'_> {
        Held {
            room: &self.lane.room_id,
            user: &self.lane.user_id,
            generation: lane.generation,
            node: &self.app.node,
        }
    }

    async fn deliver(
        &self,
        hook: &WebhookRow,
        lane: &WebhookLaneRow,
        event: &OutgoingEvent,
    ) -> Result<()> {
        let sent = self.send(hook, event).await;
        let now = Now::get();
        let failure = match sent {
            Ok(status) => {
                let mut tx = self.app.db.begin_keeping_cache().await?;
                let noted = tx.pass_event(self.held(lane), event.at).await?;
                if noted {
                    let row = logged(event, DeliveryState::Delivered, Some(status), None, now);
                    tx.log_webhook_delivery(&hook.hook_id, &row, DELIVERIES_KEPT)
                        .await?;
                    if hook.failing_since.is_some() {
                        tx.set_webhook_failing(&hook.hook_id, None).await?;
                    }
                }
                tx.commit().await?;
                if noted {
                    self.app.metrics.sent_to_webhook(event.outcome());
                }
                return Ok(());
            }
            Err(failure) => failure,
        };
        let attempt = lane.attempt + 1;
        let since = hook.failing_since.unwrap_or(now.seconds());
        let DeliveryFailure { why, gone, status } = failure;
        tracing::info!(room = %self.lane.room_id, webhook = %hook.hook_id, at = %event.at, attempt, why, "a webhook could not be delivered");
        let too_long = now.seconds() - since >= self.app.config.fanout.webhook_failing_seconds;
        let mut tx = RoomTx::begin(&self.app).await?;
        let room = tx.lock_room(&self.lane.room_id).await?;
        let wait_ms = retry_delay_ms(&self.app.config.fanout.retry_seconds, attempt, None);
        let due_ms = tx.schedule_ms().await? + wait_ms;
        let noted = tx
            .fail_event(self.held(lane), lane.position(), attempt, due_ms, &why)
            .await?;
        let (true, Some(room)) = (noted, room) else {
            return Ok(());
        };
        let row = logged(
            event,
            DeliveryState::Retrying,
            status,
            Some(why.clone()),
            now,
        );
        tx.log_webhook_delivery(&hook.hook_id, &row, DELIVERIES_KEPT)
            .await?;
        tx.set_webhook_failing(&hook.hook_id, Some(since)).await?;
        if gone || too_long {
            let id = &hook.hook_id;
            tx.set_webhook_enabled(id, false, Some(&why)).await?;
            let words = format!(
                "The webhook {id} is switched off: {why}. The room's owner can switch it on again."
            );
            let mut log = RoomLog::new(room);
            log.system_message(&mut tx, words, now).await?;
            tx.add_log(log);
        }
        tx.commit().await?;
        self.app.metrics.sent_to_webhook(WebhookSent::Failed);
        if gone || too_long {
            self.app.metrics.sent_to_webhook(WebhookSent::SwitchedOff);
        }
        Ok(())
    }

    /// Sends an event; the status of an answer that takes it.
    async fn send(&self, hook: &WebhookRow, event: &OutgoingEvent) -> Result<i64, DeliveryFailure> {
        let unreadable = || DeliveryFailure::before("the stored address or secret cannot be read");
        let unseal = |sealed: &Option<String>| self.app.secrets.unseal(sealed.as_deref()?);
        let address = unseal(&hook.sealed_url).ok_or_else(unreadable)?;
        let secret = unseal(&hook.sealed_secret).ok_or_else(unreadable)?;
        let url: Url = address.parse().map_err(|_| unreadable())?;
        let (id, now) = (delivery_id(&hook.hook_id, event.at), Now::get().seconds());
        let signature = signature::sign(&secret, &id, now, &event.body).ok_or_else(unreadable)?;
        let client = self
            .app
            .outbound
            .client_with(&url, Trust::of(hook.trusted), Redirects::Stay)
            .map_err(|error| DeliveryFailure::before(error.to_string()))?;
        let permit = self
            .app
            .lanes
            .acquire_permit(&hook.created_by, &address)
            .await;
        let answer = client
            .post(url)
            .timeout(DEADLINE)
            .header(header::CONTENT_TYPE, "application/json")
            .header("webhook-id", &id)
            .header("webhook-timestamp", now)
            .header("webhook-signature", signature)
            .body(event.body.clone())
            .send()
            .await;
        drop(permit);
        let status = answer
            .map_err(|error| DeliveryFailure::before(in_words(&error)))?
            .status();
        match status.is_success() {
            true => Ok(status.as_u16().into()),
            false => Err(DeliveryFailure {
                status: Some(status.as_u16().into()),
                why: format!("the address answered with status {}", status.as_u16()),
                gone: status == StatusCode::GONE,
            }),
        }
    }
}

impl Drop for WebhookTask {
    /// However the task ends, another can take the lane up.
    fn drop(&mut self) {
        self.app.lanes.forget_lane(&self.lane, &self.wakeup);
    }
}

impl DeliveryFailure {
    fn before(why: impl Into<String>) -> Self {
        Self {
            status: None,
            why: why.into(),
            gone: false,
        }
    }
}

fn logged(
    event: &OutgoingEvent,
    state: DeliveryState,
    status: Option<i64>,
    error: Option<String>,
    now: Now,
) -> WebhookDeliveryRow {
    WebhookDeliveryRow {
        seq: event.at.seq,
        sub: event.at.sub,
        event: event.kind,
        state,
        attempts: 1,
        status,
        error,
        first_at: now.seconds(),
        last_at: now.seconds(),
    }
}

fn in_words(error: &reqwest::Error) -> &'static str {
    match error.is_timeout() {
        true => "the address took too long",
        false => "cannot connect to the address: it is down, or not one that this server calls",
    }
}

/// What comes after the position, read anew for every attempt: a text that was deleted meanwhile is gone.
async fn next_event(
    conn: &mut Conn,
    room: &RoomRow,
    after: Cursor,
    wanted: &[WebhookEvent],
) -> Result<Next> {
    let (id, head) = (&room.room_id, room.head());
    if after >= head {
        return Ok(Next::Nothing);
    }
    let page = Page {
        since: after.seq,
        limit: PAGE,
        ..Page::default()
    };
    let messages = conn.messages(id, &page).await?;
    let is_full = |rows: usize| i64::try_from(rows).is_ok_and(|rows| rows >= PAGE);
    let upto = match messages.last() {
        Some(last) if is_full(messages.len()) => Cursor::at(last.seq),
        _ => head,
    };
    let events = conn.events_between(id, after, upto, PAGE).await?;
    let upto = match events.last() {
        Some(last) if is_full(events.len()) => last.cursor(),
        _ => upto,
    };
    // Asked after the events were read: what is dropped later was read already.
    let room = conn.room(id).await?.ok_or_else(Error::room_not_found)?;
    if after < room.pruned_to() {
        let resync = Resync {
            room_id: id.clone(),
            reason: "events after the last delivery are no longer kept".to_owned(),
            latest_seq: head.seq,
        };
        let at = room.pruned_to();
        return Ok(Next::Send(event(
            &room,
            at,
            SentEvent::Resync,
            Now::get().seconds(),
            json!(resync),
        )));
    }
    // Both are in order; so is what they become.
    let mut found: Vec<OutgoingEvent> = Vec::new();
    for row in messages
        .into_iter()
        .filter(|row| Cursor::at(row.seq) <= upto)
    {
        let kind = match row.r#type {
            MessageType::Chat => WebhookEvent::Message,
            _ => WebhookEvent::Notice,
        };
        // What came in through a webhook goes out through none: so no two of them go round in circles.
        if wanted.contains(&kind) && row.via != Via::Webhook {
            let (at, made) = (Cursor::at(row.seq), row.created_at);
            let data = json!(row.into_message(room.rules_version));
            found.push(event(&room, at, SentEvent::Told(kind), made, data));
            break;
        }
    }
    for row in events {
        // Not every event of a room is told.
        let Ok(kind) = row.kind.as_str().parse::<WebhookEvent>() else {
            continue;
        };
        if !wanted.contains(&kind) || found.first().is_some_and(|first| first.at < row.cursor()) {
            continue;
        }
        let data = match row.about {
            None => row.value()?,
            Some(seq) => match conn.message(id, seq).await? {
                Some(message) => json!(message.into_message(room.rules_version)),
                None => continue,
            },
        };
        let made = Now::get().seconds();
        let kind = SentEvent::Told(kind);
        found.insert(0, event(&room, row.cursor(), kind, made, data));
        break;
    }
    Ok(match found.into_iter().next() {
        Some(event) => Next::Send(event),
        None => Next::Pass(upto),
    })
}

/// The event as it is sent: what a stream's readers get, with the room and the cursor.
fn event(room: &RoomRow, at: Cursor, kind: SentEvent, made: i64, mut data: Value) -> OutgoingEvent {
    if let Some(data) = data.as_object_mut() {
        data.insert("room_id".to_owned(), json!(room.room_id));
        data.insert("room_name".to_owned(), json!(room.name));
        data.insert("cursor".to_owned(), json!(at.to_string()));
    }
    let since_1970 = Duration::from_secs(u64::try_from(made).unwrap_or_default());
    let time = humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + since_1970);
    let body = json!({"type": kind.as_str(), "timestamp": time.to_string(), "data": data});
    OutgoingEvent {
        at,
        kind,
        body: body.to_string(),
    }
}
