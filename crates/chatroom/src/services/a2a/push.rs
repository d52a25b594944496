//! Notifications of tasks: who may have them sent where, and sending them. What is not told yet is known
//! by comparing the task with what was told last, so nothing is lost over restarts, and a node that dies
//! while it sends only sends late or twice.

use super::{
    TaskName,
    tasks::{self, LoadedTask},
};
use crate::{
    app::App,
    auth::{Caller, ReadRight},
    clock::Now,
    error::{Error, Result},
    outbound::{self, Trust},
    services::{
        access::{self, RoomAccess, RoomLock},
        checks,
    },
    store::{Conn, a2a::PushRow},
};
use protocol::{
    RoomId,
    a2a::{Authentication, MEDIA_TYPE, PushConfig, StreamResponse, TOKEN_HEADER, older},
};
use reqwest::{Url, header};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::Semaphore, task::JoinSet};

/// Places that one member may have one task's changes sent to.
const MOST_FOR_A_TASK: usize = 10;
/// A configuration is kept so much longer than its task can last.
const KEPT_SECONDS: i64 = 3600;
/// Configurations that are looked at in one go.
const MOST_DUE: i64 = 10_000;
/// How long a receiver may take.
const TIMEOUT: Duration = Duration::from_secs(15);
/// How long a notification under way is nobody else's.
const LEASE_MS: i64 = 60_000;
/// How many notifications a node sends at once.
const AT_ONCE: usize = 16;
/// A room in which nothing happened is looked at so often: what ends a task may be no message.
const COMPARE_ANYWAY: Duration = Duration::from_secs(5);

/// What is kept encrypted.
#[derive(Serialize, Deserialize)]
struct PushTarget {
    url: String,
    token: Option<String>,
    scheme: Option<String>,
    credentials: Option<String>,
}

/// A configuration that may be stored, before the task is there.
pub struct CheckedPushConfig {
    id: Option<String>,
    target: PushTarget,
    trusted: bool,
    older: bool,
}

/// Checks a configuration. An address that is written as numbers is looked at now, a name when it is
/// called.
pub fn check(
    app: &App,
    caller: &Caller,
    config: PushConfig,
    older: bool,
) -> Result<CheckedPushConfig> {
    let url = checks::endpoint("url", &config.url)?;
    let trusted = access::may_name_private_endpoint(caller);
    let parsed: Url = url
        .parse()
        .map_err(|_| Error::bad_request("url must be an http or https address"))?;
    app.outbound
        .client(&parsed, Trust::of(trusted))
        .map_err(|error| Error::bad_request(format!("url: {error}")))?;
    let opaque = |field: &str, text: Option<String>| {
        let text = text.filter(|text| !text.is_empty());
        text.map(|text| checks::opaque(field, &text)).transpose()
    };
    let (scheme, credentials) = match config.authentication {
        None => (None, None),
        Some(Authentication {
            scheme,
            credentials,
        }) => (Some(scheme), credentials),
    };
    let scheme = opaque("authentication.scheme", scheme)?;
    let is_word = |text: &String| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if scheme.as_ref().is_some_and(|scheme| !is_word(scheme)) {
        return Err(Error::bad_request(
            "authentication.scheme must be a scheme of HTTP such as Bearer",
        ));
    }
    Ok(CheckedPushConfig {
        id: opaque("id", config.id)?,
        target: PushTarget {
            url,
            token: opaque("token", config.token)?,
            scheme,
            credentials: opaque("authentication.credentials", credentials)?,
        },
        trusted,
        older,
    })
}

/// Has a task's changes sent from now on.
pub async fn create(
    app: &App,
    caller: &Caller,
    task: &LoadedTask,
    config: CheckedPushConfig,
) -> Result<PushConfig> {
    let name = &task.name;
    let mut tx = app.db.begin_keeping_cache().await?;
    let entry = writer(&mut tx, caller, &name.room).await?;
    let id = match config.id {
        Some(id) => id,
        None => app
            .secrets
            .random_code("push_", 16)
            .map_err(Error::internal)?,
    };
    let right = entry.into_read_right(caller);
    let there = tx
        .a2a_pushes_of(&name.room, name.seq, &right.user_id)
        .await?;
    if there.len() >= MOST_FOR_A_TASK && !there.iter().any(|push| push.id == id) {
        return Err(Error::bad_request(format!(
            "A task's changes are sent to at most {MOST_FOR_A_TASK} places; delete one first"
        )));
    }
    let sealed = serde_json::to_string(&config.target).map_err(Error::internal)?;
    let now = Now::get();
    let row = PushRow {
        room_id: name.room.clone(),
        seq: name.seq,
        user_id: right.user_id,
        jti: right.jti,
        issued_at: right.issued_at,
        id: id.clone(),
        sealed: app.secrets.seal(&sealed).map_err(Error::internal)?,
        trusted: config.trusted,
        older: config.older,
        // What the task is already, its client knows.
        told: task.fingerprint(),
        attempt: 0,
        due_ms: now.millis(),
        expires_at: now.seconds() + app.config.a2a.task_seconds.max(1) + KEPT_SECONDS,
    };
    tx.save_a2a_push(&row).await?;
    tx.commit().await?;
    Ok(push_config(name, config.target, id))
}

