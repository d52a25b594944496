//! The script of the one-liner `curl -sSL {server}/install/{short_code} | sh`.
//!
//! What comes from an address ends up in a script that somebody runs. So every value is checked
//! against the characters it may have, and stands in the script only as a quoted word.

use crate::error::{Error, Result};
use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde::Deserialize;
use utoipa::IntoParams;

const TEMPLATE: &str = include_str!("install.sh");
/// Where the values go. It stands in the template once.
const SETTINGS: &str = "@SETTINGS@";
const MAX_COMMAND: usize = 4096;
/// The most characters of a command in base64.
pub const MAX_ENCODED_COMMAND: usize = MAX_COMMAND * 4 / 3 + 4;
/// The backends that an installer may set up.
pub const BACKENDS: [&str; 8] = [
    "codex",
    "claude",
    "openai",
    "plain",
    "custom",
    "handler",
    "starchild",
    "acp",
];
/// With or without padding: people paste both.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The query of `/install/{short_code}`, as it comes.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct InstallQuery {
    /// codex, claude, openai, plain, custom, handler, starchild or acp; found out where absent.
    backend: Option<String>,
    /// 8 to 20 characters of a-z 0-9 _ . for the agent's id; random words where absent.
    agent_prefix: Option<String>,
    /// The command of `custom` or `acp`, in base64.
    cmd: Option<String>,
}

/// What the person who made the link wants, checked.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    backend: Option<&'static str>,
    prefix: Option<String>,
    command: Option<String>,
}

impl InstallQuery {
    /// Checks every value.
    pub fn check(self) -> Result<Wishes> {
        let prefix = self.agent_prefix.map(check_prefix).transpose()?;
        let command = self.cmd.as_deref().map(decode_command).transpose()?;
        let backend = match (self.backend.as_deref(), &command) {
            (Some(name), _) => Some(check_backend(name)?),
            (None, Some(_)) => Some("custom"),
            (None, None) => None,
        };
        match (backend, &command) {
            (Some(name @ ("custom" | "acp")), None) => Err(Error::bad_request(format!(
                "backend={name} needs the command to run: add &cmd= and the command in base64"
            ))),
            (Some(name), Some(_)) if !matches!(name, "custom" | "acp") => Err(Error::bad_request(
                format!("cmd goes with backend=custom or backend=acp, not with backend={name}"),
            )),
            _ => Ok(Wishes {
                backend,
                prefix,
                command,
            }),
        }
    }
}

fn check_backend(name: &str) -> Result<&'static str> {
    let known = BACKENDS.into_iter().find(|known| *known == name);
    known.ok_or_else(|| {
        Error::bad_request(format!("backend must be one of {}", BACKENDS.join(", ")))
    })
}

fn check_prefix(prefix: String) -> Result<String> {
    let fits = (8..=20).contains(&prefix.len())
        && prefix
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'.');
    match fits {
        true => Ok(prefix),
        false => Err(Error::bad_request(
            "agent_prefix must be 8 to 20 characters of a-z 0-9 _ .",
        )),
    }
}

fn decode_command(encoded: &str) -> Result<String> {
    let refuse = |why: &str| Err(Error::bad_request(format!("cmd {why}")));
    if encoded.len() > MAX_ENCODED_COMMAND {
        return refuse("is too long: 4096 bytes at most, before base64");
    }
    // In a query, + means a space; in base64 it is a digit. The url-safe digits pass too.
    let digits: String = encoded
        .chars()
        .map(|c| match c {
            ' ' | '-' => '+',
            '_' => '/',
            other => other,
        })
        .collect();
    let Ok(bytes) = BASE64.decode(digits) else {
        return refuse("must be base64");
    };
    let Ok(command) = String::from_utf8(bytes) else {
        return refuse("must be UTF-8 in base64");
    };
    if command.trim().is_empty() {
        return refuse("must not be empty");
    }
    // Nothing that a terminal would not show: the person sees what the agent is going to run.
    let hidden = |c: char| c.is_control() && c != '\n' && c != '\t' || is_invisible(c);
    if command.contains(hidden) {
        return refuse("must not hold control characters or invisible ones");
    }
    Ok(command)
}

/// Characters that hide or reorder text on a screen.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The script that installs the program alone.
pub fn program_script(server: &str) -> String {
    room_script(server, "", &Wishes::default(), None)
}

