//! User tokens: signed by this server's own key, or by the operator's identity provider.

use crate::{config::Auth, shown_text};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, jwk::JwkSet};
use protocol::UserId;
use serde::{Deserialize, Serialize};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, RwLock},
};

/// Why user tokens cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum UserKeysError {
    #[error(transparent)]
    Secrets(#[from] super::secrets::SecretsError),
    #[error("cannot read {0}: {1}")]
    Read(PathBuf, std::io::Error),
    #[error("{0} holds no RSA public key that can be used: {1}")]
    BadKey(PathBuf, jsonwebtoken::errors::Error),
    #[error("{0} is no JWKS: {1}")]
    BadJwks(String, String),
    #[error(
        "auth.hs256_secret has {0} bytes; whoever guesses it signs in as anybody, so it needs at least {MIN_SECRET} random ones, e.g. from `openssl rand -base64 48`"
    )]
    ShortSecret(usize),
    #[error(
        "auth.audience and auth.issuer say what tokens of an identity provider must hold; set auth.jwks_url, auth.jwks_file, auth.public_key_file or auth.hs256_secret too"
    )]
    NoProvider,
    #[error(
        "set only one of auth.public_key_file, auth.jwks_file, auth.jwks_url and auth.hs256_secret"
    )]
    TooMany,
}

/// The fewest bytes of a shared secret: as many as its signatures have.
const MIN_SECRET: usize = 32;

/// What a user token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum TokenType {
    /// A service that acts for a user.
    Container,
    /// A person who has signed in.
    Access,
    /// An operator.
    Admin,
}

/// A user whose token was checked.
#[derive(Debug, Clone)]
pub struct User {
    pub id: UserId,
    pub name: Option<String>,
    pub token_type: TokenType,
    /// The identity token that stands for this person's user token, where it is one.
    pub identity: Option<String>,
    /// When the user token was issued, in unix seconds, where it says so.
    pub issued_at: Option<i64>,
    /// Whether the request comes from the operator's own networks.
    pub internal: bool,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user_id: Option<Id>,
    #[serde(
        default,
        rename = "userInfoID",
        skip_serializing_if = "Option::is_none"
    )]
    user_info_id: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sub: Option<Id>,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    token_type: Option<TokenType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    preferred_username: Option<String>,
    iat: Option<i64>,
    exp: i64,
}

/// Identity providers give ids as text or as numbers.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Id {
    Text(String),
    Number(i64),
}

impl Id {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
        }
    }
}

struct Key {
    kid: Option<String>,
    key: DecodingKey,
}

/// The keys that user tokens are checked with.
pub struct UserKeys {
    keys: RwLock<Arc<Vec<Key>>>,
    validation: Validation,
    /// This server's own key, where a provider's are the ones that count: whoever holds it runs the
    /// server, and manages it with admin tokens.
    own: Option<DecodingKey>,
}

impl UserKeys {
    /// The keys that the settings name, or this server's own.
    pub fn open(auth: &Auth, keys_dir: &Path) -> Result<Self, UserKeysError> {
        let chosen = [
            auth.public_key_file.is_some(),
            auth.jwks_file.is_some(),
            auth.jwks_url.is_some(),
            auth.hs256_secret.is_some(),
        ];
        if chosen.iter().filter(|set| **set).count() > 1 {
            return Err(UserKeysError::TooMany);
        }
        match chosen.contains(&true) {
            true => warn_of_foreign_tokens(auth),
            false if auth.audience.is_empty() && auth.issuer.is_empty() => {}
            false => return Err(UserKeysError::NoProvider),
        }
        let algorithm = match &auth.hs256_secret {
            Some(_) => Algorithm::HS256,
            None => Algorithm::RS256,
        };
        Ok(Self {
            keys: RwLock::new(Arc::new(Self::first_keys(auth, keys_dir)?)),
            validation: validation(algorithm, auth),
            own: match chosen.contains(&true) {
                true => Some(own_public_key(keys_dir)?),
                false => None,
            },
        })
    }

    /// The keys at the start: those of a JWKS that is read from an address come later.
    fn first_keys(auth: &Auth, keys_dir: &Path) -> Result<Vec<Key>, UserKeysError> {
        if auth.jwks_url.is_some() {
            return Ok(Vec::new());
        }
        if let Some(path) = &auth.jwks_file {
            return jwks(&path.display().to_string(), &read(path)?);
        }
        let key = match (&auth.hs256_secret, &auth.public_key_file) {
            (Some(secret), _) if secret.len() < MIN_SECRET => {
                return Err(UserKeysError::ShortSecret(secret.len()));
            }
            (Some(secret), _) => DecodingKey::from_secret(secret.as_bytes()),
            (None, Some(path)) => DecodingKey::from_rsa_pem(read(path)?.as_bytes())
                .map_err(|error| UserKeysError::BadKey(path.clone(), error))?,
            (None, None) => own_public_key(keys_dir)?,
        };
        Ok(vec![Key { kid: None, key }])
    }

