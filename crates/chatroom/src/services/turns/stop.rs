//! Stopping an agent: its call is dropped, or it is told to stop.

use super::{consents, owner_of, refuse_unknown};
use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::{Error, Result},
    services::access::{self, RoomAccess, RoomLock},
    store::{Conn, members::MemberRow, turns::StopRow},
};
use protocol::{AgentStop, RoleClass, RoomId, StopTurn, TurnStopped, UserId};

/// A word to stop counts for so long.
pub const STOP_SECONDS: i64 = 600;

/// Stops what a member does: the answer to the message that is named, or whatever it is.
pub async fn stop(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    user: &UserId,
    request: StopTurn,
) -> Result<TurnStopped> {
    let mut conn = app.db.read().await?;
    let entry = access::member(&mut conn, caller, room, RoomLock::Unlocked)
        .await?
        .as_oneself()?
        .not_archived()?;
    let agent = conn.member(room, user).await?;
    let agent = agent.ok_or_else(|| Error::not_found("No such member in this room"))?;
    refuse_unknown(&entry.room, request.reply_to_seq)?;
    let works_at = works_at(app, &mut conn, room, user).await?;
    let seq = request
        .reply_to_seq
        .or_else(|| works_at.iter().copied().flatten().next());
    if !may_stop(&mut conn, &entry, &agent, seq).await? {
        return Err(Error::forbidden(
            "Only the room's owner, the agent's owner and whoever wrote the message that is \
             being answered may stop it",
        ));
    }
    let is_at_it = match request.reply_to_seq {
        Some(_) => works_at.contains(&seq),
        None => !works_at.is_empty(),
    };
    let delivery = conn.delivery(room, user).await?;
    drop(conn);
    let by = entry.member.user_id;
    let stopped = match (delivery, seq) {
        (Some(delivery), Some(seq)) => {
            let waits = delivery.answer_anew_seq == Some(seq)
                || (delivery.next_seq == seq && delivery.attempt > 0);
            if !is_at_it && !waits {
                false
            } else {
                // Before its call is dropped: whatever that comes to counts for nothing.
                let mut tx = app.db.begin_keeping_cache().await?;
                let moved = tx.stop_delivery(room, user, seq).await?;
                tx.commit().await?;
                moved
            }
        }
        (Some(_), None) => false,
        (None, seq) => {
            if is_at_it || seq.is_some() {
                let stop = StopRow {
                    reply_to_seq: seq,
                    by_user_id: by.clone(),
                    at: Now::get().seconds(),
                };
                let mut tx = app.db.begin_keeping_cache().await?;
                tx.save_stop(room, user, &stop).await?;
                tx.commit().await?;
            }
            is_at_it
        }
    };
    if stopped || seq.is_some() {
        let stop = AgentStop {
            user_id: user.to_string(),
            reply_to_seq: seq,
            by_user_id: by.to_string(),
        };
        app.live.stop_agent(room, stop);
    }
    if stopped && let Some(seq) = seq {
        consents::withdraw_turn(app, room, user, seq).await?;
    }
    Ok(TurnStopped {
        ok: true,
        stopped,
        reply_to_seq: seq,
    })
}

/// The messages whose answers an agent works at: what it said itself, and what it waits for consent
/// for, which may be known before it has said so.
async fn works_at(
    app: &App,
    conn: &mut Conn,
    room: &RoomId,
    user: &UserId,
) -> Result<Vec<Option<i64>>> {
    let turn = app.live.at_work().turn_of(room, user, RoleClass::Agent);
    let asks = conn.open_consents_of(room, user).await?;
    let asks = asks.into_iter().map(|consent| consent.reply_to_seq);
    Ok(turn
        .into_iter()
        .map(|turn| turn.reply_to_seq)
        .chain(asks)
        .collect())
}

async fn may_stop(
    conn: &mut Conn,
    entry: &RoomAccess,
    agent: &MemberRow,
    seq: Option<i64>,
) -> Result<bool> {
    let me = &entry.member.user_id;
    if entry.is_owner() {
        return Ok(true);
    }
    if owner_of(conn, &entry.room, agent).await? == *me {
        return Ok(true);
    }
    let asked = match seq {
        Some(seq) => conn.message(&entry.room.room_id, seq).await?,
        None => None,
    };
    Ok(asked.is_some_and(|message| message.sender_user_id == *me))
}

/// The word to stop that an agent which answers this message has not obeyed yet.
pub async fn pending_stop(
    conn: &mut Conn,
    room: &RoomId,
    user: &UserId,
    seq: Option<i64>,
    now: Now,
) -> Result<Option<StopRow>> {
    let found = conn.stop_of(room, user).await?;
    Ok(found
        .filter(|stop| stop.reply_to_seq == seq)
        .filter(|stop| now.seconds() - stop.at < STOP_SECONDS))
}

/// The agent has stopped. What it does next without naming a message is something else; for the same
/// message the word still counts.
pub async fn acknowledge_stop(
    app: &App,
    room: &RoomId,
    user: &UserId,
    seq: Option<i64>,
) -> Result<()> {
    if seq.is_some() {
        return Ok(());
    }
    let mut tx = app.db.begin_keeping_cache().await?;
    tx.forget_stop(room, user).await?;
    Ok(tx.commit().await?)
}
