//! The processes of a stack, and how one hands a call to another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use annex_aws::lambda::{REFUSALS_FILED_EVERY, RING_AGE_MAX};
use annex_aws::tap::Tap;
use annex_aws::testing::Sandbox;
use annex_aws::{DynamoStore, S3Blobs, SecretKeyring, SqsDeadLetters};
use annex_core::call::{CallSettings, Calls, Claimed, Launcher, Reply};
use annex_core::limits::WAIT_MAX;
use annex_core::ports::{Outage, Ports, Store};
use annex_core::testkit::{ManualClock, MemoryBlobs, MemoryStore, SeededIds};
use async_trait::async_trait;
use tokio::sync::Semaphore;

use crate::receiver::Receiver;

/// A warm process of one function: with caches of its own.
pub(crate) struct Process {
    pub(crate) calls: Calls,
    pub(crate) store: Arc<dyn Store>,
    keyring: Arc<SecretKeyring>,
}

/// Hands a call to the dispatch process, as `LambdaLauncher` does by an invocation.
pub(crate) struct Invoke {
    pub(crate) dispatch: Arc<Process>,
    pub(crate) invocations: Arc<AtomicU64>,
    /// Whether calls hang in place of being run; each that does adds a permit.
    pub(crate) hangs: Arc<AtomicBool>,
    pub(crate) hanging: Arc<Semaphore>,
}

#[async_trait]
impl Launcher for Invoke {
    async fn launch(
        &self,
        calls: &Calls,
        claimed: Claimed,
        _wait: Duration,
    ) -> Option<Result<Reply, Outage>> {
        if self.hangs.load(Ordering::Relaxed) {
            self.hanging.add_permits(1);
            std::future::pending::<()>().await;
        }
        self.invocations.fetch_add(1, Ordering::Relaxed);
        self.dispatch.fresh().await;
        let text = match self.dispatch.calls.run_text(&claimed.to_text()).await {
            Ok(text) => text,
            Err(outage) => return Some(Err(outage)),
        };
        Some(calls.reply_of(&claimed, &text).await)
    }
}

impl Process {
    /// What each function does before an event.
    pub(crate) async fn fresh(&self) {
        self.keyring.refresh_if_older_than(RING_AGE_MAX).await.expect("the key ring can be read");
    }
}

/// What processes are made of.
pub(crate) struct Maker {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) tap: Tap,
    pub(crate) ids: Arc<SeededIds>,
    pub(crate) receiver: Arc<Receiver>,
    pub(crate) sandbox: Sandbox,
}

impl Maker {
    /// A process, whose caches are empty.
    pub(crate) async fn process(&self, launcher: Arc<dyn Launcher>) -> anyhow::Result<Process> {
        let (sandbox, clock) = (&self.sandbox, self.clock.clone());
        let clients = sandbox.clients_over(self.tap.client()).await;
        let queues = sandbox.queues.clone();
        let store: Arc<dyn Store> =
            Arc::new(DynamoStore::new(&clients, &sandbox.table, queues.clone(), clock.clone()));
        let keyring = SecretKeyring::load(&clients, &sandbox.secret, clock.clone()).await?;
        let keyring = Arc::new(keyring);
        let ports = Ports {
            store: store.clone(),
            dead_letters: Arc::new(SqsDeadLetters::new(&clients, queues)),
            blobs: Arc::new(S3Blobs::new(&clients, &sandbox.bucket, clock.clone())),
            keyring: keyring.clone(),
            clock,
            ids: self.ids.clone(),
            outbound: self.receiver.clone(),
        };
        let settings = CallSettings {
            refusals_filed_every: REFUSALS_FILED_EVERY,
            check_within: Some(WAIT_MAX),
            ..CallSettings::default()
        };
        Ok(Process { calls: Calls::new(ports, launcher, settings), store, keyring })
    }
}

/// The ports of a process whose items are in memory, for what is made in bulk.
pub(crate) fn in_memory(like: &Process, clock: Arc<ManualClock>) -> Ports {
    let store = Arc::new(MemoryStore::new(clock.clone()));
    Ports {
        store: store.clone(),
        dead_letters: store,
        blobs: Arc::new(MemoryBlobs::new(clock)),
        ..like.calls.ports().clone()
    }
}
