//! The tokens that this server signs: room keys, identity tokens and invites.
//!
//! Each kind has a signing key of its own, so a token of one kind cannot pass as another even
//! if its claims say so. All are HS256 and nothing else.

use super::secrets::Secrets;
use crate::{
    clock::Now,
    store::{identities::IdentityRow, invites::InviteRow, keys::KeyRow},
};
use aws_lc_rs::digest;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use protocol::{RoomId, Scope, UserId};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

/// What an invite code begins with.
pub const INVITE_PREFIX: &str = "inv_";
/// Longer tokens are not looked at.
const MAX_TOKEN_BYTES: usize = 8192;

/// The kinds of token this server signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    RoomKey,
    Identity,
    Invite,
    /// A person's, for an MCP client of theirs.
    Mcp,
    /// What an MCP client registered.
    Client,
}

impl TokenKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::RoomKey => "room_key",
            Self::Identity => "agent_identity",
            Self::Invite => "invite",
            Self::Mcp => "mcp",
            Self::Client => "oauth_client",
        }
    }

    /// What a token says it is. Good for choosing how to check it, and for nothing else.
    pub fn claimed_by(token: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Claimed {
            kind: Option<String>,
        }
        if token.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let middle = token.split('.').nth(1)?;
        let claims = URL_SAFE_NO_PAD.decode(middle).ok()?;
        let kind = serde_json::from_slice::<Claimed>(&claims).ok()?.kind?;
        [
            Self::RoomKey,
            Self::Identity,
            Self::Invite,
            Self::Mcp,
            Self::Client,
        ]
        .into_iter()
        .find(|k| k.as_str() == kind)
    }
}

/// Why a token was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRefusal {
    /// Forged, or no token of this kind at all.
    Forged,
    /// Ours, but its time is over.
    Expired,
}

/// What a room key says. It is checked; whether it was revoked, the store knows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RoomKeyClaims {
    kind: String,
    pub jti: String,
    pub room_id: RoomId,
    pub user_id: UserId,
    pub scope: Scope,
    iat: i64,
    pub exp: i64,
}

/// What an identity token says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct IdentityClaims {
    kind: String,
    pub jti: String,
    pub user_id: UserId,
    /// Set where a person signed in; what an agent holds, or was made with a room key, lacks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<Person>,
    iat: i64,
    pub exp: i64,
}

/// What a token for `/mcp` says: the same, under a signature of its own, so that it opens nothing else.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
struct McpClaims(IdentityClaims);

impl Claims for McpClaims {
    const KIND: TokenKind = TokenKind::Mcp;
    fn kind(&self) -> &str {
        &self.0.kind
    }
    fn exp(&self) -> i64 {
        self.0.exp
    }
}

/// What an MCP client registered. Its id is this, signed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClientClaims {
    kind: String,
    pub name: String,
    pub redirect_uris: Vec<String>,
    iat: i64,
}

impl ClientClaims {
    pub fn new(name: String, redirect_uris: Vec<String>, now: Now) -> Self {
        Self {
            kind: TokenKind::Client.as_str().to_owned(),
            name,
            redirect_uris,
            iat: now.seconds(),
        }
    }
}

impl Claims for ClientClaims {
    const KIND: TokenKind = TokenKind::Client;
    fn kind(&self) -> &str {
        &self.kind
    }
    /// It opens nothing, so it need not end.
    fn exp(&self) -> i64 {
        i64::MAX
    }
}

/// A person who has signed in, as their identity token tells of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What an invite says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InviteClaims {
    kind: String,
    pub jti: String,
    pub room_id: RoomId,
    pub created_by: UserId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    pub max_uses: i64,
    iat: i64,
    pub exp: i64,
}

trait Claims: Serialize + DeserializeOwned {
    const KIND: TokenKind;
    fn kind(&self) -> &str;
    fn exp(&self) -> i64;
}

macro_rules! claims {
    ($($name:ident = $kind:ident),+) => {
        $(impl Claims for $name {
            const KIND: TokenKind = TokenKind::$kind;
            fn kind(&self) -> &str { &self.kind }
            fn exp(&self) -> i64 { self.exp }
        })+
    };
}
claims!(
    RoomKeyClaims = RoomKey,
    IdentityClaims = Identity,
    InviteClaims = Invite
);

struct KeyPair {
    sign: EncodingKey,
    check: DecodingKey,
}

