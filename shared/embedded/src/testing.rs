//! A medium that fails on demand and counts, for the tests of this crate.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use redb::StorageBackend;
use redb::backends::InMemoryBackend;

/// Memory that stands for a disk. Clones are the same disk.
#[derive(Debug, Clone)]
pub(crate) struct FaultyMedium(Arc<State>);

#[derive(Debug)]
struct State {
    memory: InMemoryBackend,
    /// Writes, growths and syncs that succeed before all others fail.
    left: AtomicUsize,
    failing_syncs: AtomicBool,
    slow_syncs: AtomicBool,
    syncs: AtomicUsize,
}

impl Default for FaultyMedium {
    fn default() -> Self {
        Self::holding(InMemoryBackend::new())
    }
}

impl FaultyMedium {
    fn holding(memory: InMemoryBackend) -> Self {
        Self(Arc::new(State {
            memory,
            left: AtomicUsize::new(usize::MAX),
            failing_syncs: AtomicBool::new(false),
            slow_syncs: AtomicBool::new(false),
            syncs: AtomicUsize::new(0),
        }))
    }

    /// Whether all that changes the disk fails, as on a full one. What lies there can be read.
    pub(crate) fn fail_writes(&self, fail: bool) {
        self.fail_after(if fail { 0 } else { usize::MAX });
    }

    /// Lets some changes succeed before all others fail.
    pub(crate) fn fail_after(&self, changes: usize) {
        self.0.left.store(changes, Ordering::SeqCst);
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

    /// A disk with the same bytes: what is left where the process dies now.
    pub(crate) fn copy(&self) -> Self {
        let mut bytes = vec![0; usize::try_from(self.len().unwrap()).unwrap()];
        self.read(0, &mut bytes).unwrap();
        let memory = InMemoryBackend::new();
        memory.set_len(bytes.len() as u64).unwrap();
        StorageBackend::write(&memory, 0, &bytes).unwrap();
        Self::holding(memory)
    }

    fn change(&self) -> io::Result<()> {
        let take = |left: usize| match left {
            0 => None,
            usize::MAX => Some(usize::MAX),
            left => Some(left - 1),
        };
        match self.0.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take) {
            Ok(_) => Ok(()),
            Err(_) => Err(io::Error::from(io::ErrorKind::StorageFull)),
        }
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
        self.change()?;
        self.0.memory.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.0.failing_syncs.load(Ordering::SeqCst) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.change()?;
        self.0.syncs.fetch_add(1, Ordering::SeqCst);
        if self.0.slow_syncs.load(Ordering::SeqCst) {
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
        self.0.memory.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change()?;
        StorageBackend::write(&self.0.memory, offset, data)
    }
}
