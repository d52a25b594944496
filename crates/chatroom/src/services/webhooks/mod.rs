//! Webhooks: addresses that post into a room, and addresses that are told what happens in one. A room's
//! owner makes them. `delivery` calls the latter.

pub mod incoming;
mod payload;
pub mod signature;

use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::{Error, Result},
    services::{
        access::{self, RoomAccess, RoomLock},
        audit,
        change::{RoomLog, RoomTx},
        checks,
        members::names,
        rooms::reserved::refuse_change,
    },
    store::{Conn, Json, webhooks::WebhookRow},
};
use protocol::{
    CreateWebhook, Cursor, RoomId, UpdateWebhook, UserId, WEBHOOK_PREFIX, WebhookCreated,
    WebhookDeliveries, WebhookDelivery, WebhookEvent, WebhookKind, WebhookView, Webhooks,
};
use std::collections::BTreeSet;

/// Webhooks that a room may have.
const MOST: usize = 20;
/// Deliveries that are kept to be looked at.
pub const DELIVERIES_KEPT: i64 = 100;
/// What the code in an address begins with.
const CODE_PREFIX: &str = "wh_";
const CODE_LENGTH: usize = 32;
const ID_LENGTH: usize = 12;
/// What a webhook tells of where nobody says.
const DEFAULT_EVENTS: [WebhookEvent; 3] = [
    WebhookEvent::Message,
    WebhookEvent::MessageEdited,
    WebhookEvent::MessageDeleted,
];
/// A webhook that was off goes on where it was, but not further back than this.
const LONGEST_BACKLOG: i64 = 200;

pub async fn list(app: &App, caller: &Caller, room: &RoomId) -> Result<Webhooks> {
    let mut conn = app.db.read().await?;
    access::member(&mut conn, caller, room, RoomLock::Unlocked)
        .await?
        .as_owner()?;
    let rows = conn.webhooks(room).await?;
    Ok(Webhooks {
        webhooks: rows.iter().map(view).collect(),
    })
}

pub async fn create(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    request: CreateWebhook,
) -> Result<WebhookCreated> {
    let name = checks::member_name("name", &request.name)?;
    let wanted = NewWebhook::of(&request)?;
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    let entry = owner(&mut tx, caller, room).await?;
    if tx.webhooks(room).await?.len() >= MOST {
        return Err(Error::bad_request(format!(
            "The room has {MOST} webhooks already; remove one first"
        )));
    }
    let code = |length| app.secrets.random_code("", length).map_err(Error::internal);
    let id = format!("{WEBHOOK_PREFIX}{}", code(ID_LENGTH)?);
    let id = UserId::try_from(id).map_err(Error::internal)?;
    names::refuse_impersonation(&mut tx, &[room], &id, "name", &name).await?;
    let issued = Issued::new(app, request.kind, wanted.signed)?;
    let hook = WebhookRow {
        hook_id: id.clone(),
        room_id: room.clone(),
        kind: request.kind,
        name: name.clone(),
        created_by: entry.member.user_id.clone(),
        created_at: now.seconds(),
        sealed_secret: issued.sealed(app)?,
        sealed_url: match &wanted.url {
            Some(url) => Some(app.secrets.seal(url).map_err(Error::internal)?),
            None => None,
        },
        target: wanted.url.as_deref().map(origin),
        trusted: access::may_name_private_endpoint(caller),
        events: Json(wanted.events),
        enabled: true,
        disabled_reason: None,
        failing_since: None,
    };
    tx.insert_webhook(&hook, issued.code_hash(app).as_deref())
        .await?;
    // Nobody who joins later looks like it.
    names::remember(&mut tx, room, &id, Some(&name)).await?;
    let detail = serde_json::json!({"kind": hook.kind, "name": name});
    record(&mut tx, &entry, "webhook_created", &id, detail, now).await?;
    let by = &entry.member.user_id;
    let words = match hook.kind {
        WebhookKind::In => format!("{by} added the webhook {id}, which posts here"),
        WebhookKind::Out => {
            format!("{by} added the webhook {id}, which tells another system what happens here")
        }
    };
    let mut log = RoomLog::new(entry.room);
    log.system_message(&mut tx, words, now).await?;
    if hook.kind == WebhookKind::Out {
        // It begins with what comes after its own notice.
        tx.enable_webhook_delivery(room, &id, log.room().head())
            .await?;
    }
    tx.add_log(log);
    tx.commit().await?;
    app.hub.dirty_rooms().track(room);
    Ok(issued.answer(app, view(&hook)))
}

