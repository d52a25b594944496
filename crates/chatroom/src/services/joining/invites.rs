//! Invites: made by owners, or by visitors of public rooms for their own agent.

use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::{Error, Result},
    services::{
        access::{self, RoomLock, refuse_archived},
        audit, checks,
        idempotency::IdempotentRequest,
        limits::{self, Limit},
    },
    store::{Tx, invites::InviteRow},
};
use protocol::{
    AutoInvite, CreateInvite, ErrorCode, InviteCreated, InviteSummary, InviteView, Invites, RoomId,
    UserId,
};
use qrcode::{QrCode, render::svg};
use serde_json::json;
use std::net::IpAddr;

pub const MAX_USES: i64 = 20;
const DEFAULT_TTL: i64 = 3600;
/// Whatever the operator allows.
pub const LONGEST_TTL: i64 = 30 * 86_400;
/// Members that an invite tells of.
const NAMED: i64 = 100;
const HOUR_MS: i64 = 3_600_000;

pub async fn create(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    request: CreateInvite,
    idempotent: &IdempotentRequest,
) -> Result<InviteCreated> {
    let max_uses = checks::in_range("max_uses", request.max_uses.unwrap_or(1), 1..=MAX_USES)?;
    let ttl = checks::in_range(
        "ttl_seconds",
        request.ttl_seconds.unwrap_or(DEFAULT_TTL),
        1..=app.config.limits.invite_ttl_seconds.clamp(1, LONGEST_TTL),
    )?;
    let display_name = request
        .display_name
        .as_deref()
        .map(|name| checks::member_name("display_name", name))
        .transpose()?;
    let now = Now::get();
    let mut tx = app.db.begin().await?;
    if let Some(answer) = idempotent.answered(app, &mut tx).await? {
        return Ok(answer);
    }
    let entry = access::member(&mut tx, caller, room, RoomLock::Locked)
        .await?
        .as_owner()?
        .not_archived()?;
    let owner = entry.member.user_id;
    let invite = InviteRow {
        display_name,
        max_uses,
        expires_at: now.seconds() + ttl,
        ..new_invite(app, room, &owner, now)?
    };
    let created = save(app, &mut tx, &invite).await?;
    let detail = json!({"max_uses": max_uses, "expires_at": invite.expires_at});
    audit::record(
        &mut tx,
        room,
        &owner,
        "invite_created",
        Some(&invite.jti),
        detail,
        now,
    )
    .await?;
    idempotent.keep(app, &mut tx, &created).await?;
    tx.commit().await?;
    Ok(created)
}

/// A visitor's invite into a public room.
pub async fn create_for_visitor(app: &App, room: &RoomId, ip: IpAddr) -> Result<AutoInvite> {
    let now = Now::get();
    let mut tx = app.db.begin().await?;
    let row = access::public_room(tx.lock_room(room).await?)?;
    refuse_archived(&row)?;
    refuse_full(app, &mut tx, room).await?;
    let limit = Limit {
        bucket: format!("auto-invite {ip} {room}"),
        most: app.config.limits.auto_invites_per_hour,
        window_ms: HOUR_MS,
        code: ErrorCode::RateLimited,
        words: "Too many invites for this room from your address",
        stored: true,
    };
    limits::count_against(&mut tx, &[limit], now).await?;
    let visitor = UserId::visitor();
    let invite = new_invite(app, room, &visitor, now)?;
    let created = save(app, &mut tx, &invite).await?;
    let detail = json!({"expires_at": invite.expires_at});
    let target = Some(invite.jti.as_str());
    audit::record(
        &mut tx,
        room,
        &visitor,
        "auto_invite_created",
        target,
        detail,
        now,
    )
    .await?;
    tx.commit().await?;
    Ok(AutoInvite {
        invite_code: created.invite_code,
        expires_at: created.expires_at,
        max_uses: created.max_uses,
        ttl_seconds: DEFAULT_TTL,
        install_url: created.install_url,
        short_code: created.short_code,
    })
}

pub async fn list(app: &App, caller: &Caller, room: &RoomId) -> Result<Invites> {
    let mut conn = app.db.read().await?;
    access::member(&mut conn, caller, room, RoomLock::Unlocked)
        .await?
        .as_owner()?;
    let rows = conn.active_invites(room, Now::get().seconds()).await?;
    let invites = rows.into_iter().map(|row| InviteView {
        code_jti: row.jti,
        uses: row.uses,
        max_uses: row.max_uses,
        expires_at: row.expires_at,
        created_by_user_id: row.created_by,
    });
    Ok(Invites {
        invites: invites.collect(),
    })
}

