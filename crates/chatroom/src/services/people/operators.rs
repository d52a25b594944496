//! What operators do to users: see them, end their credentials, keep them out.

use crate::{
    app::App,
    auth::{Caller, denylist::Subject},
    clock::Now,
    error::{Error, Result},
    services::{
        access,
        change::{RoomLog, RoomTx},
        checks,
        credentials::{revocation, sessions},
        members, people,
    },
};
use protocol::{
    AdminUser, AdminUsers, Ban, Notice, ServerBan, ServerBans, Sessions, SessionsEnded, UserId,
};

/// Users on a page.
const PAGE: i64 = 100;
/// Keys and identity tokens of a user that are looked at, of each.
const MOST: i64 = 10_000;

/// Everybody who is in a room or holds an identity token.
pub async fn users(app: &App, caller: &Caller, after: &str) -> Result<AdminUsers> {
    access::operator(caller)?;
    let now = Now::get().seconds();
    let mut conn = app.db.read().await?;
    let ids = conn.users_after(after, PAGE + 1).await?;
    let more = i64::try_from(ids.len()).is_ok_and(|ids| ids > PAGE);
    let mut users = Vec::new();
    for user_id in ids.into_iter().take(PAGE as usize) {
        let (rooms, user_name) = conn.rooms_and_name_of(&user_id).await?;
        let sessions = conn.sessions_of(&user_id, now, MOST).await?.len();
        users.push(AdminUser {
            banned: app.denylist.bans_user(&user_id),
            sessions: i64::try_from(sessions).unwrap_or(i64::MAX),
            user_id: user_id.into(),
            user_name,
            rooms,
        });
    }
    let next = users.last().filter(|_| more);
    Ok(AdminUsers {
        next: next.map(|user| user.user_id.clone()),
        users,
    })
}

/// The keys and identity tokens of a user.
pub async fn sessions_of(app: &App, caller: &Caller, user: &UserId) -> Result<Sessions> {
    access::operator(caller)?;
    let now = Now::get().seconds();
    let mut conn = app.db.read().await?;
    let mut rows = conn.sessions_of(user, now, MOST).await?;
    rows.sort_by(|one, other| (other.issued_at, &other.jti).cmp(&(one.issued_at, &one.jti)));
    let sessions = rows.into_iter().map(|row| sessions::session(row, None));
    Ok(Sessions {
        user_id: user.to_string(),
        sessions: sessions.collect(),
    })
}

/// Ends every credential of a user: keys, identity tokens, short codes, and the user tokens that
/// were issued so far.
pub async fn revoke_user(app: &App, caller: &Caller, user: &UserId) -> Result<SessionsEnded> {
    access::operator(caller)?;
    let mut tx = RoomTx::begin(app).await?;
    let ended = end_all(&mut tx, user).await?;
    tx.commit().await?;
    tracing::info!(%user, ended, "an operator ended all credentials of a user");
    Ok(SessionsEnded { ended })
}

/// Gives a user another name, in all rooms.
pub async fn rename_user(app: &App, caller: &Caller, user: &UserId, name: &str) -> Result<()> {
    access::operator(caller)?;
    people::rename(app, user, name).await
}

/// Takes a user out of all rooms that they do not own, ends what they hold, and forgets their account.
pub async fn remove_user(app: &App, caller: &Caller, user: &UserId) -> Result<SessionsEnded> {
    access::operator(caller)?;
    let rooms = app.db.read().await?.rooms_of(user).await?;
    let now = Now::get();
    for room in rooms.into_iter().filter(|room| room.owner_user_id != *user) {
        let mut tx = RoomTx::begin(app).await?;
        let found = tx.lock_room(&room.room_id).await?;
        let member = tx.member(&room.room_id, user).await?;
        let Some((row, member)) = found.zip(member) else {
            continue;
        };
        let notice = Notice::MemberLeft {
            user_id: user.to_string(),
            user_name: member.user_name.clone(),
        };
        let mut log = RoomLog::new(row);
        let actor = &UserId::system();
        members::take_out(
            &mut tx,
            &mut log,
            &member,
            actor,
            "member_left",
            notice,
            now,
        )
        .await?;
        tx.add_log(log);
        tx.commit().await?;
    }
    let mut tx = RoomTx::begin(app).await?;
    let ended = end_all(&mut tx, user).await?;
    tx.forget_account(user).await?;
    tx.commit().await?;
    tracing::info!(%user, ended, "an operator removed a user");
    Ok(SessionsEnded { ended })
}