/// Removes a webhook. What it posted stays.
pub async fn remove(app: &App, caller: &Caller, room: &RoomId, hook: &str) -> Result<()> {
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    let entry = owner(&mut tx, caller, room).await?;
    let hook = find(&mut tx, room, hook).await?;
    tx.delete_webhook(room, &hook.hook_id).await?;
    let detail = serde_json::json!({"kind": hook.kind, "name": hook.name});
    record(
        &mut tx,
        &entry,
        "webhook_removed",
        &hook.hook_id,
        detail,
        now,
    )
    .await?;
    let words = format!(
        "{} removed the webhook {}",
        entry.member.user_id, hook.hook_id
    );
    let mut log = RoomLog::new(entry.room);
    log.system_message(&mut tx, words, now).await?;
    tx.add_log(log);
    tx.commit().await
}

/// Gives a webhook a new address or a new secret; the old one is of no more use.
pub async fn rotate(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    hook: &str,
) -> Result<WebhookCreated> {
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    let entry = owner(&mut tx, caller, room).await?;
    let hook = find(&mut tx, room, hook).await?;
    let issued = Issued::new(app, hook.kind, hook.sealed_secret.is_some())?;
    let sealed = issued.sealed(app)?;
    let code_hash = issued.code_hash(app);
    tx.rotate_webhook(&hook.hook_id, code_hash.as_deref(), sealed.as_deref())
        .await?;
    let detail = serde_json::json!({});
    record(
        &mut tx,
        &entry,
        "webhook_rotated",
        &hook.hook_id,
        detail,
        now,
    )
    .await?;
    tx.commit().await?;
    Ok(issued.answer(app, view(&hook)))
}

/// Switches a webhook on or off.
pub async fn update(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    hook: &str,
    request: UpdateWebhook,
) -> Result<WebhookView> {
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    let entry = owner(&mut tx, caller, room).await?;
    let hook = find(&mut tx, room, hook).await?;
    let id = &hook.hook_id;
    if hook.enabled != request.enabled {
        tx.set_webhook_enabled(id, request.enabled, None).await?;
        let detail = serde_json::json!({"enabled": request.enabled});
        record(&mut tx, &entry, "webhook_changed", id, detail, now).await?;
    }
    if hook.kind == WebhookKind::Out && request.enabled {
        // What failed is tried at once.
        let oldest = Cursor::at((entry.room.last_seq - LONGEST_BACKLOG).max(0));
        let position = tx.webhook_position(room, id).await?;
        let position = position.map_or(entry.room.head(), |position| position.max(oldest));
        tx.enable_webhook_delivery(room, id, position).await?;
    }
    let hook = find(&mut tx, room, id.as_str()).await?;
    tx.commit().await?;
    app.hub.dirty_rooms().mark_dirty(room);
    Ok(view(&hook))
}

/// What was sent lately, newest first.
pub async fn deliveries(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    hook: &str,
) -> Result<WebhookDeliveries> {
    let mut conn = app.db.read().await?;
    access::member(&mut conn, caller, room, RoomLock::Unlocked)
        .await?
        .as_owner()?;
    let hook = find(&mut conn, room, hook).await?.hook_id;
    let rows = conn.webhook_deliveries(&hook, DELIVERIES_KEPT).await?;
    let deliveries = rows.into_iter().map(|row| WebhookDelivery {
        id: delivery_id(
            &hook,
            Cursor {
                seq: row.seq,
                sub: row.sub,
            },
        ),
        event: row.event.as_str().to_owned(),
        state: row.state,
        attempts: row.attempts,
        status: row.status,
        error: row.error,
        first_at: row.first_at,
        last_at: row.last_at,
    });
    Ok(WebhookDeliveries {
        deliveries: deliveries.collect(),
    })
}

/// What every attempt to deliver an event carries, so that its receiver can tell.
pub fn delivery_id(hook: &UserId, at: Cursor) -> String {
    format!("{hook}_{at}")
}

async fn owner(tx: &mut RoomTx, caller: &Caller, room: &RoomId) -> Result<RoomAccess> {
    refuse_change(room)?;
    access::member(tx, caller, room, RoomLock::Locked)
        .await?
        .as_owner()?
        .not_archived()
}

