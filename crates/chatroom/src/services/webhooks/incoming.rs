//! What comes in through a webhook's address. Whoever knows the address posts under the webhook's name and
//! as nobody else: not as a member, and not as a person whose word lets agents go on.

use super::{payload, signature};
use crate::{
    app::App,
    clock::Now,
    error::{Error, Result},
    metrics::WebhookTaken,
    services::{
        change::{
            Admission, AuthorKind, Candidate, Refusal, RoomLog, RoomTx, admit, message::Draft,
        },
        limits::{self, Limit},
        messages::posting::mentions::mentioned,
    },
    store::webhooks::WebhookRow,
};
use protocol::{ErrorCode, RoomId, UserId, Via, WebhookPosted};
use serde_json::Value;

/// What the sender says of its payload.
#[derive(Debug, Default)]
pub struct Headers<'a> {
    /// GitHub's word for what happened.
    pub event: Option<&'a str>,
    /// `X-Hub-Signature-256`.
    pub signature: Option<&'a str>,
    /// What is posted once, however often it comes.
    pub key: Option<String>,
}

/// The webhook that this is the address of.
pub async fn find(app: &App, code: &str) -> Result<WebhookRow> {
    let mut conn = app.db.read().await?;
    let hook = conn.webhook_by_code(&app.secrets.hash_code(code)).await?;
    hook.filter(|hook| usable(app, hook)).ok_or_else(missing)
}

/// Posts what came in; also gives what became of it.
pub async fn post(
    app: &App,
    hook: WebhookRow,
    headers: Headers<'_>,
    body: &[u8],
    payload: &Value,
) -> Result<(WebhookTaken, WebhookPosted)> {
    if let Some(sealed) = &hook.sealed_secret {
        let secret = app.secrets.unseal(sealed);
        let signed = |secret: String| signature::is_signed(&secret, body, headers.signature);
        if !secret.is_some_and(signed) {
            return Err(Error::new(
                ErrorCode::TokenInvalid,
                "X-Hub-Signature-256 is missing, or does not fit the body and this webhook's secret",
            ));
        }
    }
    let room = &hook.room_id;
    let Some(rendered) = payload::render(headers.event, payload) else {
        let nothing = WebhookPosted {
            ok: true,
            room_id: room.clone(),
            seq: None,
            calls_agents: false,
        };
        return Ok((WebhookTaken::Ignored, nothing));
    };
    let text = rendered.content.as_str();
    let mentions = match rendered.mentions {
        true => mentioned(&app.db, room, text).await?.users,
        false => Vec::new(),
    };
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    let row = tx.lock_room(room).await?.ok_or_else(missing)?;
    // Whoever removes it, or switches it off, holds the room too.
    let hook = tx.webhook(&hook.hook_id).await?;
    let hook = hook.filter(|hook| usable(app, hook)).ok_or_else(missing)?;
    let (room, id) = (&hook.room_id, &hook.hook_id);
    if let Some(key) = &headers.key
        && let Some(prior) = tx.prior_posts(&[(room, id, key)]).await?.first()
    {
        return Ok((WebhookTaken::Repeated, posted(room, prior.seq, false)));
    }
    limits::count_against(&mut tx, &[limit(app, id)], now).await?;
    let mut log = RoomLog::new(row);
    let limits = &app.config.limits;
    let words = Candidate {
        author: AuthorKind::Agent,
        user: id,
        parent: None,
        depth: Some(0),
    };
    // What the agents answer counts as said to each other, so a loop through a webhook ends. An alert is
    // shown all the same; it calls nobody then.
    let admission = match admit(log.room(), words, limits, now) {
        Ok(admission) => admission,
        Err(Refusal::UsedUp(_)) => Admission::shown_only(),
        Err(refused) => return Err(refused.into()),
    };
    let calls_agents = admission.exchanges_left(log.room(), limits, now) != Some(0);
    let draft = Draft {
        user_id: id.clone(),
        user_name: Some(hook.name.clone()),
        via: Via::Webhook,
        content: text.to_owned(),
        reply_to_seq: None,
        client_key: headers.key,
        usage: None,
        calls_agents,
        mentions: &mentions,
        answered: None,
    };
    let seq = log.post(&mut tx, admission, draft, limits, now).await?;
    tx.add_log(log);
    tx.commit().await?;
    Ok((WebhookTaken::Posted, posted(room, seq, calls_agents)))
}

fn posted(room: &RoomId, seq: i64, calls_agents: bool) -> WebhookPosted {
    WebhookPosted {
        ok: true,
        room_id: room.clone(),
        seq: Some(seq),
        calls_agents,
    }
}

/// Whether the webhook may post: it is on, and its maker was not banned from the server.
fn usable(app: &App, hook: &WebhookRow) -> bool {
    hook.enabled && !app.denylist.bans_user(&hook.created_by)
}

fn missing() -> Error {
    Error::not_found("No such webhook; ask the room's owner for a new address")
}

fn limit(app: &App, hook: &UserId) -> Limit {
    Limit {
        bucket: format!("webhook {hook}"),
        most: app.config.limits.webhook_messages_per_minute,
        window_ms: 60_000,
        code: ErrorCode::RateLimited,
        words: "This webhook posted too many messages in a minute",
        stored: true,
    }
}
