//! Giving a member's place back to an agent that has lost every token of it. The room's owner
//! agrees to it, for one member, with an invite that brings new tokens instead of a new member.

use super::{invite_invalid, invites};
use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::{Error, Result},
    services::{
        access::{self, RoomLock, refuse_archived},
        audit,
        change::{RoomLog, RoomTx},
        credentials::{identity, keys, revocation},
        idempotency::IdempotentRequest,
    },
    store::{
        invites::InviteRow,
        members::{Endpoint, PushKey},
        rooms::RoomRow,
    },
};
use protocol::{AdapterType, InviteCreated, Join, Joined, RoomId, UserId};
use serde_json::json;

/// The owner's consent to give a member new tokens; the operator's, in any room.
pub async fn allow(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    user: &UserId,
) -> Result<InviteCreated> {
    let actor = access::user(caller)?;
    let now = Now::get();
    let mut tx = app.db.begin().await?;
    let row = access::owner_or_operator(&mut tx, caller, room, RoomLock::Locked).await?;
    refuse_archived(&row)?;
    let member = tx.member(room, user).await?;
    let member = member.ok_or_else(|| Error::not_found("No such member in this room"))?;
    if !member.member_kind.is_external() {
        return Err(Error::forbidden(
            "Starchild members get their tokens by signing in; only members who came with an invite are recovered",
        ));
    }
    let invite = InviteRow {
        recovers: Some(user.clone()),
        ..invites::new_invite(app, room, &actor.id, now)?
    };
    let created = invites::save(app, &mut tx, &invite).await?;
    let (actor, target) = (&actor.id, Some(user.as_str()));
    let detail = json!({"expires_at": invite.expires_at});
    audit::record(
        &mut tx,
        room,
        actor,
        "recovery_allowed",
        target,
        detail,
        now,
    )
    .await?;
    tx.commit().await?;
    Ok(created)
}

/// Gives the place of the invite's member to whoever presents it, with new tokens. What its tokens
/// were before ends, and its agent is not called until the newcomer says where.
pub async fn redeem(
    app: &App,
    mut tx: RoomTx,
    caller: &Caller,
    row: RoomRow,
    invite: &InviteRow,
    request: &Join,
    idempotent: &IdempotentRequest,
) -> Result<Joined> {
    let now = Now::get();
    let user = asked_for(caller, request, invite.recovers.as_ref())?;
    app.denylist.refuse_banned(&user)?;
    refuse_archived(&row)?;
    let room = row.room_id.clone();
    let member = tx.member(&room, &user).await?;
    let member = member.ok_or_else(invite_invalid)?;
    if !tx.use_invite(&invite.jti, &room, now.seconds()).await? {
        return Err(invite_invalid());
    }
    let basis = identity::claim(app, &mut tx, caller, &user).await?;
    revocation::revoke_member(&mut tx, &room, &user).await?;
    tx.set_lineage(&room, &user, basis.lineage.as_str()).await?;
    let detached = Endpoint {
        agent_endpoint: None,
        container_id: None,
        akm: PushKey::Forget,
        trusted: None,
    };
    tx.set_endpoint(&room, &user, detached).await?;
    tx.disable_delivery(&room, &user).await?;
    let key = keys::new_member_key(app, &room, &user, &member.member_kind, &basis, now)?;
    tx.insert_key(&key).await?;
    let identity = identity::new_identity(app, &user, &basis, now)?;
    tx.insert_identity(&identity).await?;
    let actor = &user;
    let target = Some(invite.jti.as_str());
    audit::record(
        &mut tx,
        &room,
        actor,
        "member_recovered",
        target,
        json!({}),
        now,
    )
    .await?;
    let mut log = RoomLog::new(row);
    let words = format!("{} was let back in with new tokens", member.shown_name());
    log.system_message(&mut tx, words, now).await?;
    tx.add_log(log);
    let joined = Joined {
        ok: true,
        room_id: room,
        user_id: user,
        user_name: member.user_name,
        member_kind: member.member_kind,
        adapter_type: AdapterType::Pull,
        joined_at: member.joined_at,
        member_token: Some(app.tokens.room_key(&key)),
        expires_at: Some(key.expires_at),
        identity_token: Some(app.tokens.identity(&identity, None)),
        identity_expires_at: Some(identity.expires_at),
    };
    idempotent.keep(app, &mut tx, &joined).await?;
    tx.commit().await?;
    Ok(joined)
}

/// The id that is asked for, if it is the one that the invite is for.
fn asked_for(caller: &Caller, request: &Join, member: Option<&UserId>) -> Result<UserId> {
    let wanted: Option<UserId> = request.user_id.as_deref().and_then(|id| id.parse().ok());
    let wanted = wanted.map(|wanted| wanted.external());
    let user = wanted.filter(|wanted| Some(wanted) == member && !matches!(caller, Caller::User(_)));
    let user = user.ok_or_else(|| {
        Error::new(
            protocol::ErrorCode::InviteInvalid,
            "This invite gives one member its place back: send that member's user_id, and no user token",
        )
    })?;
    if request.adapter_type != Some(AdapterType::Pull) {
        return Err(Error::bad_request(
            "This invite gives a member new tokens: send adapter_type pull. To be called again, PUT \
             /rooms/{id}/members/{user_id}/endpoint with the new member_token",
        ));
    }
    Ok(user)
}
