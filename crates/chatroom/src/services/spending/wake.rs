//! What wakes agents, and what they may spend in a day.

use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::{Error, Result},
    services::{
        access::{self, RoomAccess, RoomLock},
        audit,
        change::{RoomLog, RoomTx},
        spending,
        turns::owner_of,
    },
    store::{Conn, members::MemberRow, messages::MessageRow},
};
use protocol::{PolicyOf, RoomId, UserId, Via, Wake, WakePolicy, WakeView};
use serde_json::json;

/// How far back a thread is looked at for the agent's part in it.
const THREAD: i64 = 50;

/// Whether a message wakes an agent.
pub async fn wakes(
    conn: &mut Conn,
    wake: Wake,
    room: &RoomId,
    user: &UserId,
    message: &MessageRow,
) -> Result<bool> {
    let mentioned = match wake {
        Wake::Everything => return Ok(true),
        Wake::Nothing => return Ok(false),
        Wake::Mentions | Wake::Threads => conn.mentioned_by(room, message.seq).await?,
    };
    if mentioned.contains(user) {
        return Ok(true);
    }
    if wake == Wake::Mentions || message.reply_to_seq.is_none() {
        return Ok(false);
    }
    for part in conn.thread(room, message.seq, THREAD).await? {
        let spoke = part.sender_user_id == *user && part.via == Via::Agent;
        if spoke || conn.mentioned_by(room, part.seq).await?.contains(user) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What wakes a member, what it may spend, and what it has spent today.
pub async fn get(app: &App, caller: &Caller, room: &RoomId, user: &UserId) -> Result<WakeView> {
    let mut conn = app.db.read().await?;
    let entry = access::member(&mut conn, caller, room, RoomLock::Unlocked).await?;
    let agent = conn.member(room, user).await?;
    let agent = agent.ok_or_else(|| Error::not_found("No such member in this room"))?;
    let yours = match entry.as_oneself().and_then(RoomAccess::not_archived) {
        Ok(entry) => policy_of(&mut conn, &entry, &agent).await?,
        Err(_) => None,
    };
    view(&mut conn, room, user, yours).await
}

/// Which policy of the agent's a member sets: its own as the agent or its owner, the room's as the
/// room's owner.
async fn policy_of(
    conn: &mut Conn,
    entry: &RoomAccess,
    agent: &MemberRow,
) -> Result<Option<PolicyOf>> {
    let me = &entry.member.user_id;
    Ok(if *me == agent.user_id {
        Some(PolicyOf::Own)
    } else if entry.is_owner() {
        Some(PolicyOf::Room)
    } else if owner_of(conn, &entry.room, agent).await? == *me {
        Some(PolicyOf::Own)
    } else {
        None
    })
}

/// Sets a policy: the agent's own as the agent or its owner, the room's as the room's owner.
pub async fn set(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    user: &UserId,
    policy: WakePolicy,
) -> Result<WakeView> {
    if let Some(fault) = policy.budget.fault() {
        return Err(Error::bad_request(fault));
    }
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    let entry = access::member(&mut tx, caller, room, RoomLock::Locked)
        .await?
        .as_oneself()?
        .not_archived()?;
    let agent = tx.member(room, user).await?;
    let agent = agent.ok_or_else(|| match entry.is_owner() {
        true => Error::not_found("No such member in this room"),
        false => not_allowed(),
    })?;
    let whose = policy_of(&mut tx, &entry, &agent).await?;
    let whose = whose.ok_or_else(not_allowed)?;
    let me = &entry.member.user_id;
    tx.save_wake_policy(room, user, &whose, &policy).await?;
    let detail =
        json!({"wake": policy.wake, "budget": policy.budget, "for_room": whose == PolicyOf::Room});
    let target = Some(user.as_str());
    audit::record(&mut tx, room, me, "wake_changed", target, detail, now).await?;
    let mut log = RoomLog::new(entry.room);
    spending::tell_if_used_up(&mut tx, &mut log, user, now).await?;
    let view = view(&mut tx, room, user, Some(whose)).await?;
    tx.add_log(log);
    tx.commit().await?;
    Ok(view)
}

fn not_allowed() -> Error {
    Error::forbidden("Only the agent itself, its owner and the room's owner may set this")
}

async fn view(
    conn: &mut Conn,
    room: &RoomId,
    user: &UserId,
    yours: Option<PolicyOf>,
) -> Result<WakeView> {
    let now = Now::get();
    let found = conn
        .wake_policies(&[(room, user)])
        .await?
        .into_iter()
        .next();
    let (own, of_room) = found
        .map(|row| (row.own(), row.of_room()))
        .unwrap_or_default();
    let effective = own.tighter(&of_room);
    let day_budget = spending::day_budget(conn, room, user, effective.budget.clone(), now).await?;
    Ok(WakeView {
        user_id: user.clone(),
        effective,
        own,
        room: of_room,
        used_up: day_budget.is_used_up(),
        spent: spending::spent(&day_budget.into_spent()),
        day_ends_at: spending::day_ends_at(now),
        yours,
    })
}
