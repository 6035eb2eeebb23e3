//! Keys that everybody knows.

use std::sync::atomic::{AtomicU32, Ordering};

use zeroize::Zeroizing;

use crate::keys::digest_bytes;
use crate::ports::{KeyUse, Keyring, SymmetricKey};

/// Keys derived from their ids alone; the operator's secret is [`FixedKeyring::OPERATOR`].
#[derive(Debug)]
pub struct FixedKeyring(AtomicU32);

impl FixedKeyring {
    /// The operator's sign-in secret.
    pub const OPERATOR: &'static str = "operator-secret";

    /// A ring of one key, of id 1.
    pub const fn new() -> Self {
        Self(AtomicU32::new(1))
    }

    /// Adds a newer key.
    pub fn rotate(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Default for FixedKeyring {
    fn default() -> Self {
        Self::new()
    }
}

impl Keyring for FixedKeyring {
    fn current(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    fn key(&self, id: u32, usage: KeyUse) -> Option<SymmetricKey> {
        let name: &[u8] = match usage {
            KeyUse::Seal => b"seal",
            KeyUse::Token => b"token",
            KeyUse::ApiKey => b"api-key",
        };
        (1..=self.current())
            .contains(&id)
            .then(|| Zeroizing::new(digest_bytes(&[b"fixed", &id.to_be_bytes(), name])))
    }

    fn is_operator(&self, secret: &str) -> bool {
        secret == Self::OPERATOR
    }
}
