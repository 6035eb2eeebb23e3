//! Which URLs may be called: their form, and the addresses written in them.
//!
//! The URL is read by a WHATWG parser, which knows every spelling of an address (`2130706433`, `0177.0.0.1`, `127.1`,
//! fullwidth digits). What the parser quietly repairs and a person would read differently is refused before it.

use std::net::IpAddr;

use http::Uri;
use url::{Host, Url};

use crate::{address, url_rules};

/// Longest URL, in characters.
pub const URL_CHARS_MAX: usize = url_rules::URL_CHARS_MAX;

/// Why a URL is not called. The text is for whoever registers it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetRefusal {
    /// More than [`URL_CHARS_MAX`] characters.
    #[error("url is longer than {URL_CHARS_MAX} characters")]
    TooLong,
    /// No URL, or one that parsers disagree about.
    #[error("url is not valid: {0}")]
    NotValid(&'static str),
    /// Neither `https` nor `http`.
    #[error("url must start with https://")]
    Scheme,
    /// `http` where TLS is a must (LC-011).
    #[error(
        "url must start with https://: plain http is for loopback with private networks allowed"
    )]
    PlainHttp,
    /// A user name or a password in the URL.
    #[error("url must not contain credentials")]
    Credentials,
    /// A port of another protocol.
    #[error("port {0} is not permitted")]
    Port(u16),
    /// An address that is not public.
    #[error("address {address} is not permitted ({name})")]
    Address {
        /// As the URL's parser understood it.
        address: IpAddr,
        /// The block it lies in.
        name: &'static str,
    },
}

/// Reads `url` and checks it. What comes back can be sent to, if its name resolves to permitted addresses.
///
/// Credentials are refused, the fragment is dropped, the query stays as written, with characters that HTTP cannot
/// carry percent-encoded.
pub fn parse(url: &str, allow_private_networks: bool) -> Result<Uri, TargetRefusal> {
    if url.chars().take(URL_CHARS_MAX + 1).count() > URL_CHARS_MAX {
        return Err(TargetRefusal::TooLong);
    }
    check_text(url)?;
    let parsed = Url::parse(url).map_err(|error| TargetRefusal::NotValid(form_fault(error)))?;
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(TargetRefusal::Credentials);
    }
    let loopback = check_host(&parsed, allow_private_networks)? && allow_private_networks;
    if parsed.scheme() == "http" && !loopback {
        return Err(TargetRefusal::PlainHttp);
    }
    let port = parsed.port_or_known_default().unwrap_or(0);
    if url_rules::is_bad_port(port) && !loopback {
        return Err(TargetRefusal::Port(port));
    }
    to_uri(url, &parsed)
}

/// What a WHATWG parser would repair, and would so hide.
fn check_text(url: &str) -> Result<(), TargetRefusal> {
    if url.chars().any(|c| c.is_ascii_control()) {
        return Err(TargetRefusal::NotValid("it contains a control character"));
    }
    if url.starts_with(' ') || url.ends_with(' ') {
        return Err(TargetRefusal::NotValid("it starts or ends with a space"));
    }
    let (scheme, rest) = url.split_once(':').ok_or(TargetRefusal::Scheme)?;
    if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
        return Err(TargetRefusal::Scheme);
    }
    let rest =
        rest.strip_prefix("//").ok_or(TargetRefusal::NotValid("// must follow the scheme"))?;
    if rest.starts_with('/') {
        return Err(TargetRefusal::NotValid("it has no host"));
    }
    let before_query = rest.split(['?', '#']).next().unwrap_or_default();
    match before_query.contains('\\') {
        true => Err(TargetRefusal::NotValid("it contains a backslash")),
        false => Ok(()),
    }
}

/// Checks the host; whether it is this machine by its spelling alone.
fn check_host(url: &Url, allow_private_networks: bool) -> Result<bool, TargetRefusal> {
    let address = match url.host() {
        None => return Err(TargetRefusal::NotValid("it has no host")),
        Some(Host::Domain(name)) => {
            return match url_rules::name_fault(name) {
                Some(fault) => Err(TargetRefusal::NotValid(fault)),
                None => Ok(name == "localhost"),
            };
        }
        Some(Host::Ipv4(address)) => IpAddr::V4(address),
        Some(Host::Ipv6(address)) => IpAddr::V6(address),
    };
    address::permit(address, allow_private_networks)
        .map_err(|name| TargetRefusal::Address { address, name })?;
    Ok(address::is_loopback(address))
}

