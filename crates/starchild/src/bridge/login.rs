//! The key to the owner's hosted agent, from the bundle that the agent gave.

use crate::{
    home::{FileError, Home, NoHome, Secret, files},
    terminal::one_line,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

const PREFIX: &str = "starchild_";
const KEY_PREFIX: &str = "sc_";
/// The longest bundle that is read.
pub const MAX_BUNDLE_BYTES: usize = 16 << 10;

/// What is kept of a bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Login {
    /// The server with the bridge.
    pub server: String,
    /// What opens it.
    pub key: Secret,
    /// What the key is for.
    #[serde(default)]
    pub scope: String,
    /// When the key ends, in unix seconds.
    pub expires_at: i64,
    /// What its maker called it.
    #[serde(default)]
    pub label: Option<String>,
}

/// Why there is no login.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The text is no bundle.
    #[error("that is no login bundle: {0}; copy the whole text that begins with {PREFIX}")]
    NoBundle(String),
    /// The key's time is over.
    #[error(
        "the key {}ended {} ago; ask your agent for a new bundle and run `starchild login BUNDLE`",
        .label.as_ref().map(|label| format!("“{label}” ")).unwrap_or_default(), span(*.seconds)
    )]
    Expired {
        /// What its maker called it.
        label: Option<String>,
        /// How long ago.
        seconds: i64,
    },
    /// Nobody has logged in.
    #[error("nobody is logged in; ask your agent for a bundle and run `starchild login BUNDLE`")]
    NotLoggedIn,
    /// There is nowhere to keep it.
    #[error(transparent)]
    NoHome(#[from] NoHome),
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// A bundle's inside, under its short names.
#[derive(Deserialize)]
struct Bundle {
    d: String,
    k: String,
    #[serde(default)]
    s: String,
    exp: i64,
    #[serde(default)]
    l: Option<String>,
}

impl Login {
    /// Reads a bundle, as of `now`.
    pub fn parse(bundle: &str, now: i64) -> Result<Self, LoginError> {
        let no = |why: &str| LoginError::NoBundle(why.to_owned());
        let bundle = bundle.trim();
        if bundle.len() > MAX_BUNDLE_BYTES {
            return Err(no("it is too long"));
        }
        let inside = bundle
            .strip_prefix(PREFIX)
            .ok_or_else(|| no("it begins otherwise"))?;
        let bytes = URL_SAFE_NO_PAD
            .decode(inside.trim_end_matches('='))
            .map_err(|_| no("it is cut off or changed"))?;
        let bundle: Bundle =
            serde_json::from_slice(&bytes).map_err(|_| no("it is cut off or changed"))?;
        let server = reqwest::Url::parse(&bundle.d).map_err(|_| no("it names no server"))?;
        if !matches!(server.scheme(), "http" | "https") || !server.has_host() {
            return Err(no("its server is no http or https address"));
        }
        let is_key = |c: char| c.is_ascii_graphic();
        if !bundle.k.starts_with(KEY_PREFIX) || !bundle.k.chars().all(is_key) {
            return Err(no("it holds no key"));
        }
        let login = Self {
            server: server.as_str().trim_end_matches('/').to_owned(),
            key: bundle.k.into(),
            scope: bundle.s,
            expires_at: bundle.exp,
            label: bundle
                .l
                .map(|label| plain(&label))
                .filter(|label| !label.is_empty()),
        };
        login.still_good(now)
    }

    /// The login of this machine, if its time is not over.
    pub fn load(home: &Home) -> Result<Self, LoginError> {
        Self::stored(home)?.still_good(now())
    }

    /// The login of this machine, whatever the time.
    pub fn stored(home: &Home) -> Result<Self, LoginError> {
        files::read_json(&home.login_file())?.ok_or(LoginError::NotLoggedIn)
    }

    /// Keeps it for this machine.
    pub fn save(&self, home: &Home) -> Result<(), LoginError> {
        Ok(files::write_json(&home.login_file(), self)?)
    }

    /// How long the key is good, in words.
    pub fn left(&self) -> String {
        match self.expires_at - now() {
            left @ 1.. => format!("for {} more", span(left)),
            over => format!("no longer (ended {} ago)", span(-over)),
        }
    }

    /// Everything but the key.
    pub fn shown(&self) -> serde_json::Value {
        serde_json::json!({
            "server": self.server,
            "label": self.label,
            "scope": self.scope,
            "expires_at": self.expires_at,
        })
    }

    fn still_good(self, now: i64) -> Result<Self, LoginError> {
        match self.expires_at > now {
            true => Ok(self),
            false => Err(LoginError::Expired {
                label: self.label,
                seconds: now.saturating_sub(self.expires_at),
            }),
        }
    }
}

/// A label that cannot play tricks on a terminal.
fn plain(label: &str) -> String {
    one_line(label).chars().take(100).collect()
}

/// Seconds in words.
fn span(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// The time in unix seconds.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs().cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(json: &str) -> String {
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(json))
    }

    #[test]
    fn a_bundle_holds_the_server_and_the_key() {
        let text = bundle(
            r#"{"d":"https://rooms.example/","c":"","k":"sc_x9j2k7vp","s":"chat:bridge:cli","exp":2000,"l":"my\u001b[2J laptop","x":["a"]}"#,
        );
        let login = Login::parse(&format!(" {text}\n"), 1000).unwrap();
        assert_eq!(login.server, "https://rooms.example");
        assert_eq!(login.key.expose(), "sc_x9j2k7vp");
        assert_eq!(login.label.as_deref(), Some("my[2J laptop"));
        assert!(!format!("{login:?}").contains("x9j2k7vp"));
        let late = Login::parse(&text, 2000).unwrap_err();
        assert!(matches!(late, LoginError::Expired { seconds: 0, .. }));
    }

    #[test]
    fn what_is_no_bundle_is_said_and_never_repeated() {
        let secret = "sc_topsecret";
        for text in [
            String::new(),
            secret.into(),
            format!("{PREFIX}{secret}!"),
            bundle("[]"),
            bundle(&format!(r#"{{"d":"ftp://x","k":"{secret}","exp":9}}"#)),
            bundle(&format!(r#"{{"d":"nowhere","k":"{secret}","exp":9}}"#)),
            bundle(r#"{"d":"http://x","k":"topsecret","exp":9}"#),
            bundle(r#"{"d":"http://x","k":"sc_top\nsecret","exp":9}"#),
            bundle(&"[".repeat(9000)),
            "x".repeat(100_000),
        ] {
            let error = Login::parse(&text, 0).unwrap_err().to_string();
            assert!(error.contains("no login bundle"), "{error}");
            assert!(!error.contains("topsecret"), "{error}");
        }
    }
}
