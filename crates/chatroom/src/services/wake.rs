//! What wakes agents, and what they may spend in a day.

use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::{Error, Result},
    services::{
        access::{self, Hold},
        audit,
        change::{RoomLog, RoomTx},
        spending,
        turns::owner_of,
    },
    store::{Conn, messages::MessageRow, wake::Party},
};
use protocol::{RoomId, UserId, Via, Wake, WakePolicy, WakeView};
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
    access::member(&mut conn, caller, room, Hold::No).await?;
    if conn.member(room, user).await?.is_none() {
        return Err(Error::not_found("No such member in this room"));
    }
    view(&mut conn, room, user).await
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
    let entry = access::member(&mut tx, caller, room, Hold::Yes)
        .await?
        .as_oneself()?
        .not_archived()?;
    let me = &entry.member.user_id;
    let is_owner = entry.key.is_none() && entry.member.is_owner();
    let agent = tx.member(room, user).await?;
    let agent = agent.ok_or_else(|| match is_owner {
        true => Error::not_found("No such member in this room"),
        false => not_allowed(),
    })?;
    let party = if *me == *user {
        Party::Agent
    } else if is_owner {
        Party::Room
    } else if owner_of(&mut tx, &entry.room, &agent).await? == *me {
        Party::Agent
    } else {
        return Err(not_allowed());
    };
    tx.save_wake_policy(room, user, party, &policy).await?;
    let detail =
        json!({"wake": policy.wake, "budget": policy.budget, "for_room": party == Party::Room});
    let target = Some(user.as_str());
    audit::record(&mut tx, room, me, "wake_changed", target, detail, now).await?;
    let mut log = RoomLog::new(entry.room);
    spending::tell_if_used_up(&mut tx, &mut log, user, now).await?;
    let view = view(&mut tx, room, user).await?;
    tx.tell(log);
    tx.commit().await?;
    Ok(view)
}

fn not_allowed() -> Error {
    Error::forbidden("Only the agent itself, its owner and the room's owner may set this")
}

async fn view(conn: &mut Conn, room: &RoomId, user: &UserId) -> Result<WakeView> {
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
    let account = spending::account(conn, room, user, effective.budget.clone(), now).await?;
    Ok(WakeView {
        user_id: user.clone(),
        effective,
        own,
        room: of_room,
        used_up: account.is_used_up(),
        spent: spending::spent(&account.into_spent()),
        day_ends_at: spending::day_ends_at(now),
    })
}
