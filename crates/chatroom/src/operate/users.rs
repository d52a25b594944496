//! Signing tokens by hand, and letting people in.

use crate::{
    auth::{
        secrets::{Secrets, SecretsError},
        user::{TokenType, UserKeysError, sign_user_token},
    },
    clock::Now,
    config::Config,
};
use protocol::{BadId, UserId};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// Why no token was signed.
#[derive(Debug, thiserror::Error)]
pub enum UsersError {
    #[error("{0:?} does not do as a user id: {1}")]
    BadUser(String, BadId),
    #[error("a name needs at least one character")]
    NoName,
    #[error(
        "no server has used the data folder {path} yet, so a link would lead nowhere; start one with sc-chatroom serve --data {path}, or name the server's folder with --data",
        path = .0.display()
    )]
    Unused(PathBuf),
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    #[error(transparent)]
    Keys(#[from] UserKeysError),
}

/// A token that says who its bearer is.
pub fn token(
    keys_dir: &Path,
    user: &str,
    name: Option<&str>,
    token_type: TokenType,
    ttl: Duration,
) -> Result<String, UsersError> {
    let id: UserId = user
        .parse()
        .map_err(|why| UsersError::BadUser(user.to_owned(), why))?;
    if id.is_external() || id.is_nobodys() {
        let why = BadId(
            "ids that begin with ext_, hook_ or import:, and u_system, are not given to users",
        );
        return Err(UsersError::BadUser(user.to_owned(), why));
    }
    let now = Now::get().seconds();
    let end = now.saturating_add(i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX / 2));
    Ok(sign_user_token(keys_dir, &id, name, token_type, now, end)?)
}

/// Refuses a data folder that no server has used: a link from its keys would lead nowhere.
pub fn refuse_unused(config: &Config) -> Result<(), UsersError> {
    let is_used = config.data.join("server.lock").exists();
    match is_used && config.keys_dir().exists() {
        true => Ok(()),
        false => Err(UsersError::Unused(config.data.clone())),
    }
}

/// An id for a new account. A name may be another's too, an id may not.
pub fn new_id(config: &Config, name: &str) -> Result<String, UsersError> {
    refuse_unused(config)?;
    if name.trim().is_empty() {
        return Err(UsersError::NoName);
    }
    let tail = Secrets::open(&config.keys_dir())?.random_code("", 6)?;
    Ok(format!("{}{tail}", slug(name)))
}

fn slug(name: &str) -> String {
    let mut slug = "u_".to_owned();
    for c in name.to_lowercase().chars() {
        match c {
            'a'..='z' | '0'..='9' => slug.push(c),
            _ if !slug.ends_with('_') => slug.push('_'),
            _ => {}
        }
    }
    slug.truncate(40);
    if !slug.ends_with('_') {
        slug.push('_');
    }
    slug
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_begins_like_its_name() {
        assert_eq!(slug("Alice"), "u_alice_");
        assert_eq!(slug(" Bob  Q. Public! "), "u_bob_q_public_");
        assert_eq!(slug("…"), "u_");
    }
}
