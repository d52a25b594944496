//! Identity tokens, and getting a room key back with one.
//!
//! An external id is whatever a joiner says. So that nobody takes over an agent by joining some
//! other room under its id, each claim to an id that is not proven starts a *lineage* of its own:
//! its tokens reach the rooms it joined, and no others.
//!
//! What a credential mints remembers it as its source and ends with it (`revocation`). A room key
//! that was made to be shared mints nothing and proves nothing.

use super::{keys, revocation};
use crate::{
    app::App,
    auth::{self, Caller, Identity, NoCaller, TokenType, User, tokens::Person},
    clock::Now,
    error::{Error, Result},
    services::{
        access::refuse_shared,
        change::RoomTx,
        limits::{self, Limit},
    },
    store::{Conn, Tx, identities::IdentityRow, members::MemberRow},
};
use protocol::{
    AuthUsed, ErrorCode, IdentityCreated, IdentityRevoked, RoomId, Scope, TokenReissued, UserId,
    Via,
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

/// What a new credential rests on.
#[derive(Debug, Clone)]
pub struct Basis {
    /// Whose claim to the id it is.
    pub lineage: Lineage,
    /// The key or identity token that it is made with, and ends with.
    pub source: Option<String>,
}

/// The credential that another is about to be made with, where it can be revoked. It is not
/// revoked before the transaction ends. Nothing is made with a shared key.
pub async fn lock_source(tx: &mut Tx, caller: &Caller) -> Result<Option<String>> {
    let identity = match caller {
        Caller::Anonymous => None,
        Caller::RoomKey(key) => {
            refuse_shared(key)?;
            return match tx.lock_key(&key.jti).await? {
                true => Ok(Some(key.jti.clone())),
                false => Err(auth::key_ended()),
            };
        }
        Caller::Identity(identity) => Some(&identity.row.jti),
        Caller::User(user) => user.identity.as_ref(),
    };
    match identity {
        Some(jti) if !tx.lock_identity(jti).await? => Err(auth::identity_ended()),
        locked => Ok(locked.cloned()),
    }
}

/// The lineage of this id that the bearer proves, if it proves one.
pub fn proven(caller: &Caller, user: &UserId) -> Result<Option<Lineage>> {
    let lineage = match caller {
        Caller::RoomKey(key) if key.user_id == *user => key.lineage.clone(),
        Caller::Identity(Identity { row, .. }) if row.user_id == *user => row.lineage.clone(),
        Caller::RoomKey(_) | Caller::Identity(_) => {
            return Err(Error::forbidden("The bearer belongs to another user_id"));
        }
        Caller::Anonymous | Caller::User(_) => None,
    };
    Ok(lineage.map(Lineage))
}

/// What a joiner's tokens rest on: the lineage that its bearer proves, or a new one.
pub async fn claim(app: &App, tx: &mut Tx, caller: &Caller, user: &UserId) -> Result<Basis> {
    let proven = proven(caller, user)?;
    let source = lock_source(tx, caller).await?;
    let lineage = match proven {
        Some(lineage) => lineage,
        None => {
            if tx.user_is_known(user).await? {
                tracing::info!(user = %user, "an id is claimed once more without proof; it gets a lineage of its own");
            }
            let code = app.secrets.random_code("lin:", 16);
            Lineage(code.map_err(Error::internal)?)
        }
    };
    tx.claim_id(user, lineage.as_str()).await?;
    Ok(Basis { lineage, source })
}

/// Mints an identity token with a member's own room key.
pub async fn mint(app: &App, caller: Result<Caller, NoCaller>) -> Result<IdentityCreated> {
    let caller = match caller {
        Ok(caller @ Caller::RoomKey(_)) => caller,
        Ok(Caller::Anonymous) => return Err(Error::missing_bearer()),
        Ok(Caller::User(_) | Caller::Identity(_)) | Err(_) => {
            return Err(Error::new(
                ErrorCode::KeyInvalid,
                "This endpoint takes a room key that holds",
            ));
        }
    };
    // A person's identity token comes of a sign-in alone, so what a key mints is none.
    derive(app, "identity", &caller, None).await
}

/// Mints a fresh identity token with one that still holds.
pub async fn refresh(app: &App, caller: Result<Caller, NoCaller>) -> Result<IdentityCreated> {
    let identity = identity_of(caller)?;
    let person = identity.person.clone();
    derive(app, "refresh", &Caller::Identity(identity), person).await
}

/// Mints an identity token of the same lineage as the bearer, which is its source.
async fn derive(
    app: &App,
    action: &str,
    caller: &Caller,
    person: Option<Person>,
) -> Result<IdentityCreated> {
    let proof = Proof::of(caller)?;
    let now = Now::get();
    let mut tx = app.db.begin().await?;
    let source = lock_source(&mut tx, caller).await?;
    limits::count_against(&mut tx, &[mint_limit(app, action, proof.jti)], now).await?;
    let basis = Basis {
        lineage: proof.lineage,
        source,
    };
    let row = new_identity(app, proof.user, &basis, now)?;
    save(app, tx, row, person).await
}

/// Who a bearer shows its holder to be, beyond any one room.
struct Proof<'a> {
    user: &'a UserId,
    lineage: Lineage,
    jti: &'a str,
    auth_used: AuthUsed,
}

impl<'a> Proof<'a> {
    fn of(caller: &'a Caller) -> Result<Self> {
        let (user, lineage, jti, auth_used) = match caller {
            Caller::RoomKey(key) => (&key.user_id, &key.lineage, &key.jti, AuthUsed::RoomKey),
            Caller::Identity(Identity { row, .. }) => (
                &row.user_id,
                &row.lineage,
                &row.jti,
                AuthUsed::AgentIdentity,
            ),
            Caller::Anonymous => return Err(Error::missing_bearer()),
            Caller::User(_) => return Err(no_proof()),
        };
        Ok(Self {
            user,
            lineage: Lineage(lineage.clone().unwrap_or_default()),
            jti,
            auth_used,
        })
    }
}

