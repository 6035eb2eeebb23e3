//! The file under the database, made to outlive a disk that takes no more writes.
//!
//! After one failed write the database below refuses everything until it is opened again, and opening it writes. So
//! the file is *detached* at the first failure: from then on writes go to memory only, on top of the file as it was
//! at the last good sync, and the database can be opened on that and read. [`Disk::attach`] writes what memory holds
//! to the file once the disk takes writes again.
//!
//! **Invariant:** nothing that was answered as done is ever in memory only, because the writer commits nothing while
//! the file is detached.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use redb::StorageBackend;

/// Unit of what memory holds, in bytes: a page of the database. Its header lies in the first one.
const BLOCK: u64 = 4096;

/// A file, or memory, and what could not be written to it.
#[derive(Debug)]
pub(crate) struct Disk {
    medium: Box<dyn StorageBackend>,
    detached: AtomicBool,
    memory: RwLock<Memory>,
    header: Mutex<Header>,
}

/// What stands on top of a detached file.
#[derive(Debug, Default)]
struct Memory {
    len: u64,
    blocks: BTreeMap<u64, Box<[u8]>>,
}

/// The first block, which says which of the other blocks count.
#[derive(Debug, Default)]
struct Header {
    /// As of the last good sync.
    synced: Vec<u8>,
    /// As written since.
    written: Vec<u8>,
}

impl Disk {
    /// Over a file, or whatever stands for one.
    pub(crate) fn new(medium: Box<dyn StorageBackend>) -> io::Result<Self> {
        let mut header = vec![0; block_len(medium.len()?.min(BLOCK))];
        medium.read(0, &mut header)?;
        Ok(Self {
            medium,
            detached: AtomicBool::new(false),
            memory: RwLock::default(),
            header: Mutex::new(Header { synced: header.clone(), written: header }),
        })
    }

    /// Whether writes go to memory only.
    pub(crate) fn is_detached(&self) -> bool {
        self.detached.load(Ordering::Acquire)
    }

    /// Brings the file up to what memory holds, and writes to it again from then on.
    pub(crate) fn attach(&self) -> io::Result<()> {
        if !self.is_detached() {
            return Ok(());
        }
        let mut memory = self.memory.write().unwrap_or_else(PoisonError::into_inner);
        self.medium.set_len(memory.len)?;
        for (index, block) in memory.blocks.range(1..) {
            self.medium.write(index * BLOCK, block)?;
        }
        self.medium.sync_data()?;
        // The first block comes last: it makes the others count.
        if let Some(first) = memory.blocks.get(&0) {
            self.medium.write(0, first)?;
            self.medium.sync_data()?;
            *self.header() = Header { synced: first.to_vec(), written: first.to_vec() };
        }
        memory.blocks.clear();
        self.detached.store(false, Ordering::Release);
        Ok(())
    }

    fn header(&self) -> MutexGuard<'_, Header> {
        self.header.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on in memory after `error`, from what the last good sync left.
    fn detach(&self, error: io::Error) -> io::Error {
        let mut memory = self.memory.write().unwrap_or_else(PoisonError::into_inner);
        if !self.is_detached() {
            let mut header = self.header();
            header.written = header.synced.clone();
            memory.blocks.clear();
            if !header.synced.is_empty() {
                memory.blocks.insert(0, header.synced.clone().into_boxed_slice());
            }
            // A file that was made longer stays so: the database only ever looks at what its header names.
            memory.len = self.medium.len().unwrap_or(BLOCK);
            self.detached.store(true, Ordering::Release);
        }
        error
    }

    fn note_header(&self, offset: u64, data: &[u8]) {
        if BLOCK <= offset {
            return;
        }
        let mut header = self.header();
        let start = block_len(offset);
        let end = (start + data.len()).min(block_len(BLOCK));
        if header.written.len() < end {
            header.written.resize(end, 0);
        }
        header.written[start..end].copy_from_slice(&data[..end - start]);
    }
}

