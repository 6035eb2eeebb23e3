//! Where items and blobs lie, and what each process reaches them through.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use annex_aws::testing::Sandbox;
use annex_aws::{Clients, DynamoStore, S3Blobs};
use annex_core::ports::{Blobs, Store};
use annex_core::testkit::{ManualClock, MemoryBlobs, MemoryStore};
use annex_embedded::Embedded;
use tokio::sync::OnceCell;

use super::gate::{Gate, Life};
use super::wire;

/// Where items lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    /// In the store of the test kit, with messages in the same step.
    Memory,
    /// In the store of one machine, on a disk in memory.
    Embedded,
    /// In the store of the test kit, with messages in a step of their own, as on AWS.
    TwoStep,
    /// In a table of an emulator of DynamoDB, and blobs in its S3.
    Dynamo,
}

impl Backend {
    /// Every backend.
    pub(crate) const ALL: &[Self] = &[Self::Memory, Self::Embedded, Self::TwoStep, Self::Dynamo];
    /// Those on which writes and messages are two steps.
    pub(crate) const IN_STEPS: &[Self] = &[Self::TwoStep, Self::Dynamo];

    /// Its name in the name of a trial.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Embedded => "embedded",
            Self::TwoStep => "two-step",
            Self::Dynamo => "dynamo",
        }
    }

    /// Whether writes and messages are one step.
    pub(crate) fn is_atomic(self) -> bool {
        !Self::IN_STEPS.contains(&self)
    }
}

/// What outlives a process of a world.
pub(crate) enum Backing {
    /// Adapters that all processes share.
    Shared(Arc<dyn Store>, Arc<dyn Blobs>),
    /// A table and a bucket, which each process reaches with clients of its own.
    Aws(Box<Sandbox>),
}

/// The account of this run.
static ACCOUNT: OnceCell<Sandbox> = OnceCell::const_new();
static WORLDS: AtomicU64 = AtomicU64::new(0);

impl Backing {
    pub(crate) async fn open(backend: Backend, clock: &Arc<ManualClock>) -> Self {
        let blobs = || Arc::new(MemoryBlobs::new(clock.clone()));
        match backend {
            Backend::Memory | Backend::TwoStep => {
                Self::Shared(Arc::new(MemoryStore::new(clock.clone())), blobs())
            }
            Backend::Embedded => {
                let items = Embedded::in_memory(clock.clone());
                Self::Shared(items.expect("a disk in memory has room"), blobs())
            }
            Backend::Dynamo => {
                let account = ACCOUNT.get_or_init(Sandbox::new).await;
                let world = WORLDS.fetch_add(1, Ordering::Relaxed);
                let client = wire::plain();
                Self::Aws(Box::new(account.another(&world.to_string(), client).await))
            }
        }
    }

    /// Whether the calls of its adapters are counted on the wire.
    pub(crate) fn is_wired(&self) -> bool {
        matches!(self, Self::Aws(_))
    }

    /// What one process reaches it through.
    pub(crate) fn adapters(
        &self,
        clock: &Arc<ManualClock>,
        gate: &Arc<Gate>,
        life: &Life,
    ) -> (Arc<dyn Store>, Arc<dyn Blobs>) {
        match self {
            Self::Shared(items, blobs) => (items.clone(), blobs.clone()),
            Self::Aws(sandbox) => {
                let config = sandbox.config().clone().into_builder();
                let config = config.http_client(wire::gated(gate.clone(), life.clone()));
                let config = config.retry_config(wire::soon()).build();
                let clients = Clients::from_config(&config);
                let (table, bucket) = (sandbox.table.clone(), sandbox.bucket.clone());
                let queues = sandbox.queues.clone();
                let items = DynamoStore::new(&clients, table, queues, clock.clone());
                let blobs = S3Blobs::new(&clients, bucket, clock.clone());
                (Arc::new(items), Arc::new(blobs))
            }
        }
    }
}
