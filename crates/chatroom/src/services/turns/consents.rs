//! Consents: an agent asks for a yes, and its owner gives it or does not.

use super::{is_person, owner_of, refuse_unknown, role_of};
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
        idempotency::IdempotentRequest,
    },
    store::{
        Conn,
        consents::{ConsentIdRow, ConsentRow},
    },
};
use protocol::{
    AskConsent, Consent, ConsentState, Consents, DecideConsent, ErrorCode, EventKind,
    MAX_CONSENT_DETAIL_BYTES, RoleClass, RoomId, UserId,
};
use serde_json::json;

/// Requests that an agent may have open in a room.
const MOST_OPEN: i64 = 10;
/// Requests that are listed at once.
const PAGE: i64 = 100;
const DEFAULT_TTL: i64 = 3600;
const SHORTEST_TTL: i64 = 10;
const LONGEST_TTL: i64 = 7 * 86_400;
/// Requests that are looked at together when their time is over.
const EXPIRED_AT_ONCE: i64 = 100;

/// Asks for a yes, as the agent that needs it.
pub async fn ask(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    request: AskConsent,
    idempotent: &IdempotentRequest,
) -> Result<Consent> {
    let tool = checks::tool_name("tool", &request.tool)?;
    let summary = checks::summary(&request.summary)?;
    if let Some(detail) = &request.detail {
        checks::at_most("detail", detail, MAX_CONSENT_DETAIL_BYTES)?;
    }
    let ttl = request.ttl_seconds.unwrap_or(DEFAULT_TTL);
    let ttl = checks::in_range("ttl_seconds", ttl, SHORTEST_TTL..=LONGEST_TTL)?;
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    if let Some(answer) = idempotent.answered(app, &mut tx).await? {
        return Ok(answer);
    }
    let entry = access::member(&mut tx, caller, room, RoomLock::Locked)
        .await?
        .as_oneself()?
        .not_archived()?;
    if role_of(caller, &entry) != RoleClass::Agent {
        return Err(Error::forbidden(
            "Only an agent asks for consent, with its own credential",
        ));
    }
    refuse_unknown(&entry.room, request.reply_to_seq)?;
    let RoomAccess {
        room: row, member, ..
    } = entry;
    let open = tx
        .open_consent_count(room, &member.user_id, now.seconds())
        .await?;
    if open >= MOST_OPEN {
        return Err(Error::new(
            ErrorCode::TooManyConsents,
            format!(
                "You have {open} requests for consent open; wait for an answer, or withdraw one"
            ),
        ));
    }
    let owner = owner_of(&mut tx, &row, &member).await?;
    let consent = ConsentRow {
        consent_id: app
            .secrets
            .random_code("cs_", 20)
            .map_err(Error::internal)?,
        room_id: room.clone(),
        user_id: member.user_id,
        state: ConsentState::Open,
        tool,
        summary,
        detail: request.detail,
        reply_to_seq: request.reply_to_seq,
        created_at: now.seconds(),
        expires_at: now.seconds() + ttl,
        closed_at: None,
        decided_by: None,
        reason: None,
    };
    tx.insert_consent(&consent).await?;
    let mut log = RoomLog::new(row);
    log_consent(&mut tx, &mut log, &consent, &owner).await?;
    tx.add_log(log);
    let asked = view(consent, &owner, Sight::Whole);
    idempotent.keep(app, &mut tx, &asked).await?;
    tx.commit().await?;
    Ok(asked)
}

/// Says yes or no, as the agent's owner.
pub async fn decide(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    id: &str,
    request: DecideConsent,
) -> Result<Consent> {
    let reason = request
        .reason
        .as_deref()
        .filter(|reason| !reason.is_empty());
    let reason = reason
        .map(|reason| checks::reason("reason", reason))
        .transpose()?;
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    let entry = access::member(&mut tx, caller, room, RoomLock::Locked)
        .await?
        .as_oneself()?
        .not_archived()?;
    let mut consent = find(&mut tx, room, id, now).await?;
    let owner = owner_of_asker(&mut tx, &entry, &consent).await?;
    let me = entry.member.user_id;
    if me != owner {
        return Err(Error::forbidden("Only the agent's owner may decide this"));
    }
    if !is_person(caller) {
        return Err(Error::forbidden(
            "An agent decides nothing, also not with its owner's token: sign in as a person and decide",
        ));
    }
    refuse_closed(&consent)?;
    consent.state = request.decision.into();
    consent.decided_by = Some(me.clone());
    consent.reason = reason;
    close_consent(&mut tx, &mut consent, now).await?;
    let mut log = RoomLog::new(entry.room);
    log_consent(&mut tx, &mut log, &consent, &owner).await?;
    let detail = json!({"user_id": consent.user_id, "tool": consent.tool, "state": consent.state});
    let target = Some(consent.consent_id.as_str());
    audit::record(&mut tx, room, &me, "consent_decided", target, detail, now).await?;
    tx.add_log(log);
    tx.commit().await?;
    Ok(view(consent, &owner, Sight::Whole))
}

