//! User tokens: signed by this server's own key, or by the operator's identity provider.

use crate::config::Auth;
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
        "set only one of auth.public_key_file, auth.jwks_file, auth.jwks_url and auth.hs256_secret"
    )]
    TooMany,
}

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
        if let Some(secret) = &auth.hs256_secret {
            let key = DecodingKey::from_secret(secret.as_bytes());
            return Ok(Self::new(Algorithm::HS256, vec![Key { kid: None, key }]));
        }
        if auth.jwks_url.is_some() {
            return Ok(Self::new(Algorithm::RS256, Vec::new()));
        }
        if let Some(path) = &auth.jwks_file {
            let text = read(path)?;
            return Ok(Self::new(
                Algorithm::RS256,
                jwks(&path.display().to_string(), &text)?,
            ));
        }
        let key = match &auth.public_key_file {
            Some(path) => DecodingKey::from_rsa_pem(read(path)?.as_bytes())
                .map_err(|error| UserKeysError::BadKey(path.clone(), error))?,
            None => own_public_key(keys_dir)?,
        };
        Ok(Self::new(Algorithm::RS256, vec![Key { kid: None, key }]))
    }

    fn new(algorithm: Algorithm, keys: Vec<Key>) -> Self {
        let mut validation = Validation::new(algorithm);
        validation.validate_aud = false;
        validation.validate_nbf = true;
        validation.leeway = 0;
        Self {
            keys: RwLock::new(Arc::new(keys)),
            validation,
        }
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
    pub fn check(&self, token: &str) -> Option<User> {
        let kid = jsonwebtoken::decode_header(token).ok()?.kid;
        let keys = self
            .keys
            .read()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .clone();
        let claims = keys
            .iter()
            .filter(|key| key.kid.is_none() || kid.is_none() || key.kid == kid)
            .find_map(|key| jsonwebtoken::decode::<Claims>(token, &key.key, &self.validation).ok())?
            .claims;
        let id = claims
            .user_id
            .or(claims.user_info_id)
            .or(claims.sub)?
            .into_text();
        let id: UserId = id.parse().ok()?;
        if id.is_external() || id == UserId::system() {
            return None;
        }
        let name = claims
            .name
            .or(claims.display_name)
            .or(claims.preferred_username);
        Some(User {
            id,
            name: name.and_then(|name| clean_name(&name)),
            token_type: claims.token_type.unwrap_or(TokenType::Container),
            identity: None,
        })
    }
}

/// A name as rooms may show it: no control characters, not too long, not empty.
fn clean_name(name: &str) -> Option<String> {
    let name: String = name
        .trim()
        .chars()
        .filter(|c| !c.is_control())
        .take(protocol::MAX_NAME_CHARS)
        .collect();
    (!name.is_empty()).then_some(name)
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
