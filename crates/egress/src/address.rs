//! What sort of network an address belongs to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What sort of network an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The internet.
    Public,
    /// This machine, or somebody's own network.
    Private,
    /// Nobody's agent: link-local addresses, among them those where clouds give out credentials,
    /// and addresses that are no single machine's.
    Never,
}

/// The sort of an address, however it is wrapped.
pub fn kind(ip: IpAddr) -> Kind {
    match ip {
        IpAddr::V4(ip) => kind_v4(ip),
        IpAddr::V6(ip) => match embedded(ip) {
            Some(ip) => kind_v4(ip),
            None => kind_v6(ip),
        },
    }
}

fn kind_v4(ip: Ipv4Addr) -> Kind {
    match ip.octets() {
        [0, ..] | [169, 254, ..] | [224..=255, ..] => Kind::Never,
        // For documentation, for measurements, and for protocols.
        [192, 0, 0 | 2, _] | [198, 51, 100, _] | [203, 0, 113, _] | [198, 18 | 19, ..] => {
            Kind::Private
        }
        // Carriers' networks behind one address.
        [100, 64..=127, ..] => Kind::Private,
        _ if ip.is_private() || ip.is_loopback() => Kind::Private,
        _ => Kind::Public,
    }
}

fn kind_v6(ip: Ipv6Addr) -> Kind {
    match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Kind::Never,
        [0, 0, 0, 0, 0, 0, 0, 1] => Kind::Private,
        [0xfe80..=0xfebf, ..] | [0xff00..=0xffff, ..] => Kind::Never,
        // Tunnels and documentation.
        [0x2001, 0 | 0xdb8, ..] => Kind::Private,
        [0x2000..=0x3fff, ..] => Kind::Public,
        _ => Kind::Private,
    }
}

/// The IPv4 address that an IPv6 address stands for: mapped, compatible, or behind a translator.
fn embedded(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let join = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        Ipv4Addr::new(a, b, c, d)
    };
    match ip.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(join(high, low))
        }
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => Some(join(high, low)),
        [0x2002, high, low, ..] => Some(join(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(text: &str) -> Kind {
        kind(text.parse().unwrap())
    }

    #[test]
    fn addresses_of_the_internet_are_public() {
        for ip in ["1.1.1.1", "100.128.0.1", "172.32.0.1", "2606:4700::1111"] {
            assert_eq!(kind_of(ip), Kind::Public, "{ip}");
        }
    }

    #[test]
    fn a_wrapped_address_is_what_it_wraps() {
        for (ip, is) in [
            ("::ffff:10.0.0.1", Kind::Private),
            ("::ffff:1.1.1.1", Kind::Public),
            ("::ffff:169.254.169.254", Kind::Never),
            ("::127.0.0.1", Kind::Private),
            ("64:ff9b::a00:1", Kind::Private),
            ("2002:a9fe:a9fe::", Kind::Never),
        ] {
            assert_eq!(kind_of(ip), is, "{ip}");
        }
    }

    #[test]
    fn what_is_nobodys_machine_is_never_called() {
        for ip in [
            "0.0.0.0",
            "0.1.2.3",
            "255.255.255.255",
            "224.0.0.1",
            "::",
            "ff02::1",
            "fe80::1",
        ] {
            assert_eq!(kind_of(ip), Kind::Never, "{ip}");
        }
    }

    #[test]
    fn own_networks_are_private() {
        for ip in [
            "127.9.9.9",
            "10.0.0.1",
            "100.64.0.1",
            "198.18.0.1",
            "::1",
            "fd00::1",
            "64:ff9b:1::1",
            "2001::1",
        ] {
            assert_eq!(kind_of(ip), Kind::Private, "{ip}");
        }
    }
}
