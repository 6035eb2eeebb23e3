//! A store and blobs in memory, for tests of the core.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use uuid::Uuid;

use crate::limits::{COUNTER_MAX, PAGE_BYTES_MAX, PAGE_ITEMS_MAX};
use crate::ports::{
    Blobs, Clock, Commit, Committed, Count, Counted, DeadLetter, DeadLetters, Item, Key, Outage,
    Outgoing, Page, Query, QueueName, Scan, ScanPage, Store, When, Write, check, check_count,
    check_key, check_query, check_scan,
};
use crate::time::Timestamp;

/// A store in memory. It keeps what was sent and held, for a test to look at; nothing receives it.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    items: BTreeMap<Key, Item>,
    sent: Vec<Outgoing>,
    held: BTreeMap<Uuid, Outgoing>,
    dead: Vec<(QueueName, DeadLetter)>,
    refusing: bool,
}

impl MemoryStore {
    /// An empty store that goes by this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// Takes the messages sent since the last call, in order.
    pub fn take_sent(&self) -> Vec<Outgoing> {
        std::mem::take(&mut self.state().sent)
    }

    /// The messages that are held.
    pub fn held(&self) -> BTreeMap<Uuid, Outgoing> {
        self.state().held.clone()
    }

    /// Every live item.
    pub fn items(&self) -> BTreeMap<Key, Item> {
        let (state, now) = (self.state(), self.clock.now());
        let keys = state.items.keys();
        keys.filter_map(|key| Some((key.clone(), live(&state.items, key, now)?))).collect()
    }

    /// Makes a dead letter of a queue.
    pub fn bury(&self, queue: QueueName, letter: DeadLetter) {
        self.state().dead.push((queue, letter));
    }

    /// Makes every commit fail as on a full disk, or ends that.
    pub fn refuse_writes(&self, refuse: bool) {
        self.state().refusing = refuse;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }
}

fn live(items: &BTreeMap<Key, Item>, key: &Key, now: Timestamp) -> Option<Item> {
    items.get(key).filter(|item| item.expires_at.is_none_or(|end| now < end)).cloned()
}

fn holds(when: When, found: Option<&Item>) -> bool {
    match (when, found) {
        (When::Always, _) | (When::Absent, None) | (When::Present, Some(_)) => true,
        (When::Revision(revision), Some(item)) => item.revision == revision,
        (When::Absent, Some(_)) | (When::Present | When::Revision(_), None) => false,
    }
}