/// The script that puts an agent into the room of this short code. Where the invite holds no longer, `refused` says
/// why; the script then still starts an agent that has joined with it before.
pub fn room_script(server: &str, code: &str, wishes: &Wishes, refused: Option<&str>) -> String {
    let settings = [
        ("server", server),
        ("code", code),
        ("backend", wishes.backend.unwrap_or_default()),
        ("prefix", wishes.prefix.as_deref().unwrap_or_default()),
        ("command", wishes.command.as_deref().unwrap_or_default()),
        ("refused", refused.unwrap_or_default()),
    ];
    let lines = settings.map(|(name, value)| format!("{name}={}", quote(value)));
    TEMPLATE.replacen(SETTINGS, &lines.join("\n    "), 1)
}

/// A script that says why there is no other.
pub fn refusal_script(message: &str) -> String {
    let words = quote(&format!("starchild: {message}"));
    format!("#!/bin/sh\nprintf '%s\\n' {words} >&2\nexit 1\n")
}

/// The text as one word of the shell, whatever is in it.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(backend: Option<&str>, prefix: Option<&str>, cmd: Option<&str>) -> InstallQuery {
        InstallQuery {
            backend: backend.map(str::to_owned),
            agent_prefix: prefix.map(str::to_owned),
            cmd: cmd.map(str::to_owned),
        }
    }

    fn command(cmd: &str) -> Option<String> {
        query(None, None, Some(cmd)).check().ok()?.command
    }

    #[test]
    fn a_command_comes_in_any_base64() {
        let text = "echo ?>?>?>~~~; cat";
        let standard = BASE64.encode(text);
        assert_eq!(standard, "ZWNobyA/Pj8+Pz5+fn47IGNhdA==");
        let bare = standard.trim_end_matches('=');
        let url_safe = bare.replace('+', "-").replace('/', "_");
        let through_a_query = standard.replace('+', " ");
        for encoded in [&standard, bare, &url_safe, &through_a_query] {
            assert_eq!(command(encoded).as_deref(), Some(text), "{encoded}");
        }
        assert_eq!(
            query(None, None, Some(&standard)).check().unwrap().backend,
            Some("custom")
        );
    }

    #[test]
    fn a_command_that_a_terminal_would_not_show_is_refused() {
        for bad in [
            "",
            " ",
            "\n",
            "a\0b",
            "a\rb",
            "\u{1b}[8mrm -rf ~",
            "ls \u{202e}x",
            "a\u{200b}b",
            "a\u{7f}",
        ] {
            assert_eq!(command(&BASE64.encode(bad)), None, "{bad:?}");
        }
        assert_eq!(command(&BASE64.encode([0xff, 0xfe])), None);
        assert_eq!(command("no base64!"), None);
        assert_eq!(
            command(&BASE64.encode("x".repeat(MAX_COMMAND + 1000))),
            None
        );
        assert!(command(&BASE64.encode("x".repeat(MAX_COMMAND))).is_some());
    }

    #[test]
    fn hostile_values_are_refused() {
        let long = "a".repeat(21);
        for bad in [
            "short",
            &long,
            "Curious_otter",
            "a;touch /tmp/x",
            "$(touch x)aa",
            "`id`aaaaa",
            "../../etc",
            "a'b'c'd'e",
            "aaaa\naaaa",
            "ääääääää",
            "--prefix-x",
            "",
        ] {
            assert!(query(None, Some(bad), None).check().is_err(), "{bad:?}");
        }
        for bad in [
            "", "bash", "codex;id", "CODEX", "codex ", "$(id)", "plain\n",
        ] {
            assert!(query(Some(bad), None, None).check().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_command_needs_a_backend_that_takes_one() {
        let cmd = BASE64.encode("cat");
        for backend in ["custom", "acp"] {
            assert!(query(Some(backend), None, Some(&cmd)).check().is_ok());
            assert!(query(Some(backend), None, None).check().is_err());
        }
        assert!(query(Some("codex"), None, Some(&cmd)).check().is_err());
    }

    #[test]
    fn the_template_has_one_place_for_the_values() {
        assert_eq!(TEMPLATE.matches(SETTINGS).count(), 1);
        let wishes = Wishes {
            command: Some(format!("echo {SETTINGS} '$(id)' \\' \"")),
            ..Wishes::default()
        };
        let script = room_script("https://a.example", "i_x", &wishes, None);
        assert!(script.contains(r#"command='echo @SETTINGS@ '\''$(id)'\'' \'\'' "'"#));
    }
}
