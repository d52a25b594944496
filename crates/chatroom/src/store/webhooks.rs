//! Webhooks, how far those that are called have come, and what they were sent lately.

use super::{
    Conn, DbResult, Json,
    db::{exec, row, rows},
    deliveries::Held,
};
use protocol::{
    BadId, Cursor, DeliveryState, EventKind, RoomId, UserId, WebhookEvent, WebhookKind,
};
use std::str::FromStr;

row_struct! {
    /// A webhook.
    #[derive(Debug, Clone)]
    pub struct WebhookRow {
        pub hook_id: UserId,
        pub room_id: RoomId,
        pub kind: WebhookKind,
        pub name: String,
        pub created_by: UserId,
        pub created_at: i64,
        pub sealed_secret: Option<String>,
        pub sealed_url: Option<String>,
        pub target: Option<String>,
        /// Whether its address may be on a private network, where the settings let trusted callers do so.
        pub trusted: bool,
        /// What it tells of.
        pub events: Json<Vec<WebhookEvent>>,
        pub enabled: bool,
        pub disabled_reason: Option<String>,
        pub failing_since: Option<i64>,
    }
}

row_struct! {
    /// How far a webhook that is called has come.
    #[derive(Debug)]
    pub struct WebhookLaneRow {
        pub next_seq: i64,
        pub next_sub: i64,
        pub attempt: i64,
        pub due_ms: i64,
        pub generation: i64,
    }
}

impl WebhookLaneRow {
    /// The last cursor that it has dealt with.
    pub fn position(&self) -> Cursor {
        Cursor {
            seq: self.next_seq - 1,
            sub: self.next_sub,
        }
    }
}

row_struct! {
    /// What was sent, or could not be.
    #[derive(Debug)]
    pub struct WebhookDeliveryRow {
        pub seq: i64,
        pub sub: i64,
        pub event: SentEvent,
        pub state: DeliveryState,
        pub attempts: i64,
        pub status: Option<i64>,
        pub error: Option<String>,
        pub first_at: i64,
        pub last_at: i64,
    }
}

/// What a webhook was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SentEvent {
    /// Something that it tells of.
    Told(WebhookEvent),
    /// That events were dropped before they could be sent.
    Resync,
}

impl SentEvent {
    /// The word that is stored and sent.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Told(event) => event.as_str(),
            Self::Resync => EventKind::Resync.as_str(),
        }
    }
}

impl FromStr for SentEvent {
    type Err = BadId;
    fn from_str(word: &str) -> Result<Self, BadId> {
        match word == Self::Resync.as_str() {
            true => Ok(Self::Resync),
            false => word.parse().map(Self::Told),
        }
    }
}

/// What a [`WebhookRow`] is read from.
macro_rules! select_webhook {
    ($rest:literal) => {
        concat!("SELECT hook_id, room_id, kind, name, created_by, created_at, sealed_secret, sealed_url, target, \
             trusted, events, enabled, disabled_reason, failing_since FROM webhooks ", $rest)
    };
}

