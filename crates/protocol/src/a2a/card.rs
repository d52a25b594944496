//! An agent's card, as far as a client needs it.

use super::{OLDER_VERSION, VERSION};
use serde::Deserialize;
use serde_json::Value;

/// The most interfaces that are looked at.
const MAX_INTERFACES: usize = 50;

/// What a card says of how its agent is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// The agent's name.
    pub name: String,
    /// Whether it streams.
    pub streaming: bool,
    /// Where it is reached in a way that is spoken here, best first.
    pub interfaces: Vec<CardInterface>,
}

/// One address of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardInterface {
    /// Where.
    pub url: String,
    /// Whether it takes JSON-RPC, and not HTTP+JSON.
    pub rpc: bool,
    /// Whether it speaks 0.3.
    pub older: bool,
    /// What is sent along in each request, where several agents share the address.
    pub tenant: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    name: String,
    #[serde(default)]
    capabilities: Capabilities,
    #[serde(default)]
    supported_interfaces: Vec<RawInterface>,
    url: Option<String>,
    protocol_version: Option<String>,
    preferred_transport: Option<String>,
    #[serde(default)]
    additional_interfaces: Vec<RawInterface>,
}

#[derive(Default, Deserialize)]
struct Capabilities {
    streaming: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawInterface {
    url: String,
    #[serde(alias = "transport")]
    protocol_binding: Option<String>,
    protocol_version: Option<String>,
    tenant: Option<String>,
}

impl Card {
    /// Reads a card of either version.
    pub fn read(card: Value) -> Result<Self, String> {
        let raw: Raw = serde_json::from_value(card).map_err(|error| error.to_string())?;
        let mut interfaces = Vec::new();
        for interface in raw.supported_interfaces.into_iter().take(MAX_INTERFACES) {
            let binding = interface.protocol_binding.unwrap_or_default();
            let version = interface.protocol_version.unwrap_or_default();
            let older = match major_minor(&version) {
                VERSION => false,
                OLDER_VERSION => true,
                _ => continue,
            };
            let rpc = match binding.as_str() {
                "JSONRPC" => true,
                // In 0.3 its paths and bodies are others.
                "HTTP+JSON" if !older => false,
                _ => continue,
            };
            interfaces.push(CardInterface {
                url: interface.url,
                rpc,
                older,
                tenant: interface.tenant.filter(|tenant| !tenant.is_empty()),
            });
        }
        // A card of 0.3: its own address, then the others.
        let version = raw.protocol_version.unwrap_or_default();
        let own = raw.url.into_iter().map(|url| RawInterface {
            url,
            protocol_binding: raw.preferred_transport.clone(),
            protocol_version: None,
            tenant: None,
        });
        if interfaces.is_empty() && (version.is_empty() || version.starts_with("0.")) {
            let listed = own.chain(raw.additional_interfaces).take(MAX_INTERFACES);
            let rpc = listed.filter(|interface| {
                let binding = interface.protocol_binding.as_deref();
                matches!(binding, None | Some("JSONRPC"))
            });
            interfaces.extend(rpc.map(|interface| CardInterface {
                url: interface.url,
                rpc: true,
                older: true,
                tenant: None,
            }));
        }
        Ok(Self {
            name: raw.name,
            streaming: raw.capabilities.streaming.unwrap_or(false),
            interfaces,
        })
    }
}

/// A version without its patch.
fn major_minor(version: &str) -> &str {
    match version.match_indices('.').nth(1) {
        Some((at, _)) => &version[..at],
        None => version,
    }
}