/// Signs and checks this server's tokens.
pub struct Tokens {
    room_key: KeyPair,
    identity: KeyPair,
    invite: KeyPair,
    mcp: KeyPair,
    client: KeyPair,
    header: Header,
    validation: Validation,
    /// Room keys whose signature was checked before, by the hash of the token: whoever posts does
    /// so with the same key again and again.
    checked: Mutex<HashMap<[u8; 32], Arc<RoomKeyClaims>>>,
}

/// Signatures remembered at the most.
const MOST_CHECKED: usize = 10_000;

impl Tokens {
    pub fn new(secrets: &Secrets) -> Self {
        let pair = |kind: TokenKind| {
            let key = secrets.derive(&format!("token:{}", kind.as_str()));
            KeyPair {
                sign: EncodingKey::from_secret(&key),
                check: DecodingKey::from_secret(&key),
            }
        };
        let mut validation = Validation::new(Algorithm::HS256);
        // The end of a token's life is checked here, so that an expired token of ours can be
        // told from a forged one.
        validation.validate_exp = false;
        validation.validate_aud = false;
        validation.required_spec_claims.clear();
        Self {
            room_key: pair(TokenKind::RoomKey),
            identity: pair(TokenKind::Identity),
            invite: pair(TokenKind::Invite),
            mcp: pair(TokenKind::Mcp),
            client: pair(TokenKind::Client),
            header: Header::new(Algorithm::HS256),
            validation,
            checked: Mutex::default(),
        }
    }

    /// The token of this row: the same row gives the same token.
    pub fn room_key(&self, row: &KeyRow) -> String {
        self.sign(&RoomKeyClaims {
            kind: TokenKind::RoomKey.as_str().to_owned(),
            jti: row.jti.clone(),
            room_id: row.room_id.clone(),
            user_id: row.user_id.clone(),
            scope: row.scope,
            iat: row.issued_at,
            exp: row.expires_at,
        })
    }

    /// The token of this row; a person's tells of them.
    pub fn identity(&self, row: &IdentityRow, person: Option<&Person>) -> String {
        self.sign(&IdentityClaims {
            kind: TokenKind::Identity.as_str().to_owned(),
            jti: row.jti.clone(),
            user_id: row.user_id.clone(),
            person: person.cloned(),
            iat: row.issued_at,
            exp: row.expires_at,
        })
    }

    /// The code of this row, with its prefix.
    pub fn invite(&self, row: &InviteRow) -> String {
        let token = self.sign(&InviteClaims {
            kind: TokenKind::Invite.as_str().to_owned(),
            jti: row.jti.clone(),
            room_id: row.room_id.clone(),
            created_by: row.created_by.clone(),
            display_name: row.display_name.clone(),
            max_uses: row.max_uses,
            iat: row.issued_at,
            exp: row.expires_at,
        });
        format!("{INVITE_PREFIX}{token}")
    }

    /// A room key that was checked before, if this is one.
    pub fn known_room_key(
        &self,
        token: &str,
        now: Now,
    ) -> Option<Result<Arc<RoomKeyClaims>, TokenRefusal>> {
        let claims = self.remembered().get(&hash(token))?.clone();
        Some(if claims.exp <= now.seconds() {
            Err(TokenRefusal::Expired)
        } else {
            Ok(claims)
        })
    }

    pub fn check_room_key(
        &self,
        token: &str,
        now: Now,
    ) -> Result<Arc<RoomKeyClaims>, TokenRefusal> {
        let claims: Arc<RoomKeyClaims> = Arc::new(self.check(token, now)?);
        let mut remembered = self.remembered();
        if remembered.len() >= MOST_CHECKED {
            remembered.clear();
        }
        remembered.insert(hash(token), claims.clone());
        Ok(claims)
    }

    fn remembered(&self) -> MutexGuard<'_, HashMap<[u8; 32], Arc<RoomKeyClaims>>> {
        self.checked
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn check_identity(&self, token: &str, now: Now) -> Result<IdentityClaims, TokenRefusal> {
        self.check(token, now)
    }

    /// A token for `/mcp` alone, of this row and until then.
    pub fn mcp(&self, row: &IdentityRow, person: &Person, now: Now, expires_at: i64) -> String {
        self.sign(&McpClaims(IdentityClaims {
            kind: TokenKind::Mcp.as_str().to_owned(),
            jti: row.jti.clone(),
            user_id: row.user_id.clone(),
            person: Some(person.clone()),
            iat: now.seconds(),
            exp: expires_at,
        }))
    }

