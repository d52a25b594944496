//! Who answers: one model, several of which the next stands in, or a script.

use super::config::Env;
use super::{Fallback, Provider, ProviderConfig, Script};
use crate::pain::AgentPain;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Who answers: one provider, a list of which the next is asked where one gives no answer, or no
/// API at all.
#[derive(Clone, Debug)]
pub enum Providers {
    /// Models behind APIs.
    Apis {
        /// The one that is asked first.
        first: Box<ProviderConfig>,
        /// Those that stand in for it, in their order.
        others: Vec<ProviderConfig>,
    },
    /// The script in this file.
    Script(PathBuf),
}

/// `provider: script`, with the file behind it where it has another name.
const SCRIPT: &str = "script";
const SCRIPT_FILE: &str = "script.yaml";

impl Providers {
    /// All that are APIs.
    pub fn iter(&self) -> impl Iterator<Item = &ProviderConfig> {
        let (first, others) = match self {
            Self::Apis { first, others } => (Some(&**first), others.as_slice()),
            Self::Script(_) => (None, &[][..]),
        };
        first.into_iter().chain(others)
    }

    /// Makes the provider, or the chain.
    pub fn build(&self, env: Env<'_>) -> Result<Arc<dyn Provider>, AgentPain> {
        let (first, others) = match self {
            Self::Script(path) => return Ok(Arc::new(Script::load(path)?)),
            Self::Apis { first, others } => (first.build(env)?, others),
        };
        let others = others.iter().map(|config| config.build(env));
        let others: Vec<_> = others.collect::<Result<_, _>>()?;
        Ok(match others.is_empty() {
            true => first,
            false => Arc::new(Fallback::new(first, others)),
        })
    }

    /// A script counts from this folder.
    pub(crate) fn resolve_path(&mut self, folder: &Path) {
        if let Self::Script(path) = self {
            *path = folder.join(&*path);
        }
    }
}

impl<'de> Deserialize<'de> for Providers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Providers;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a provider, a list of them, or `script FILE`")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Providers, E> {
                let (word, file) = text.split_once(' ').unwrap_or((text, SCRIPT_FILE));
                match word {
                    SCRIPT => Ok(Providers::Script(file.trim().into())),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Providers, A::Error> {
                let first = ProviderConfig::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Providers::Apis {
                    first: Box::new(first),
                    others: Vec::new(),
                })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Providers, A::Error> {
                let none = || A::Error::custom("want at least one provider");
                let first = list.next_element()?.ok_or_else(none)?;
                let mut others = Vec::new();
                while let Some(next) = list.next_element()? {
                    others.push(next);
                }
                Ok(Providers::Apis { first, others })
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}
