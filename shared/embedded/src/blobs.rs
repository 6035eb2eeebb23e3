//! Blobs in a folder: one file for each, under the hash of its key, with its expiry in front of its bytes.
//!
//! A file is written beside its place, synced, and moved there, so that a blob is there whole or not at all.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use annex_core::ports::{Blobs, Clock, Outage};
use annex_core::time::Timestamp;
use async_trait::async_trait;
use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;

/// What every file starts with: a name and a version.
const MAGIC: &[u8; 8] = b"annexbl1";

/// [`MAGIC`] and the expiry in milliseconds, little-endian.
const HEAD: usize = 16;

/// The folder of files that are being written.
const TEMPORARY: &str = "tmp";

/// Blobs in a folder.
pub struct FileBlobs {
    inner: Arc<Inner>,
}

struct Inner {
    dir: PathBuf,
    clock: Arc<dyn Clock>,
    /// Held while a file is put in its place or taken from it, so that a sweep never removes a newer one than it
    /// looked at. Never held while bytes are written.
    places: Mutex<()>,
}

impl FileBlobs {
    /// The blobs in `dir`, which is made where it is missing. One process at a time may have them; the store's lock
    /// sees to that.
    pub fn open(dir: &Path, clock: Arc<dyn Clock>) -> Result<Self, Outage> {
        let failed = |error| outage("the folder of blobs cannot be opened", error);
        let temporary = dir.join(TEMPORARY);
        // What an earlier process did not finish is of no use.
        match std::fs::remove_dir_all(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        std::fs::create_dir_all(&temporary).map_err(failed)?;
        let inner = Inner { dir: dir.to_owned(), clock, places: Mutex::default() };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Removes the blobs that have expired, and says how many it was. One folder of up to 256 at a time.
    pub async fn sweep(&self) -> Result<usize, Outage> {
        let mut removed = 0;
        for shard in 0..=u8::MAX {
            removed += self
                .blocking("expired blobs could not be removed", move |inner| {
                    inner.sweep(&inner.dir.join(hex::encode([shard])))
                })
                .await?;
        }
        Ok(removed)
    }

    async fn blocking<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&Inner) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Outage> {
        let inner = self.inner.clone();
        match tokio::task::spawn_blocking(move || work(&inner)).await {
            Ok(done) => done.map_err(|error| outage(what, error)),
            Err(_) => Err(Outage::new(format!("{what}: the runtime is shutting down"))),
        }
    }
}

fn outage(what: &str, error: io::Error) -> Outage {
    Outage { write_refused: true, ..Outage::caused(format!("{what}: {error}"), error) }
}

impl Inner {
    fn path(&self, key: &str) -> PathBuf {
        let name = hex::encode(digest(&SHA256, key.as_bytes()));
        self.dir.join(&name[..2]).join(name)
    }

    fn put(&self, key: &str, bytes: &[u8], expires_at: Timestamp) -> io::Result<()> {
        let path = self.path(key);
        let folder = path.parent().unwrap_or(&self.dir);
        if !folder.is_dir() {
            std::fs::create_dir_all(folder)?;
            File::open(&self.dir)?.sync_all()?;
        }
        let temporary = tempfile::Builder::new().tempfile_in(self.dir.join(TEMPORARY))?;
        let mut file = temporary.as_file();
        file.write_all(MAGIC)?;
        file.write_all(&expires_at.millis().to_le_bytes())?;
        file.write_all(bytes)?;
        file.sync_all()?;
        {
            let _places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
            temporary.persist(&path).map_err(|failed| failed.error)?;
        }
        File::open(folder)?.sync_all()
    }

    fn get(&self, key: &str) -> io::Result<Option<Bytes>> {
        let Some((mut file, expires_at)) = open(&self.path(key))? else { return Ok(None) };
        if expires_at <= self.clock.now() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(Some(bytes.into()))
    }