impl Conn {
    pub async fn insert_webhook(
        &mut self,
        hook: &WebhookRow,
        code_hash: Option<&str>,
    ) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO webhooks (hook_id, room_id, kind, name, created_by, created_at, code_hash, sealed_secret, \
             sealed_url, target, trusted, events) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            &hook.hook_id,
            &hook.room_id,
            hook.kind.as_str(),
            &hook.name,
            &hook.created_by,
            hook.created_at,
            code_hash,
            &hook.sealed_secret,
            &hook.sealed_url,
            &hook.target,
            hook.trusted,
            &hook.events
        )?;
        Ok(())
    }

    /// The room's webhooks, oldest first.
    pub async fn webhooks(&mut self, room: &RoomId) -> DbResult<Vec<WebhookRow>> {
        rows!(
            self,
            WebhookRow,
            select_webhook!("WHERE room_id = $1 ORDER BY created_at, hook_id"),
            room
        )
    }

    pub async fn webhook(&mut self, hook: &UserId) -> DbResult<Option<WebhookRow>> {
        row!(
            self,
            WebhookRow,
            select_webhook!("WHERE hook_id = $1"),
            hook
        )
    }

    pub async fn webhook_by_code(&mut self, code_hash: &str) -> DbResult<Option<WebhookRow>> {
        row!(
            self,
            WebhookRow,
            select_webhook!("WHERE code_hash = $1"),
            code_hash
        )
    }

    /// Forgets a webhook and everything about it.
    pub async fn delete_webhook(&mut self, room: &RoomId, hook: &UserId) -> DbResult<()> {
        exec!(self, "DELETE FROM webhooks WHERE hook_id = $1", hook)?;
        exec!(
            self,
            "DELETE FROM webhook_deliveries WHERE hook_id = $1",
            hook
        )?;
        self.disable_delivery(room, hook).await?;
        self.set_skeletons(room, hook, &[]).await
    }

    /// Gives a webhook another address or secret.
    pub async fn rotate_webhook(
        &mut self,
        hook: &UserId,
        code_hash: Option<&str>,
        sealed_secret: Option<&str>,
    ) -> DbResult<()> {
        exec!(
            self,
            "UPDATE webhooks SET code_hash = $2, sealed_secret = $3 WHERE hook_id = $1",
            hook,
            code_hash,
            sealed_secret
        )?;
        Ok(())
    }

    /// Switches a webhook on or off.
    pub async fn set_webhook_enabled(
        &mut self,
        hook: &UserId,
        enabled: bool,
        reason: Option<&str>,
    ) -> DbResult<()> {
        exec!(
            self,
            "UPDATE webhooks SET enabled = $2, disabled_reason = $3, failing_since = NULL WHERE hook_id = $1",
            hook,
            enabled,
            reason
        )?;
        Ok(())
    }

    /// Notes since when a webhook fails, or that it does not.
    pub async fn set_webhook_failing(&mut self, hook: &UserId, since: Option<i64>) -> DbResult<()> {
        exec!(
            self,
            "UPDATE webhooks SET failing_since = $2 WHERE hook_id = $1",
            hook,
            since
        )?;
        Ok(())
    }

    /// Lets a webhook be called for what comes after this cursor.
    pub async fn enable_webhook_delivery(
        &mut self,
        room: &RoomId,
        hook: &UserId,
        after: Cursor,
    ) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO deliveries (room_id, user_id, next_seq, next_sub) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (room_id, user_id) DO UPDATE SET next_seq = $3, next_sub = $4, \
             attempt = 0, due_ms = 0, last_error = NULL, generation = deliveries.generation + 1",
            room,
            hook,
            after.seq + 1,
            after.sub
        )?;
        Ok(())
    }

    /// How far a webhook has come that may be called by this node.
    pub async fn webhook_lane(
        &mut self,
        room: &RoomId,
        hook: &UserId,
        node: &str,
    ) -> DbResult<Option<WebhookLaneRow>> {
        row!(
            self,
            WebhookLaneRow,
            "SELECT next_seq, next_sub, attempt, due_ms, generation FROM deliveries \
             WHERE room_id = $1 AND user_id = $2 AND COALESCE(claimed_by, $3) = $3",
            room,
            hook,
            node
        )
    }

    /// The last cursor that a webhook has dealt with, whoever calls it.
    pub async fn webhook_position(
        &mut self,
        room: &RoomId,
        hook: &UserId,
    ) -> DbResult<Option<Cursor>> {
        const POSITION: &str =
            "SELECT next_seq - 1, next_sub FROM deliveries WHERE room_id = $1 AND user_id = $2";
        let found = row!(self, (i64, i64), POSITION, room, hook)?;
        Ok(found.map(|(seq, sub)| Cursor { seq, sub }))
    }

    /// Moves a webhook on to this cursor; whether it is still ours.
    pub async fn pass_event(&mut self, held: Held<'_>, at: Cursor) -> DbResult<bool> {
        let moved = exec!(
            self,
            "UPDATE deliveries SET next_seq = $5, next_sub = $6, attempt = 0, due_ms = 0, last_error = NULL \
             WHERE room_id = $1 AND user_id = $2 AND generation = $3 AND (next_seq, next_sub) <= ($5, $6) \
             AND COALESCE(claimed_by, $4) = $4",
            held.room,
            held.user,
            held.generation,
            held.node,
            at.seq + 1,
            at.sub
        )?;
        Ok(moved == 1)
    }

    /// Notes that what comes after this cursor could not be sent; whether the webhook is still ours.
    pub async fn fail_event(
        &mut self,
        held: Held<'_>,
        after: Cursor,
        attempt: i64,
        due_ms: i64,
        error: &str,
    ) -> DbResult<bool> {
        let noted = exec!(
            self,
            "UPDATE deliveries SET next_seq = $5, next_sub = $6, attempt = $7, due_ms = $8, last_error = $9 \
             WHERE room_id = $1 AND user_id = $2 AND generation = $3 AND (next_seq, next_sub) <= ($5, $6) \
             AND COALESCE(claimed_by, $4) = $4",
            held.room,
            held.user,
            held.generation,
            held.node,
            after.seq + 1,
            after.sub,
            attempt,
            due_ms,
            error
        )?;
        Ok(noted == 1)
    }

    /// Writes down an attempt, and forgets all but the newest `keep` deliveries.
    pub async fn log_webhook_delivery(
        &mut self,
        hook: &UserId,
        sent: &WebhookDeliveryRow,
        keep: i64,
    ) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO webhook_deliveries (hook_id, seq, sub, event, state, attempts, status, error, first_at, last_at) \
             VALUES ($1, $2, $3, $4, $5, 1, $6, $7, $8, $8) ON CONFLICT (hook_id, seq, sub) DO UPDATE SET \
             state = $5, attempts = webhook_deliveries.attempts + 1, status = $6, error = $7, last_at = $8",
            hook,
            sent.seq,
            sent.sub,
            &sent.event,
            sent.state.as_str(),
            sent.status,
            &sent.error,
            sent.last_at
        )?;
        let oldest_to_drop = row!(
            self,
            (i64, i64),
            "SELECT seq, sub FROM webhook_deliveries WHERE hook_id = $1 ORDER BY seq DESC, sub DESC LIMIT 1 OFFSET $2",
            hook,
            keep
        )?;
        if let Some((seq, sub)) = oldest_to_drop {
            exec!(
                self,
                "DELETE FROM webhook_deliveries WHERE hook_id = $1 AND (seq, sub) <= ($2, $3)",
                hook,
                seq,
                sub
            )?;
        }
        Ok(())
    }

    /// What was sent lately, newest first.
    pub async fn webhook_deliveries(
        &mut self,
        hook: &UserId,
        limit: i64,
    ) -> DbResult<Vec<WebhookDeliveryRow>> {
        rows!(
            self,
            WebhookDeliveryRow,
            "SELECT seq, sub, event, state, attempts, status, error, first_at, last_at FROM webhook_deliveries \
             WHERE hook_id = $1 ORDER BY seq DESC, sub DESC LIMIT $2",
            hook,
            limit
        )
    }

    /// The room is filled with messages from elsewhere from now on.
    pub async fn begin_import(&mut self, room: &RoomId, now: i64) -> DbResult<()> {
        exec!(
            self,
            "INSERT INTO room_imports (room_id, created_at) VALUES ($1, $2)",
            room,
            now
        )?;
        Ok(())
    }

    /// Whether the room is being filled.
    pub async fn is_importing(&mut self, room: &RoomId) -> DbResult<bool> {
        const IMPORTING: &str = "SELECT room_id FROM room_imports WHERE room_id = $1";
        Ok(row!(self, (String,), IMPORTING, room)?.is_some())
    }

    /// The room is as it is to be.
    pub async fn end_import(&mut self, room: &RoomId) -> DbResult<()> {
        exec!(self, "DELETE FROM room_imports WHERE room_id = $1", room)?;
        Ok(())
    }
}
