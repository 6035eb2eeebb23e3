//! A medium that fails on demand and counts, for the tests of this crate.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use redb::StorageBackend;
use redb::backends::InMemoryBackend;

/// Memory that stands for a disk. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct FaultyMedium(Arc<State>);

#[derive(Debug, Default)]
struct State {
    memory: InMemoryBackend,
    failing_writes: AtomicBool,
    failing_syncs: AtomicBool,
    syncs: AtomicUsize,
    slow_syncs: AtomicBool,
}

impl FaultyMedium {
    /// Whether writes and growth fail as on a full disk. What lies there can be read.
    pub(crate) fn fail_writes(&self, fail: bool) {
        self.0.failing_writes.store(fail, Ordering::SeqCst);
        self.fail_syncs(fail);
    }

    /// Whether syncs fail, after all writes succeeded.
    pub(crate) fn fail_syncs(&self, fail: bool) {
        self.0.failing_syncs.store(fail, Ordering::SeqCst);
    }

    /// Makes each sync take as long as that of a slow disk.
    pub(crate) fn slow_syncs(&self) {
        self.0.slow_syncs.store(true, Ordering::SeqCst);
    }

    /// How often it was synced.
    pub(crate) fn syncs(&self) -> usize {
        self.0.syncs.load(Ordering::SeqCst)
    }

    fn check(&self, failing: &AtomicBool) -> io::Result<()> {
        if failing.load(Ordering::SeqCst) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        Ok(())
    }
}

impl StorageBackend for FaultyMedium {
    fn len(&self) -> io::Result<u64> {
        StorageBackend::len(&self.0.memory)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        StorageBackend::read(&self.0.memory, offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check(&self.0.failing_writes)?;
        self.0.memory.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.check(&self.0.failing_syncs)?;
        self.0.syncs.fetch_add(1, Ordering::SeqCst);
        if self.0.slow_syncs.load(Ordering::SeqCst) {
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
        self.0.memory.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check(&self.0.failing_writes)?;
        StorageBackend::write(&self.0.memory, offset, data)
    }
}
