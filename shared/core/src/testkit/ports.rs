//! Ports around a store, for tests of what needs little else.

use std::sync::Arc;

use async_trait::async_trait;

use super::{FixedKeyring, ManualClock, MemoryBlobs, MemoryStore, SeededIds};
use crate::ports::{Outbound, Ports, SendFault, Store, WebhookAnswer, WebhookRequest};

/// The way out where there is none: every URL is fine, and nothing is sent.
struct Nowhere;

#[async_trait]
impl Outbound for Nowhere {
    fn check_url(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    async fn send(&self, _: WebhookRequest) -> Result<WebhookAnswer, SendFault> {
        Err(SendFault::NotSent("there is no network here".to_owned()))
    }
}

/// The ports of a process with this store: nothing leaves it, and there are no dead letters. Processes of different
/// seeds make different ids.
pub fn ports(store: Arc<dyn Store>, clock: &Arc<ManualClock>, seed: u64) -> Ports {
    Ports {
        store,
        dead_letters: Arc::new(MemoryStore::new(clock.clone())),
        blobs: Arc::new(MemoryBlobs::new(clock.clone())),
        keyring: Arc::new(FixedKeyring::new()),
        clock: clock.clone(),
        ids: Arc::new(SeededIds::new(seed)),
        outbound: Arc::new(Nowhere),
    }
}
