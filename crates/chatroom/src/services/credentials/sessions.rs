//! One's own sessions: what acts for one, and ending it.

use super::{cli_keys::code_of, revocation};
use crate::{
    app::App,
    auth::{Caller, Identity},
    clock::Now,
    error::{Error, Result},
    services::change::RoomTx,
    store::{Conn, cli_keys::CliKeyRow, sessions::SessionRow},
};
use protocol::{ErrorCode, Session, SessionKind, Sessions, SessionsEnded, UserId};
use std::collections::HashMap;

/// Keys and identity tokens of a user that are looked at, of each.
const MOST: i64 = 1000;

/// Whose sessions they are. An external id may be claimed by several parties; each sees its own.
struct Owner {
    user: UserId,
    lineage: Option<String>,
    /// The identity token that asks, where it is one.
    current: Option<String>,
    /// When the user token that asks was issued, where it is one.
    issued_at: Option<i64>,
}

/// Lists the caller's sessions, newest first.
pub async fn list(app: &App, caller: &Caller) -> Result<Sessions> {
    let owner = owner(caller)?;
    let mut conn = app.db.read().await?;
    let rows = own_rows(&mut conn, &owner).await?;
    let clients = conn.clients_of(&owner.user).await?;
    let clients: HashMap<String, String> = clients.into_iter().collect();
    let mut sessions = Vec::new();
    for row in rows {
        let label = clients.get(&row.jti).cloned();
        let session = session(row, owner.current.as_deref());
        sessions.push(Session { label, ..session });
    }
    for row in cli_keys(&mut conn, &owner).await? {
        sessions.push(Session {
            id: code_of(app, &row)?,
            kind: SessionKind::CliKey,
            room_id: None,
            scope: None,
            label: row.label,
            issued_at: row.created_at,
            expires_at: row.expires_at,
            last_used_at: row.last_used_at,
            current: false,
        });
    }
    sessions.sort_by(|one, other| (other.issued_at, &other.id).cmp(&(one.issued_at, &one.id)));
    Ok(Sessions {
        user_id: owner.user.into(),
        sessions,
    })
}

/// Ends the caller's sessions at once: all of them, or all but the one that asks.
pub async fn end_all(app: &App, caller: &Caller, keep_current: bool) -> Result<SessionsEnded> {
    let owner = owner(caller)?;
    let current = owner.current.as_deref().filter(|_| keep_current);
    let mut tx = RoomTx::begin(app).await?;
    let rows = own_rows(&mut tx, &owner).await?;
    let ended: Vec<&str> = rows
        .iter()
        .map(|row| row.jti.as_str())
        .filter(|jti| Some(*jti) != current)
        .collect();
    revocation::revoke(&mut tx, &ended, current).await?;
    // Else a code that was given a moment ago would still become a token.
    tx.forget_codes_of(&owner.user).await?;
    let mut count = i64::try_from(ended.len()).unwrap_or(i64::MAX);
    if is_user(&owner) {
        let codes = tx.revoke_cli_keys_of(&owner.user).await?;
        count += i64::try_from(codes).unwrap_or(0);
        // A user token that asks to be kept ends those that were issued before it.
        let cutoff = match (keep_current, owner.issued_at) {
            (true, Some(issued_at)) => issued_at,
            _ => Now::get().seconds() + 1,
        };
        cut_off(&mut tx, &owner.user, cutoff).await?;
    }
    tx.commit().await?;
    Ok(SessionsEnded { ended: count })
}

/// Ends one of the caller's sessions, and what was derived from it.
pub async fn end(app: &App, caller: &Caller, id: &str) -> Result<SessionsEnded> {
    let owner = owner(caller)?;
    let missing = || Error::not_found("You have no such session");
    let mut tx = RoomTx::begin(app).await?;
    let codes = cli_keys(&mut tx, &owner).await?;
    let code = codes
        .iter()
        .any(|row| app.secrets.unseal(&row.sealed_code).as_deref() == Some(id));
    if code {
        tx.revoke_cli_key(&app.secrets.hash_code(id)).await?;
        tx.commit().await?;
        return Ok(SessionsEnded { ended: 1 });
    }
    let rows = own_rows(&mut tx, &owner).await?;
    let row = rows.iter().find(|row| row.jti == id).ok_or_else(missing)?;
    let spared = owner.current.as_deref().filter(|jti| *jti != row.jti);
    revocation::revoke(&mut tx, &[&row.jti], spared).await?;
    tx.commit().await?;
    Ok(SessionsEnded { ended: 1 })
}

/// User tokens of this user that were issued before are over, on every node.
pub async fn cut_off(tx: &mut RoomTx, user: &UserId, not_before: i64) -> Result<()> {
    tx.set_token_cutoff(user, not_before).await?;
    tx.change_denylist().await
}

fn owner(caller: &Caller) -> Result<Owner> {
    match caller {
        Caller::Anonymous => Err(Error::missing_bearer()),
        Caller::User(user) => Ok(Owner {
            user: user.id.clone(),
            lineage: None,
            current: user.identity.clone(),
            issued_at: user.issued_at,
        }),
        Caller::Identity(Identity { row, .. }) => Ok(Owner {
            user: row.user_id.clone(),
            lineage: Some(row.lineage.clone().unwrap_or_default()),
            current: Some(row.jti.clone()),
            issued_at: None,
        }),
        Caller::RoomKey(_) => Err(Error::new(
            ErrorCode::TokenInvalid,
            "This endpoint takes a user token or an identity token",
        )),
    }
}

/// Whether a user token proves the id: then all of its sessions are the same party's.
fn is_user(owner: &Owner) -> bool {
    owner.lineage.is_none()
}

async fn own_rows(conn: &mut Conn, owner: &Owner) -> Result<Vec<SessionRow>> {
    let rows = conn.sessions_of(&owner.user, Now::get().seconds(), MOST);
    let mut rows = rows.await?;
    if let Some(lineage) = &owner.lineage {
        rows.retain(|row| row.lineage.as_ref() == Some(lineage));
    }
    Ok(rows)
}

async fn cli_keys(conn: &mut Conn, owner: &Owner) -> Result<Vec<CliKeyRow>> {
    if !is_user(owner) {
        return Ok(Vec::new());
    }
    let now = Now::get().seconds();
    let mut rows = conn.cli_keys_of(&owner.user).await?;
    rows.retain(|row| !row.revoked && row.expires_at > now);
    Ok(rows)
}

/// A session as it is shown.
pub fn session(row: SessionRow, current: Option<&str>) -> Session {
    let kind = match (&row.room_id, row.shared) {
        (None, _) => SessionKind::Identity,
        (Some(_), false) => SessionKind::MemberToken,
        (Some(_), true) => SessionKind::SharedKey,
    };
    Session {
        kind,
        room_id: row.room_id,
        scope: row.scope,
        label: None,
        issued_at: row.issued_at,
        expires_at: row.expires_at,
        last_used_at: None,
        current: current == Some(row.jti.as_str()),
        id: row.jti,
    }
}
