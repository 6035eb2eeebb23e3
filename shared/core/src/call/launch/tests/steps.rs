//! The store of a process on AWS, in memory.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use crate::limits::RECENT_MAX;
use crate::ports::{
    Clock as _, Commit, Committed, Count, Counted, Item, Key, Outage, Page, Query, Scan, ScanPage,
    Store,
};
use crate::testkit::{ManualClock, MemoryStore};
use crate::time::Timestamp;

/// A store in two steps that keeps what was read for a minute, whatever others write, and what was committed, as the
/// numbers of its writes and its messages.
pub(super) struct Steps {
    inner: Arc<MemoryStore>,
    clock: Arc<ManualClock>,
    read: Mutex<Vec<(Key, Option<Item>, Timestamp)>>,
    pub(super) commits: Mutex<Vec<(usize, usize)>>,
}

impl Steps {
    pub(super) fn new(inner: Arc<MemoryStore>, clock: Arc<ManualClock>) -> Arc<Self> {
        Arc::new(Self { inner, clock, read: Mutex::default(), commits: Mutex::default() })
    }
}

#[async_trait]
impl Store for Steps {
    async fn get(&self, key: &Key) -> Result<Option<Item>, Outage> {
        self.inner.get(key).await
    }

    async fn recent(&self, key: &Key) -> Result<Option<Item>, Outage> {
        let now = self.clock.steady();
        let young =
            |(known, _, at): &&(Key, _, Timestamp)| known == key && now.since(*at) < RECENT_MAX;
        if let Some((_, item, _)) = self.read.lock().unwrap().iter().rev().find(young) {
            return Ok(item.clone());
        }
        let item = self.inner.get(key).await?;
        self.read.lock().unwrap().push((key.clone(), item.clone(), now));
        Ok(item)
    }

    async fn query(&self, query: Query) -> Result<Page, Outage> {
        self.inner.query(query).await
    }

    async fn scan(&self, scan: Scan) -> Result<ScanPage, Outage> {
        self.inner.scan(scan).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, Outage> {
        self.commits.lock().unwrap().push((commit.writes.len(), commit.sends.len()));
        self.inner.commit(commit).await
    }

    async fn count(&self, count: Count) -> Result<Counted, Outage> {
        self.inner.count(count).await
    }

    fn holds(&self) -> bool {
        false
    }

    fn atomic(&self) -> bool {
        false
    }

    fn epoch(&self) -> u64 {
        0
    }
}
