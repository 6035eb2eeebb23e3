//! Tests of the store and its queues.

use std::sync::Arc;

use annex_core::testkit::{ManualClock, store};
use annex_core::time::Timestamp;

use crate::{Embedded, Options};

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_secs(1_700_000_000)))
}

annex_core::store_contract!(store_in_memory, async {
    let clock = clock();
    store::Bench::new(Embedded::in_memory(clock.clone()).unwrap(), clock)
});

annex_core::store_contract!(store_in_a_file, async {
    let (clock, dir) = (clock(), tempfile::tempdir().unwrap());
    let store = Embedded::open(dir.path(), clock.clone(), &Options::default()).unwrap();
    store::Bench { store, clock, guard: Box::new(dir) }
});