/// The URL as it is sent: without a fragment, with the query as written.
fn to_uri(written: &str, parsed: &Url) -> Result<Uri, TargetRefusal> {
    let host = parsed.host_str().unwrap_or_default();
    let authority = match parsed.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let mut path = parsed.path().to_owned();
    let sent = written.split('#').next().unwrap_or_default();
    if let Some((_, query)) = sent.split_once('?') {
        path.push('?');
        push_query(&mut path, query);
    }
    Uri::builder()
        .scheme(parsed.scheme())
        .authority(authority)
        .path_and_query(path)
        .build()
        .map_err(|_unsendable| TargetRefusal::NotValid("it cannot be sent over http"))
}

/// The parser of the standard rewrites quotes too; a signature over the query would then no longer fit.
fn push_query(path: &mut String, query: &str) {
    for byte in query.bytes() {
        match byte {
            b'"' | b'<' | b'>' => push_encoded(path, byte),
            0x21..=0x7e => path.push(char::from(byte)),
            _ => push_encoded(path, byte),
        }
    }
}

fn push_encoded(path: &mut String, byte: u8) {
    path.extend(['%', hex_digit(byte >> 4), hex_digit(byte & 0xf)]);
}

fn hex_digit(half: u8) -> char {
    char::from_digit(u32::from(half), 16).map_or('0', |digit| digit.to_ascii_uppercase())
}

