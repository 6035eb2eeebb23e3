//! The store: one file, one writer, any number of readers.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use annex_core::ports::{
    self, Clock, Commit, Committed, Count, Counted, Item, Key, Outage, Page, Query, QueueName,
    Scan, ScanPage, Store,
};
use async_trait::async_trait;
use redb::backends::{FileBackend, InMemoryBackend};
use redb::{ReadableTable as _, StorageBackend};

use crate::engine::Engine;
use crate::jobs::Chore;
use crate::read;
use crate::shared::Shared;
use crate::tables::{EPOCH, META, first_number};
use crate::transaction::{self, Effects, Moment, Tables};
use crate::writer::{EndGuard, Writer};

/// A query of more items than this leaves the thread of the caller.
const INLINE_QUERY_ITEMS: usize = 100;

/// How long to wait for another process to let go of the file.
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// How often to try meanwhile.
const LOCK_RETRY: Duration = Duration::from_millis(20);

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Memory for pages of the file, in bytes.
    pub cache_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { cache_bytes: 32 << 20 }
    }
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("{} is in use by another process", .0.display())]
    InUse(PathBuf),
    /// Its folder or file cannot be had.
    #[error("{} cannot be opened: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is no store, a broken one, or on a broken disk.
    #[error("the store cannot be opened: {0}")]
    Database(Box<redb::Error>),
}

impl From<redb::Error> for OpenError {
    fn from(error: redb::Error) -> Self {
        Self::Database(Box::new(error))
    }
}

impl From<crate::engine::Failure> for OpenError {
    fn from(error: crate::engine::Failure) -> Self {
        Self::Database(error)
    }
}

/// The store of one machine: items, messages and held messages in one file. Dropping it closes it.
pub struct Embedded {
    pub(crate) shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Keeps other processes out for as long as it is open.
    _lock: Option<File>,
}

impl Embedded {
    /// Opens the store in the folder `dir`, and makes both where there is none.
    ///
    /// Messages that were held when the store was last used become ordinary messages, due now.
    pub fn open(
        dir: &Path,
        clock: Arc<dyn Clock>,
        options: &Options,
    ) -> Result<Arc<Self>, OpenError> {
        std::fs::create_dir_all(dir)
            .map_err(|source| OpenError::File { path: dir.to_owned(), source })?;
        let path = dir.join("annex.redb");
        let failed = |source| OpenError::File { path: path.clone(), source };
        let lock = open_file(&path).map_err(failed)?;
        lock_file(&lock, &path)?;
        let medium =
            FileBackend::new(open_file(&path).map_err(failed)?).map_err(redb::Error::from)?;
        Self::open_on(Box::new(medium), Some(lock), clock, options)
    }

    /// A store that is gone when it is dropped, for tests.
    pub fn in_memory(clock: Arc<dyn Clock>) -> Result<Arc<Self>, OpenError> {
        Self::open_on(Box::new(InMemoryBackend::new()), None, clock, &Options::default())
    }

    pub(crate) fn open_on(
        medium: Box<dyn StorageBackend>,
        lock: Option<File>,
        clock: Arc<dyn Clock>,
        options: &Options,
    ) -> Result<Arc<Self>, OpenError> {
        let engine = Engine::open(medium, options.cache_bytes)?;
        let epoch = start(&engine, &*clock)?;
        let shared = Arc::new(Shared::new(engine, clock, epoch));
        let writer = Writer::new(shared.clone(), first_number(epoch));
        let guard = EndGuard(shared.clone());
        let thread = std::thread::Builder::new()
            .name("annex-writer".to_owned())
            .spawn(move || {
                let _guard = guard;
                writer.run();
            })
            .map_err(redb::Error::from)?;
        Ok(Arc::new(Self { shared, writer: Mutex::new(Some(thread)), _lock: lock }))
    }

    /// Finishes what waits to be written, and closes the file. Everything after that is an [`Outage`]. Blocks for as
    /// long as a transaction takes.
    pub fn close(&self) {
        self.shared.jobs.stop();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(_)) = writer.map(JoinHandle::join) {
            tracing::error!("the writer of the store has panicked");
        }
    }

    /// Removes all items that have expired by the hour, in small steps, and says how many index entries that took.
    /// The store does so by itself too, from time to time.
    pub async fn sweep(&self) -> Result<usize, Outage> {
        let mut total = 0;
        loop {
            match self.shared.chore(Chore::Sweep).await? {
                0 => return Ok(total),
                swept => total += swept,
            }
        }
    }
}

