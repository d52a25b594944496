//! Who is calling. Decided here, before a handler runs, and nowhere else.
//!
//! A [`Credential`] is a bearer whose signature, kind, time and network are good. A [`Caller`]
//! is a credential that the store has not revoked. Handlers take a `Caller`; posting alone takes
//! a `Credential`, because it asks the store inside its own transaction.
//!
//! The identity token of a person who signed in stands for that person's user token, from any
//! network, wherever a handler takes a `Caller`: not for posting, nor for the stream, which take
//! room keys.

pub mod denylist;
pub mod network;
mod read_right;
pub mod secrets;
pub mod tokens;
pub mod user;

use crate::{
    app::App,
    clock::Now,
    error::{Error, Result},
    store::{Conn, identities::IdentityRow, keys::KeyRow},
};
use axum::{
    extract::{FromRequestParts, Query},
    http::{HeaderMap, header, request::Parts},
};
use network::{Origin, Peer};
use protocol::ErrorCode;
pub use read_right::ReadRight;
use serde::Deserialize;
use std::{convert::Infallible, net::Ipv4Addr, sync::Arc};
use tokens::{IdentityClaims, Person, RoomKeyClaims, TokenKind, TokenRefusal};
pub use user::{TokenType, User};

/// A bearer that is signed well, of a known kind and in time. It may have been revoked.
#[derive(Debug, Clone)]
pub enum Credential {
    /// None was sent.
    None,
    /// A user token, from a network it may come from.
    User(User),
    /// A room key.
    RoomKey(Arc<RoomKeyClaims>),
    /// An identity token.
    Identity(IdentityClaims),
}

/// Whoever is calling, with a credential that holds now.
#[derive(Debug, Clone)]
pub enum Caller {
    /// Nobody in particular.
    Anonymous,
    /// A Starchild user, or a program of theirs.
    User(User),
    /// The holder of a room key.
    RoomKey(KeyRow),
    /// The holder of an identity token.
    Identity(Identity),
}

/// An identity token that holds.
#[derive(Debug, Clone)]
pub struct Identity {
    pub row: IdentityRow,
    /// Set where a person signed in.
    pub person: Option<Person>,
}

impl Caller {
    /// The identity token of a person who signed in as that person's user token.
    fn person_as_user(self, internal: bool) -> Self {
        let Self::Identity(Identity { row, person }) = self else {
            return self;
        };
        match person {
            Some(person) if !row.user_id.is_external() => Self::User(User {
                id: row.user_id,
                name: person.name,
                token_type: TokenType::Access,
                identity: Some(row.jti),
                issued_at: None,
                internal,
            }),
            person => Self::Identity(Identity { row, person }),
        }
    }
}

/// Why there is no caller, told apart by what was presented: some endpoints answer with the
/// code of the kind they want.
#[derive(Debug, Clone)]
pub enum NoCaller {
    /// The bearer is no token at all, forged, or of a kind without a code of its own.
    Token(Error),
    /// The bearer is a room key that has ended.
    RoomKey(Error),
    /// The bearer is an identity token that has ended.
    Identity(Error),
}

impl NoCaller {
    /// The error as most endpoints answer it.
    pub fn into_error(self) -> Error {
        match self {
            Self::Token(error) | Self::RoomKey(error) | Self::Identity(error) => error,
        }
    }
}

impl Credential {
    /// Reads and checks a bearer. Nobody whom the operator has banned has one that holds.
    pub fn check(
        app: &App,
        bearer: Option<&str>,
        origin: Origin,
        now: Now,
    ) -> Result<Self, NoCaller> {
        let credential = Self::read(app, bearer, origin, now)?;
        let allowed = match &credential {
            Self::None => Ok(()),
            Self::User(user) => app.denylist.check_user(user),
            Self::RoomKey(claims) => app.denylist.refuse_banned(&claims.user_id),
            Self::Identity(claims) => app.denylist.refuse_banned(&claims.user_id),
        };
        allowed.map(|()| credential).map_err(NoCaller::Token)
    }

    fn read(app: &App, bearer: Option<&str>, origin: Origin, now: Now) -> Result<Self, NoCaller> {
        let Some(bearer) = bearer else {
            return Ok(Self::None);
        };
        if let Some(known) = app.tokens.known_room_key(bearer, now) {
            return known
                .map(Self::RoomKey)
                .map_err(|_| NoCaller::RoomKey(key_ended()));
        }
        match TokenKind::claimed_by(bearer) {
            Some(TokenKind::RoomKey) => match app.tokens.check_room_key(bearer, now) {
                Ok(claims) => Ok(Self::RoomKey(claims)),
                Err(TokenRefusal::Expired) => Err(NoCaller::RoomKey(key_ended())),
                Err(TokenRefusal::Forged) => Err(NoCaller::Token(token_invalid())),
            },
            Some(TokenKind::Identity) => match app.tokens.check_identity(bearer, now) {
                Ok(claims) => Ok(Self::Identity(claims)),
                Err(TokenRefusal::Expired) => Err(NoCaller::Identity(identity_ended())),
                Err(TokenRefusal::Forged) => Err(NoCaller::Token(token_invalid())),
            },
            Some(TokenKind::Invite) => Err(NoCaller::Token(Error::new(
                ErrorCode::TokenInvalid,
                "An invite code is no bearer; send it as invite_code to POST /rooms/{id}/join",
            ))),
            Some(TokenKind::Client) => Err(NoCaller::Token(token_invalid())),
            Some(TokenKind::Mcp) => Err(NoCaller::Token(Error::new(
                ErrorCode::TokenInvalid,
                "This token is for /mcp and opens nothing else",
            ))),
            None => {
                let user = app
                    .users
                    .check(bearer, origin.internal)
                    .ok_or(NoCaller::Token(token_invalid()))?;
                if !origin.internal {
                    return Err(NoCaller::Token(internal_only()));
                }
                Ok(Self::User(user))
            }
        }
    }

