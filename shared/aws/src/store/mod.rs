//! Items in one DynamoDB table.

mod commit;
mod count;
mod item;
mod plan;
mod read;
mod recent;
mod request;

use std::sync::Arc;

use annex_core::ports::{
    Clock, Commit, Committed, Count, Counted, Item, Key, Outage, Page, Query, Scan, ScanPage,
    Store, check, check_count, check_key,
};
use async_trait::async_trait;

use self::read::{BATCH_KEYS_MAX, Read};
use self::recent::Recent;
use crate::Clients;
use crate::queues::{Queues, Sender, prepare};

/// Items in a table whose keys are `pk` and `sk` (both texts) and whose TTL attribute is `expires_at`; messages in
/// queues.
///
/// A commit of one write is one conditional request, a larger one is one transaction. Messages are sent after the
/// writes, so that a process which dies between leaves them unsent: [`Store::atomic`] is false.
pub struct DynamoStore {
    client: aws_sdk_dynamodb::Client,
    table: String,
    sender: Sender,
    clock: Arc<dyn Clock>,
    recent: Recent,
}

impl DynamoStore {
    /// The store of this table, which sends to these queues. A process has one: it remembers what was read recently.
    pub fn new(
        clients: &Clients,
        table: impl Into<String>,
        queues: Queues,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            client: clients.dynamodb.clone(),
            table: table.into(),
            sender: Sender::new(clients.sqs.clone(), queues),
            recent: Recent::new(clock.clone()),
            clock,
        }
    }
}

#[async_trait]
impl Store for DynamoStore {
    async fn get(&self, key: &Key) -> Result<Option<Item>, Outage> {
        check_key(key)?;
        self.read(key).await
    }

    async fn recent(&self, key: &Key) -> Result<Option<Item>, Outage> {
        check_key(key)?;
        if let Some(found) = self.recent.get(key).await {
            return Ok(found);
        }
        let reading = self.recent.reading(key);
        let found = self.read(key).await?;
        self.recent.keep(key, found.clone(), reading).await;
        Ok(found)
    }

    async fn read_ahead(&self, keys: &[Key]) -> Result<(), Outage> {
        keys.iter().try_for_each(check_key)?;
        let mut unknown: Vec<Key> = Vec::new();
        for key in keys {
            if self.recent.get(key).await.is_none() && !unknown.contains(key) {
                unknown.push(key.clone());
            }
        }
        for keys in unknown.chunks(BATCH_KEYS_MAX) {
            let readings: Vec<_> = keys.iter().map(|key| self.recent.reading(key)).collect();
            for ((key, reading), found) in
                keys.iter().zip(readings).zip(self.read_batch(keys).await?)
            {
                if let Read::Known(found) = found {
                    self.recent.keep(key, found, reading).await;
                }
            }
        }
        Ok(())
    }

    async fn query(&self, query: Query) -> Result<Page, Outage> {
        self.read_range(query).await
    }

    async fn scan(&self, scan: Scan) -> Result<ScanPage, Outage> {
        self.read_all(scan).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, Outage> {
        check(&commit)?;
        let sends = prepare(commit.sends)?;
        self.sender.check(&sends)?;
        if !commit.writes.is_empty() {
            // Whatever comes of it, and also where the caller stops waiting: what was read before is old.
            let _writing = self.recent.writing(commit.writes.iter().map(|write| write.key()));
            let committed = self.write(&commit.writes).await?;
            if committed != Committed::Done {
                return Ok(committed);
            }
        }
        self.sender.send(sends).await?;
        Ok(Committed::Done)
    }

    async fn count(&self, count: Count) -> Result<Counted, Outage> {
        check_count(&count)?;
        let _writing = self.recent.writing(std::iter::once(&count.key));
        self.count_under(&count).await
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
