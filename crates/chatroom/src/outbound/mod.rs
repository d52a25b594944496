//! Calls that the server makes to agents and webhooks. The address a call connects to is checked here, after
//! DNS and for every redirect, so that no member can point the server at a network it guards.

use crate::config::{Network, PrivateEndpoints};
use egress::Guard;
pub use egress::Redirects;
use ipnet::IpNet;
use reqwest::{Client, Url};
use std::sync::OnceLock;

/// Whose endpoint is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The operator's: it is in the settings.
    Operator,
    /// That of somebody who named it with a user token, from the operator's own networks.
    User,
    /// That of anybody else: with an invite alone, or signed in from outside.
    Stranger,
}

impl Trust {
    /// Whose endpoint it is, where it was remembered whether a trusted caller named it.
    pub fn of(named_by_trusted: bool) -> Self {
        match named_by_trusted {
            true => Self::User,
            false => Self::Stranger,
        }
    }
}

/// Why a call was not even begun.
#[derive(Debug, thiserror::Error)]
pub enum OutboundError {
    #[error("the endpoint is no address that can be called")]
    NoAddress,
    #[error("the endpoint's address is not one that this server calls for this member")]
    Forbidden,
    #[error("cannot make calls: {0}")]
    Client(String),
}

/// What is said of an endpoint that could not be connected to. A name that leads to a forbidden
/// address gets the same words: whoever names it must not learn what is on the operator's network.
const NO_CONNECTION: &str = "cannot connect to the agent's endpoint: it is down, or not one that this server calls for this member";

/// Makes HTTP clients for calls to agents.
pub struct Outbound {
    private_endpoints: PrivateEndpoints,
    internal: Vec<IpNet>,
    // Made when first used: a server that calls nobody pays nothing. Each has its own
    // connections, so that none opened for one sort of caller serves another.
    anywhere: Clients,
    public_only: Clients,
}

/// Clients that connect to the same addresses.
#[derive(Default)]
struct Clients {
    following: OnceLock<Client>,
    staying: OnceLock<Client>,
}

impl Outbound {
    pub fn new(private_endpoints: PrivateEndpoints, network: &Network) -> Self {
        Self {
            private_endpoints,
            internal: network.internal.clone(),
            anywhere: Clients::default(),
            public_only: Clients::default(),
        }
    }

    /// A client for calls to this address. It refuses addresses that are forbidden when it
    /// connects.
    pub fn client(&self, url: &Url, trust: Trust) -> Result<&Client, OutboundError> {
        self.client_with(url, trust, Redirects::Follow)
    }

    /// The same, for calls that follow redirects or do not.
    pub fn client_with(
        &self,
        url: &Url,
        trust: Trust,
        redirects: Redirects,
    ) -> Result<&Client, OutboundError> {
        let private = self.may_be_private(trust);
        let guard = Guard::new(private, self.internal.clone());
        // A literal address is never looked up, so the resolver does not see it.
        if !guard.allows_url(url) {
            return Err(OutboundError::Forbidden);
        }
        let clients = if private {
            &self.anywhere
        } else {
            &self.public_only
        };
        let slot = match redirects {
            Redirects::Follow => &clients.following,
            Redirects::Stay => &clients.staying,
        };
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        let made = guard
            .client(
                concat!("sc-chatroom/", env!("CARGO_PKG_VERSION")),
                redirects,
            )
            .map_err(|error| OutboundError::Client(error.to_string()))?;
        Ok(slot.get_or_init(|| made))
    }

    fn may_be_private(&self, trust: Trust) -> bool {
        match (trust, self.private_endpoints) {
            (Trust::Operator, _) | (_, PrivateEndpoints::All) => true,
            (Trust::User, PrivateEndpoints::Trusted) => true,
            (Trust::Stranger, PrivateEndpoints::Trusted) | (_, PrivateEndpoints::None) => false,
        }
    }
}

/// Where an agent takes messages.
pub fn chat_stream(endpoint: &str) -> Result<Url, OutboundError> {
    let mut url: Url = endpoint.parse().map_err(|_| OutboundError::NoAddress)?;
    let path = format!("{}/chat/stream", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}

/// What went wrong with a call, in words that hold no address and no key.
pub fn in_words(error: &reqwest::Error) -> String {
    if error.is_connect() {
        NO_CONNECTION.to_owned()
    } else if error.is_timeout() {
        "the agent's endpoint took too long".to_owned()
    } else if error.is_body() || error.is_decode() {
        "the answer broke off".to_owned()
    } else {
        "the call failed".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client_for(url: &str, trust: Trust, setting: PrivateEndpoints) -> Result<(), String> {
        let outbound = Outbound::new(setting, &Network::default());
        let url: Url = url.parse().unwrap();
        outbound
            .client(&url, trust)
            .map(drop)
            .map_err(|e| e.to_string())
    }

    /// However an address is spelled, it is the address.
    #[test]
    fn a_stranger_cannot_name_a_private_address_in_any_spelling() {
        for url in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://127.0.0.1./",
            "http://0.0.0.0/",
            "http://0/",
            "http://10.1.2.3/",
            "http://172.16.0.1/",
            "http://192.168.1.1/",
            "http://100.64.0.1/",
            "http://169.254.169.254/latest/meta-data/",
            "http://[::1]/",
            "http://[::]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:a9fe:a9fe]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:7f00:1::]/",
            "http://[fe80::1]/",
            "http://[fc00::1]/",
        ] {
            let refused = client_for(url, Trust::Stranger, PrivateEndpoints::Trusted);
            assert!(refused.is_err(), "{url}");
        }
        client_for(
            "http://203.0.114.9/",
            Trust::Stranger,
            PrivateEndpoints::Trusted,
        )
        .unwrap();
    }

    #[test]
    fn who_may_be_private_is_a_setting() {
        use PrivateEndpoints::{All, None, Trusted};
        let at = |trust, setting| client_for("http://10.0.0.1/", trust, setting).is_ok();
        assert!(at(Trust::User, Trusted) && at(Trust::Stranger, All));
        assert!(!at(Trust::Stranger, Trusted) && !at(Trust::User, None));
        assert!(at(Trust::Operator, None));
    }

    #[test]
    fn nobody_reaches_the_metadata_address() {
        for trust in [Trust::Operator, Trust::User, Trust::Stranger] {
            assert!(client_for("http://169.254.169.254/", trust, PrivateEndpoints::All).is_err());
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_inside_looks_like_one_that_leads_nowhere() {
        let outbound = Outbound::new(PrivateEndpoints::Trusted, &Network::default());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["localhost", "no-such-name.invalid"] {
            let url: Url = format!("http://{host}:{port}/").parse().unwrap();
            let client = outbound.client(&url, Trust::Stranger).unwrap();
            let error = client.post(url).send().await.unwrap_err();
            assert_eq!(in_words(&error), NO_CONNECTION, "{host}: {error:?}");
        }
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "nobody has connected");
    }

    #[test]
    fn the_path_is_added_to_the_endpoint() {
        for (endpoint, called) in [
            ("http://a.example", "http://a.example/chat/stream"),
            ("http://a.example/", "http://a.example/chat/stream"),
            (
                "https://a.example:8/x/",
                "https://a.example:8/x/chat/stream",
            ),
        ] {
            assert_eq!(chat_stream(endpoint).unwrap().as_str(), called);
        }
    }
}
