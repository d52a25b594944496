//! Where a request comes from.

use crate::config::Network;
use axum::http::{HeaderMap, Request};
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

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
        let peer = peer.to_canonical();
        let at = |ip| Self {
            ip,
            internal: contains(&network.internal, ip),
        };
        if !contains(&network.trusted_proxies, peer) {
            return at(peer);
        }
        let seen = |hops: Vec<Hop>| match nearest(peer, &hops, &network.trusted_proxies) {
            Ok(ip) => at(ip),
            Err(last_known) => Self {
                ip: last_known,
                internal: false,
            },
        };
        let by_list = x_forwarded_for(headers).map(seen);
        let by_standard = forwarded(headers).map(seen);
        match (by_list, by_standard) {
            (None, None) => at(peer),
            (Some(one), None) | (None, Some(one)) => one,
            // A proxy writes one of them and may pass on what the caller wrote into the other.
            (Some(list), Some(standard)) => Self {
                ip: list.ip,
                internal: list.internal && standard.internal,
            },
        }
    }
}

/// One address on the way, or nothing where it cannot be read.
type Hop = Option<IpAddr>;

fn contains(nets: &[IpNet], ip: IpAddr) -> bool {
    nets.iter().any(|net| net.contains(&ip))
}

/// The nearest address that is no proxy; where one on the way cannot be read, the last that could.
fn nearest(peer: IpAddr, hops: &[Hop], proxies: &[IpNet]) -> Result<IpAddr, IpAddr> {
    let mut ip = peer;
    for hop in hops.iter().rev() {
        ip = hop.ok_or(ip)?.to_canonical();
        if !contains(proxies, ip) {
            break;
        }
    }
    Ok(ip)
}

/// The addresses of `X-Forwarded-For`, if it is there.
fn x_forwarded_for(headers: &HeaderMap) -> Option<Vec<Hop>> {
    hops(headers, "x-forwarded-for", |element| Some(element.trim()))
}

/// The addresses of RFC 7239's `Forwarded`, if it is there.
fn forwarded(headers: &HeaderMap) -> Option<Vec<Hop>> {
    hops(headers, "forwarded", |element| {
        element.split(';').find_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            name.trim()
                .eq_ignore_ascii_case("for")
                .then(|| value.trim().trim_matches('"'))
        })
    })
}

fn hops(headers: &HeaderMap, name: &str, find: impl Fn(&str) -> Option<&str>) -> Option<Vec<Hop>> {
    let mut hops = Vec::new();
    for value in headers.get_all(name) {
        match value.to_str() {
            Ok(list) => hops.extend(list.split(',').map(|element| address(find(element)?))),
            Err(_) => hops.push(None),
        }
    }
    (!hops.is_empty()).then_some(hops)
}

/// An address as proxies write them: with or without a port, IPv6 with or without brackets.
fn address(text: &str) -> Hop {
    let bracketed = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    bracketed
        .unwrap_or(text)
        .parse()
        .ok()
        .or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn origin(peer: &str, forwarded: &[&str], proxies: &[&str]) -> Origin {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
            headers.append("x-forwarded-for", value);
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
    fn an_address_that_cannot_be_read_is_outside() {
        for rubbish in [
            "unknown",
            "",
            " ",
            "_hidden",
            "127.0.0.1, ",
            "10.0.0.1;",
            "fe80::1%eth0",
            "127.0.0.1:x",
            "\u{e9}",
            "localhost",
            "127.1",
            "[::1",
            "for=127.0.0.1",
        ] {
            let seen = origin("10.0.0.2", &[rubbish], &["10.0.0.2/32"]);
            assert!(!seen.internal, "{rubbish:?}");
            assert_eq!(seen.ip.to_string(), "10.0.0.2", "{rubbish:?}");
        }
        // Only what a caller wrote stands to the left of what a proxy wrote.
        let seen = origin("10.0.0.2", &["unknown, 10.0.0.9"], &["10.0.0.2/32"]);
        assert!(seen.internal);
    }

    #[test]
    fn an_address_may_have_a_port_and_brackets() {
        for (written, is) in [
            ("203.0.113.9:4711", "203.0.113.9"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("::ffff:203.0.113.9", "203.0.113.9"),
        ] {
            let seen = origin("10.0.0.2", &[written], &["10.0.0.2/32"]);
            assert_eq!((seen.ip.to_string().as_str(), seen.internal), (is, false));
        }
    }

    #[test]
    fn the_standard_header_counts_and_neither_outdoes_the_other() {
        let seen = |list: &[&str], standard: &[&str]| {
            let mut headers = HeaderMap::new();
            for (name, values) in [("x-forwarded-for", list), ("forwarded", standard)] {
                for value in values {
                    headers.append(name, value.parse().unwrap());
                }
            }
            let network = Network {
                trusted_proxies: vec!["10.0.0.2/32".parse().unwrap()],
                ..Network::default()
            };
            Origin::of("10.0.0.2".parse().unwrap(), &headers, &network)
        };
        let outside = seen(
            &[],
            &[r#"for=127.0.0.1, For="[2001:db8::1]:80";proto=https"#],
        );
        assert_eq!(outside.ip.to_string(), "2001:db8::1");
        assert!(!outside.internal);
        assert!(seen(&[], &["by=10.0.0.2;for=10.0.0.9"]).internal);
        assert!(!seen(&[], &["proto=https"]).internal);
        assert!(!seen(&["10.0.0.9"], &["for=203.0.113.9"]).internal);
        assert!(!seen(&["203.0.113.9"], &["for=10.0.0.9"]).internal);
        assert!(seen(&["10.0.0.9"], &["for=10.0.0.9"]).internal);
    }

    #[test]
    fn a_mapped_address_is_the_address() {
        assert!(origin("::ffff:127.0.0.1", &[], &[]).internal);
    }
}
