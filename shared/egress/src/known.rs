//! Targets that were checked before.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use http::Uri;

use crate::target::{self, TargetRefusal};

/// URLs that are remembered.
const KNOWN_MAX: usize = 1_000;

/// Remembers what [`target::parse`] made of a URL, which depends on nothing but the URL and the policy: an extension is
/// called over and over at the same one, and reading it is a tenth of what a request costs. Addresses that a name has
/// are no part of it.
pub(crate) struct KnownTargets {
    allow_private_networks: bool,
    known: RwLock<HashMap<String, Uri>>,
}

impl KnownTargets {
    pub(crate) fn new(allow_private_networks: bool) -> Self {
        Self { allow_private_networks, known: RwLock::default() }
    }

    /// As [`target::parse`], under the policy of these targets.
    pub(crate) fn parse(&self, url: &str) -> Result<Uri, TargetRefusal> {
        if let Some(uri) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(url) {
            return Ok(uri.clone());
        }
        let uri = target::parse(url, self.allow_private_networks)?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // Starting over is as good as choosing which to forget, and needs no order of use.
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(url.to_owned(), uri.clone());
        Ok(uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_means_the_same_the_second_time() {
        let targets = KnownTargets::new(false);
        for _ in 0..2 {
            let uri = targets.parse("https://h.example/?a='b'").unwrap();
            assert_eq!(uri.to_string(), "https://h.example/?a='b'");
            assert_eq!(targets.parse("https://127.1/").ok(), None);
        }
    }

    #[test]
    fn only_so_many_urls_are_remembered() {
        let targets = KnownTargets::new(false);
        let remembered = || targets.known.read().unwrap().len();
        for number in 0..KNOWN_MAX {
            targets.parse(&format!("https://h.example/{number}")).unwrap();
        }
        assert_eq!(remembered(), KNOWN_MAX);
        targets.parse("https://h.example/more").unwrap();
        assert_eq!(remembered(), 1);
    }
}
