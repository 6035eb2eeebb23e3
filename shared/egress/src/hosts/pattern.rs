//! One approved host.

use url::Url;

use crate::draft::SentUrl;
use crate::url_rules;

/// A text that is no pattern of a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "hosts.{index}: expected host[:port], a host name in lower case or *. and a name of at least two labels"
)]
pub struct BadPattern {
    /// Which of the patterns, from 0.
    pub index: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    /// As a URL's parser writes it, without the star.
    name: String,
    /// Whether labels must stand in front of the name.
    is_wild: bool,
    port: Option<u16>,
}

impl Pattern {
    pub(super) fn parse(text: &str) -> Option<Self> {
        // The colons inside an address are in brackets.
        let after_address = text.rfind(']').map_or(0, |end| end + 1);
        let (host, port) = match text[after_address..].find(':') {
            Some(colon) => {
                let (host, port) = text.split_at(after_address + colon);
                (host, Some(port_of(&port[1..])?))
            }
            None => (text, None),
        };
        let is_wild = host.starts_with("*.");
        let name = host.strip_prefix("*.").unwrap_or(host);
        let is_address = is_canonical(name)?;
        let fits = match is_wild {
            true => !is_address && name.contains('.'),
            false => true,
        };
        let is_named = is_address || url_rules::name_fault(name).is_none();
        (fits && is_named).then(|| Self { name: name.to_owned(), is_wild, port })
    }

    /// Whether this is a pattern of that host (AL-199 to AL-201).
    pub(super) fn covers(&self, host: &str) -> bool {
        if !self.is_wild {
            return host == self.name;
        }
        let labels = host.strip_suffix(&self.name).and_then(|front| front.strip_suffix('.'));
        // A URL's host can hold what no name has, such as a star or an empty label.
        labels.is_some_and(|labels| !labels.is_empty()) && url_rules::name_fault(host).is_none()
    }

    /// Whether the URL's port is the pattern's, or the scheme's own for a pattern without one.
    pub(super) fn is_at_port_of(&self, url: &SentUrl) -> bool {
        match self.port {
            Some(port) => port == url.port_or_default(),
            None => url.port.is_none(),
        }
    }
}

/// A port as it is usually spelled: digits without zeros in front.
fn port_of(text: &str) -> Option<u16> {
    let is_plain =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    is_plain.then(|| text.parse().ok()).flatten()
}

/// Whether the name is an address; `None` where a URL's parser would write the host differently.
fn is_canonical(name: &str) -> Option<bool> {
    // What ends a host, or has a meaning before it.
    if name.contains(['/', '\\', '?', '#', '@']) {
        return None;
    }
    let url = Url::parse(&format!("https://{name}/")).ok()?;
    (url.host_str()? == name).then(|| !matches!(url.host(), Some(url::Host::Domain(_))))
}