fn form_fault(error: url::ParseError) -> &'static str {
    match error {
        url::ParseError::EmptyHost => "it has no host",
        url::ParseError::InvalidPort => "its port is not a number up to 65535",
        url::ParseError::InvalidIpv4Address => "its host is no IPv4 address",
        url::ParseError::InvalidIpv6Address => "its host is no IPv6 address",
        url::ParseError::IdnaError | url::ParseError::InvalidDomainCharacter => {
            "its host is no host name"
        }
        _ => "it cannot be read",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: Result<&str, TargetRefusal>) {
        let parsed = parse(url, false).map(|uri| uri.to_string());
        assert_eq!(parsed, expected.map(str::to_owned), "{url}");
    }

    #[track_caller]
    fn check_private(url: &str, expected: Result<&str, TargetRefusal>) {
        let parsed = parse(url, true).map(|uri| uri.to_string());
        assert_eq!(parsed, expected.map(str::to_owned), "{url}");
    }

    fn address(address: &str, name: &'static str) -> TargetRefusal {
        TargetRefusal::Address { address: address.parse().unwrap(), name }
    }

    #[test]
    fn https_url_is_sent_as_written_without_its_fragment() {
        check("https://hooks.example/a/b?x=1", Ok("https://hooks.example/a/b?x=1"));
        check("HTTPS://Hooks.Example", Ok("https://hooks.example/"));
        check("https://hooks.example:443/", Ok("https://hooks.example/"));
        check("https://hooks.example:8443/", Ok("https://hooks.example:8443/"));
        check("https://hooks.example/#part", Ok("https://hooks.example/"));
        check("https://hooks.example/#part?x", Ok("https://hooks.example/"));
        check("https://hooks.example?", Ok("https://hooks.example/?"));
        check("https://[2606:4700::1111]/", Ok("https://[2606:4700::1111]/"));
        check("https://münchen.example/", Ok("https://xn--mnchen-3ya.example/"));
    }

    #[test]
    fn query_stays_as_written() {
        check(
            "https://h.example/?a='b'&c=%2f+%zz{}|\\^`~?",
            Ok("https://h.example/?a='b'&c=%2f+%zz{}|\\^`~?"),
        );
        check("https://h.example/?a=é \"<>", Ok("https://h.example/?a=%C3%A9%20%22%3C%3E"));
    }

    #[test]
    fn plain_http_is_for_loopback_with_private_networks_lc_011() {
        check("http://hooks.example/", Err(TargetRefusal::PlainHttp));
        check("http://localhost:8080/", Err(TargetRefusal::PlainHttp));
        check("http://127.0.0.1/", Err(address("127.0.0.1", "loopback")));
        check_private("http://hooks.example/", Err(TargetRefusal::PlainHttp));
        check_private("http://10.0.0.1/", Err(TargetRefusal::PlainHttp));
        check_private("http://localhost.evil.example/", Err(TargetRefusal::PlainHttp));
        check_private("http://localhost:8080/x", Ok("http://localhost:8080/x"));
        check_private("http://127.0.0.1:8080/", Ok("http://127.0.0.1:8080/"));
        check_private("http://[::1]:8080/", Ok("http://[::1]:8080/"));
        check("ftp://hooks.example/", Err(TargetRefusal::Scheme));
        check("hooks.example", Err(TargetRefusal::Scheme));
    }

    #[test]
    fn credentials_are_refused() {
        check("https://user@h.example/", Err(TargetRefusal::Credentials));
        check("https://:pass@h.example/", Err(TargetRefusal::Credentials));
        check("https://a.example%40b.example@h.example/", Err(TargetRefusal::Credentials));
    }

    #[test]
    fn every_spelling_of_an_address_is_that_address() {
        let loopback = || Err(address("127.0.0.1", "loopback"));
        check("https://2130706433/", loopback());
        check("https://0177.0.0.1/", loopback());
        check("https://0x7f.1/", loopback());
        check("https://127.1/", loopback());
        check("https://127.0.0.1./", loopback());
        check("https://１２７.０.０.１/", loopback());
        check("https://①②⑦.⓪.⓪.①/", loopback());
        check("https://127。0。0。1/", loopback());
        check("https://127%2e0%2e0%2e1/", loopback());
        check("https://0/", Err(address("0.0.0.0", "this network")));
        check("https://[::ffff:127.0.0.1]/", Err(address("::ffff:127.0.0.1", "loopback")));
        check("https://[64:ff9b::7f00:1]/", Err(address("64:ff9b::7f00:1", "NAT64")));
        check(
            "https://[fe80::1%25eth0]/",
            Err(TargetRefusal::NotValid("its host is no IPv6 address")),
        );
        check_private("https://169.254.169.254/", Err(address("169.254.169.254", "link-local")));
        check_private("https://[fd00:ec2::254]/", Err(address("fd00:ec2::254", "cloud metadata")));
        check_private("https://0.0.0.0/", Err(address("0.0.0.0", "this network")));
        check_private("https://10.0.0.1/", Ok("https://10.0.0.1/"));
    }

    #[test]
    fn port_of_another_protocol_is_refused_except_on_loopback() {
        check("https://h.example:25/", Err(TargetRefusal::Port(25)));
        check("https://h.example:0/", Err(TargetRefusal::Port(0)));
        check("https://h.example:10080/", Err(TargetRefusal::Port(10080)));
        check("https://h.example:10081/", Ok("https://h.example:10081/"));
        check_private("https://10.0.0.1:6000/", Err(TargetRefusal::Port(6000)));
        check_private("http://127.0.0.1:6000/", Ok("http://127.0.0.1:6000/"));
    }

    #[test]
    fn text_that_parsers_read_differently_is_refused() {
        let invalid = |why| Err(TargetRefusal::NotValid(why));
        check("https:///h.example", invalid("it has no host"));
        check("https:h.example", invalid("// must follow the scheme"));
        check("https://", invalid("it has no host"));
        check("https://h.example\\@evil.example/", invalid("it contains a backslash"));
        check("https://h.exa\tmple/", invalid("it contains a control character"));
        check(" https://h.example/", invalid("it starts or ends with a space"));
        check("https://h.example./", invalid("its host name ends with a dot"));
        check("https://h..example/", invalid("its host is no host name"));
        check("https://*.example/", invalid("its host is no host name"));
        check("https://h.example:65536/", invalid("its port is not a number up to 65535"));
    }

    #[test]
    fn lengths_are_bounded() {
        let url = |chars: usize| format!("https://h.example/{}", "é".repeat(chars - 18));
        assert!(parse(&url(4_096), false).is_ok());
        assert_eq!(parse(&url(4_097), false), Err(TargetRefusal::TooLong));
        assert!(parse(&format!("https://{}.example/", "a".repeat(63)), false).is_ok());
        assert!(parse(&format!("https://{}.example/", "a".repeat(64)), false).is_err());
        let name =
            |last: usize| format!("https://{}{}/", "a23456789.".repeat(25), "b".repeat(last));
        assert!(parse(&name(3), false).is_ok());
        assert_eq!(
            parse(&name(4), false),
            Err(TargetRefusal::NotValid("its host name is too long"))
        );
    }
}