fn open_file(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        // It holds the data of every tenant.
        options.mode(0o600);
    }
    options.open(path)
}

fn lock_file(file: &File, path: &Path) -> Result<(), OpenError> {
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            // A process that was just killed lets go of it when the system has cleaned up after it.
            Err(TryLockError::WouldBlock) if began.elapsed() < LOCK_WAIT => {
                std::thread::sleep(LOCK_RETRY);
            }
            Err(TryLockError::WouldBlock) => return Err(OpenError::InUse(path.to_owned())),
            Err(TryLockError::Error(source)) => {
                return Err(OpenError::File { path: path.to_owned(), source });
            }
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.close();
    }
}

/// Begins an epoch: raises its number, and makes messages of what was held in the last one.
fn start(engine: &Engine, clock: &dyn Clock) -> Result<u64, OpenError> {
    let transaction = engine.write()?;
    let epoch = {
        let mut meta = transaction.open_table(META).map_err(redb::Error::from)?;
        let last = meta.get(EPOCH).map_err(redb::Error::from)?.map_or(0, |guard| guard.value());
        let epoch = last.saturating_add(1);
        meta.insert(EPOCH, epoch).map_err(redb::Error::from)?;
        let mut tables = Tables::open(&transaction)?;
        // They belong to the epoch in which they were held: their receives are noted on disk, since one of them may be
        // what killed the process. No epoch gets this far by sending.
        let mut number = first_number(last) + (1 << 39);
        let mut moment = Moment { now: clock.now(), steady: clock.steady(), number: &mut number };
        loop {
            let first = tables.holds.first().map_err(redb::Error::from)?;
            let Some(id) = first.map(|(id, _)| id.value()) else { break };
            // The queues of this process start after this, and look at the disk.
            transaction::convert_hold(&mut tables, id, &mut moment, &mut Effects::default())?;
        }
        for &queue in QueueName::ALL {
            transaction::clamp_delays(&mut tables, queue, &mut moment)?;
        }
        epoch
    };
    transaction.commit().map_err(redb::Error::from)?;
    Ok(epoch)
}

#[async_trait]
impl Store for Embedded {
    async fn get(&self, key: &Key) -> Result<Option<Item>, Outage> {
        ports::check_key(key)?;
        let now = self.shared.clock.now();
        self.shared.reading("an item could not be read", |view| read::get(view, key, now)).await
    }

    async fn query(&self, query: Query) -> Result<Page, Outage> {
        ports::check_query(&query)?;
        let now = self.shared.clock.now();
        if INLINE_QUERY_ITEMS < query.limit {
            let shared = self.shared.clone();
            let copy = query.clone();
            let page = tokio::task::spawn_blocking(move || {
                shared.engine.read().and_then(|view| read::page(&view, &copy, now))
            });
            // Where this failed, it is done again with all that a failure asks for.
            if let Ok(Ok(page)) = page.await {
                return Ok(page);
            }
        }
        self.shared.reading("a query failed", |view| read::page(view, &query, now)).await
    }

    async fn scan(&self, scan: Scan) -> Result<ScanPage, Outage> {
        ports::check_scan(&scan)?;
        if let Some(cursor) = &scan.cursor
            && hex::decode(cursor).is_err()
        {
            return Err(Outage::new("a cursor of another store"));
        }
        let now = self.shared.clock.now();
        let (shared, copy) = (self.shared.clone(), scan.clone());
        let page = tokio::task::spawn_blocking(move || {
            shared.engine.read().and_then(|view| read::scan(&view, &copy, now))
        });
        if let Ok(Ok(page)) = page.await {
            return Ok(page);
        }
        self.shared.reading("a scan failed", |view| read::scan(view, &scan, now)).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, Outage> {
        ports::check(&commit)?;
        self.shared.commit(commit).await
    }

    async fn count(&self, count: Count) -> Result<Counted, Outage> {
        ports::check_count(&count)?;
        self.shared.count(count).await
    }

    fn holds(&self) -> bool {
        true
    }

    fn atomic(&self) -> bool {
        true
    }

    fn epoch(&self) -> u64 {
        self.shared.epoch
    }
}
