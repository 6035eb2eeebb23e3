//! The hosts that an install approved, and whether a URL with its secrets filled in may be sent (AL-142 to AL-151,
//! AL-197 to AL-207).
//!
//! The URL is read by a WHATWG parser, and what is sent is written from what that parser read: what it repairs (tabs,
//! backslashes, fullwidth letters, spellings of an address) can therefore not be read differently later on. Only dot
//! segments, which it resolves without a trace, are looked for in the text as written.

pub mod config;
mod pattern;

use std::net::IpAddr;

use url::{Host, Url};

use crate::draft::{Scheme, SentUrl};
use crate::{address, url_rules};
use pattern::Pattern;

pub use pattern::BadPattern;

/// Longest URL as it is written, in characters, before its secrets are filled in (AL-142).
pub const URL_CHARS_MAX: usize = url_rules::URL_CHARS_MAX;

/// Longest URL with its secrets filled in, in bytes, as written and as sent. It leaves room for what an auth adds: the
/// HTTP library's own limit is 65,534.
pub const FILLED_URL_BYTES_MAX: usize = 32 << 10;

/// Why a URL is not sent to. The text is the one that the caller gets, before redaction: it can hold a secret that was
/// filled in as a part of the host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlRefusal {
    /// More than [`FILLED_URL_BYTES_MAX`].
    #[error("URL is longer than {FILLED_URL_BYTES_MAX} bytes with its secrets filled in")]
    TooLong,
    /// Not a URL.
    #[error("URL is not valid")]
    NotValid,
    /// Not `https`, nor `http` where that is accepted (AL-143, AL-145).
    #[error("URL must be https")]
    Scheme,
    /// A user name or a password (AL-144).
    #[error("URL must not carry a user name or a password")]
    Credentials,
    /// AL-146 to AL-149.
    #[error("URL must not have a . or .. segment in its path")]
    DotSegment,
    /// A port of another protocol (AL-205).
    #[error("port {0} is not permitted")]
    BadPort(u16),
    /// An address in place of a name (AL-207).
    #[error("host {0} is an IP address, which is not permitted")]
    Literal(String),
    /// An address that is never reached, private networks or not.
    #[error("address {address} is not permitted ({name})")]
    Address {
        /// As the URL's parser understood it.
        address: IpAddr,
        /// The block it lies in.
        name: &'static str,
    },
    /// AL-197.
    #[error("host {0} is not in the hosts the install approved")]
    Host(String),
    /// AL-202 to AL-204.
    #[error("port {port} of {host} is not in the hosts the install approved")]
    Port {
        /// The approved host.
        host: String,
        /// The port that the URL names, or its scheme's own.
        port: u16,
    },
}

impl From<UrlRefusal> for String {
    fn from(refusal: UrlRefusal) -> Self {
        refusal.to_string()
    }
}

/// The hosts that an install approved (AL-198).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hosts {
    patterns: Vec<Pattern>,
}

impl Hosts {
    /// Reads patterns `host[:port]`. A host is a name in lower case, as a URL's parser writes it; or `*.` and a name of
    /// at least two labels; or an address as that parser writes it, one of IPv6 in brackets, which is only ever reached
    /// where private networks are allowed.
    pub fn parse(patterns: &[String]) -> Result<Self, BadPattern> {
        let patterns = patterns.iter().enumerate();
        let read = patterns.map(|(index, text)| Pattern::parse(text).ok_or(BadPattern { index }));
        Ok(Self { patterns: read.collect::<Result<_, _>>()? })
    }

    /// Whether this host may be reached at this port.
    fn permit(&self, url: &SentUrl, allow_private_networks: bool) -> Result<(), UrlRefusal> {
        let mut named = self.patterns.iter().filter(|pattern| pattern.covers(&url.host)).peekable();
        if named.peek().is_none() {
            return Err(UrlRefusal::Host(url.host.clone()));
        }
        // AL-206.
        if allow_private_networks || named.any(|pattern| pattern.is_at_port_of(url)) {
            return Ok(());
        }
        Err(UrlRefusal::Port { host: url.host.clone(), port: url.port_or_default() })
    }
}

/// Reads a URL whose placeholders were filled, and checks it against the approved hosts. What comes back can be sent
/// to, if its name resolves to permitted addresses: without the fragment, otherwise as a WHATWG parser writes it.
pub fn approve(
    url: &str,
    hosts: &Hosts,
    allow_private_networks: bool,
) -> Result<SentUrl, UrlRefusal> {
    if FILLED_URL_BYTES_MAX < url.len() {
        return Err(UrlRefusal::TooLong);
    }
    let parsed = Url::parse(url).map_err(|_unreadable| UrlRefusal::NotValid)?;
    let scheme = match parsed.scheme() {
        "https" => Scheme::Https,
        "http" if allow_private_networks => Scheme::Http,
        _ => return Err(UrlRefusal::Scheme),
    };
    if !parsed.username().is_empty() || parsed.password().is_some_and(|text| !text.is_empty()) {
        return Err(UrlRefusal::Credentials);
    }
    if url_rules::has_dot_segment(url) {
        return Err(UrlRefusal::DotSegment);
    }
    let sent = sent(&parsed, scheme)?;
    if url_rules::is_bad_port(sent.port_or_default()) {
        return Err(UrlRefusal::BadPort(sent.port_or_default()));
    }
    check_address(&parsed, allow_private_networks)?;
    hosts.permit(&sent, allow_private_networks)?;
    Ok(sent)
}

/// Checks an address that stands in place of a name, in whatever spelling.
fn check_address(url: &Url, allow_private_networks: bool) -> Result<(), UrlRefusal> {
    let address = match url.host() {
        Some(Host::Domain(_)) => return Ok(()),
        Some(Host::Ipv4(address)) => IpAddr::V4(address),
        Some(Host::Ipv6(address)) => IpAddr::V6(address),
        None => return Err(UrlRefusal::NotValid),
    };
    if !allow_private_networks {
        return Err(UrlRefusal::Literal(url.host_str().unwrap_or_default().to_owned()));
    }
    address::permit(address, true).map_err(|name| UrlRefusal::Address { address, name })
}

fn sent(url: &Url, scheme: Scheme) -> Result<SentUrl, UrlRefusal> {
    let host = url.host_str().ok_or(UrlRefusal::NotValid)?.to_owned();
    let mut target = url.path().to_owned();
    if let Some(query) = url.query() {
        target.push('?');
        target.push_str(query);
    }
    if FILLED_URL_BYTES_MAX < host.len() + target.len() {
        return Err(UrlRefusal::TooLong);
    }
    Ok(SentUrl { scheme, host, port: url.port(), target })
}

#[cfg(test)]
mod tests;