    /// Puts the keys of a JWKS document in place of the ones before.
    pub fn replace_with_jwks(&self, source: &str, text: &str) -> Result<(), UserKeysError> {
        let keys = Arc::new(jwks(source, text)?);
        *self
            .keys
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner()) = keys;
        Ok(())
    }

    /// The user, if the token is good.
    pub fn check(&self, token: &str, internal: bool) -> Option<User> {
        let claims = self
            .claims(token)
            .or_else(|| self.own_admin_claims(token))?;
        let id = claims
            .user_id
            .or(claims.user_info_id)
            .or(claims.sub)?
            .into_text();
        let id: UserId = id.parse().ok()?;
        if id.is_external() || id.is_nobodys() {
            return None;
        }
        let name = claims
            .name
            .or(claims.display_name)
            .or(claims.preferred_username);
        Some(User {
            id,
            name: name.and_then(|name| shown_text::name_of_token(&name)),
            token_type: claims.token_type.unwrap_or(TokenType::Container),
            identity: None,
            issued_at: claims.iat,
            internal,
        })
    }

    fn claims(&self, token: &str) -> Option<Claims> {
        let kid = jsonwebtoken::decode_header(token).ok()?.kid;
        let keys = self
            .keys
            .read()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .clone();
        let read = keys
            .iter()
            .filter(|key| key.kid.is_none() || kid.is_none() || key.kid == kid)
            .find_map(|key| jsonwebtoken::decode::<Claims>(token, &key.key, &self.validation).ok());
        read.map(|token| token.claims)
    }

    /// What an admin token says that this server's own key signed, though a provider's count.
    fn own_admin_claims(&self, token: &str) -> Option<Claims> {
        let validation = validation(Algorithm::RS256, &Auth::default());
        let claims = jsonwebtoken::decode::<Claims>(token, self.own.as_ref()?, &validation);
        let claims = claims.ok()?.claims;
        (claims.token_type == Some(TokenType::Admin)).then_some(claims)
    }
}

/// What a token must be besides signed well.
fn validation(algorithm: Algorithm, auth: &Auth) -> Validation {
    let mut validation = Validation::new(algorithm);
    let mut required = vec!["exp"];
    validation.validate_nbf = true;
    validation.leeway = 0;
    validation.validate_aud = !auth.audience.is_empty();
    if !auth.audience.is_empty() {
        validation.set_audience(&auth.audience);
        required.push("aud");
    }
    if !auth.issuer.is_empty() {
        validation.set_issuer(&auth.issuer);
        required.push("iss");
    }
    validation.set_required_spec_claims(&required);
    validation
}

/// A provider signs tokens for others too: without these settings, theirs open this server.
fn warn_of_foreign_tokens(auth: &Auth) {
    for (setting, names) in [
        ("auth.audience", &auth.audience),
        ("auth.issuer", &auth.issuer),
    ] {
        if names.is_empty() {
            tracing::warn!(
                setting,
                "is not set: tokens that the identity provider signed for other services are accepted here"
            );
        }
    }
}

/// Signs a user token with this server's own key.
pub fn sign_user_token(
    keys_dir: &Path,
    user: &UserId,
    name: Option<&str>,
    token_type: TokenType,
    issued_at: i64,
    expires_at: i64,
) -> Result<String, UserKeysError> {
    let path = keys_dir.to_owned();
    let pem = super::secrets::user_key_pem(keys_dir)?;
    let key = EncodingKey::from_rsa_pem(pem.as_bytes())
        .map_err(|error| UserKeysError::BadKey(path.clone(), error))?;
    let claims = Claims {
        user_id: Some(Id::Text(user.to_string())),
        user_info_id: Some(Id::Text(user.to_string())),
        sub: Some(Id::Text(user.to_string())),
        token_type: Some(token_type),
        name: name.map(str::to_owned),
        display_name: None,
        preferred_username: None,
        iat: Some(issued_at),
        exp: expires_at,
    };
    jsonwebtoken::encode(&Header::new(Algorithm::RS256), &claims, &key)
        .map_err(|error| UserKeysError::BadKey(path, error))
}

fn own_public_key(keys_dir: &Path) -> Result<DecodingKey, UserKeysError> {
    let pem = super::secrets::user_key_pem(keys_dir)?;
    let key = EncodingKey::from_rsa_pem(pem.as_bytes())
        .map_err(|error| UserKeysError::BadKey(keys_dir.to_owned(), error))?;
    let jwk = jsonwebtoken::jwk::Jwk::from_encoding_key(&key, Algorithm::RS256)
        .map_err(|error| UserKeysError::BadKey(keys_dir.to_owned(), error))?;
    DecodingKey::from_jwk(&jwk).map_err(|error| UserKeysError::BadKey(keys_dir.to_owned(), error))
}

fn jwks(source: &str, text: &str) -> Result<Vec<Key>, UserKeysError> {
    let bad = |why: String| UserKeysError::BadJwks(source.to_owned(), why);
    let set: JwkSet = serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
    let keys: Vec<Key> = set
        .keys
        .iter()
        .filter(|jwk| {
            matches!(
                jwk.algorithm,
                jsonwebtoken::jwk::AlgorithmParameters::RSA(_)
            )
        })
        .filter_map(|jwk| {
            let key = DecodingKey::from_jwk(jwk).ok()?;
            Some(Key {
                kid: jwk.common.key_id.clone(),
                key,
            })
        })
        .collect();
    if keys.is_empty() {
        return Err(bad("it holds no RSA key".to_owned()));
    }
    Ok(keys)
}

fn read(path: &Path) -> Result<String, UserKeysError> {
    std::fs::read_to_string(path).map_err(|error| UserKeysError::Read(path.to_owned(), error))
}
