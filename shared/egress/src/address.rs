//! Which addresses are public: the IANA special-purpose registries as a table.
//!
//! The standard library's own idea of a global address is unstable and differs from the registries, so the table
//! stands here. IPv6 forms that carry an IPv4 address (NAT64, 6to4, Teredo, ISATAP, IPv4-compatible) are refused
//! whatever they carry; only an IPv4-mapped address is judged by what is in it, because a connection to it really is
//! a connection to that IPv4 address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Anyone's: the public internet.
    Public,
    /// This machine.
    Loopback,
    /// A private network (RFC 1918, unique-local).
    Private,
    /// Never a target: link-local (cloud metadata), multicast, reserved, IPv4 hidden in IPv6.
    Special,
}

/// An entry of the table: a block, its class, and its name in the registry.
struct Block<A> {
    base: A,
    bits: u32,
    class: Class,
    name: &'static str,
}

const fn v4(base: [u8; 4], bits: u32, class: Class, name: &'static str) -> Block<u32> {
    Block { base: u32::from_be_bytes(base), bits, class, name }
}

const fn v6(base: [u16; 8], bits: u32, class: Class, name: &'static str) -> Block<u128> {
    let [a, b, c, d, e, f, g, h] = base;
    Block { base: Ipv6Addr::new(a, b, c, d, e, f, g, h).to_bits(), bits, class, name }
}

use Class::{Loopback, Private, Public, Special};

/// The IPv4 registry, and multicast. Public entries stand here only where a block around them is not.
const V4: &[Block<u32>] = &[
    v4([0, 0, 0, 0], 8, Special, "this network"),
    v4([10, 0, 0, 0], 8, Private, "private use"),
    v4([100, 64, 0, 0], 10, Special, "shared address space"),
    v4([127, 0, 0, 0], 8, Loopback, "loopback"),
    v4([169, 254, 0, 0], 16, Special, "link-local"),
    v4([172, 16, 0, 0], 12, Private, "private use"),
    v4([192, 0, 0, 0], 24, Special, "protocol assignments"),
    v4([192, 0, 0, 9], 32, Public, "port control protocol anycast"),
    v4([192, 0, 0, 10], 32, Public, "relay anycast"),
    v4([192, 0, 2, 0], 24, Special, "documentation"),
    v4([192, 88, 99, 0], 24, Special, "6to4 relay anycast"),
    v4([192, 168, 0, 0], 16, Private, "private use"),
    v4([198, 18, 0, 0], 15, Special, "benchmarking"),
    v4([198, 51, 100, 0], 24, Special, "documentation"),
    v4([203, 0, 113, 0], 24, Special, "documentation"),
    v4([224, 0, 0, 0], 4, Special, "multicast"),
    v4([240, 0, 0, 0], 4, Special, "reserved"),
    v4([255, 255, 255, 255], 32, Special, "broadcast"),
];

/// The IPv6 registry, multicast, deprecated forms, and the metadata services inside the private range.
const V6: &[Block<u128>] = &[
    v6([0, 0, 0, 0, 0, 0, 0, 0], 96, Special, "IPv4-compatible"),
    v6([0, 0, 0, 0, 0, 0, 0, 0], 128, Special, "unspecified"),
    v6([0, 0, 0, 0, 0, 0, 0, 1], 128, Loopback, "loopback"),
    v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96, Special, "IPv4-translated"),
    v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, Special, "NAT64"),
    v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, Special, "NAT64 of local use"),
    v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64, Special, "discard only"),
    v6([0x100, 0, 0, 1, 0, 0, 0, 0], 64, Special, "dummy prefix"),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, Special, "protocol assignments"),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, Special, "Teredo"),
    v6([0x2001, 1, 0, 0, 0, 0, 0, 1], 128, Public, "port control protocol anycast"),
    v6([0x2001, 1, 0, 0, 0, 0, 0, 2], 128, Public, "relay anycast"),
    v6([0x2001, 1, 0, 0, 0, 0, 0, 3], 128, Public, "service registration anycast"),
    v6([0x2001, 2, 0, 0, 0, 0, 0, 0], 48, Special, "benchmarking"),
    v6([0x2001, 3, 0, 0, 0, 0, 0, 0], 32, Public, "multicast tunnelling"),
    v6([0x2001, 4, 0x112, 0, 0, 0, 0, 0], 48, Public, "AS112"),
    v6([0x2001, 0x20, 0, 0, 0, 0, 0, 0], 28, Public, "ORCHIDv2"),
    v6([0x2001, 0x30, 0, 0, 0, 0, 0, 0], 28, Public, "drone remote id"),
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, Special, "documentation"),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, Special, "6to4"),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, Special, "documentation"),
    v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16, Special, "segment routing"),
    v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, Private, "unique-local"),
    v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0], 32, Special, "cloud metadata"),
    v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128, Special, "cloud metadata"),
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, Special, "link-local"),
    v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, Special, "site-local"),
    v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, Special, "multicast"),
];

