//! The members of a room: who they are, and how they go.

pub mod bans;
pub mod endpoint;
pub mod names;
pub mod petnames;

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
        credentials::revocation,
        people,
        reputation::scorer,
        rooms::welcome,
        turns::{self, consents},
        wire,
    },
    store::{members::MemberRow, rooms::RoomRow},
};
use protocol::{AgentCardUpdated, ErrorCode, Members, Notice, Renamed, RoomId, UserId, WakePolicy};
use serde_json::json;
use std::collections::HashMap;

/// Members that are listed at once. Only the reserved rooms have more.
pub const PAGE: i64 = 1000;

/// The caller as a member of the room.
pub async fn own_access(app: &App, caller: &Caller, room: &RoomId) -> Result<RoomAccess> {
    access::member(&mut app.db.read().await?, caller, room, RoomLock::Unlocked).await
}

/// So many members in the order they joined, after so many.
pub async fn list(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    limit: Option<i64>,
    offset: Option<i64>,
) -> Result<Members> {
    let limit = checks::in_range("limit", limit.unwrap_or(PAGE), 1..=PAGE)?;
    let offset = checks::offset(offset)?;
    let mut conn = app.db.read().await?;
    access::member(&mut conn, caller, room, RoomLock::Unlocked).await?;
    // One more than is shown tells whether there are more.
    let mut rows = conn.members(room, limit + 1, offset).await?;
    let more = i64::try_from(rows.len()).is_ok_and(|rows| rows > limit);
    if more {
        rows.pop();
    }
    let errors = conn.delivery_errors(room).await?.into_iter();
    let errors: HashMap<UserId, String> = errors.map(|row| (row.user_id, row.last_error)).collect();
    let wake = conn.wake_policies_in(room).await?.into_iter();
    let wake: HashMap<UserId, WakePolicy> = wake
        .map(|row| (row.user_id.clone(), row.effective()))
        .filter(|(_, policy)| !policy.is_open())
        .collect();
    let with_pictures = conn.members_with_pictures(room).await?;
    let online = app.online(room);
    let members = rows.iter().map(|row| {
        let mut member = wire::member(row, online.contains(&row.user_id), &app.secrets);
        member.last_error = errors.get(&row.user_id).cloned();
        member.wake = wake.get(&row.user_id).cloned();
        if with_pictures.contains(&row.user_id) {
            member.picture = Some(people::picture_path(&member.avatar_seed));
        }
        member
    });
    let mut members = Members {
        members: members.collect(),
        next_offset: more.then_some(offset + limit),
    };
    if *room == RoomId::welcome() {
        welcome::add_scores(&mut conn, &mut members.members).await?;
    }
    Ok(members)
}

/// Whether the caller is this user.
fn is(caller: &Caller, user: &UserId) -> bool {
    matches!(caller, Caller::User(me) if me.id == *user)
}

/// Takes a member out: oneself, or anyone but oneself as owner.
pub async fn remove(app: &App, caller: &Caller, room: &RoomId, user: &UserId) -> Result<()> {
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    let mut entry = match access::member(&mut tx, caller, room, RoomLock::Locked).await {
        Err(refused) if refused.code() == ErrorCode::NotAMember && is(caller, user) => {
            return Err(Error::not_found("You are not in this room"));
        }
        entry => entry?,
    };
    let leaving = entry.member.user_id == *user;
    entry = match leaving {
        true => entry.as_oneself()?,
        false => entry.as_owner()?,
    };
    let target = tx.member(room, user).await?;
    let target = target.ok_or_else(|| Error::not_found("No such member in this room"))?;
    if target.is_owner() {
        return Err(Error::forbidden(
            "The owner cannot leave or be removed; archive the room instead",
        ));
    }
    let actor = entry.member.user_id;
    if !leaving {
        return kick(tx, entry.room, &target, &actor, now).await;
    }
    let mut log = RoomLog::new(entry.room);
    let notice = Notice::MemberLeft {
        user_id: target.user_id.to_string(),
        user_name: target.user_name.clone(),
    };
    take_out(
        &mut tx,
        &mut log,
        &target,
        &actor,
        "member_left",
        notice,
        now,
    )
    .await?;
    tx.add_log(log);
    tx.commit().await?;
    Ok(())
}

