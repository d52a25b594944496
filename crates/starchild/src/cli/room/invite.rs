//! What lets an agent in: a short code, an invite code, or a link with one of them in it.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use protocol::RoomId;
use serde::Deserialize;

/// No code is longer.
const MAX_BYTES: usize = 8 * 1024;

/// What stands between the server and the code in the link that people get.
const FOR_PEOPLE: &str = "/view#invite=";

/// What somebody was given.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    /// The code itself.
    pub kind: Kind,
    /// The server, where the code was part of a link.
    pub server: Option<String>,
}

/// The two sorts of codes.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    /// `i_…`: the server trades it for an invite code.
    Short(String),
    /// `inv_…`.
    Invite(String),
}

/// Reads what somebody was given; the error says what is wanted.
pub fn parse(text: &str) -> Result<Code, String> {
    let text = text.trim();
    let (server, code) = match text.split_once("://") {
        None => (None, text),
        Some(_) if text.contains(FOR_PEOPLE) => {
            let (server, code) = text.split_once(FOR_PEOPLE).unwrap_or((text, ""));
            (Some(server.to_owned()), code)
        }
        Some(_) => {
            let link = text
                .split(['?', '#'])
                .next()
                .unwrap_or(text)
                .trim_end_matches('/');
            let (before, code) = link.rsplit_once('/').unwrap_or((link, ""));
            let server = before
                .strip_suffix("/install")
                .or(before.strip_suffix("/i"));
            (Some(server.unwrap_or(before).to_owned()), code)
        }
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let kind = if code.len() > MAX_BYTES || !code.chars().all(plain) {
        None
    } else if code.starts_with("inv_") {
        Some(Kind::Invite(code.to_owned()))
    } else {
        let short = code.strip_prefix("i_").is_some_and(|rest| !rest.is_empty());
        short.then(|| Kind::Short(code.to_owned()))
    };
    let kind = kind.ok_or(
        "that is no code: want i_…, inv_… or a link such as https://rooms.example.org/install/i_…",
    )?;
    Ok(Code { kind, server })
}

/// The room an invite code is for, as its middle part says. The server checks it.
pub fn room_of(invite_code: &str) -> Result<RoomId, String> {
    #[derive(Deserialize)]
    struct Claims {
        room_id: RoomId,
    }
    let token = invite_code
        .trim()
        .strip_prefix("inv_")
        .filter(|token| token.len() <= MAX_BYTES);
    let middle = token.and_then(|token| token.split('.').nth(1));
    let bytes = middle.and_then(|middle| URL_SAFE_NO_PAD.decode(middle.trim_end_matches('=')).ok());
    let claims = bytes.and_then(|bytes| serde_json::from_slice::<Claims>(&bytes).ok());
    let claims =
        claims.ok_or("the invite code is damaged; copy it once more, or ask for a new one")?;
    Ok(claims.room_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_comes_alone_or_in_a_link() {
        let short = |server: Option<&str>| Code {
            kind: Kind::Short("i_x9j2k7vp".into()),
            server: server.map(Into::into),
        };
        assert_eq!(parse(" i_x9j2k7vp\n").unwrap(), short(None));
        for link in [
            "http://a:8080/install/i_x9j2k7vp",
            "http://a:8080/install/i_x9j2k7vp?backend=codex",
            "http://a:8080/i/i_x9j2k7vp/",
            "http://a:8080/view#invite=i_x9j2k7vp",
        ] {
            assert_eq!(parse(link).unwrap(), short(Some("http://a:8080")), "{link}");
        }
        let under_a_path = parse("https://a/rooms/install/i_x9j2k7vp").unwrap();
        assert_eq!(under_a_path.server.as_deref(), Some("https://a/rooms"));
        assert!(matches!(parse("inv_a.b.c").unwrap().kind, Kind::Invite(_)));
    }

    #[test]
    fn what_is_no_code_is_refused() {
        let long = format!("i_{}", "x".repeat(MAX_BYTES));
        for text in [
            "",
            "i_",
            "hello",
            "https://a/install/",
            "https://a/view#invite=",
            "https://a/view#invite=i_a/../b",
            "i_a/../b",
            "i_a b",
            "ck_x9j2k7vp",
            &long,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_invite_names_its_room() {
        let claims = URL_SAFE_NO_PAD.encode(r#"{"kind":"invite","room_id":"rm_8f3kz2"}"#);
        let room = room_of(&format!("inv_x.{claims}.y")).unwrap();
        assert_eq!(room.as_str(), "rm_8f3kz2");
        let evil = URL_SAFE_NO_PAD.encode(r#"{"room_id":"rm_../../etc"}"#);
        for bad in ["inv_", "inv_x.y.z", "x.y.z", &format!("inv_x.{evil}.y")] {
            assert!(room_of(bad).is_err(), "{bad}");
        }
    }
}
