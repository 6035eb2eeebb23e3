//! Keys that everybody knows.

use std::sync::atomic::{AtomicU32, Ordering};

use zeroize::Zeroizing;

use crate::keys::digest_bytes;
use crate::ports::{KeyUse, Keyring, SymmetricKey};

/// Keys derived from their ids alone; the operator's secret is [`FixedKeyring::OPERATOR`].
#[derive(Debug)]
pub struct FixedKeyring {
    oldest: AtomicU32,
    current: AtomicU32,
    newest: AtomicU32,
}

impl FixedKeyring {
    /// The operator's sign-in secret.
    pub const OPERATOR: &'static str = "operator-secret";

    /// A ring of one key, of id 1.
    pub const fn new() -> Self {
        Self { oldest: AtomicU32::new(1), current: AtomicU32::new(1), newest: AtomicU32::new(1) }
    }

    /// Adds a newer key, which nothing uses yet.
    pub fn add(&self) {
        self.newest.fetch_add(1, Ordering::Relaxed);
    }

    /// Makes the newest key the current one.
    pub fn promote(&self) {
        self.current.store(self.newest.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Adds a newer key, and makes it the current one.
    pub fn rotate(&self) {
        self.add();
        self.promote();
    }

    /// Drops all keys but the current one.
    pub fn retire(&self) {
        self.oldest.store(self.current(), Ordering::Relaxed);
    }
}

impl Default for FixedKeyring {
    fn default() -> Self {
        Self::new()
    }
}

impl Keyring for FixedKeyring {
    fn current(&self) -> u32 {
        self.current.load(Ordering::Relaxed)
    }

    fn key_ids(&self) -> Vec<u32> {
        let ends = [&self.oldest, &self.newest].map(|end| end.load(Ordering::Relaxed));
        (ends[0]..=ends[1]).collect()
    }

    fn key(&self, id: u32, usage: KeyUse) -> Option<SymmetricKey> {
        let name: &[u8] = match usage {
            KeyUse::Seal => b"seal",
            KeyUse::Token => b"token",
            KeyUse::ApiKey => b"api-key",
        };
        self.key_ids()
            .contains(&id)
            .then(|| Zeroizing::new(digest_bytes(&[b"fixed", &id.to_be_bytes(), name])))
    }

    fn is_operator(&self, secret: &str) -> bool {
        secret == Self::OPERATOR
    }
}
