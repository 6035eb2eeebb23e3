//! The suites that every adapter passes. Without an emulator they run on the core's own adapters, and say so.

use std::sync::Arc;

use annex_aws::testing::{Sandbox, is_available};
use annex_aws::{DynamoStore, S3Blobs};
use annex_core::testkit::{MemoryBlobs, MemoryStore, blobs, store};

use crate::bench::clock;

annex_core::store_contract!(dynamo_store, async {
    let clock = clock();
    if !is_available() {
        return store::Bench::new(Arc::new(MemoryStore::new(clock.clone())), clock);
    }
    let sandbox = Sandbox::new().await;
    let store = DynamoStore::new(&sandbox.clients, sandbox.table, sandbox.queues, clock.clone());
    store::Bench::new(Arc::new(store), clock)
});

annex_core::blobs_contract!(s3_blobs, async {
    let clock = clock();
    let guard = Box::new(());
    if !is_available() {
        return blobs::Bench { blobs: Arc::new(MemoryBlobs::new(clock.clone())), clock, guard };
    }
    let sandbox = Sandbox::new().await;
    let blobs = Arc::new(S3Blobs::new(&sandbox.clients, sandbox.bucket, clock.clone()));
    blobs::Bench { blobs, clock, guard }
});