    /// The caller, if the store has not revoked the credential.
    pub async fn resolve(self, conn: &mut Conn) -> Result<Result<Caller, NoCaller>> {
        Ok(match self {
            Self::None => Ok(Caller::Anonymous),
            Self::User(user) => Ok(Caller::User(user)),
            Self::RoomKey(claims) => match conn.key(&claims.jti).await? {
                Some(key) if !key.revoked => Ok(Caller::RoomKey(key)),
                _ => Err(NoCaller::RoomKey(key_ended())),
            },
            Self::Identity(claims) => match conn.identity(&claims.jti).await? {
                Some(row) if !row.revoked => Ok(Caller::Identity(Identity {
                    row,
                    person: claims.person,
                })),
                _ => Err(NoCaller::Identity(identity_ended())),
            },
        })
    }
}

/// The error for a bearer that is no token of any kind.
pub fn token_invalid() -> Error {
    Error::new(
        ErrorCode::TokenInvalid,
        "The bearer is not a valid token, or it has expired",
    )
}

/// The error for a room key that has ended.
pub fn key_ended() -> Error {
    Error::new(
        ErrorCode::KeyInvalid,
        "This room key has expired or was revoked. Get a new one, e.g. with reissue-token",
    )
}

/// The error for an identity token that has ended.
pub fn identity_ended() -> Error {
    Error::new(
        ErrorCode::IdentityInvalid,
        "This identity token has expired, was revoked or is unknown",
    )
}

/// The error for a user token from outside.
pub fn internal_only() -> Error {
    Error::new(
        ErrorCode::InternalOnly,
        "User tokens are accepted from the operator's internal networks only",
    )
}

/// The bearer of a request, if it has one.
pub fn bearer(headers: &HeaderMap) -> Result<Option<&str>> {
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return Ok(None);
    };
    let value = value.to_str().map_err(|_| token_invalid())?;
    let (scheme, token) = value.split_once(' ').ok_or_else(token_invalid)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(token_invalid());
    }
    Ok(Some(token.trim()))
}

impl FromRequestParts<App> for Origin {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        let peer = parts
            .extensions
            .get::<Peer>()
            .map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.0);
        Ok(Self::of(peer, &parts.headers, &app.config.network))
    }
}

/// What a request presents, not yet looked up in the store; or why it is no good.
pub struct Presented(pub Result<Credential, NoCaller>);

impl FromRequestParts<App> for Presented {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        let Ok(origin) = Origin::from_request_parts(parts, app).await;
        Ok(Self(match bearer(&parts.headers) {
            Ok(bearer) => Credential::check(app, bearer, origin, Now::get()),
            Err(error) => Err(NoCaller::Token(error)),
        }))
    }
}

impl FromRequestParts<App> for Credential {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let Ok(presented) = Presented::from_request_parts(parts, app).await;
        presented.0.map_err(NoCaller::into_error)
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let Ok(origin) = Origin::from_request_parts(parts, app).await;
        let credential = Credential::from_request_parts(parts, app).await?;
        resolve(app, credential)
            .await?
            .map(|caller| caller.person_as_user(origin.internal))
            .map_err(NoCaller::into_error)
    }
}

/// A caller, or why there is none, for endpoints with codes of their own.
pub struct MaybeCaller(pub Result<Caller, NoCaller>);

impl FromRequestParts<App> for MaybeCaller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let Ok(presented) = Presented::from_request_parts(parts, app).await;
        Ok(Self(match presented.0 {
            Ok(credential) => resolve(app, credential).await?,
            Err(refused) => Err(refused),
        }))
    }
}

/// The caller of a stream, whose key may come in the query: browsers' EventSource sends no headers.
pub struct StreamCaller(pub Caller);

impl FromRequestParts<App> for StreamCaller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        #[derive(Deserialize)]
        struct TokenQuery {
            token: Option<String>,
        }
        let Ok(origin) = Origin::from_request_parts(parts, app).await;
        let query = Query::<TokenQuery>::try_from_uri(&parts.uri)
            .ok()
            .and_then(|query| query.0.token);
        let header = bearer(&parts.headers)?.map(str::to_owned);
        let credential = Credential::check(app, header.or(query).as_deref(), origin, Now::get())
            .map_err(NoCaller::into_error)?;
        Ok(Self(
            resolve(app, credential)
                .await?
                .map_err(NoCaller::into_error)?,
        ))
    }
}

/// The caller behind a credential, or why there is none.
pub async fn resolve(app: &App, credential: Credential) -> Result<Result<Caller, NoCaller>> {
    match credential {
        Credential::None => Ok(Ok(Caller::Anonymous)),
        Credential::User(user) => Ok(Ok(Caller::User(user))),
        stored => stored.resolve(&mut app.db.read().await?).await,
    }
}