    /// What a token for `/mcp` says; nothing where it is of another kind.
    pub fn check_mcp(&self, token: &str, now: Now) -> Option<Result<IdentityClaims, TokenRefusal>> {
        (TokenKind::claimed_by(token) == Some(TokenKind::Mcp))
            .then(|| self.check(token, now).map(|McpClaims(claims)| claims))
    }

    /// A client's id.
    pub fn client(&self, client: &ClientClaims) -> String {
        self.sign(client)
    }

    /// What the client with this id registered.
    pub fn check_client(&self, id: &str) -> Option<ClientClaims> {
        self.check(id, Now(0)).ok()
    }

    pub fn check_invite(&self, code: &str, now: Now) -> Result<InviteClaims, TokenRefusal> {
        self.check(
            code.strip_prefix(INVITE_PREFIX)
                .ok_or(TokenRefusal::Forged)?,
            now,
        )
    }

    fn pair(&self, kind: TokenKind) -> &KeyPair {
        match kind {
            TokenKind::RoomKey => &self.room_key,
            TokenKind::Identity => &self.identity,
            TokenKind::Invite => &self.invite,
            TokenKind::Mcp => &self.mcp,
            TokenKind::Client => &self.client,
        }
    }

    fn sign<C: Claims>(&self, claims: &C) -> String {
        jsonwebtoken::encode(&self.header, claims, &self.pair(C::KIND).sign)
            .unwrap_or_else(|_| unreachable!("plain claims under HMAC always sign"))
    }

    fn check<C: Claims>(&self, token: &str, now: Now) -> Result<C, TokenRefusal> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenRefusal::Forged);
        }
        let claims = jsonwebtoken::decode::<C>(token, &self.pair(C::KIND).check, &self.validation)
            .map_err(|_| TokenRefusal::Forged)?
            .claims;
        if claims.kind() != C::KIND.as_str() {
            return Err(TokenRefusal::Forged);
        }
        if claims.exp() <= now.seconds() {
            return Err(TokenRefusal::Expired);
        }
        Ok(claims)
    }
}

fn hash(token: &str) -> [u8; 32] {
    let mut hash = [0u8; 32];
    hash.copy_from_slice(digest::digest(&digest::SHA256, token.as_bytes()).as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens() -> Tokens {
        let dir = tempfile::tempdir().unwrap();
        Tokens::new(&Secrets::open(dir.path()).unwrap())
    }

    fn identity() -> IdentityRow {
        IdentityRow {
            jti: "j1".into(),
            user_id: "ext_a".parse().unwrap(),
            lineage: None,
            derived_from: None,
            issued_at: 100,
            expires_at: 200,
            revoked: false,
        }
    }

    #[test]
    fn a_token_of_one_kind_is_refused_as_another() {
        let tokens = tokens();
        let identity = tokens.identity(&identity(), None);
        assert!(tokens.check_identity(&identity, Now(150_000)).is_ok());
        assert_eq!(
            tokens.check_room_key(&identity, Now(150_000)).unwrap_err(),
            TokenRefusal::Forged
        );
        let as_invite = format!("{INVITE_PREFIX}{identity}");
        assert_eq!(
            tokens.check_invite(&as_invite, Now(150_000)).unwrap_err(),
            TokenRefusal::Forged
        );
    }

    #[test]
    fn an_expired_token_is_told_from_a_forged_one() {
        let tokens = tokens();
        let token = tokens.identity(&identity(), None);
        assert_eq!(
            tokens.check_identity(&token, Now(200_000)).unwrap_err(),
            TokenRefusal::Expired
        );
        let forged = format!("{}x", &token[..token.len() - 1]);
        assert_eq!(
            tokens.check_identity(&forged, Now(150_000)).unwrap_err(),
            TokenRefusal::Forged
        );
    }

    #[test]
    fn no_other_algorithm_is_accepted() {
        let tokens = tokens();
        let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"JWT"}"#);
        let claims = URL_SAFE_NO_PAD.encode(
            r#"{"kind":"agent_identity","jti":"j1","user_id":"ext_a","iat":1,"exp":9999999999}"#,
        );
        for token in [
            format!("{none}.{claims}."),
            format!("{none}.{claims}.x"),
            "..".into(),
            String::new(),
        ] {
            assert_eq!(
                tokens.check_identity(&token, Now(0)).unwrap_err(),
                TokenRefusal::Forged
            );
        }
    }

    #[test]
    fn the_same_row_gives_the_same_token() {
        let tokens = tokens();
        assert_eq!(
            tokens.identity(&identity(), None),
            tokens.identity(&identity(), None)
        );
    }
}