/// Where the caller has a task's changes sent.
pub async fn list(app: &App, caller: &Caller, name: &TaskName) -> Result<Vec<PushConfig>> {
    let mut conn = app.db.read().await?;
    let entry = access::member(&mut conn, caller, &name.room, RoomLock::Unlocked)
        .await?
        .as_oneself()?;
    let me = &entry.member.user_id;
    let rows = conn.a2a_pushes_of(&name.room, name.seq, me).await?;
    rows.into_iter()
        .map(|row| Ok(push_config(name, unseal(app, &row)?, row.id)))
        .collect()
}

/// Sends a task's changes there no more. Twice is as good as once.
pub async fn delete(app: &App, caller: &Caller, name: &TaskName, id: &str) -> Result<()> {
    let mut tx = app.db.begin_keeping_cache().await?;
    let entry = writer(&mut tx, caller, &name.room).await?;
    let me = &entry.member.user_id;
    tx.delete_a2a_push(&name.room, name.seq, me, id).await?;
    tx.commit().await?;
    Ok(())
}

async fn writer(conn: &mut Conn, caller: &Caller, room: &RoomId) -> Result<RoomAccess> {
    let entry = access::member(conn, caller, room, RoomLock::Unlocked)
        .await?
        .as_oneself()?;
    if let Some(key) = &entry.key {
        access::refuse_read_only(key.scope)?;
    }
    Ok(entry)
}

/// A configuration as its maker sees it: without the credentials.
fn push_config(name: &TaskName, target: PushTarget, id: String) -> PushConfig {
    PushConfig {
        id: Some(id),
        task_id: Some(name.to_string()),
        tenant: None,
        url: target.url,
        token: target.token,
        authentication: target.scheme.map(|scheme| Authentication {
            scheme,
            credentials: None,
        }),
    }
}

fn unseal(app: &App, row: &PushRow) -> Result<PushTarget> {
    let text = app.secrets.unseal(&row.sealed);
    let target = text.and_then(|text| serde_json::from_str(&text).ok());
    target.ok_or_else(|| {
        let PushRow {
            room_id, seq, id, ..
        } = row;
        Error::internal(format!(
            "where the notifications {id} of the task {seq} in {room_id} go cannot be read"
        ))
    })
}

/// Which configuration: its task, its maker and its id.
type PushName = (RoomId, i64, String, String);

/// Where a room was when a configuration was last compared with its task, and when that was.
struct Compared {
    head: (i64, i64),
    at: Instant,
}

/// Sends what is new, as long as it is asked to.
pub struct Notifier {
    app: App,
    compared: HashMap<PushName, Compared>,
    permits: Arc<Semaphore>,
    sending: JoinSet<()>,
}

impl Notifier {
    pub fn new(app: App) -> Self {
        Self {
            app,
            compared: HashMap::new(),
            permits: Arc::new(Semaphore::new(AT_ONCE)),
            sending: JoinSet::new(),
        }
    }

    /// Looks at what is due, and begins to send what is new.
    pub async fn send_due(&mut self) -> Result<()> {
        while self.sending.try_join_next().is_some() {}
        let app = self.app.clone();
        let mut conn = app.db.read().await?;
        let due = conn.due_a2a_pushes(Now::get().millis(), MOST_DUE).await?;
        let mut rooms: Vec<&RoomId> = due.iter().map(|push| &push.room_id).collect();
        rooms.sort();
        rooms.dedup();
        let heads: HashMap<RoomId, (i64, i64)> = match rooms.is_empty() {
            true => HashMap::new(),
            false => {
                let heads = conn.heads(&rooms).await?;
                heads
                    .into_iter()
                    .map(|head| (head.room_id, (head.last_seq, head.last_sub)))
                    .collect()
            }
        };
        let mut present = HashSet::new();
        for push in due {
            let name = (
                push.room_id.clone(),
                push.seq,
                push.user_id.to_string(),
                push.id.clone(),
            );
            let head = heads.get(&push.room_id).copied().unwrap_or_default();
            present.insert(name.clone());
            let is_known = |compared: &Compared| {
                compared.head == head && compared.at.elapsed() < COMPARE_ANYWAY
            };
            if self.compared.get(&name).is_some_and(is_known) {
                continue;
            }
            let Ok(permit) = self.permits.clone().try_acquire_owned() else {
                break;
            };
            let at = Instant::now();
            self.compared.insert(name, Compared { head, at });
            let room = conn.room(&push.room_id).await?;
            let task = match &room {
                Some(room) => tasks::load(&app, &mut conn, room, push.seq).await?,
                None => None,
            };
            if task
                .as_ref()
                .is_some_and(|task| task.fingerprint() == push.told)
            {
                continue;
            }
            let app = app.clone();
            self.sending.spawn(async move {
                if let Err(error) = send_if_new(&app, push, task).await {
                    tracing::debug!(%error, "a notification is not sent; it is tried again");
                }
                drop(permit);
            });
        }
        self.compared.retain(|name, _| present.contains(name));
        Ok(())
    }
}

