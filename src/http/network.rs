//! Whom an address stands for, where peers are counted.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// One IPv4 address, or the 64 bits of an IPv6 address that a host cannot choose: it has all addresses below them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Network(IpAddr);

impl Network {
    pub(super) fn of(address: IpAddr) -> Self {
        const HOST_BITS: u32 = 64;
        Self(match address.to_canonical() {
            IpAddr::V6(address) if !address.is_loopback() => {
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> HOST_BITS << HOST_BITS))
            }
            other @ (IpAddr::V4(_) | IpAddr::V6(_)) => other,
        })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_does_not_become_many_by_its_addresses() {
        let of = |text: &str| Network::of(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
        assert_eq!(of("::1"), Network("::1".parse().unwrap()));
    }
}