fn no_proof() -> Error {
    Error::new(
        ErrorCode::KeyInvalid,
        "Present a room key or an identity token that holds",
    )
}

/// Mints an identity token for a person who has signed in.
pub async fn exchange_user_token(app: &App, user: &User) -> Result<IdentityCreated> {
    if user.token_type != TokenType::Access {
        return Err(match user.internal {
            true => Error::forbidden("Only a token of type access can be exchanged"),
            false => auth::internal_only(),
        });
    }
    let now = Now::get();
    let mut tx = app.db.begin().await?;
    limits::count_against(
        &mut tx,
        &[mint_limit(app, "exchange", user.id.as_str())],
        now,
    )
    .await?;
    let basis = Basis {
        lineage: Lineage::of_user(&user.id),
        source: None,
    };
    let row = new_identity(app, &user.id, &basis, now)?;
    let person = Person {
        name: user.name.clone(),
    };
    save(app, tx, row, Some(person)).await
}

/// Ends an identity token and everything derived from it. The bearer goes on, with what was
/// derived from it, unless it ends itself.
pub async fn revoke(
    app: &App,
    caller: Result<Caller, NoCaller>,
    jti: &str,
) -> Result<IdentityRevoked> {
    let identity = identity_of(caller)?.row;
    let mut tx = RoomTx::begin(app).await?;
    let target = tx.identity(jti).await?.filter(|target| !target.revoked);
    let target = target
        .ok_or_else(|| Error::not_found("No such identity token, or it was revoked already"))?;
    if target.user_id != identity.user_id || target.lineage != identity.lineage {
        return Err(Error::forbidden(
            "That identity token belongs to another user_id",
        ));
    }
    let bearer = Some(identity.jti.as_str()).filter(|bearer| *bearer != jti);
    revocation::revoke(&mut tx, &[jti], bearer).await?;
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
    let caller = match caller {
        Ok(caller) => caller,
        Err(NoCaller::Identity(error)) => return Err(error),
        Err(_) => return Err(no_proof()),
    };
    member_key(app, &caller, room, user, Counted::Yes).await
}

/// Mints a key with which a program of the caller's posts in a room, as an agent does, whoever the member
/// is. It is not counted: whoever asks for it keeps it and asks once for each room.
pub async fn agent_key(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    user: &UserId,
) -> Result<TokenReissued> {
    member_key(app, caller, room, user, Counted::No).await
}

/// Whether an identity token can get a key for a room.
pub async fn opens(conn: &mut Conn, identity: &IdentityRow, room: &RoomId) -> Result<bool> {
    let Some(member) = conn.member(room, &identity.user_id).await? else {
        return Ok(false);
    };
    Ok(lineage_of(conn, &member, &identity.user_id).await? == identity.lineage)
}

/// Whether a key counts under the limit on minting.
enum Counted {
    Yes,
    No,
}

async fn member_key(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    user: &UserId,
    counted: Counted,
) -> Result<TokenReissued> {
    let proof = Proof::of(caller)?;
    if proof.user != user {
        return Err(Error::forbidden("The bearer belongs to another user_id"));
    }
    let now = Now::get();
    let mut tx = app.db.begin().await?;
    tx.lock_room(room)
        .await?
        .ok_or_else(Error::room_not_found)?;
    let member = tx.member(room, user).await?;
    let member = member.ok_or_else(Error::room_not_found)?;
    let source = lock_source(&mut tx, caller).await?;
    let owner = lineage_of(&mut tx, &member, user).await?;
    if owner.as_deref() != Some(proof.lineage.as_str()) {
        return Err(Error::forbidden(
            "This id joined the room separately. Present the identity_token that it got when it joined this \
             room, or ask the room's owner for a recovery invite",
        ));
    }
    if matches!(counted, Counted::Yes) {
        limits::count_against(&mut tx, &[mint_limit(app, "reissue", proof.jti)], now).await?;
    }
    let kind = member.member_kind;
    let basis = Basis {
        lineage: proof.lineage,
        source,
    };
    let mut key = keys::new_member_key(app, room, user, &kind, &basis, now)?;
    if matches!(counted, Counted::No) {
        key.posts_as = Via::Agent;
    }
    tx.insert_key(&key).await?;
    tx.commit().await?;
    Ok(TokenReissued {
        member_token: app.tokens.room_key(&key),
        expires_at: key.expires_at,
        scope: Scope::ViewPost,
        auth_used: proof.auth_used,
    })
}

/// Whose place in a room it is. One that nobody has proven is for whoever claimed the id first.
async fn lineage_of(tx: &mut Conn, member: &MemberRow, user: &UserId) -> Result<Option<String>> {
    match &member.lineage {
        Some(lineage) => Ok(Some(lineage.clone())),
        None if user.is_external() => Ok(tx.first_lineage(user).await?),
        None => Ok(Some(Lineage::of_user(user).0)),
    }
}

pub fn new_identity(app: &App, user: &UserId, basis: &Basis, now: Now) -> Result<IdentityRow> {
    Ok(IdentityRow {
        jti: app.secrets.random_code("", 20).map_err(Error::internal)?,
        user_id: user.clone(),
        lineage: Some(basis.lineage.as_str().to_owned()),
        derived_from: basis.source.clone(),
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
        user_id: row.user_id.clone(),
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