pub async fn revoke(app: &App, caller: &Caller, room: &RoomId, jti: &str) -> Result<()> {
    let mut tx = app.db.begin().await?;
    let entry = access::member(&mut tx, caller, room, RoomLock::Locked)
        .await?
        .as_owner()?;
    if !tx.revoke_invite(room, jti).await? {
        return Err(Error::not_found(
            "No such invite in this room, or it was revoked already",
        ));
    }
    let actor = entry.member.user_id;
    audit::record(
        &mut tx,
        room,
        &actor,
        "invite_revoked",
        Some(jti),
        json!({}),
        Now::get(),
    )
    .await?;
    tx.commit().await?;
    Ok(())
}

/// The invite code behind a short code.
pub async fn by_short_code(app: &App, code: &str) -> Result<String> {
    Ok(app.tokens.invite(&usable(app, code).await?))
}

/// What whoever holds an invite may know of its room before joining: names, no ids.
pub async fn summary(app: &App, code: &str) -> Result<InviteSummary> {
    let invite = usable(app, code).await?;
    let mut conn = app.db.read().await?;
    let room = conn.room(&invite.room_id).await?;
    let room = room.ok_or_else(|| Error::not_found("No such invite; ask for a new one"))?;
    let members = conn.members(&invite.room_id, NAMED, 0).await?;
    let inviter = members
        .iter()
        .find(|member| member.user_id == invite.created_by);
    Ok(InviteSummary {
        invited_by: inviter.and_then(|member| member.user_name.clone()),
        member_count: conn.member_count(&invite.room_id).await?,
        member_names: members
            .into_iter()
            .filter_map(|member| member.user_name)
            .collect(),
        room_id: invite.room_id,
        room_name: room.name,
        expires_at: invite.expires_at,
    })
}

/// The invite behind a short code, while somebody could join with it.
async fn usable(app: &App, code: &str) -> Result<InviteRow> {
    let hash = app.secrets.hash_code(code);
    let invite = app.db.read().await?.invite_by_code(&hash).await?;
    let invite = invite.filter(|invite| !invite.revoked);
    let invite = invite.ok_or_else(|| Error::not_found("No such invite; ask for a new one"))?;
    if invite.expires_at <= Now::get().seconds() || invite.uses >= invite.max_uses {
        return Err(Error::new(
            ErrorCode::Gone,
            "This invite has expired or is used up; ask for a new one",
        ));
    }
    Ok(invite)
}

/// A QR code, as SVG, of the link with which a person joins by the invite.
pub async fn qr_code(app: &App, short_code: &str) -> Result<String> {
    by_short_code(app, short_code).await?;
    let link = format!("{}/view#invite={short_code}", app.public_url);
    let code = QrCode::new(link).map_err(Error::internal)?;
    Ok(code
        .render::<svg::Color<'_>>()
        .min_dimensions(232, 232)
        .build())
}

/// A room that has no place left takes nobody.
pub async fn refuse_full(app: &App, tx: &mut Tx, room: &RoomId) -> Result<()> {
    let most = match room.is_reserved() {
        true => app.config.limits.reserved_members_per_room,
        false => app.config.limits.members_per_room,
    };
    if most > 0 && tx.member_count(room).await? >= most {
        return Err(Error::new(
            ErrorCode::RoomFull,
            format!("The room is full: it has {most} members"),
        ));
    }
    Ok(())
}

/// An invite for one use within the hour.
pub fn new_invite(app: &App, room: &RoomId, by: &UserId, now: Now) -> Result<InviteRow> {
    Ok(InviteRow {
        jti: app.secrets.random_code("", 20).map_err(Error::internal)?,
        room_id: room.clone(),
        created_by: by.clone(),
        display_name: None,
        max_uses: 1,
        uses: 0,
        issued_at: now.seconds(),
        expires_at: now.seconds() + DEFAULT_TTL,
        revoked: false,
        recovers: None,
    })
}

/// Stores an invite under a short code.
pub async fn save(app: &App, tx: &mut Tx, invite: &InviteRow) -> Result<InviteCreated> {
    let short_code = app.secrets.random_code("i_", 8).map_err(Error::internal)?;
    tx.insert_invite(invite, &app.secrets.hash_code(&short_code))
        .await?;
    Ok(InviteCreated {
        invite_code: app.tokens.invite(invite),
        expires_at: invite.expires_at,
        max_uses: invite.max_uses,
        uses: 0,
        install_url: format!("{}/install/{short_code}", app.public_url),
        short_code,
    })
}
