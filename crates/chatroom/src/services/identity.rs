//! Identity tokens, and getting a room key back with one.
//!
//! An external id is whatever a joiner says. So that nobody takes over an agent by joining some
//! other room under its id, each claim to an id that is not proven starts a *lineage* of its own:
//! its tokens reach the rooms it joined, and the rooms of owners who invited it, and no others.

use super::{
    keys,
    limits::{self, Limit},
    wire::stored,
};
use crate::{
    app::App,
    auth::{self, Caller, Identity, NoCaller, TokenType, User, tokens::Person},
    clock::Now,
    error::{Error, Result},
    store::{Tx, identities::IdentityRow},
};
use protocol::{
    AuthUsed, ErrorCode, IdentityCreated, IdentityRevoked, RoomId, Scope, TokenReissued, UserId,
};

const MINUTE_MS: i64 = 60_000;

/// One claim to an id. Tokens of the same lineage were given to the same party.
#[derive(Debug, Clone)]
pub struct Lineage(String);

impl Lineage {
    /// A user's own: a user token has proven the id.
    pub fn of_user(user: &UserId) -> Self {
        Self(format!("user:{user}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The lineage of this id that the bearer proves, if it proves one.
pub fn proven(caller: &Caller, user: &UserId) -> Result<Option<Lineage>> {
    let lineage = match caller {
        Caller::RoomKey(key) if key.user_id == user.as_str() => key.lineage.clone(),
        Caller::Identity(Identity { row, .. }) if row.user_id == user.as_str() => {
            row.lineage.clone()
        }
        Caller::RoomKey(_) | Caller::Identity(_) => {
            return Err(Error::forbidden("The bearer belongs to another user_id"));
        }
        Caller::Anonymous | Caller::User(_) => None,
    };
    Ok(lineage.map(Lineage))
}

/// The lineage a joiner belongs to: the one its bearer proves, or a new one.
pub async fn claim(app: &App, tx: &mut Tx, caller: &Caller, user: &UserId) -> Result<Lineage> {
    match proven(caller, user)? {
        Some(lineage) => Ok(lineage),
        None => {
            if tx.user_is_known(user.as_str()).await? {
                tracing::info!(user = %user, "an id is claimed once more without proof; it gets a lineage of its own");
            }
            Ok(Lineage(
                app.secrets
                    .random_code("lin:", 16)
                    .map_err(Error::internal)?,
            ))
        }
    }
}

/// Mints an identity token with a room key.
pub async fn mint(app: &App, caller: Result<Caller, NoCaller>) -> Result<IdentityCreated> {
    let key = match caller {
        Ok(Caller::RoomKey(key)) => key,
        Ok(Caller::Anonymous) => return Err(Error::missing_bearer()),
        Ok(Caller::User(_) | Caller::Identity(_)) | Err(_) => {
            return Err(Error::new(
                ErrorCode::KeyInvalid,
                "This endpoint takes a room key that holds",
            ));
        }
    };
    let now = Now::get();
    let mut tx = app.db.begin().await?;
    limits::take(&mut tx, &[mint_limit(app, "identity", &key.jti)], now).await?;
    let lineage = Lineage(key.lineage.clone().unwrap_or_default());
    let row = new_identity(app, &stored(&key.user_id)?, &lineage, now)?;
    // A key is shared to let somebody read or post: what it mints never counts as a person's.
    save(app, tx, row, None).await
}

/// Mints a fresh identity token with one that still holds.
pub async fn refresh(app: &App, caller: Result<Caller, NoCaller>) -> Result<IdentityCreated> {
    let Identity { row: old, person } = identity_of(caller)?;
    let now = Now::get();
    let mut tx = app.db.begin().await?;
    limits::take(&mut tx, &[mint_limit(app, "refresh", &old.jti)], now).await?;
    let lineage = Lineage(old.lineage.clone().unwrap_or_default());
    let row = new_identity(app, &stored(&old.user_id)?, &lineage, now)?;
    save(app, tx, row, person).await
}

/// Mints an identity token for a person who has signed in.
pub async fn exchange(app: &App, user: &User, internal: bool) -> Result<IdentityCreated> {
    if user.token_type != TokenType::Access {
        return Err(match internal {
            true => Error::forbidden("Only a token of type access can be exchanged"),
            false => auth::internal_only(),
        });
    }
    let now = Now::get();
    let mut tx = app.db.begin().await?;
    limits::take(
        &mut tx,
        &[mint_limit(app, "exchange", user.id.as_str())],
        now,
    )
    .await?;
    let row = new_identity(app, &user.id, &Lineage::of_user(&user.id), now)?;
    let person = Person {
        name: user.name.clone(),
    };
    save(app, tx, row, Some(person)).await
}

pub async fn revoke(
    app: &App,
    caller: Result<Caller, NoCaller>,
    jti: &str,
) -> Result<IdentityRevoked> {
    let identity = identity_of(caller)?.row;
    let mut tx = app.db.begin().await?;
    let target = tx.identity(jti).await?.filter(|target| !target.revoked);
    let target = target
        .ok_or_else(|| Error::not_found("No such identity token, or it was revoked already"))?;
    if target.user_id != identity.user_id || target.lineage != identity.lineage {
        return Err(Error::forbidden(
            "That identity token belongs to another user_id",
        ));
    }
    tx.revoke_identity(jti).await?;
    tx.commit().await?;
    Ok(IdentityRevoked {
        revoked: jti.to_owned(),
    })
}

/// Mints a room key for a room the agent is a member of, with another room's key or its identity.
pub async fn reissue(
    app: &App,
    caller: Result<Caller, NoCaller>,
    room: &RoomId,
    user: &UserId,
) -> Result<TokenReissued> {
    let (holder, lineage, jti, auth_used) = match caller {
        Ok(Caller::RoomKey(key)) => (key.user_id, key.lineage, key.jti, AuthUsed::RoomKey),
        Ok(Caller::Identity(Identity { row, .. })) => {
            (row.user_id, row.lineage, row.jti, AuthUsed::AgentIdentity)
        }
        Ok(Caller::Anonymous) => return Err(Error::missing_bearer()),
        Err(NoCaller::Identity(error)) => return Err(error),
        Ok(Caller::User(_)) | Err(_) => {
            return Err(Error::new(
                ErrorCode::KeyInvalid,
                "Present a room key or an identity token that holds",
            ));
        }
    };
    if holder != user.as_str() {
        return Err(Error::forbidden("The bearer belongs to another user_id"));
    }
    let now = Now::get();
    let mut tx = app.db.begin().await?;
    let row = tx
        .lock_room(room.as_str())
        .await?
        .ok_or_else(Error::room_not_found)?;
    let member = tx.member(room.as_str(), user.as_str()).await?;
    let member = member.ok_or_else(Error::room_not_found)?;
    let lineage = lineage.unwrap_or_default();
    let same = match &member.lineage {
        Some(of_member) => {
            *of_member == lineage || tx.was_invited_by(&lineage, &row.owner_user_id).await?
        }
        // A place that nobody has proven yet is for whoever had the id first.
        None => match tx.first_lineage(user.as_str()).await? {
            Some(first) if first != lineage => false,
            _ => {
                tx.bind_lineage(room.as_str(), user.as_str(), &lineage)
                    .await?;
                true
            }
        },
    };
    if !same {
        return Err(Error::forbidden(
            "This id joined the room separately. Present the identity_token that it got when it joined this room",
        ));
    }
    limits::take(&mut tx, &[mint_limit(app, "reissue", &jti)], now).await?;
    let kind = stored(&member.member_kind)?;
    let key = keys::new_member_key(app, room, user.as_str(), kind, &Lineage(lineage), now)?;
    tx.insert_key(&key).await?;
    tx.commit().await?;
    Ok(TokenReissued {
        member_token: app.tokens.room_key(&key),
        expires_at: key.expires_at,
        scope: Scope::ViewPost,
        auth_used,
    })
}

pub fn new_identity(app: &App, user: &UserId, lineage: &Lineage, now: Now) -> Result<IdentityRow> {
    Ok(IdentityRow {
        jti: app.secrets.random_code("", 20).map_err(Error::internal)?,
        user_id: user.to_string(),
        lineage: Some(lineage.0.clone()),
        issued_at: now.seconds(),
        expires_at: now.seconds() + app.config.tokens.identity_ttl_seconds,
        revoked: false,
    })
}

async fn save(
    app: &App,
    mut tx: Tx,
    row: IdentityRow,
    person: Option<Person>,
) -> Result<IdentityCreated> {
    tx.insert_identity(&row).await?;
    tx.commit().await?;
    Ok(IdentityCreated {
        identity_token: app.tokens.identity(&row, person.as_ref()),
        user_id: stored(&row.user_id)?,
        expires_at: row.expires_at,
    })
}

fn identity_of(caller: Result<Caller, NoCaller>) -> Result<Identity> {
    match caller {
        Ok(Caller::Identity(identity)) => Ok(identity),
        Ok(Caller::Anonymous) => Err(Error::missing_bearer()),
        Ok(Caller::User(_) | Caller::RoomKey(_)) | Err(_) => Err(auth::identity_ended()),
    }
}

fn mint_limit(app: &App, action: &str, source: &str) -> Limit {
    Limit {
        bucket: format!("mint {action} {source}"),
        most: app.config.limits.token_mints_per_minute,
        window_ms: MINUTE_MS,
        code: ErrorCode::RateLimited,
        words: "This credential minted a token less than a minute ago",
        stored: true,
    }
}