/// Ends a key or an identity token, and everything derived from it.
pub async fn revoke_credential(app: &App, caller: &Caller, jti: &str) -> Result<SessionsEnded> {
    access::operator(caller)?;
    let mut tx = RoomTx::begin(app).await?;
    let key = tx.key(jti).await?.is_some_and(|key| !key.revoked);
    let identity = tx.identity(jti).await?.is_some_and(|token| !token.revoked);
    if !key && !identity {
        return Err(Error::not_found(
            "No such key or identity token, or it was revoked already",
        ));
    }
    revocation::revoke(&mut tx, &[jti], None).await?;
    tx.commit().await?;
    tracing::info!(jti, "an operator revoked a credential");
    Ok(SessionsEnded { ended: 1 })
}

/// Keeps a user or a network out, from now on and on every node.
pub async fn ban(app: &App, caller: &Caller, request: Ban) -> Result<ServerBan> {
    access::operator(caller)?;
    let subject = Subject::parse(&request.subject)?;
    if let Subject::Network(net) = &subject
        && net.prefix_len() == 0
    {
        return Err(Error::bad_request("That would ban everybody"));
    }
    let reason = request
        .reason
        .as_deref()
        .map(|reason| checks::reason("reason", reason))
        .transpose()?;
    let now = Now::get().seconds();
    let mut tx = RoomTx::begin(app).await?;
    tx.insert_ban(&subject.to_string(), reason.as_deref(), now)
        .await?;
    tx.change_denylist().await?;
    if let Subject::User(user) = &subject {
        end_all(&mut tx, user).await?;
        tx.detach_user(user).await?;
    }
    tx.commit().await?;
    tracing::info!(%subject, "an operator banned somebody");
    Ok(ServerBan {
        subject: subject.to_string(),
        reason,
        banned_at: now,
    })
}

pub async fn bans(app: &App, caller: &Caller) -> Result<ServerBans> {
    access::operator(caller)?;
    let rows = app.db.read().await?.bans().await?;
    let bans = rows.into_iter().map(|row| ServerBan {
        subject: row.subject,
        reason: row.reason,
        banned_at: row.banned_at,
    });
    Ok(ServerBans {
        bans: bans.collect(),
    })
}

/// Lifts a ban. Credentials that ended with it stay ended.
pub async fn unban(app: &App, caller: &Caller, subject: &str) -> Result<()> {
    access::operator(caller)?;
    let subject = Subject::parse(subject)?;
    let mut tx = RoomTx::begin(app).await?;
    if !tx.delete_ban(&subject.to_string()).await? {
        return Err(Error::not_found("No such ban"));
    }
    tx.change_denylist().await?;
    tx.commit().await?;
    tracing::info!(%subject, "an operator lifted a ban");
    Ok(())
}

async fn end_all(tx: &mut RoomTx, user: &UserId) -> Result<i64> {
    let now = Now::get().seconds();
    let rows = tx.sessions_of(user, now, MOST).await?;
    let roots: Vec<&str> = rows.iter().map(|row| row.jti.as_str()).collect();
    revocation::revoke(tx, &roots, None).await?;
    let codes = tx.revoke_cli_keys_of(user).await?;
    // Those of this very second too.
    sessions::cut_off(tx, user, now + 1).await?;
    let ended = roots.len() + usize::try_from(codes).unwrap_or(0);
    Ok(i64::try_from(ended).unwrap_or(i64::MAX))
}