impl State {
    fn apply(&mut self, write: Write, now: Timestamp) {
        let found = live(&self.items, write.key(), now);
        let revision = found.as_ref().map_or(1, |item| item.revision + 1);
        match write {
            Write::Delete { key, .. } => {
                self.items.remove(&key);
            }
            Write::Put { key, data, expires_at, .. } => {
                let item = Item { data, counters: BTreeMap::new(), revision, expires_at };
                self.items.insert(key, item);
            }
            Write::Tally { key, data, add, expires_at } => {
                let new = Item { data, counters: BTreeMap::new(), revision: 1, expires_at };
                let mut item = found.unwrap_or(new);
                for (name, amount) in add {
                    let counter = item.counters.entry(name).or_default();
                    *counter = counter.saturating_add(amount).clamp(-COUNTER_MAX, COUNTER_MAX);
                }
                self.items.insert(key, Item { revision, expires_at, ..item });
            }
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn get(&self, key: &Key) -> Result<Option<Item>, Outage> {
        check_key(key)?;
        Ok(live(&self.state().items, key, self.clock.now()))
    }

    async fn query(&self, query: Query) -> Result<Page, Outage> {
        check_query(&query)?;
        let now = self.clock.now();
        let state = self.state();
        let inside = |key: &Key| {
            key.partition == query.partition
                && query.from <= key.sort
                && (query.to.is_empty() || key.sort < query.to)
        };
        let found = state.items.keys().filter(|key| inside(key));
        let mut found: Vec<(String, Item)> = found
            .filter_map(|key| live(&state.items, key, now).map(|item| (key.sort.clone(), item)))
            .collect();
        if query.backward {
            found.reverse();
        }
        let mut bytes = 0;
        let full = found.iter().position(|(_, item)| {
            bytes += item.data.len();
            PAGE_BYTES_MAX < bytes
        });
        let limit = query.limit.clamp(1, PAGE_ITEMS_MAX).min(full.unwrap_or(usize::MAX)).max(1);
        let rest = found.split_off(limit.min(found.len()));
        let last = found.last().map(|(sort, _)| sort.clone());
        let next = rest.into_iter().next().map(|(sort, _)| sort);
        let next = if query.backward { next.and(last) } else { next };
        Ok(Page { items: found, next })
    }

    async fn scan(&self, scan: Scan) -> Result<ScanPage, Outage> {
        check_scan(&scan)?;
        let now = self.clock.now();
        let state = self.state();
        let mut page = ScanPage::default();
        let mut bytes = 0;
        // The cursor is the last key that was passed, as JSON.
        let after = match &scan.cursor {
            None => None,
            Some(cursor) => {
                let parts: (String, String) = serde_json::from_str(cursor)
                    .map_err(|error| Outage::caused("a cursor of another store", error))?;
                Some(Key::new(parts.0, parts.1))
            }
        };
        for key in state.items.keys() {
            let inside = key.partition.starts_with(&scan.prefix)
                && after.as_ref().is_none_or(|after| after < key);
            let Some(item) = inside.then(|| live(&state.items, key, now)).flatten() else {
                continue;
            };
            bytes += item.data.len();
            let full = scan.limit.clamp(1, PAGE_ITEMS_MAX) <= page.items.len()
                || (PAGE_BYTES_MAX < bytes && !page.items.is_empty());
            if full {
                let last = page.items.last().map(|(key, _)| (&key.partition, &key.sort));
                page.next = serde_json::to_string(&last.expect("a full page has items")).ok();
                return Ok(page);
            }
            page.items.push((key.clone(), item));
        }
        Ok(page)
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, Outage> {
        check(&commit)?;
        let now = self.clock.now();
        let mut state = self.state();
        if state.refusing {
            return Err(Outage { write_refused: true, ..Outage::new("told to refuse writes") });
        }
        for (index, write) in commit.writes.iter().enumerate() {
            let (Write::Put { key, when, .. } | Write::Delete { key, when }) = write else {
                continue;
            };
            let found = live(&state.items, key, now);
            if !holds(*when, found.as_ref()) {
                return Ok(Committed::Lost { index, found });
            }
        }
        commit.writes.into_iter().for_each(|write| state.apply(write, now));
        state.sent.extend(commit.sends);
        state.held.extend(commit.holds.into_iter().map(|hold| (hold.id, hold.send)));
        for id in commit.released {
            state.held.remove(&id);
        }
        Ok(Committed::Done)
    }

    async fn count(&self, count: Count) -> Result<Counted, Outage> {
        check_count(&count)?;
        let now = self.clock.now();
        let mut state = self.state();
        if state.refusing {
            return Err(Outage { write_refused: true, ..Outage::new("told to refuse writes") });
        }
        let found = live(&state.items, &count.key, now).map(|item| item.counters);
        let found = found.unwrap_or_default();
        if !count.fits(&found) {
            return Ok(Counted::Refused(found));
        }
        state.apply(count.tally(), now);
        Ok(Counted::Done(state.items[&count.key].counters.clone()))
    }

    fn holds(&self) -> bool {
        true
    }

    fn atomic(&self) -> bool {
        true
    }

    fn epoch(&self) -> u64 {
        1
    }
}

#[async_trait]
impl DeadLetters for MemoryStore {
    async fn list(&self, queue: QueueName, limit: usize) -> Result<Vec<DeadLetter>, Outage> {
        let state = self.state();
        let of_queue = state.dead.iter().filter(|(name, _)| *name == queue);
        Ok(of_queue.take(limit).map(|(_, letter)| letter.clone()).collect())
    }

    async fn redrive(&self, queue: QueueName, limit: usize) -> Result<usize, Outage> {
        let mut state = self.state();
        let mut count = 0;
        let (back, left) = std::mem::take(&mut state.dead).into_iter().partition(|(name, _)| {
            let chosen = *name == queue && count < limit;
            count += usize::from(chosen);
            chosen
        });
        state.dead = left;
        let back: Vec<(QueueName, DeadLetter)> = back;
        state.sent.extend(back.into_iter().map(|(queue, letter)| Outgoing {
            queue,
            body: letter.body,
            delay: Duration::ZERO,
        }));
        Ok(count)
    }
}

/// Blobs in memory.
pub struct MemoryBlobs {
    clock: Arc<dyn Clock>,
    blobs: Mutex<HashMap<String, (Bytes, Timestamp)>>,
}

impl MemoryBlobs {
    /// No blobs, by this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, blobs: Mutex::default() }
    }

    /// How many there are, the expired ones included.
    pub fn count(&self) -> usize {
        self.blobs.lock().expect("no holder of the lock panics").len()
    }
}

#[async_trait]
impl Blobs for MemoryBlobs {
    async fn put(&self, key: &str, bytes: Bytes, expires_at: Timestamp) -> Result<(), Outage> {
        let mut blobs = self.blobs.lock().expect("no holder of the lock panics");
        blobs.insert(key.to_owned(), (bytes, expires_at));
        Ok(())
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, Outage> {
        let blobs = self.blobs.lock().expect("no holder of the lock panics");
        let live = blobs.get(key).filter(|(_, expires_at)| self.clock.now() < *expires_at);
        Ok(live.map(|(bytes, _)| bytes.clone()))
    }

    async fn delete(&self, key: &str) -> Result<(), Outage> {
        self.blobs.lock().expect("no holder of the lock panics").remove(key);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{ManualClock, blobs, store};

    fn clock() -> Arc<ManualClock> {
        Arc::new(ManualClock::new(Timestamp::from_secs(1_700_000_000)))
    }

    crate::store_contract!(memory_store, async {
        let clock = clock();
        store::Bench::new(Arc::new(MemoryStore::new(clock.clone())), clock)
    });

    crate::blobs_contract!(memory_blobs, async {
        let clock = clock();
        let blobs = Arc::new(MemoryBlobs::new(clock.clone()));
        blobs::Bench { blobs, clock, guard: Box::new(()) }
    });
}
