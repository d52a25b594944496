//! Room keys for people's browsers, and the short links to them.

use super::{
    identity::{self, Basis, Lineage},
    revocation,
};
use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::{Error, Result},
    services::{
        access::{self, RoomLock},
        change::RoomTx,
        idempotency::IdempotentRequest,
    },
    store::keys::{KeyRow, ShareCodeRow},
};
use protocol::{
    CreateRoomKey, ErrorCode, KeysRevoked, MemberKind, RoleClass, RoomId, RoomKeyCreated,
    RoomKeyView, RoomKeys, Scope, UserId, Via,
};

pub async fn create(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    request: CreateRoomKey,
    idempotent: &IdempotentRequest,
) -> Result<RoomKeyCreated> {
    let user = access::user(caller)?.id.clone();
    let now = Now::get();
    let mut tx = app.db.begin().await?;
    if let Some(answer) = idempotent.answered(app, &mut tx).await? {
        return Ok(answer);
    }
    access::member(&mut tx, caller, room, RoomLock::Locked).await?;
    if request.for_user_id != user.as_str() {
        return Err(Error::forbidden("for_user_id must be your own user_id"));
    }
    let most = app.config.limits.room_keys_per_user;
    let active = tx.shared_keys(room, &user, now.seconds()).await?.len();
    if most > 0 && i64::try_from(active).unwrap_or(i64::MAX) >= most {
        return Err(Error::new(
            ErrorCode::TooManyKeys,
            format!("You have {active} active room keys for this room; revoke one first"),
        ));
    }
    let scope = request.scope.unwrap_or(Scope::ViewPost);
    let basis = Basis {
        lineage: Lineage::of_user(&user),
        source: identity::lock_source(&mut tx, caller).await?,
    };
    let key = KeyRow {
        scope,
        posts_as: Via::Web,
        shared: true,
        ..new_key(app, room, &user, &basis, now)?
    };
    let code = app.secrets.random_code("ck_", 8).map_err(Error::internal)?;
    tx.insert_key(&key).await?;
    let share = ShareCodeRow {
        room_id: room.clone(),
        jti: key.jti.clone(),
        created_by: user,
        expires_at: key.expires_at,
        revoked: false,
    };
    tx.insert_share_code(&app.secrets.hash_code(&code), &share)
        .await?;
    let token = app.tokens.room_key(&key);
    let created = RoomKeyCreated {
        scope,
        expires_at: key.expires_at,
        viewer_url: format!("{}/k/{code}", app.public_url),
        direct_url: format!("{}{}", app.public_url, view_path(room, &token)),
        code,
        token,
    };
    idempotent.keep(app, &mut tx, &created).await?;
    tx.commit().await?;
    Ok(created)
}

pub async fn list(app: &App, caller: &Caller, room: &RoomId) -> Result<RoomKeys> {
    let user = &access::user(caller)?.id;
    let mut conn = app.db.read().await?;
    access::member(&mut conn, caller, room, RoomLock::Unlocked).await?;
    let rows = conn.shared_keys(room, user, Now::get().seconds()).await?;
    let keys = rows.into_iter().map(|row| RoomKeyView {
        scope: row.scope,
        jti: row.jti,
        issued_at: row.issued_at,
        expires_at: row.expires_at,
    });
    Ok(RoomKeys {
        room_keys: keys.collect(),
    })
}

pub async fn revoke_all(app: &App, caller: &Caller, room: &RoomId) -> Result<KeysRevoked> {
    let user = &access::user(caller)?.id;
    let mut tx = RoomTx::begin(app).await?;
    access::member(&mut tx, caller, room, RoomLock::Unlocked).await?;
    let keys = tx.shared_keys(room, user, Now::get().seconds()).await?;
    let roots: Vec<&str> = keys.iter().map(|key| key.jti.as_str()).collect();
    revocation::revoke(&mut tx, &roots, None).await?;
    tx.commit().await?;
    Ok(KeysRevoked {
        revoked: i64::try_from(keys.len()).unwrap_or(i64::MAX),
    })
}

pub async fn revoke(app: &App, caller: &Caller, room: &RoomId, jti: &str) -> Result<()> {
    let user = &access::user(caller)?.id;
    let mut tx = RoomTx::begin(app).await?;
    access::member(&mut tx, caller, room, RoomLock::Unlocked).await?;
    let key = tx
        .key(jti)
        .await?
        .filter(|key| key.room_id == *room && key.user_id == *user && key.shared && !key.revoked);
    if key.is_none() {
        return Err(Error::not_found("You have no such active room key"));
    }
    revocation::revoke(&mut tx, &[jti], None).await?;
    tx.commit().await?;
    Ok(())
}

/// Where a short link leads.
pub async fn resolve_share_link(app: &App, code: &str) -> Result<String> {
    let missing = || Error::not_found("No such link; ask for a new one");
    let mut conn = app.db.read().await?;
    let share = conn.share_code(&app.secrets.hash_code(code)).await?;
    let share = share.filter(|share| !share.revoked).ok_or_else(missing)?;
    if share.expires_at <= Now::get().seconds() {
        return Err(Error::new(
            ErrorCode::Gone,
            "This link has expired; ask for a new one",
        ));
    }
    let key = conn
        .key(&share.jti)
        .await?
        .filter(|key| !key.revoked)
        .ok_or_else(missing)?;
    Ok(view_path(&key.room_id, &app.tokens.room_key(&key)))
}

/// Ends a short link. The key behind it stays as it is.
pub async fn revoke_link(app: &App, caller: &Caller, code: &str) -> Result<()> {
    let user = access::user(caller)?;
    let missing = || Error::not_found("No such link, or it was revoked already");
    let hash = app.secrets.hash_code(code);
    let mut tx = app.db.begin().await?;
    let share = tx.share_code(&hash).await?.ok_or_else(missing)?;
    let room = tx.room(&share.room_id).await?.ok_or_else(missing)?;
    if share.created_by != user.id && room.owner_user_id != user.id {
        return Err(Error::forbidden(
            "Only whoever made the link or the room's owner may revoke it",
        ));
    }
    if !tx.revoke_share_code(&hash).await? {
        return Err(missing());
    }
    tx.commit().await?;
    Ok(())
}

/// A key for a member: people post as people, agents as agents.
pub fn new_member_key(
    app: &App,
    room: &RoomId,
    user: &UserId,
    kind: &MemberKind,
    basis: &Basis,
    now: Now,
) -> Result<KeyRow> {
    let via = match RoleClass::from(kind) {
        RoleClass::Human => Via::Web,
        RoleClass::Agent | RoleClass::Other(_) => Via::Agent,
    };
    Ok(KeyRow {
        posts_as: via,
        ..new_key(app, room, user, basis, now)?
    })
}

fn new_key(app: &App, room: &RoomId, user: &UserId, basis: &Basis, now: Now) -> Result<KeyRow> {
    Ok(KeyRow {
        jti: app.secrets.random_code("", 20).map_err(Error::internal)?,
        room_id: room.clone(),
        user_id: user.clone(),
        scope: Scope::ViewPost,
        posts_as: Via::Agent,
        shared: false,
        lineage: Some(basis.lineage.as_str().to_owned()),
        derived_from: basis.source.clone(),
        issued_at: now.seconds(),
        expires_at: now.seconds() + app.config.tokens.room_key_ttl_seconds,
        revoked: false,
    })
}

fn view_path(room: &RoomId, token: &str) -> String {
    format!("/view?room={room}&token={token}")
}
