//! Calls on behalf of somebody else: to an agent's endpoint, to an address for notifications, to what a
//! card names. The address that a call connects to is checked here, after DNS and for every redirect, so
//! that nobody can point a program at a network it guards.

mod address;

use address::Kind;
use ipnet::IpNet;
use reqwest::{
    Client, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect::{Attempt, Policy},
};
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const IDLE_CONNECTION: Duration = Duration::from_secs(30);
const MOST_REDIRECTS: usize = 3;

/// Decides which addresses may be connected to.
#[derive(Clone)]
pub struct Guard {
    private: bool,
    internal: Arc<[IpNet]>,
}

/// What a call does about an answer that points elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// It goes on, within the same host.
    Follow,
    /// It takes it for an answer like any other.
    Stay,
}

impl Guard {
    /// For private addresses too, or for public ones alone; those of these networks are not public.
    pub fn new(private: bool, internal: Vec<IpNet>) -> Self {
        Self {
            private,
            internal: internal.into(),
        }
    }

    fn allows(&self, ip: IpAddr) -> bool {
        match address::kind(ip) {
            Kind::Never => false,
            Kind::Private => self.private,
            Kind::Public => self.private || !self.internal.iter().any(|net| net.contains(&ip)),
        }
    }

    /// Whether an address may be called, as far as it can be told: a name is looked at when it is
    /// connected to.
    pub fn allows_url(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(ip) => self.allows(ip),
            Err(_) => true,
        }
    }

    /// A client that connects to what is allowed and to nothing else. Ask [`Guard::allows_url`] first: an
    /// address that is written as numbers is never looked up.
    pub fn client(&self, user_agent: &str, redirects: Redirects) -> reqwest::Result<Client> {
        let guard = self.clone();
        let policy = match redirects {
            Redirects::Follow => Policy::custom(move |attempt| guard.follow(attempt)),
            Redirects::Stay => Policy::none(),
        };
        Client::builder()
            // A proxy would connect on our behalf, past every check.
            .no_proxy()
            .dns_resolver(Arc::new(self.clone()))
            .redirect(policy)
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_CONNECTION)
            .tcp_nodelay(true)
            .user_agent(user_agent)
            .build()
    }

    /// Follows a redirect within the same host, never to another and never out of TLS: the
    /// bearer goes along.
    fn follow(&self, attempt: Attempt<'_>) -> reqwest::redirect::Action {
        let next = attempt.url();
        let stays = attempt.previous().last().is_some_and(|before| {
            let same_place = before.scheme() == next.scheme()
                && before.port_or_known_default() == next.port_or_known_default();
            let into_tls = before.scheme() == "http" && next.scheme() == "https";
            before.host_str() == next.host_str() && (same_place || into_tls)
        });
        let few = attempt.previous().len() <= MOST_REDIRECTS;
        if stays && few && self.allows_url(next) {
            attempt.follow()
        } else {
            attempt.stop()
        }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let (allowed, forbidden): (Vec<SocketAddr>, Vec<SocketAddr>) =
                found.partition(|address| guard.allows(address.ip()));
            if let Some(address) = forbidden.first() {
                tracing::debug!(address = %address.ip(), "an endpoint's name leads to an address that is not called");
            }
            // No address at all is what a name that does not exist comes to as well.
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}