/// Takes a request back, as the agent that made it. Twice is as good as once.
pub async fn withdraw(app: &App, caller: &Caller, room: &RoomId, id: &str) -> Result<Consent> {
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    let entry = access::member(&mut tx, caller, room, RoomLock::Locked)
        .await?
        .as_oneself()?;
    let mut consent = find(&mut tx, room, id, now).await?;
    if consent.user_id != entry.member.user_id {
        return Err(Error::forbidden(
            "Only the agent that asked takes this back",
        ));
    }
    let owner = owner_of_asker(&mut tx, &entry, &consent).await?;
    if consent.state == ConsentState::Withdrawn {
        return Ok(view(consent, &owner, Sight::Whole));
    }
    refuse_closed(&consent)?;
    consent.state = ConsentState::Withdrawn;
    close_consent(&mut tx, &mut consent, now).await?;
    let mut log = RoomLog::new(entry.room);
    log_consent(&mut tx, &mut log, &consent, &owner).await?;
    tx.add_log(log);
    tx.commit().await?;
    Ok(view(consent, &owner, Sight::Whole))
}

/// One request, as the caller may see it.
pub async fn get(app: &App, caller: &Caller, room: &RoomId, id: &str) -> Result<Consent> {
    let mut conn = app.db.read().await?;
    let entry = access::member(&mut conn, caller, room, RoomLock::Unlocked).await?;
    let consent = find(&mut conn, room, id, Now::get()).await?;
    seen_by(&mut conn, caller, &entry, consent).await
}

/// The room's requests, newest first, or those that wait for an answer.
pub async fn list(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    state: Option<&str>,
) -> Result<Consents> {
    let open_only = match state {
        None => false,
        Some("open") => true,
        Some(_) => return Err(Error::bad_request("state takes the value open")),
    };
    let now = Now::get();
    let mut conn = app.db.read().await?;
    let entry = access::member(&mut conn, caller, room, RoomLock::Unlocked).await?;
    let mut found = match open_only {
        true => conn.open_consents(room, now.seconds()).await?,
        false => conn.consents(room, PAGE).await?,
    };
    found.sort_by(|a, b| (b.created_at, &b.consent_id).cmp(&(a.created_at, &a.consent_id)));
    let mut consents = Vec::with_capacity(found.len());
    for consent in found {
        let consent = as_of(consent, now);
        consents.push(seen_by(&mut conn, caller, &entry, consent).await?);
    }
    Ok(Consents { consents })
}

/// Takes back what a member asks for who leaves the room that the log is of.
pub async fn withdraw_all(
    tx: &mut RoomTx,
    log: &mut RoomLog,
    user: &UserId,
    owner: &UserId,
    now: Now,
) -> Result<()> {
    let room = log.room().room_id.clone();
    for mut consent in tx.open_consents_of(&room, user).await? {
        consent.state = ConsentState::Withdrawn;
        close_consent(tx, &mut consent, now).await?;
        log_consent(tx, log, &consent, owner).await?;
    }
    Ok(())
}

/// Takes back what an agent asks for in an answer that somebody stopped.
pub async fn withdraw_turn(app: &App, room: &RoomId, user: &UserId, seq: i64) -> Result<()> {
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    let (Some(row), Some(agent)) = (tx.lock_room(room).await?, tx.member(room, user).await?) else {
        return Ok(());
    };
    let owner = owner_of(&mut tx, &row, &agent).await?;
    let mut asked = tx.open_consents_of(room, user).await?;
    asked.retain(|consent| consent.reply_to_seq == Some(seq));
    if asked.is_empty() {
        return Ok(());
    }
    let mut log = RoomLog::new(row);
    for mut consent in asked {
        consent.state = ConsentState::Withdrawn;
        close_consent(&mut tx, &mut consent, now).await?;
        log_consent(&mut tx, &mut log, &consent, &owner).await?;
    }
    tx.add_log(log);
    tx.commit().await?;
    Ok(())
}

