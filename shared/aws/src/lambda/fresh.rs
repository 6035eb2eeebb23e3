//! The key ring of a warm process, read again from time to time.

use std::sync::Arc;
use std::time::Duration;

use crate::SecretKeyring;

/// How old a key ring may be when an event comes: as long after a rotation, a process may not know its key yet.
pub const RING_AGE_MAX: Duration = Duration::from_secs(300);

/// Keeps the key ring up to date, where the function has one.
#[derive(Clone, Default)]
pub(crate) struct Fresh {
    /// The ring.
    pub keyring: Option<Arc<SecretKeyring>>,
}

impl Fresh {
    /// Looks before an event is worked on. Where the ring cannot be read, the one that is there goes on.
    pub(crate) async fn look(&self) {
        let Some(keyring) = &self.keyring else { return };
        if let Err(outage) = keyring.refresh_if_older_than(RING_AGE_MAX).await {
            tracing::warn!(source = ?outage.source, "the key ring is not up to date: {outage}");
        }
    }
}