/// Sends a task to whoever wants to know, if that is still so.
async fn send_if_new(app: &App, push: PushRow, task: Option<LoadedTask>) -> Result<()> {
    let until = Now::get().millis() + LEASE_MS;
    let mut tx = app.db.begin_keeping_cache().await?;
    let leased = tx.lease_a2a_push(&push, until).await?;
    tx.commit().await?;
    if !leased {
        return Ok(());
    }
    let (Some(task), true) = (task, may_still_read(app, &push).await?) else {
        return delete_push(app, &push).await;
    };
    let target = unseal(app, &push)?;
    let sent = send_notification(app, &push, &target, &task).await;
    let now = Now::get().millis();
    let (told, attempt, due) = match sent {
        Ok(()) if task.status.state.is_terminal() => return delete_push(app, &push).await,
        Ok(()) => (task.fingerprint(), 0, now),
        Err(why) => {
            let schedule = &app.config.fanout.retry_seconds;
            let attempt = usize::try_from(push.attempt).unwrap_or(usize::MAX);
            let Some(wait) = schedule.get(attempt) else {
                tracing::warn!(room = %push.room_id, seq = push.seq, why, "nobody takes a task's notifications; they are given up");
                return delete_push(app, &push).await;
            };
            let wait = i64::try_from(*wait)
                .unwrap_or(i64::MAX)
                .saturating_mul(1000);
            (
                push.told.clone(),
                push.attempt + 1,
                now.saturating_add(wait),
            )
        }
    };
    let mut tx = app.db.begin_keeping_cache().await?;
    tx.settle_a2a_push(&push, until, &told, attempt, due)
        .await?;
    tx.commit().await?;
    Ok(())
}

async fn delete_push(app: &App, push: &PushRow) -> Result<()> {
    let mut tx = app.db.begin_keeping_cache().await?;
    tx.delete_a2a_push(&push.room_id, push.seq, &push.user_id, &push.id)
        .await?;
    tx.commit().await?;
    Ok(())
}

/// A notification tells what is said in a room: its maker has to be allowed to read it still.
async fn may_still_read(app: &App, push: &PushRow) -> Result<bool> {
    let right = ReadRight {
        room_id: push.room_id.clone(),
        user_id: push.user_id.clone(),
        jti: push.jti.clone(),
        issued_at: push.issued_at,
    };
    let mut conn = app.db.read().await?;
    Ok(right
        .still_holds(&app.denylist, &mut conn, Now::get())
        .await?)
}

async fn send_notification(
    app: &App,
    push: &PushRow,
    target: &PushTarget,
    task: &LoadedTask,
) -> Result<(), String> {
    let url: Url = target.url.parse().map_err(|_| "no address".to_owned())?;
    let client = app
        .outbound
        .client(&url, Trust::of(push.trusted))
        .map_err(|error| error.to_string())?;
    let event = StreamResponse::Task(task.to_task());
    let body = match push.older {
        true => older::event(&event),
        false => json!(event),
    };
    let mut request = client
        .post(url)
        .timeout(TIMEOUT)
        .header(header::CONTENT_TYPE, MEDIA_TYPE)
        .body(body.to_string());
    if let Some(token) = &target.token {
        request = request.header(TOKEN_HEADER, token);
    }
    if let Some(scheme) = &target.scheme {
        let credentials = target.credentials.as_deref().unwrap_or_default();
        let value = format!("{scheme} {credentials}");
        request = request.header(header::AUTHORIZATION, value.trim_end());
    }
    let response = request.send().await;
    let response = response.map_err(|error| outbound::in_words(&error))?;
    match response.status().is_success() {
        true => Ok(()),
        false => Err(format!("the receiver answers {}", response.status())),
    }
}
