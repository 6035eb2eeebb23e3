//! How an address can be written.

use std::net::{Ipv4Addr, Ipv6Addr};

/// An address that anyone may have; nothing is ever sent to it, as it never stands alone.
pub(crate) const PUBLIC: &str = "93.184.216.34";

/// Addresses that no setting permits.
pub(crate) const SPECIAL_V4: &[&str] = &[
    "169.254.169.254",
    "169.254.170.2",
    "0.0.0.0",
    "100.64.0.1",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
];

/// Addresses that only the setting for private networks permits.
const PRIVATE_V4: &[&str] = &[
    "127.0.0.1",
    "127.0.0.53",
    "127.255.255.254",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.254",
    "192.168.1.1",
];

/// Addresses of IPv6 that hold none of IPv4.
pub(crate) const FORBIDDEN_V6: &[&str] = &[
    "::1",
    "0:0:0:0:0:0:0:1",
    "0000:0000:0000:0000:0000:0000:0000:0001",
    "::0001",
    "0::1",
    "::",
    "0::0",
    "fc00::1",
    "fd12:3456:789a::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fe80::1",
    "febf:ffff::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "100::1",
    "2001::1",
    "2001:2::1",
    "2001:db8::1",
    "3fff::1",
    "5f00::1",
];

pub(crate) fn forbidden_v4() -> Vec<Ipv4Addr> {
    let all = PRIVATE_V4.iter().chain(SPECIAL_V4);
    all.map(|text| text.parse().expect("an address")).collect()
}

/// The host of a URL that means this address, to one reader of URLs or another.
pub(crate) fn literals(address: Ipv4Addr) -> Vec<String> {
    let [a, b, c, d] = address.octets();
    let bits = address.to_bits();
    let low = bits & 0xff_ffff;
    let dotted = address.to_string();
    let each = |digit: fn(char) -> String| dotted.chars().map(digit).collect::<String>();
    vec![
        dotted.clone(),
        format!("{dotted}."),
        format!("{bits}"),
        format!("0x{bits:x}"),
        format!("0X{bits:08X}"),
        format!("0{bits:o}"),
        format!("000{bits:o}"),
        format!("{a}.{low}"),
        format!("{a}.{b}.{}", low & 0xffff),
        format!("0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("00{a:o}.{b}.0x{c:x}.{d}"),
        format!("0x{a:x}.{low}"),
        each(|c| match c.to_digit(10) {
            Some(digit) => char::from_u32(0xff10 + digit).map_or_else(String::new, String::from),
            None => ".".to_owned(),
        }),
        each(|c| if c == '.' { "\u{3002}".to_owned() } else { c.to_string() }),
        each(|c| if c == '.' { "\u{ff0e}".to_owned() } else { c.to_string() }),
        each(|c| format!("%{:02x}", u32::from(c))),
        each(|c| if c == '.' { "%2E".to_owned() } else { c.to_string() }),
        format!("api.vendor.example@{dotted}"),
        format!("api.vendor.example:443@{dotted}"),
    ]
}

/// Addresses of IPv6 that carry one of IPv4.
pub(crate) fn carrying(four: Ipv4Addr) -> Vec<String> {
    let bits = four.to_bits();
    let (high, low) = ((bits >> 16) as u16, bits as u16);
    let six =
        |[a, b, c, d, e, f, g, h]: [u16; 8]| Ipv6Addr::new(a, b, c, d, e, f, g, h).to_string();
    vec![
        format!("::ffff:{four}"),
        format!("::ffff:{high:x}:{low:x}"),
        format!("0:0:0:0:0:ffff:{high:04x}:{low:04x}"),
        format!("::{four}"),
        format!("::ffff:0:{four}"),
        format!("64:ff9b::{four}"),
        format!("64:ff9b:1::{four}"),
        six([0x64, 0xff9b, 1, high, low, 0, 0, 0]),
        six([0x2002, high, low, 0, 0, 0, 0, 1]),
        six([0x2001, 0, 0x4136, 0xe378, 0x8000, 0x63bf, !high, !low]),
        six([0x2606, 0x4700, 0, 0, 0, 0x5efe, high, low]),
        six([0x2606, 0x4700, 0, 0, 0x200, 0x5efe, high, low]),
    ]
}

/// Names that mean this machine, by themselves or to a name service that plays along.
pub(crate) fn names() -> impl Iterator<Item = String> {
    let own = [
        "localhost",
        "LOCALHOST",
        "localhost.",
        "api.localhost",
        "localhost.localdomain",
        "ip6-localhost",
        "127.0.0.1.nip.io",
        "7f000001.nip.io",
        "localtest.me",
        "metadata.google.internal",
        "instance-data",
        "\u{24db}ocalhost",
        "loc\u{ad}alhost",
    ];
    own.into_iter().map(str::to_owned)
}