/// What an address is for, and the name of the block that says so (empty for an ordinary public address).
pub fn classify(address: IpAddr) -> (Class, &'static str) {
    match address.to_canonical() {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

fn classify_v4(address: Ipv4Addr) -> (Class, &'static str) {
    let bits = address.to_bits();
    let inside = V4.iter().filter(|block| (bits ^ block.base).leading_zeros() >= block.bits);
    narrowest(inside)
}

fn classify_v6(address: Ipv6Addr) -> (Class, &'static str) {
    // ISATAP is known by its interface id and may stand in any network.
    if let [_, _, _, _, 0 | 0x200, 0x5efe, _, _] = address.segments() {
        return (Special, "ISATAP");
    }
    let bits = address.to_bits();
    let inside = V6.iter().filter(|block| (bits ^ block.base).leading_zeros() >= block.bits);
    narrowest(inside)
}

fn narrowest<A: 'static>(blocks: impl Iterator<Item = &'static Block<A>>) -> (Class, &'static str) {
    blocks.max_by_key(|block| block.bits).map_or((Public, ""), |block| (block.class, block.name))
}

/// Whether a connection to `address` is permitted; where not, the error is the name of the block it lies in.
pub fn permit(address: IpAddr, allow_private_networks: bool) -> Result<(), &'static str> {
    match classify(address) {
        (Public, _) => Ok(()),
        (Loopback | Private, _) if allow_private_networks => Ok(()),
        (_, name) => Err(name),
    }
}

/// Whether `address` is this machine's, also as an IPv4-mapped one.
pub fn is_loopback(address: IpAddr) -> bool {
    classify(address).0 == Loopback
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(address: &str, expected: Class) {
        let address = address.parse().unwrap();
        assert_eq!(classify(address).0, expected, "{address}");
        let strict = permit(address, false).is_ok();
        let private = permit(address, true).is_ok();
        assert_eq!(strict, expected == Public, "{address} without private networks");
        assert_eq!(private, expected != Special, "{address} with private networks");
    }

    #[test]
    fn ordinary_addresses_are_public() {
        check("8.8.8.8", Public);
        check("1.0.0.0", Public);
        check("2606:4700:4700::1111", Public);
        check("::ffff:8.8.8.8", Public);
    }

    #[test]
    fn blocks_end_where_the_registry_says() {
        check("9.255.255.255", Public);
        check("10.0.0.0", Private);
        check("10.255.255.255", Private);
        check("11.0.0.0", Public);
        check("172.15.255.255", Public);
        check("172.16.0.0", Private);
        check("172.31.255.255", Private);
        check("172.32.0.0", Public);
        check("100.63.255.255", Public);
        check("100.64.0.0", Special);
        check("100.127.255.255", Special);
        check("100.128.0.0", Public);
        check("fbff:ffff::", Public);
        check("fc00::", Private);
        check("fdff:ffff::1", Private);
        check("fe00::", Public);
        check("fe80::", Special);
        check("febf::1", Special);
    }

    #[test]
    fn metadata_is_never_reached() {
        check("169.254.169.254", Special);
        check("169.254.170.2", Special);
        check("::ffff:169.254.169.254", Special);
        check("fd00:ec2::254", Special);
        check("fd20:ce::254", Special);
    }

    #[test]
    fn nowhere_and_everyone_are_never_reached() {
        check("0.0.0.0", Special);
        check("255.255.255.255", Special);
        check("224.0.0.1", Special);
        check("::", Special);
        check("ff02::1", Special);
    }

    #[test]
    fn ipv4_inside_ipv6_is_refused_or_judged_by_what_it_is() {
        check("::ffff:127.0.0.1", Loopback);
        check("::ffff:10.0.0.1", Private);
        check("::127.0.0.1", Special);
        check("::8.8.8.8", Special);
        check("::ffff:0:127.0.0.1", Special);
        check("64:ff9b::a9fe:a9fe", Special);
        check("64:ff9b::808:808", Special);
        check("64:ff9b:1::7f00:1", Special);
        check("64:ff9b:1:ffff::1", Special);
        check("64:ff9b:2::1", Public);
        check("2002:7f00:1::", Special);
        check("2001:0:4136:e378:8000:63bf:80ff:fffe", Special);
        check("2606:4700::5efe:7f00:1", Special);
        check("2606:4700::200:5efe:7f00:1", Special);
    }

    #[test]
    fn narrower_block_wins() {
        check("192.0.0.8", Special);
        check("192.0.0.9", Public);
        check("192.0.0.10", Public);
        check("192.0.0.11", Special);
        check("2001:1::3", Public);
        check("2001:1::4", Special);
        check("2001:20::", Public);
        check("2001:200::", Public);
        check("::1", Loopback);
        check("::2", Special);
    }
}
