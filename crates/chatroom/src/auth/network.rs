//! Where a request comes from.

use crate::config::Network;
use axum::http::{HeaderMap, Request};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address at the other end of the connection.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// Where a request comes from, proxies seen through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    pub ip: IpAddr,
    /// Whether that is on the operator's own networks.
    pub internal: bool,
}

/// The part of an address that all of one customer's have in common.
pub fn one_customer(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

impl Network {
    /// Whether the address is a proxy's whose word counts.
    pub fn is_trusted_proxy(&self, ip: &IpAddr) -> bool {
        self.trusted_proxies.iter().any(|net| net.contains(ip))
    }
}

impl Origin {
    /// Where this request comes from.
    pub fn of_request<B>(request: &Request<B>, network: &Network) -> Self {
        let peer = request.extensions().get::<Peer>();
        let peer = peer.map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.0);
        Self::of(peer, request.headers(), network)
    }

    /// What counts as one address: all that one customer of a provider gets, which is an IPv4
    /// address or an IPv6 /64.
    pub fn network(&self) -> IpAddr {
        one_customer(self.ip)
    }

    /// The nearest address that is no proxy of ours. What a proxy did not add itself could be
    /// anybody's invention, so the list is read from its end.
    pub fn of(peer: IpAddr, headers: &HeaderMap, network: &Network) -> Self {
        let is_proxy = |ip: &IpAddr| network.trusted_proxies.iter().any(|net| net.contains(ip));
        let mut ip = peer.to_canonical();
        if is_proxy(&ip) {
            let forwarded = headers.get_all("x-forwarded-for");
            let hops: Vec<&str> = forwarded
                .iter()
                .filter_map(|value| value.to_str().ok())
                .flat_map(|list| list.split(','))
                .map(str::trim)
                .collect();
            for hop in hops.iter().rev() {
                let Ok(hop) = hop.parse::<IpAddr>() else {
                    break;
                };
                ip = hop.to_canonical();
                if !is_proxy(&ip) {
                    break;
                }
            }
        }
        Self {
            ip,
            internal: network.internal.iter().any(|net| net.contains(&ip)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(peer: &str, forwarded: &[&str], proxies: &[&str]) -> Origin {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        let network = Network {
            trusted_proxies: proxies.iter().map(|net| net.parse().unwrap()).collect(),
            ..Network::default()
        };
        Origin::of(peer.parse().unwrap(), &headers, &network)
    }

    #[test]
    fn a_forwarded_address_counts_only_from_a_trusted_proxy() {
        assert_eq!(
            origin("203.0.113.9", &["10.0.0.1"], &[]).ip.to_string(),
            "203.0.113.9"
        );
        assert!(!origin("203.0.113.9", &["10.0.0.1"], &[]).internal);
        let seen = origin("10.0.0.2", &["203.0.113.9"], &["10.0.0.2/32"]);
        assert_eq!(seen.ip.to_string(), "203.0.113.9");
        assert!(!seen.internal);
    }

    #[test]
    fn a_caller_cannot_put_a_better_address_in_front() {
        let seen = origin("10.0.0.2", &["127.0.0.1, 203.0.113.9"], &["10.0.0.2/32"]);
        assert_eq!(seen.ip.to_string(), "203.0.113.9");
        let seen = origin(
            "10.0.0.2",
            &["127.0.0.1", "203.0.113.9, 10.0.0.3"],
            &["10.0.0.2/31", "10.0.0.3/32"],
        );
        assert_eq!(seen.ip.to_string(), "203.0.113.9");
    }

    #[test]
    fn rubbish_in_the_header_leaves_the_proxy_as_the_caller() {
        let seen = origin("10.0.0.2", &["unknown"], &["10.0.0.2/32"]);
        assert_eq!(seen.ip.to_string(), "10.0.0.2");
    }

    #[test]
    fn a_mapped_address_is_the_address() {
        assert!(origin("::ffff:127.0.0.1", &[], &[]).internal);
    }
}
