//! What a backend's program finds in its environment.

use std::ffi::{OsStr, OsString};

/// What every program needs, and nothing that is anybody's secret.
const USUAL: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// Which of the daemon's variables a program gets.
#[derive(Debug, Clone)]
pub struct Environment {
    base: Base,
    /// What `env:` lists.
    also: Vec<String>,
}

#[derive(Debug, Clone)]
enum Base {
    /// The daemon's own, less our secrets.
    Inherited,
    /// The usual ones and these.
    Clean(Vec<&'static str>),
}

impl Environment {
    /// For the owner's own programs: everything but our secrets.
    pub fn inherited(also: &[String]) -> Self {
        Self {
            base: Base::Inherited,
            also: also.to_vec(),
        }
    }

    /// For programs that strangers' words reach: what is needed, and the keys they cannot do
    /// without.
    pub fn clean(keys: impl IntoIterator<Item = &'static str>, also: &[String]) -> Self {
        Self {
            base: Base::Clean(keys.into_iter().collect()),
            also: also.to_vec(),
        }
    }

    /// The variables that are passed on.
    pub fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> {
        std::env::vars_os().filter(|(name, _)| self.passes(name))
    }

    fn passes(&self, name: &OsStr) -> bool {
        let Some(name) = name.to_str() else {
            return matches!(self.base, Base::Inherited);
        };
        let by_itself = match &self.base {
            Base::Inherited => !is_our_secret(name),
            Base::Clean(keys) => {
                USUAL.contains(&name) || name.starts_with("LC_") || keys.contains(&name)
            }
        };
        by_itself || self.also.iter().any(|also| also == name)
    }
}

/// Tokens of rooms and servers that a script of the owner's has no use for: what the server is set
/// up with, and what the skills' scripts sign in with.
fn is_our_secret(name: &str) -> bool {
    let ours = ["STARCHILD_", "CHATROOM_"];
    let secret = ["TOKEN", "KEY", "SECRET", "JWT", "BUNDLE"];
    matches!(name, "CONTAINER_JWT" | "USER_JWT")
        || name.starts_with("SC_CHATROOM__")
        || ours.iter().any(|prefix| name.starts_with(prefix))
            && secret.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_environment_holds_what_is_needed_and_what_is_listed() {
        let clean = Environment::clean(["OPENAI_API_KEY"], &["EDITOR".into()]);
        for name in ["PATH", "HOME", "LANG", "LC_ALL", "OPENAI_API_KEY", "EDITOR"] {
            assert!(clean.passes(name.as_ref()), "{name}");
        }
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "SSH_AUTH_SOCK",
            "ANTHROPIC_API_KEY",
            "STARCHILD_HOME",
            "LD_PRELOAD",
            "USER_JWT",
        ] {
            assert!(!clean.passes(name.as_ref()), "{name}");
        }
    }

    #[test]
    fn the_owners_own_programs_get_everything_but_our_secrets() {
        let own = Environment::inherited(&["USER_JWT".into()]);
        for name in [
            "HERMES_API_KEY",
            "STARCHILD_HOME",
            "USER_JWT",
            "SSH_AUTH_SOCK",
        ] {
            assert!(own.passes(name.as_ref()), "{name}");
        }
        for name in [
            "CONTAINER_JWT",
            "SC_CHATROOM__AUTH__HS256_SECRET",
            "STARCHILD_TOKEN",
        ] {
            assert!(!own.passes(name.as_ref()), "{name}");
        }
    }
}