/// Removes a member on the owner's behalf, in whose locked room they are, and commits.
pub async fn kick(
    mut tx: RoomTx,
    room: RoomRow,
    member: &MemberRow,
    owner: &UserId,
    now: Now,
) -> Result<()> {
    let id = room.room_id.clone();
    let user = &member.user_id;
    let notice = Notice::MemberRemoved {
        user_id: user.to_string(),
        user_name: member.user_name.clone(),
        by_user_id: owner.to_string(),
    };
    let mut log = RoomLog::new(room);
    take_out(
        &mut tx,
        &mut log,
        member,
        owner,
        "member_removed",
        notice,
        now,
    )
    .await?;
    let told_at = log.room().last_seq;
    scorer::kicked(&mut tx, &id, user, owner, told_at, now.seconds()).await?;
    tx.add_log(log);
    tx.commit().await
}

/// Takes a member out of the room that the log is of, ends its keys, and says so there.
pub async fn take_out(
    tx: &mut RoomTx,
    log: &mut RoomLog,
    member: &MemberRow,
    actor: &UserId,
    action: &str,
    notice: Notice,
    now: Now,
) -> Result<()> {
    let room = log.room().room_id.clone();
    let user = &member.user_id;
    let owner = turns::owner_of(tx, log.room(), member).await?;
    consents::withdraw_all(tx, log, user, &owner, now).await?;
    tx.delete_member(&room, user).await?;
    revocation::revoke_member(tx, &room, user).await?;
    let target = Some(user.as_str());
    audit::record(tx, &room, actor, action, target, json!({}), now).await?;
    log.notice(tx, notice, now).await
}

/// Renames a member who came with an invite. The names of Starchild members are not the room's
/// to change.
pub async fn rename(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    user: &UserId,
    name: &str,
) -> Result<Renamed> {
    let name = checks::member_name("name", name)?;
    let mut tx = app.db.begin().await?;
    let entry = access::member(&mut tx, caller, room, RoomLock::Locked)
        .await?
        .as_owner()?;
    let target = tx.member(room, user).await?;
    let target = target.ok_or_else(|| Error::not_found("No such member in this room"))?;
    if !target.member_kind.is_external() {
        return Err(Error::forbidden(
            "The names of Starchild members come with their tokens",
        ));
    }
    tx.set_member_name(room, user, &name).await?;
    names::remember(&mut tx, room, user, Some(&name)).await?;
    let detail = json!({"from": target.user_name, "to": name});
    let actor = &entry.member.user_id;
    audit::record(
        &mut tx,
        room,
        actor,
        "member_renamed",
        Some(user.as_str()),
        detail,
        Now::get(),
    )
    .await?;
    tx.commit().await?;
    Ok(Renamed {
        ok: true,
        user_name: name,
    })
}

/// Changes one's own agent card, or clears another's as owner.
pub async fn set_agent_card(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    user: &UserId,
    url: Option<&str>,
) -> Result<AgentCardUpdated> {
    let url = url
        .filter(|url| !url.is_empty())
        .map(|url| checks::web_address("agent_card_url", url))
        .transpose()?;
    let mut tx = app.db.begin().await?;
    let entry = access::member(&mut tx, caller, room, RoomLock::Locked).await?;
    if entry.member.user_id == *user {
        entry.as_oneself()?;
    } else {
        entry.as_owner()?;
        if url.is_some() {
            return Err(Error::forbidden(
                "Of another member's agent card, an owner can only clear the address",
            ));
        }
        if tx.member(room, user).await?.is_none() {
            return Err(Error::not_found("No such member in this room"));
        }
    }
    tx.set_agent_card(room, user, url.as_deref()).await?;
    tx.commit().await?;
    Ok(AgentCardUpdated {
        ok: true,
        agent_card_url: url,
    })
}
