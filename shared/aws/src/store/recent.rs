//! What was read recently, for items that every call reads and few change.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use annex_core::limits::RECENT_MAX;
use annex_core::ports::{Clock, Item, Key};
use annex_core::remembered::Remembered;
use annex_core::time::Timestamp;

use super::item::is_live;

/// Answers that are remembered, in number and in bytes.
const ENTRIES_MAX: u64 = 10_000;
const BYTES_MAX: u64 = 32 << 20;

/// Each key belongs to one of this many slots, by its hash. A write of a key makes what is remembered of its slot old.
const SLOTS: usize = 1 << 14;

/// A cache of items, found and absent, of one process.
pub(super) struct Recent {
    cache: Remembered<Key, Entry>,
    clock: Arc<dyn Clock>,
    writes: Box<[AtomicU32]>,
}

struct Entry {
    found: Option<Item>,
    reading: Reading,
}

/// When a read began, in time and among the writes.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    at: Timestamp,
    writes: u32,
}

/// A write that is under way: when it ends, in whatever way, what was read before is old.
pub(super) struct Writing<'a> {
    recent: &'a Recent,
    slots: Vec<usize>,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        for &slot in &self.slots {
            self.recent.writes[slot].fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Recent {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let cache = Remembered::weighed(BYTES_MAX, weight);
        Self { cache, clock, writes: (0..SLOTS).map(|_| AtomicU32::new(0)).collect() }
    }

    /// What is remembered of a key, where that is not too old.
    pub(super) async fn get(&self, key: &Key) -> Option<Option<Item>> {
        let entry = self.cache.get(key).await?;
        let now = self.clock.steady();
        // A clock that was set back tells nothing about an answer's age.
        let is_young = entry.reading.at <= now && now.since(entry.reading.at) < RECENT_MAX;
        if !is_young || entry.reading.writes != self.writes(key) {
            return None;
        }
        let wall = self.clock.now();
        Some(entry.found.as_ref().filter(|item| is_live(item, wall)).cloned())
    }

    /// A read of a key begins.
    pub(super) fn reading(&self, key: &Key) -> Reading {
        Reading { at: self.clock.steady(), writes: self.writes(key) }
    }

    /// Remembers what a read found.
    pub(super) async fn keep(&self, key: &Key, found: Option<Item>, reading: Reading) {
        self.cache.insert(key.clone(), Entry { found, reading }).await;
    }

    /// A write of keys begins.
    pub(super) fn writing<'a>(&self, keys: impl Iterator<Item = &'a Key>) -> Writing<'_> {
        Writing { recent: self, slots: keys.map(slot).collect() }
    }

    fn writes(&self, key: &Key) -> u32 {
        self.writes[slot(key)].load(Ordering::Acquire)
    }
}

fn slot(key: &Key) -> usize {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    usize::try_from(hasher.finish() % SLOTS as u64).expect("there are few slots")
}

/// The weight of an answer: its bytes, but at least so much that there are no more answers than [`ENTRIES_MAX`].
fn weight(key: &Key, entry: &Entry) -> u32 {
    let item = entry.found.as_ref().map_or(0, |item| {
        item.data.len() + item.counters.keys().map(|name| name.len() + 64).sum::<usize>()
    });
    let bytes = (key.partition.len() + key.sort.len() + item + 256) as u64;
    u32::try_from(bytes.max(BYTES_MAX.div_ceil(ENTRIES_MAX))).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use annex_core::testkit::ManualClock;

    fn item(expires_at: Option<Timestamp>) -> Item {
        Item { data: vec![1], counters: BTreeMap::new(), revision: 1, expires_at }
    }

    fn recent() -> (Recent, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new(Timestamp::from_secs(1_000)));
        (Recent::new(clock.clone()), clock)
    }

    async fn remember(recent: &Recent, key: &Key, found: Option<Item>) {
        recent.keep(key, found, recent.reading(key)).await;
    }

    #[tokio::test]
    async fn what_was_read_is_remembered_for_a_minute_also_that_nothing_was_there() {
        let (recent, clock) = recent();
        let (there, absent) = (Key::new("p", "there"), Key::new("p", "absent"));
        assert_eq!(recent.get(&there).await, None);
        remember(&recent, &there, Some(item(None))).await;
        remember(&recent, &absent, None).await;
        clock.advance(RECENT_MAX - Duration::from_millis(1));
        assert_eq!(recent.get(&there).await, Some(Some(item(None))));
        assert_eq!(recent.get(&absent).await, Some(None));
        clock.advance(Duration::from_millis(1));
        assert_eq!((recent.get(&there).await, recent.get(&absent).await), (None, None));
    }

    #[tokio::test]
    async fn an_item_that_expires_meanwhile_is_absent() {
        let (recent, clock) = recent();
        let key = Key::new("p", "s");
        let soon = clock.now().plus(Duration::from_secs(1));
        remember(&recent, &key, Some(item(Some(soon)))).await;
        clock.advance(Duration::from_millis(999));
        assert_eq!(recent.get(&key).await, Some(Some(item(Some(soon)))));
        clock.advance(Duration::from_millis(1));
        assert_eq!(recent.get(&key).await, Some(None));
    }

    #[tokio::test]
    async fn a_write_makes_old_what_was_read_before_it_ended() {
        let (recent, _clock) = recent();
        let key = Key::new("p", "s");
        remember(&recent, &key, Some(item(None))).await;
        let before = recent.reading(&key);
        let writing = recent.writing([&key].into_iter());
        let during = recent.reading(&key);
        drop(writing);
        for reading in [before, during] {
            recent.keep(&key, Some(item(None)), reading).await;
            assert_eq!(recent.get(&key).await, None);
        }
        remember(&recent, &key, None).await;
        assert_eq!(recent.get(&key).await, Some(None));
    }

    #[tokio::test]
    async fn what_is_remembered_is_bounded_in_number_and_bytes() {
        let (recent, _clock) = recent();
        for n in 0..12_000 {
            remember(&recent, &Key::new("p", n.to_string()), None).await;
        }
        assert!(recent.cache.size().await.0 <= ENTRIES_MAX);
        for n in 0..200 {
            let large = Item { data: vec![0; 300_000], ..item(None) };
            remember(&recent, &Key::new("q", n.to_string()), Some(large)).await;
        }
        assert!(recent.cache.size().await.1 <= BYTES_MAX);
    }
}
