//! Ids, checked once at the door. After that, types carry what was checked.

use serde::{Deserialize, Serialize};
use std::{borrow::Borrow, fmt, str::FromStr};

/// The regular expression that every [`RoomId`] matches.
pub const ROOM_ID_PATTERN: &str = "^rm_[A-Za-z0-9_-]{1,64}$";
/// The regular expression that every [`UserId`] matches.
pub const USER_ID_PATTERN: &str = "^[A-Za-z0-9_.@:+-]{1,128}$";
/// The regular expression that every [`AgentId`] matches.
pub const AGENT_ID_PATTERN: &str = "^(ext_)?[a-z0-9_.]{8,20}-[0-9a-f]{8}$";

/// Why a word is no id of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadId(pub &'static str);

macro_rules! id {
    ($(#[$meta:meta])* $name:ident, $check:expr) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        pub struct $name(String);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadId;
            fn try_from(text: String) -> Result<Self, BadId> {
                let check: fn(&str) -> Result<(), BadId> = $check;
                check(&text).map(|()| Self(text))
            }
        }

        impl FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                Self::try_from(text.to_owned())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }
    };
}

id!(
    /// A room: `rm_` and url-safe characters.
    RoomId,
    |text| {
        let tail = text.strip_prefix("rm_").ok_or(BadId("a room id begins with rm_"))?;
        let well_formed = (1..=64).contains(&tail.len())
            && tail.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        well_formed.then_some(()).ok_or(BadId("a room id is rm_ and up to 64 url-safe characters"))
    }
);

id!(
    /// A user: whoever can be a member of a room.
    UserId,
    |text| {
        let well_formed = (1..=128).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.@:+".contains(&b));
        well_formed
            .then_some(())
            .ok_or(BadId("a user id is 1 to 128 characters of a-z A-Z 0-9 _ - . @ : +"))
    }
);

id!(
    /// The id of an external agent: `<prefix>-<hex8>`, the prefix 8 to 20 characters of
    /// `a-z 0-9 _ .`, the suffix 8 hexadecimal digits in lower case. It may carry `ext_` already.
    AgentId,
    |text| {
        const FORM: BadId = BadId(
            "an agent's user_id is <prefix>-<hex8>: 8 to 20 characters of a-z 0-9 _ . then - and 8 hex digits, e.g. curious_otter-3a9f1c20",
        );
        let bare = text.strip_prefix(crate::EXTERNAL_PREFIX).unwrap_or(text);
        let (prefix, suffix) = bare.rsplit_once('-').ok_or(FORM)?;
        let prefix_ok = (8..=20).contains(&prefix.len())
            && prefix
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'.');
        let suffix_ok = suffix.len() == 8
            && suffix.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        (prefix_ok && suffix_ok).then_some(()).ok_or(FORM)
    }
);

impl RoomId {
    /// The room where newcomers begin.
    pub fn welcome() -> Self {
        Self(crate::WELCOME_ROOM.to_owned())
    }

    /// The rooms that belong to the system.
    pub fn reserved() -> [Self; 3] {
        crate::RESERVED_ROOMS.map(|room| Self(room.to_owned()))
    }

    /// Whether the room belongs to the system.
    pub fn is_reserved(&self) -> bool {
        crate::RESERVED_ROOMS.contains(&self.as_str())
    }
}

impl UserId {
    /// The same id in the namespace of members who came with an invite alone.
    pub fn external(&self) -> Self {
        if self.is_external() {
            self.clone()
        } else {
            Self(format!("{}{}", crate::EXTERNAL_PREFIX, self.0))
        }
    }

    /// Whether the id is in that namespace.
    pub fn is_external(&self) -> bool {
        self.0.starts_with(crate::EXTERNAL_PREFIX)
    }

    /// Whether it is the id of a webhook.
    pub fn is_webhook(&self) -> bool {
        self.0.starts_with(crate::WEBHOOK_PREFIX)
    }

    /// Whether it is an id that stands under messages and is nobody's: the system's, a webhook's, or that
    /// of somebody who wrote elsewhere. Nobody signs in or joins with one, and none has a score.
    pub fn is_nobodys(&self) -> bool {
        self.0 == crate::SYSTEM_USER
            || self.is_webhook()
            || self.0.starts_with(crate::IMPORT_PREFIX)
    }

    /// The system's own id.
    pub fn system() -> Self {
        Self(crate::SYSTEM_USER.to_owned())
    }

    /// Who stands for visitors where somebody has to be named.
    pub fn visitor() -> Self {
        Self("_visitor".to_owned())
    }
}

impl From<AgentId> for UserId {
    fn from(agent: AgentId) -> Self {
        Self(agent.0).external()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_id_is_rm_and_url_safe_characters() {
        assert!("rm_8f3kz2".parse::<RoomId>().is_ok());
        assert!("rm_welcome".parse::<RoomId>().is_ok());
        for bad in [
            "",
            "rm_",
            "8f3kz2",
            "rm_a b",
            "rm_a/b",
            "rm_ä",
            &format!("rm_{}", "x".repeat(65)),
        ] {
            assert!(bad.parse::<RoomId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_agent_id_is_prefix_and_eight_hex_digits() {
        assert!("curious_otter-3a9f1c20".parse::<AgentId>().is_ok());
        assert!("ext_my_bot_v2-b14b3d22".parse::<AgentId>().is_ok());
        for bad in [
            "codex",
            "short-3a9f1c20",
            "curious_otter-3A9F1C20",
            "curious_otter-3a9f",
            "Curious_otter-3a9f1c20",
            "-3a9f1c20",
        ] {
            assert!(bad.parse::<AgentId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_external_prefix_is_never_doubled() {
        let agent: AgentId = "ext_my_bot_v2-b14b3d22".parse().unwrap();
        assert_eq!(UserId::from(agent).as_str(), "ext_my_bot_v2-b14b3d22");
        let human: UserId = "codex".parse().unwrap();
        assert_eq!(human.external().as_str(), "ext_codex");
    }

    #[test]
    fn an_id_with_control_characters_is_refused() {
        assert!("u_\u{0}".parse::<UserId>().is_err());
        assert!("u\nx".parse::<UserId>().is_err());
    }
}
