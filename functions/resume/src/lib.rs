//! Where everything comes back that was put off: continuations, slow retries, calls whose worker died.
//!
//! Trigger: the `resume` queue, a delay queue, in batches, with partial batch responses. A chain of continuations makes
//! this function feed its own queue, up to 100 times: on AWS its recursion detection must be set to `Allow`.

use annex_core::call::Calls;
use annex_core::ports::{Handler, Message, Undone};
use async_trait::async_trait;

/// The function behind the `resume` queue.
#[derive(Clone)]
pub struct Resume {
    calls: Calls,
}

impl Resume {
    /// Over these calls.
    pub fn new(calls: Calls) -> Self {
        Self { calls }
    }
}

#[async_trait]
impl Handler for Resume {
    async fn handle(&self, batch: Vec<Message>) -> Vec<Undone> {
        self.calls.work_batch(batch).await
    }
}
