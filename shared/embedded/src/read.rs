//! Reads of items on a view of the database.

use annex_core::limits::{PAGE_BYTES_MAX, PAGE_ITEMS_MAX};
use annex_core::ports::{Item, Key, Page, Query, Scan, ScanPage};
use annex_core::time::Timestamp;
use redb::{AccessGuard, ReadTransaction, StorageError};

use crate::engine::Failure;
use crate::item::{self, Stored};
use crate::tables::ITEMS;

/// Entries that one page goes through, the expired ones included.
const SCAN_MAX: usize = 10_000;

type Entry<'a> = (AccessGuard<'a, &'static [u8]>, AccessGuard<'a, &'static [u8]>);

/// The live item at a key.
pub(crate) fn get(
    view: &ReadTransaction,
    key: &Key,
    now: Timestamp,
) -> Result<Option<Item>, Failure> {
    let table = view.open_table(ITEMS).map_err(redb::Error::from)?;
    let key = item::encode_key(key);
    match table.get(key.as_slice()).map_err(redb::Error::from)? {
        None => Ok(None),
        Some(guard) => live(guard.value(), now),
    }
}

fn live(bytes: &[u8], now: Timestamp) -> Result<Option<Item>, Failure> {
    let stored = Stored::read(bytes).ok_or_else(broken)?;
    if !stored.is_live(now) {
        return Ok(None);
    }
    stored.item().ok_or_else(broken).map(Some)
}

fn broken() -> Failure {
    Box::new(redb::Error::Corrupted("an item of the store cannot be read".to_owned()))
}

/// A page of a query.
pub(crate) fn page(view: &ReadTransaction, query: &Query, now: Timestamp) -> Result<Page, Failure> {
    let (from, to) = item::bounds(query);
    if to <= from {
        return Ok(Page::default());
    }
    let table = view.open_table(ITEMS).map_err(redb::Error::from)?;
    let range = table.range(from.as_slice()..to.as_slice()).map_err(redb::Error::from)?;
    if query.backward { collect(range.rev(), query, now) } else { collect(range, query, now) }
}

/// A page of a scan. Partitions lie by their length first, so what starts with a prefix is one range for each length
/// that there is; what lies between is jumped over. A cursor is the key on disk to go on at, in hexadecimal.
pub(crate) fn scan(
    view: &ReadTransaction,
    scan: &Scan,
    now: Timestamp,
) -> Result<ScanPage, Failure> {
    let table = view.open_table(ITEMS).map_err(redb::Error::from)?;
    let limit = scan.limit.clamp(1, PAGE_ITEMS_MAX);
    let mut page = ScanPage::default();
    let (mut bytes, mut passed) = (0, 0);
    let mut from = match &scan.cursor {
        Some(cursor) => hex::decode(cursor).map_err(|_| broken())?,
        None => item::scan_start(scan.prefix.len(), &scan.prefix).ok_or_else(broken)?,
    };
    'jumps: loop {
        for entry in table.range(from.as_slice()..).map_err(redb::Error::from)? {
            let (key, value) = entry.map_err(redb::Error::from)?;
            let key = key.value();
            let partition = item::partition_of(key).ok_or_else(broken)?;
            passed += 1;
            if SCAN_MAX <= passed {
                page.next = Some(hex::encode(key));
                return Ok(page);
            }
            if !partition.starts_with(&scan.prefix) {
                let here = item::scan_start(partition.len(), &scan.prefix);
                let start = match here {
                    Some(start) if key < start.as_slice() => Some(start),
                    _ => item::scan_start(partition.len() + 1, &scan.prefix),
                };
                let Some(start) = start else { return Ok(page) };
                from = start;
                continue 'jumps;
            }
            let Some(item) = live(value.value(), now)? else { continue };
            bytes += item.data.len();
            let is_full = PAGE_BYTES_MAX < bytes && !page.items.is_empty();
            if limit <= page.items.len() || is_full {
                page.next = Some(hex::encode(key));
                return Ok(page);
            }
            let sort = item::sort_of(key, partition.len()).ok_or_else(broken)?;
            page.items.push((Key::new(partition, sort), item));
        }
        return Ok(page);
    }
}

fn collect<'a>(
    entries: impl Iterator<Item = Result<Entry<'a>, StorageError>>,
    query: &Query,
    now: Timestamp,
) -> Result<Page, Failure> {
    let limit = query.limit.clamp(1, PAGE_ITEMS_MAX);
    let mut page = Page::default();
    let mut bytes = 0;
    // Of a backward query, the last key that this page went through: its range ends before that.
    let mut passed: Option<String> = None;
    for (count, entry) in entries.enumerate() {
        let (key, value) = entry.map_err(redb::Error::from)?;
        let sort = item::sort_of(key.value(), query.partition.len()).ok_or_else(broken)?;
        let stop = |passed: Option<String>| {
            if query.backward { passed } else { Some(sort.to_owned()) }
        };
        if SCAN_MAX <= count {
            page.next = stop(passed);
            return Ok(page);
        }
        if let Some(item) = live(value.value(), now)? {
            bytes += item.data.len();
            let is_full = PAGE_BYTES_MAX < bytes && !page.items.is_empty();
            if limit <= page.items.len() || is_full {
                page.next = stop(passed);
                return Ok(page);
            }
            page.items.push((sort.to_owned(), item));
        }
        if query.backward {
            passed = Some(sort.to_owned());
        }
    }
    Ok(page)
}
