//! Turns usage reports into usage counters, each report once.
//!
//! Trigger: the `meter` queue, in batches, with partial batch responses.

use std::sync::Arc;
use std::time::Duration;

use annex_core::meter::{Usage, record};
use annex_core::ports::{Handler, Message, Store, Undone};
use async_trait::async_trait;

/// The function behind the `meter` queue.
#[derive(Clone)]
pub struct Meter {
    store: Arc<dyn Store>,
}

impl Meter {
    /// Over this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    async fn one(&self, message: Message) -> Option<Undone> {
        let usage: Usage = match serde_json::from_str(&message.body) {
            Ok(usage) => usage,
            Err(error) => {
                let fault = annex_core::stored::fault(&error);
                tracing::error!(message.id, fault, "message is not a usage report");
                return Some(Undone { id: message.id, retry_after: None, counts: true });
            }
        };
        match record(&*self.store, &usage).await {
            Ok(_) => None,
            Err(error) => {
                tracing::error!(source = ?error.source, "usage could not be recorded: {error}");
                let after = Duration::from_secs(1 << message.receives.min(8));
                let counts = !error.write_refused;
                Some(Undone { id: message.id, retry_after: Some(after), counts })
            }
        }
    }
}

#[async_trait]
impl Handler for Meter {
    async fn handle(&self, batch: Vec<Message>) -> Vec<Undone> {
        let mut undone = Vec::new();
        for message in batch {
            undone.extend(self.one(message).await);
        }
        undone
    }
}