/// Closes the requests that nobody answered in time.
pub async fn expire(app: &App) -> Result<()> {
    let now = Now::get();
    let mut conn = app.db.read().await?;
    let ended = conn
        .consents_to_expire(now.seconds(), EXPIRED_AT_ONCE)
        .await?;
    drop(conn);
    for ConsentIdRow {
        consent_id,
        room_id,
    } in ended
    {
        let mut tx = RoomTx::begin(app).await?;
        let (row, found) = (
            tx.lock_room(&room_id).await?,
            tx.consent(&consent_id).await?,
        );
        let open = found.filter(|consent| consent.state == ConsentState::Open);
        let (Some(row), Some(mut consent)) = (row, open) else {
            continue;
        };
        let agent = tx.member(&room_id, &consent.user_id).await?;
        let owner = match &agent {
            Some(agent) => owner_of(&mut tx, &row, agent).await?,
            None => row.owner_user_id.clone(),
        };
        consent.state = ConsentState::Expired;
        close_consent(&mut tx, &mut consent, now).await?;
        let mut log = RoomLog::new(row);
        log_consent(&mut tx, &mut log, &consent, &owner).await?;
        tx.add_log(log);
        tx.commit().await?;
    }
    Ok(())
}

/// A request of this room. One whose time is over has expired, whether that is written or not.
async fn find(conn: &mut Conn, room: &RoomId, id: &str, now: Now) -> Result<ConsentRow> {
    let found = conn.consent(id).await?;
    found
        .filter(|consent| consent.room_id == *room)
        .map(|consent| as_of(consent, now))
        .ok_or_else(|| Error::not_found("No such request for consent in this room"))
}

fn as_of(mut consent: ConsentRow, now: Now) -> ConsentRow {
    if consent.state == ConsentState::Open && consent.expires_at <= now.seconds() {
        consent.state = ConsentState::Expired;
    }
    consent
}

async fn owner_of_asker(
    conn: &mut Conn,
    entry: &RoomAccess,
    consent: &ConsentRow,
) -> Result<UserId> {
    let room = &entry.room;
    match conn.member(&room.room_id, &consent.user_id).await? {
        Some(agent) => owner_of(conn, room, &agent).await,
        None => Ok(room.owner_user_id.clone()),
    }
}

fn refuse_closed(consent: &ConsentRow) -> Result<()> {
    match consent.state {
        ConsentState::Open => Ok(()),
        _ => Err(Error::new(
            ErrorCode::AlreadyDecided,
            format!(
                "This request is {} already; nothing has changed",
                consent.state
            ),
        )),
    }
}

/// Writes down what became of a request. The room is locked, so nobody else does.
async fn close_consent(tx: &mut RoomTx, consent: &mut ConsentRow, now: Now) -> Result<()> {
    consent.closed_at = Some(now.seconds());
    let (by, reason) = (consent.decided_by.as_ref(), consent.reason.as_deref());
    let closed = tx
        .close_consent(
            &consent.consent_id,
            &consent.state,
            now.seconds(),
            by,
            reason,
        )
        .await?;
    match closed {
        true => Ok(()),
        false => Err(Error::new(
            ErrorCode::AlreadyDecided,
            "This request is decided already; nothing has changed",
        )),
    }
}

/// Tells the room what everybody in it may know.
async fn log_consent(
    tx: &mut RoomTx,
    log: &mut RoomLog,
    consent: &ConsentRow,
    owner: &UserId,
) -> Result<()> {
    let event = view(consent.clone(), owner, Sight::Tool);
    log.event(tx, EventKind::ConsentUpdated, &event).await
}

/// How much somebody sees of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    /// Which tool it is about, and what became of it.
    Tool,
    /// All of it.
    Whole,
}

async fn seen_by(
    conn: &mut Conn,
    caller: &Caller,
    entry: &RoomAccess,
    consent: ConsentRow,
) -> Result<Consent> {
    let owner = owner_of_asker(conn, entry, &consent).await?;
    let me = &entry.member.user_id;
    let sight = match entry.is_oneself() && (*me == consent.user_id || *me == owner) {
        true => Sight::Whole,
        false => Sight::Tool,
    };
    let decides = consent.state == ConsentState::Open && *me == owner && is_person(caller);
    Ok(Consent {
        mine_to_decide: decides,
        ..view(consent, &owner, sight)
    })
}

fn view(consent: ConsentRow, owner: &UserId, sight: Sight) -> Consent {
    let whole = sight == Sight::Whole;
    Consent {
        consent_id: consent.consent_id,
        user_id: consent.user_id.into(),
        owner_user_id: owner.to_string(),
        state: consent.state,
        tool: consent.tool,
        summary: whole.then_some(consent.summary),
        detail: consent.detail.filter(|_| whole),
        reply_to_seq: consent.reply_to_seq,
        created_at: consent.created_at,
        expires_at: consent.expires_at,
        closed_at: consent.closed_at,
        decided_by: consent.decided_by.map(String::from),
        reason: consent.reason.filter(|_| whole),
        mine_to_decide: false,
    }
}
