//! An owner keeps somebody out of a room.
//!
//! A ban is of an id. A stranger with a fresh id and a good invite is somebody new; so that the
//! invite somebody came with does not let them in again under another id, it ends with the ban.

use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::{Error, Result},
    services::{
        access::{self, RoomLock},
        audit,
        change::RoomTx,
        checks, members,
    },
    store::{Conn, bans::RoomBanRow},
};
use protocol::{BanMember, MemberBanned, RoomBan, RoomBans, RoomId, UserId};
use serde_json::json;

/// Bans somebody, and removes them where they are a member.
pub async fn ban(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    request: BanMember,
) -> Result<MemberBanned> {
    let user: UserId = request
        .user_id
        .parse()
        .map_err(|why: protocol::BadId| Error::bad_request(why.0))?;
    let reason = request
        .reason
        .as_deref()
        .map(|reason| checks::reason("reason", reason))
        .transpose()?;
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    let entry = access::member(&mut tx, caller, room, RoomLock::Locked)
        .await?
        .as_owner()?;
    if entry.member.user_id == user {
        return Err(Error::forbidden("You cannot ban yourself"));
    }
    let owner = entry.member.user_id;
    let member = tx.member(room, &user).await?;
    let invite = tx.invite_of_member(room, &user).await?;
    let ban = RoomBanRow {
        user_id: user.clone(),
        user_name: member.as_ref().and_then(|member| member.user_name.clone()),
        reason,
        banned_by: owner.clone(),
        banned_at: now.seconds(),
    };
    tx.insert_room_ban(room, &ban).await?;
    audit::record(
        &mut tx,
        room,
        &owner,
        "member_banned",
        Some(user.as_str()),
        json!({"reason": ban.reason}),
        now,
    )
    .await?;
    let invite_revoked = match invite {
        Some(jti) => tx.revoke_invite(room, &jti).await?,
        None => false,
    };
    let removed = member.is_some();
    match member {
        None => tx.commit().await?,
        Some(member) => members::kick(tx, entry.room, &member, &owner, now).await?,
    }
    Ok(MemberBanned {
        ok: true,
        removed,
        invite_revoked,
    })
}

/// Whom the owner keeps out.
pub async fn list(app: &App, caller: &Caller, room: &RoomId) -> Result<RoomBans> {
    let mut conn = app.db.read().await?;
    access::member(&mut conn, caller, room, RoomLock::Unlocked)
        .await?
        .as_owner()?;
    let rows = conn.room_bans(room).await?;
    let bans = rows.into_iter().map(|row| RoomBan {
        user_id: row.user_id.into(),
        user_name: row.user_name,
        reason: row.reason,
        banned_by: row.banned_by.into(),
        banned_at: row.banned_at,
    });
    Ok(RoomBans {
        bans: bans.collect(),
    })
}

/// Lets somebody in again; they need a new invite.
pub async fn lift(app: &App, caller: &Caller, room: &RoomId, user: &UserId) -> Result<()> {
    let mut tx = app.db.begin().await?;
    let entry = access::member(&mut tx, caller, room, RoomLock::Locked)
        .await?
        .as_owner()?;
    if !tx.delete_room_ban(room, user).await? {
        return Err(Error::not_found("No such ban in this room"));
    }
    audit::record(
        &mut tx,
        room,
        &entry.member.user_id,
        "ban_lifted",
        Some(user.as_str()),
        json!({}),
        Now::get(),
    )
    .await?;
    tx.commit().await?;
    Ok(())
}

/// Refuses whoever the room's owner or the operator keeps out.
pub async fn refuse_banned(app: &App, conn: &mut Conn, room: &RoomId, user: &UserId) -> Result<()> {
    app.denylist.refuse_banned(user)?;
    match conn.is_banned_from(room, user).await? {
        true => Err(Error::forbidden(
            "The owner of this room has banned this user from it",
        )),
        false => Ok(()),
    }
}