    fn delete(&self, key: &str) -> io::Result<()> {
        let _places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        match std::fs::remove_file(self.path(key)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn sweep(&self, shard: &Path) -> io::Result<usize> {
        let entries = match std::fs::read_dir(shard) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            entries => entries?,
        };
        let now = self.clock.now();
        let mut removed = 0;
        for entry in entries {
            let path = entry?.path();
            let _places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, expires_at)) = open(&path)?
                && expires_at <= now
            {
                std::fs::remove_file(&path)?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}

/// A blob's file, read up to its bytes, and its expiry; `None` where there is no file, or none of ours.
fn open(path: &Path) -> io::Result<Option<(File, Timestamp)>> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut head = [0; HEAD];
    match file.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let (magic, expires_at) = head.split_at(MAGIC.len());
    let expires_at = expires_at.try_into().map(i64::from_le_bytes).unwrap_or_default();
    Ok((magic == MAGIC).then(|| (file, Timestamp::from_millis(expires_at))))
}

#[async_trait]
impl Blobs for FileBlobs {
    async fn put(&self, key: &str, bytes: Bytes, expires_at: Timestamp) -> Result<(), Outage> {
        let key = key.to_owned();
        self.blocking("a blob could not be written", move |inner| {
            inner.put(&key, &bytes, expires_at)
        })
        .await
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, Outage> {
        let key = key.to_owned();
        let got = self.blocking("a blob could not be read", move |inner| inner.get(&key)).await;
        got.map_err(|outage| Outage { write_refused: false, ..outage })
    }

    async fn delete(&self, key: &str) -> Result<(), Outage> {
        let key = key.to_owned();
        self.blocking("a blob could not be removed", move |inner| inner.delete(&key)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use annex_core::testkit::{ManualClock, blobs};
    use std::time::Duration;

    fn clock() -> Arc<ManualClock> {
        Arc::new(ManualClock::new(Timestamp::from_secs(1_700_000_000)))
    }

    annex_core::blobs_contract!(file_blobs, async {
        let (clock, dir) = (clock(), tempfile::tempdir().unwrap());
        let blobs = Arc::new(FileBlobs::open(dir.path(), clock.clone()).unwrap());
        blobs::Bench { blobs, clock, guard: Box::new(dir) }
    });

    /// All files of a folder, at any depth.
    fn files(dir: &Path) -> usize {
        let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
    }

    #[tokio::test]
    async fn a_sweep_removes_what_has_expired_and_nothing_else() {
        let (clock, dir) = (clock(), tempfile::tempdir().unwrap());
        let blobs = FileBlobs::open(dir.path(), clock.clone()).unwrap();
        for n in 0..20_u64 {
            let expires_at = clock.now().plus(Duration::from_secs(n));
            blobs.put(&n.to_string(), Bytes::from("x"), expires_at).await.unwrap();
        }
        assert_eq!(blobs.sweep().await.unwrap(), 1);
        clock.advance(Duration::from_secs(9));
        assert_eq!(blobs.sweep().await.unwrap(), 9);
        assert_eq!(files(dir.path()), 10);
        assert_eq!(blobs.get("9").await.unwrap(), None);
        assert_eq!(blobs.get("10").await.unwrap(), Some(Bytes::from("x")));
    }

    #[tokio::test]
    async fn blobs_outlive_the_process_and_unfinished_ones_do_not() {
        let (clock, dir) = (clock(), tempfile::tempdir().unwrap());
        let expires_at = clock.now().plus(Duration::from_secs(60));
        let blobs = FileBlobs::open(dir.path(), clock.clone()).unwrap();
        blobs.put("a", Bytes::from("x"), expires_at).await.unwrap();
        std::fs::write(dir.path().join(TEMPORARY).join("unfinished"), "annex").unwrap();
        drop(blobs);
        let blobs = FileBlobs::open(dir.path(), clock).unwrap();
        assert_eq!(blobs.get("a").await.unwrap(), Some(Bytes::from("x")));
        assert_eq!(files(dir.path()), 1);
    }

    #[tokio::test]
    async fn a_file_that_is_no_blob_is_no_blob() {
        let (clock, dir) = (clock(), tempfile::tempdir().unwrap());
        let blobs = FileBlobs::open(dir.path(), clock).unwrap();
        let path = blobs.inner.path("a");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        for bytes in [&b""[..], b"annexbl1", b"something else altogether"] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(blobs.get("a").await.unwrap(), None);
            assert_eq!(blobs.sweep().await.unwrap(), 0);
        }
    }
}