/// Offsets within a block fit everywhere.
fn block_len(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

impl Memory {
    /// A block as it stands, in memory or in the file below.
    fn load(&self, medium: &dyn StorageBackend, index: u64) -> io::Result<Box<[u8]>> {
        let mut block = vec![0; block_len(BLOCK)].into_boxed_slice();
        if let Some(held) = self.blocks.get(&index) {
            block[..held.len()].copy_from_slice(held);
            return Ok(block);
        }
        let start = index * BLOCK;
        let below = medium.len()?.min(self.len).saturating_sub(start).min(BLOCK);
        if 0 < below {
            medium.read(start, &mut block[..block_len(below)])?;
        }
        Ok(block)
    }

    fn read(&self, medium: &dyn StorageBackend, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if self.len < offset + out.len() as u64 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        for (index, inside, range) in parts(offset, out.len()) {
            let block = self.load(medium, index)?;
            let size = range.len();
            out[range].copy_from_slice(&block[inside..inside + size]);
        }
        Ok(())
    }

    fn write(&mut self, medium: &dyn StorageBackend, offset: u64, data: &[u8]) -> io::Result<()> {
        self.len = self.len.max(offset + data.len() as u64);
        for (index, inside, range) in parts(offset, data.len()) {
            let mut block = self.load(medium, index)?;
            let size = range.len();
            block[inside..inside + size].copy_from_slice(&data[range]);
            self.blocks.insert(index, block);
        }
        Ok(())
    }

    fn set_len(&mut self, len: u64) {
        self.blocks.retain(|index, _| index * BLOCK < len);
        if let Some(block) = self.blocks.get_mut(&(len / BLOCK)) {
            block.iter_mut().skip(block_len(len % BLOCK)).for_each(|byte| *byte = 0);
        }
        self.len = len;
    }
}

/// The blocks that a range touches: the index, the start inside the block, and the part of the range.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = offset + done as u64;
        let inside = block_len(at % BLOCK);
        let size = (block_len(BLOCK) - inside).min(len - done);
        let range = done..done + size;
        done += size;
        Some((at / BLOCK, inside, range))
    })
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        if self.is_detached() {
            return Ok(self.memory.read().unwrap_or_else(PoisonError::into_inner).len);
        }
        self.medium.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if self.is_detached() {
            let memory = self.memory.read().unwrap_or_else(PoisonError::into_inner);
            // It may have been attached meanwhile; then the file has it all.
            if self.is_detached() {
                return memory.read(&*self.medium, offset, out);
            }
        }
        self.medium.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if self.is_detached() {
            self.memory.write().unwrap_or_else(PoisonError::into_inner).set_len(len);
            return Ok(());
        }
        self.medium.set_len(len).map_err(|error| self.detach(error))
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.is_detached() {
            return Ok(());
        }
        self.medium.sync_data().map_err(|error| self.detach(error))?;
        let mut header = self.header();
        let Header { synced, written } = &mut *header;
        synced.clone_from(written);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if self.is_detached() {
            let mut memory = self.memory.write().unwrap_or_else(PoisonError::into_inner);
            return memory.write(&*self.medium, offset, data);
        }
        self.medium.write(offset, data).map_err(|error| self.detach(error))?;
        self.note_header(offset, data);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FaultyMedium;

    fn disk(medium: &FaultyMedium) -> Disk {
        Disk::new(Box::new(medium.clone())).unwrap()
    }

    fn read(disk: &Disk, offset: u64, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        disk.read(offset, &mut out).unwrap();
        out
    }

    #[test]
    fn a_failed_sync_takes_the_header_back_and_later_writes_stay_in_memory_until_attached() {
        let medium = FaultyMedium::default();
        let disk = disk(&medium);
        disk.set_len(3 * BLOCK).unwrap();
        disk.write(0, b"old header").unwrap();
        disk.sync_data().unwrap();
        disk.write(0, b"new header").unwrap();
        medium.fail_writes(true);
        assert!(disk.sync_data().is_err());
        assert_eq!(read(&disk, 0, 10), b"old header");

        disk.write(BLOCK - 2, b"over a border").unwrap();
        disk.set_len(4 * BLOCK).unwrap();
        disk.sync_data().unwrap();
        assert_eq!(read(&disk, BLOCK - 2, 13), b"over a border");
        assert_eq!(disk.len().unwrap(), 4 * BLOCK);
        assert!(disk.attach().is_err());

        medium.fail_writes(false);
        disk.attach().unwrap();
        assert!(!disk.is_detached());
        assert_eq!(read(&disk, 0, 10), b"old header");
        assert_eq!(read(&disk, BLOCK - 2, 13), b"over a border");
        assert_eq!(read(&disk, 3 * BLOCK, 4), [0; 4]);
    }

    #[test]
    fn a_detached_file_can_shrink_and_grow_with_zeroes() {
        let medium = FaultyMedium::default();
        let disk = disk(&medium);
        disk.set_len(2 * BLOCK).unwrap();
        disk.write(0, &[7; 8192]).unwrap();
        disk.sync_data().unwrap();
        medium.fail_writes(true);
        assert!(disk.write(0, b"x").is_err());
        disk.write(BLOCK, &[8; 4096]).unwrap();
        disk.set_len(BLOCK + 1).unwrap();
        disk.set_len(2 * BLOCK).unwrap();
        assert_eq!(read(&disk, BLOCK - 1, 4), [7, 8, 0, 0]);
        assert!(disk.read(2 * BLOCK - 1, &mut [0; 2]).is_err());
    }
}
