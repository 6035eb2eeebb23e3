//! The database over the [`Disk`]: transactions, and opening it again after the disk failed.

use std::sync::{Arc, PoisonError, RwLock};

use annex_core::ports::Outage;
use redb::{Database, ReadTransaction, ReadableDatabase as _, StorageBackend, WriteTransaction};
use tokio::sync::watch;

use crate::disk::Disk;

/// A failure of the database. Boxed, since it is large and rare.
pub(crate) type Failure = Box<redb::Error>;

/// Whether the database must be opened again before it works.
pub(crate) fn is_latched(failure: &redb::Error) -> bool {
    use redb::Error;
    matches!(
        failure,
        Error::Io(_)
            | Error::Backend(_)
            | Error::PreviousIo
            | Error::DatabaseClosed
            | Error::LockPoisoned(_)
    )
}

/// What a port says of a failure.
pub(crate) fn outage(what: &str, failure: Failure) -> Outage {
    let write_refused = is_latched(&failure);
    Outage { write_refused, ..Outage::caused(format!("{what}: {failure}"), failure) }
}

/// The database and what lies below it.
pub(crate) struct Engine {
    disk: Arc<Disk>,
    cache_bytes: usize,
    /// `None` while it cannot be opened.
    database: RwLock<Option<Database>>,
    /// How often it was opened.
    generation: watch::Sender<u64>,
}

/// A handle of the disk for one life of the database.
#[derive(Debug)]
struct Handle(Arc<Disk>);

impl StorageBackend for Handle {
    fn len(&self) -> std::io::Result<u64> {
        StorageBackend::len(&*self.0)
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.0.read(offset, out)
    }
    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.0.set_len(len)
    }
    fn sync_data(&self) -> std::io::Result<()> {
        self.0.sync_data()
    }
    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        StorageBackend::write(&*self.0, offset, data)
    }
}

impl Engine {
    /// Opens the database, and makes it where the disk is empty.
    pub(crate) fn open(
        medium: Box<dyn StorageBackend>,
        cache_bytes: usize,
    ) -> Result<Self, redb::Error> {
        let disk = Arc::new(Disk::new(medium)?);
        let database = open(&disk, cache_bytes)?;
        Ok(Self {
            disk,
            cache_bytes,
            database: RwLock::new(Some(database)),
            generation: watch::Sender::new(1),
        })
    }

    /// A view of everything that is committed.
    pub(crate) fn read(&self) -> Result<ReadTransaction, Failure> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        let database = database.as_ref().ok_or(redb::Error::DatabaseClosed)?;
        Ok(database.begin_read().map_err(redb::Error::from)?)
    }

    /// How often the database was opened; changes wake whoever waits for it.
    pub(crate) fn generation(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// Begins to write. Only the writer does. Fails while the disk takes no writes.
    pub(crate) fn write(&self) -> Result<WriteTransaction, Failure> {
        self.disk.attach().map_err(redb::Error::from)?;
        match self.begin() {
            Err(failure) if is_latched(&failure) => {
                self.reopen();
                self.begin()
            }
            begun => begun,
        }
    }

    fn begin(&self) -> Result<WriteTransaction, Failure> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        let database = database.as_ref().ok_or(redb::Error::DatabaseClosed)?;
        Ok(database.begin_write().map_err(redb::Error::from)?)
    }

    /// Opens the database again if it has not been since it was found broken.
    pub(crate) fn reopen_since(&self, generation: u64) {
        if *self.generation.borrow() <= generation {
            self.reopen();
        }
    }

    /// Opens the database again after a failure. Only the writer does, between its transactions.
    pub(crate) fn reopen(&self) {
        let mut database = self.database.write().unwrap_or_else(PoisonError::into_inner);
        // It must be gone before the next one is opened; that it closes with an error is why we are here.
        drop(database.take());
        match open(&self.disk, self.cache_bytes) {
            Ok(opened) => *database = Some(opened),
            Err(failure) => tracing::error!(%failure, "the store file could not be opened again"),
        }
        drop(database);
        self.generation.send_modify(|generation| *generation += 1);
    }

    /// Closes the database, so that it opens fast next time.
    pub(crate) fn close(&self) {
        let database = self.database.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(failure)) = database.map(Database::close) {
            tracing::warn!(%failure, "the store file was not closed cleanly");
        }
    }
}

fn open(disk: &Arc<Disk>, cache_bytes: usize) -> Result<Database, redb::Error> {
    let database = Database::builder()
        .set_cache_size(cache_bytes)
        .create_with_backend(Handle(disk.clone()))?;
    Ok(database)
}