async fn find(conn: &mut Conn, room: &RoomId, hook: &str) -> Result<WebhookRow> {
    let missing = || Error::not_found("No such webhook in this room");
    let id: UserId = hook.parse().map_err(|_| missing())?;
    let found = conn.webhook(&id).await?;
    found
        .filter(|hook| hook.room_id == *room)
        .ok_or_else(missing)
}

async fn record(
    tx: &mut RoomTx,
    entry: &RoomAccess,
    action: &str,
    hook: &UserId,
    detail: serde_json::Value,
    now: Now,
) -> Result<()> {
    let (room, actor) = (&entry.room.room_id, &entry.member.user_id);
    audit::record(tx, room, actor, action, Some(hook.as_str()), detail, now).await
}

fn view(hook: &WebhookRow) -> WebhookView {
    WebhookView {
        id: hook.hook_id.to_string(),
        kind: hook.kind,
        name: hook.name.clone(),
        created_by: hook.created_by.to_string(),
        created_at: hook.created_at,
        enabled: hook.enabled,
        disabled_reason: hook.disabled_reason.clone(),
        signed: hook.sealed_secret.is_some(),
        target: hook.target.clone(),
        events: hook.events.0.clone(),
        failing_since: hook.failing_since,
    }
}

/// Scheme, host and port of an address that was checked before.
fn origin(address: &str) -> String {
    reqwest::Url::parse(address)
        .map_or_else(|_| String::new(), |url| url.origin().ascii_serialization())
}

/// What a request asks for, where its fields fit together.
struct NewWebhook {
    url: Option<String>,
    events: Vec<WebhookEvent>,
    signed: bool,
}

impl NewWebhook {
    fn of(request: &CreateWebhook) -> Result<Self> {
        match request.kind {
            WebhookKind::In if request.url.is_some() || request.events.is_some() => Err(
                Error::bad_request("url and events are for webhooks of kind out"),
            ),
            WebhookKind::In => Ok(Self {
                url: None,
                events: Vec::new(),
                signed: request.signed.unwrap_or(false),
            }),
            WebhookKind::Out if request.signed == Some(false) => Err(Error::bad_request(
                "What a webhook sends is always signed; leave signed out",
            )),
            WebhookKind::Out => {
                let url = request.url.as_deref();
                let url =
                    url.ok_or_else(|| Error::bad_request("A webhook of kind out needs a url"))?;
                let events = request.events.as_deref().unwrap_or(&DEFAULT_EVENTS);
                if events.is_empty() {
                    return Err(Error::bad_request("events must name at least one event"));
                }
                let events: BTreeSet<WebhookEvent> = events.iter().copied().collect();
                Ok(Self {
                    url: Some(checks::endpoint("url", url)?),
                    events: events.into_iter().collect(),
                    signed: true,
                })
            }
        }
    }
}

/// The secrets of a webhook, as they are told once.
struct Issued {
    code: Option<String>,
    secret: Option<String>,
}

impl Issued {
    fn new(app: &App, kind: WebhookKind, signed: bool) -> Result<Self> {
        let random = |prefix, length| {
            app.secrets
                .random_code(prefix, length)
                .map_err(Error::internal)
        };
        Ok(match kind {
            WebhookKind::In => Self {
                code: Some(random(CODE_PREFIX, CODE_LENGTH)?),
                secret: if signed { Some(random("", 40)?) } else { None },
            },
            WebhookKind::Out => Self {
                code: None,
                secret: Some(signature::standard_secret(random("", 40)?.as_bytes())),
            },
        })
    }

    fn sealed(&self, app: &App) -> Result<Option<String>> {
        let sealed = self
            .secret
            .as_deref()
            .map(|secret| app.secrets.seal(secret));
        sealed.transpose().map_err(Error::internal)
    }

    fn code_hash(&self, app: &App) -> Option<String> {
        self.code.as_deref().map(|code| app.secrets.hash_code(code))
    }

    fn answer(self, app: &App, webhook: WebhookView) -> WebhookCreated {
        let url = self
            .code
            .map(|code| format!("{}/hooks/{code}", app.public_url));
        WebhookCreated {
            webhook,
            url,
            secret: self.secret,
        }
    }
}
