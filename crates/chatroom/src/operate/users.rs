//! Signing tokens by hand, and letting people in.

use crate::{
    auth::user::{TokenType, UserKeysError, sign_user_token},
    clock::Now,
};
use protocol::{BadId, UserId};
use std::{path::Path, time::Duration};

/// Why no token was signed.
#[derive(Debug, thiserror::Error)]
pub enum UsersError {
    #[error("{0:?} does not do as a user id: {1}")]
    BadUser(String, BadId),
    #[error("a name needs at least one letter or digit")]
    NoName,
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
    if id.is_external() || id == UserId::system() {
        let why = BadId("ids that begin with ext_, and u_system, are not given to users");
        return Err(UsersError::BadUser(user.to_owned(), why));
    }
    let now = Now::get().seconds();
    let end = now.saturating_add(i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX / 2));
    Ok(sign_user_token(keys_dir, &id, name, token_type, now, end)?)
}

/// The id of a person with this name: the same name gives the same id.
pub fn id_for(name: &str) -> Result<String, UsersError> {
    let mut slug = String::new();
    for c in name.to_lowercase().chars() {
        match c {
            'a'..='z' | '0'..='9' => slug.push(c),
            _ if !slug.is_empty() && !slug.ends_with('_') => slug.push('_'),
            _ => {}
        }
    }
    let slug = slug.trim_end_matches('_');
    if slug.is_empty() {
        return Err(UsersError::NoName);
    }
    Ok(format!("u_{}", &slug[..slug.len().min(60)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gives_an_id() {
        assert_eq!(id_for("Alice").unwrap(), "u_alice");
        assert_eq!(id_for(" Bob  Q. Public! ").unwrap(), "u_bob_q_public");
        assert!(id_for("…").is_err());
    }
}
