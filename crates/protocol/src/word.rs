//! Words on the wire: enums that travel as a lowercase word.
//!
//! What callers say is a closed set: a word that is unknown is refused. What the server says is
//! open: a later version may use a word that this one does not know, and a client must get along.

/// The most bytes of a word that is unknown.
pub(crate) const MOST_BYTES: usize = 64;

/// Declares an enum that travels as a lowercase word.
macro_rules! words {
    ($(#[doc = $doc:literal])+ $(#[derive($($derive:ident),+)])? $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[doc = $doc])+
        $(#[derive($($derive),+)])?
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$vmeta])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            /// The word on the wire and in the store.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        $crate::word::schema!($name { $($doc),+ } { $($word),+ });
        $crate::word::read_and_show!($name { $($variant = $word),+ });
    };
}

/// Declares such an enum that only the server says. Reading it from a reply keeps a word that is
/// unknown; parsing it, as the server does with what it stored, does not.
macro_rules! open_words {
    ($(#[doc = $doc:literal])+ $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$vmeta])* $variant,)+
            /// A word of a later version, kept to be shown and passed on.
            Other(String),
        }

        impl $name {
            /// The word on the wire and in the store.
            pub fn as_str(&self) -> &str {
                match self { $(Self::$variant => $word,)+ Self::Other(unknown) => unknown }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Word;
                impl serde::de::Visitor<'_> for Word {
                    type Value = $name;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a word")
                    }
                    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<$name, E> {
                        match word.parse() {
                            Ok(known) => Ok(known),
                            Err(_) if word.len() <= $crate::word::MOST_BYTES => {
                                Ok($name::Other(word.to_owned()))
                            }
                            Err(_) => Err(E::custom(concat!("too long for a ", stringify!($name)))),
                        }
                    }
                }
                deserializer.deserialize_str(Word)
            }
        }

        $crate::word::schema!($name { $($doc),+ } { $($word),+ });
        $crate::word::read_and_show!($name { $($variant = $word),+ });
    };
}

/// How the enum is described: by its words, not by its variants.
macro_rules! schema {
    ($name:ident { $($doc:literal),+ } { $($word:literal),+ }) => {
        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .description(Some(concat!($($doc),+).trim()))
                    .enum_values(Some([$($word),+]))
                    .into()
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
        }
    };
}

macro_rules! read_and_show {
    ($name:ident { $($variant:ident = $word:literal),+ }) => {
        impl std::str::FromStr for $name {
            type Err = $crate::BadId;
            fn from_str(word: &str) -> Result<Self, Self::Err> {
                match word { $($word => Ok(Self::$variant),)+ _ => Err($crate::BadId(concat!("unknown ", stringify!($name)))) }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use {open_words, read_and_show, schema, words};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AuthUsed, ClientKind, MemberKind, MessageType, Role, RoleClass, Via, Visibility};
    use serde::{Serialize, de::DeserializeOwned};

    fn round_trip<T: Serialize + DeserializeOwned>(word: &str) -> String {
        let read: T = serde_json::from_str(&format!("\"{word}\"")).unwrap();
        serde_json::to_string(&read).unwrap()
    }

    #[test]
    fn what_the_server_says_is_kept_although_it_is_unknown() {
        for written in [
            round_trip::<Via>("telepathy"),
            round_trip::<MessageType>("telepathy"),
            round_trip::<MemberKind>("telepathy"),
            round_trip::<Role>("telepathy"),
            round_trip::<RoleClass>("telepathy"),
            round_trip::<AuthUsed>("telepathy"),
        ] {
            assert_eq!(written, "\"telepathy\"");
        }
        assert_eq!(round_trip::<Via>("agent"), "\"agent\"");
        assert_eq!(
            serde_json::from_str::<Via>("\"agent\"").unwrap(),
            Via::Agent
        );
    }

    #[test]
    fn what_callers_say_is_refused_when_it_is_unknown() {
        assert!(serde_json::from_str::<Visibility>("\"secret\"").is_err());
        assert!(serde_json::from_str::<ClientKind>("\"robot\"").is_err());
        assert!("telepathy".parse::<Via>().is_err());
    }

    #[test]
    fn what_is_no_word_or_too_long_a_one_is_refused() {
        let long = format!("\"{}\"", "x".repeat(MOST_BYTES + 1));
        for bad in ["7", "null", "{}", long.as_str()] {
            assert!(serde_json::from_str::<Via>(bad).is_err(), "{bad}");
        }
    }
}
