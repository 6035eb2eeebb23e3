//! How keys and items lie on disk.
//!
//! A key is the length of its partition (2 bytes, big-endian), the partition, and the sort key, so that the items of
//! a partition lie together, ordered by sort key byte by byte. An item is a version byte, its revision, its expiry, the
//! number of its entry in the index of expiries (0 for none),
//! its counters, and its data to the end; numbers are little-endian.

use std::collections::BTreeMap;

use annex_core::limits::PARTITION_KEY_BYTES_MAX;
use annex_core::ports::{Item, Key, Query};
use annex_core::time::Timestamp;

/// The first byte of every record of this crate.
pub(crate) const VERSION: u8 = 1;

/// Stands for no expiry.
const NEVER: i64 = i64::MAX;

const HEAD: usize = 1 + 8 + 8 + 8 + 2;

/// A key as it lies on disk.
pub(crate) fn encode_key(key: &Key) -> Vec<u8> {
    join_key(&key.partition, key.sort.as_bytes())
}

fn join_key(partition: &str, sort: &[u8]) -> Vec<u8> {
    let size = u16::try_from(partition.len()).expect("a partition key was checked to be short");
    let mut out = Vec::with_capacity(2 + partition.len() + sort.len());
    out.extend_from_slice(&size.to_be_bytes());
    out.extend_from_slice(partition.as_bytes());
    out.extend_from_slice(sort);
    out
}

/// The sort key of a key on disk, given the length of its partition.
pub(crate) fn sort_of(key: &[u8], partition_len: usize) -> Option<&str> {
    std::str::from_utf8(key.get(2 + partition_len..)?).ok()
}

/// First key of a query's range, and the first after it.
pub(crate) fn bounds(query: &Query) -> (Vec<u8>, Vec<u8>) {
    let from = join_key(&query.partition, query.from.as_bytes());
    // No UTF-8 text starts with this byte, so it sorts after every sort key.
    let to = if query.to.is_empty() { &[0xff] } else { query.to.as_bytes() };
    (from, join_key(&query.partition, to))
}

/// The partition of a key on disk.
pub(crate) fn partition_of(key: &[u8]) -> Option<&str> {
    let (size, rest) = key.split_first_chunk()?;
    let partition = rest.get(..usize::from(u16::from_be_bytes(*size)))?;
    std::str::from_utf8(partition).ok()
}

/// The first key on disk that a partition of `len` bytes which starts with `prefix` may have; `None` where no partition
/// is as long.
pub(crate) fn scan_start(len: usize, prefix: &str) -> Option<Vec<u8>> {
    let size = u16::try_from(len).ok().filter(|_| len <= PARTITION_KEY_BYTES_MAX)?;
    let mut out = size.to_be_bytes().to_vec();
    out.extend_from_slice(prefix.as_bytes());
    Some(out)
}

/// An item as it lies on disk, read without copying its data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored<'a> {
    pub(crate) revision: u64,
    /// The number of its entry in the index of expiries.
    pub(crate) entry: u64,
    expires_at: i64,
    counters: u16,
    rest: &'a [u8],
}

impl<'a> Stored<'a> {
    /// Reads the head; `None` where this is no item of ours.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (&version, bytes) = bytes.split_first()?;
        if version != VERSION {
            return None;
        }
        let (revision, bytes) = bytes.split_first_chunk()?;
        let (expires_at, bytes) = bytes.split_first_chunk()?;
        let (entry, bytes) = bytes.split_first_chunk()?;
        let (counters, rest) = bytes.split_first_chunk()?;
        Some(Self {
            revision: u64::from_le_bytes(*revision),
            entry: u64::from_le_bytes(*entry),
            expires_at: i64::from_le_bytes(*expires_at),
            counters: u16::from_le_bytes(*counters),
            rest,
        })
    }

    /// Whether it exists at `now`.
    pub(crate) fn is_live(&self, now: Timestamp) -> bool {
        now.millis() < self.expires_at || self.expires_at == NEVER
    }

    /// From when on it is absent.
    pub(crate) fn expires_at(&self) -> Option<Timestamp> {
        (self.expires_at != NEVER).then(|| Timestamp::from_millis(self.expires_at))
    }

    /// The whole item.
    pub(crate) fn item(&self) -> Option<Item> {
        let mut rest = self.rest;
        let mut counters = BTreeMap::new();
        for _ in 0..self.counters {
            let (size, tail) = rest.split_first_chunk()?;
            let (name, tail) = tail.split_at_checked(usize::from(u16::from_le_bytes(*size)))?;
            let (value, tail) = tail.split_first_chunk()?;
            counters.insert(String::from_utf8(name.to_vec()).ok()?, i128::from_le_bytes(*value));
            rest = tail;
        }
        Some(Item {
            data: rest.to_vec(),
            counters,
            revision: self.revision,
            expires_at: self.expires_at(),
        })
    }
}

/// Writes an item. Its names and counts were checked to fit an item's size, which fits 16 bits in both.
pub(crate) fn encode(
    revision: u64,
    expires_at: Option<Timestamp>,
    entry: u64,
    counters: &BTreeMap<String, i128>,
    data: &[u8],
) -> Vec<u8> {
    let names: usize = counters.keys().map(|name| 2 + name.len() + 16).sum();
    let mut out = Vec::with_capacity(HEAD + names + data.len());
    out.push(VERSION);
    out.extend_from_slice(&revision.to_le_bytes());
    out.extend_from_slice(&expires_at.map_or(NEVER, Timestamp::millis).to_le_bytes());
    out.extend_from_slice(&entry.to_le_bytes());
    let short = |len: usize| u16::try_from(len).unwrap_or(u16::MAX).to_le_bytes();
    out.extend_from_slice(&short(counters.len()));
    for (name, value) in counters {
        out.extend_from_slice(&short(name.len()));
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(&value.to_le_bytes());
    }
    out.extend_from_slice(data);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_read_as_it_was_written() {
        let counters = BTreeMap::from([("a".to_owned(), -1), ("b#é".to_owned(), i128::MAX)]);
        for expires_at in [None, Some(Timestamp::from_millis(5))] {
            let bytes = encode(7, expires_at, 9, &counters, b"data");
            let expected = Item {
                data: b"data".to_vec(),
                counters: counters.clone(),
                revision: 7,
                expires_at,
            };
            let stored = Stored::read(&bytes).unwrap();
            assert_eq!((stored.item(), stored.entry), (Some(expected), 9));
        }
    }

    #[test]
    fn broken_items_are_none_and_never_a_panic() {
        let counters = BTreeMap::from([("name".to_owned(), 1)]);
        let bytes = encode(1, None, 0, &counters, b"");
        for len in 0..bytes.len() {
            assert_eq!(Stored::read(&bytes[..len]).and_then(|stored| stored.item()), None);
        }
        assert!(Stored::read(&[2; 64]).is_none());
    }

    #[test]
    fn an_item_lives_until_its_time() {
        let bytes = encode(1, Some(Timestamp::from_millis(5)), 0, &BTreeMap::new(), b"");
        let stored = Stored::read(&bytes).unwrap();
        assert!(stored.is_live(Timestamp::from_millis(4)));
        assert!(!stored.is_live(Timestamp::from_millis(5)));
    }
}
