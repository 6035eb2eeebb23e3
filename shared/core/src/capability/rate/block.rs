//! The block of an extension on a lock.
//!
//! The record of the last one decides who makes the next, so that there is one for each time that a limit was passed. Its end stands in the counters of every window that it
//! reaches into too, so that a count sees it without a read.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::ids::Oid;
use crate::keys;
use crate::limits::{
    EXTENSION_BLOCK, EXTENSION_RATE_MAX, HISTORY_RETENTION, RATE_WINDOW, RATES_KEPT,
};
use crate::ports::{Commit, Committed, Item, Key, Outage, Ports, When, Write};
use crate::stored;
use crate::time::Timestamp;

use super::super::id::LockId;
use super::{Place, Rates, minute, of_block, window_end};

/// A block, as it is stored.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Block {
    /// From when on the extension is served again.
    until: Timestamp,
}

impl Block {
    fn began(self) -> Timestamp {
        self.until.minus(EXTENSION_BLOCK)
    }

    /// The windows that it reaches into.
    fn windows(self) -> RangeInclusive<i64> {
        minute(self.began())..=minute(self.until)
    }
}

/// Tries to make a block. One that is lost shows what another made.
const ATTEMPTS_MAX: usize = 4;

impl Rates {
    /// Blocks an extension that went over its limit at `now`, and says until when. Whoever is first makes the block and
    /// its line in the history; all others find it.
    pub(super) async fn block(&self, place: Place, now: Timestamp) -> Result<Timestamp, Outage> {
        let made = self.making.try_get_with(
            (place.clone(), minute(now)),
            // One at a time in this process.
            make(&self.ports, &place, now),
        );
        let until = made.await.map_err(|outage| Outage {
            write_refused: outage.write_refused,
            ..Outage::new(outage.what.clone())
        })?;
        self.blocks.insert(place, until).await;
        Ok(until)
    }
}

async fn make(ports: &Ports, place: &Place, now: Timestamp) -> Result<Timestamp, Outage> {
    let key = keys::rate_block(place.oid, &place.lock, &place.slug);
    let mut found = ports.store.get(&key).await?;
    for _ in 0..ATTEMPTS_MAX {
        let last = found.as_ref().map(|item| stored::read::<Block>(item, &key.sort)).transpose()?;
        // It is the time of the refused call that counts: one that comes here late finds the block that others made for
        // the same window, also where that is over by now.
        if let Some(last) = last.filter(|last| now < last.until) {
            return Ok(last.until);
        }
        let block = Block { until: now.plus(EXTENSION_BLOCK) };
        let writes = writes(ports, place, &key, block, (last, found.as_ref()));
        match ports.store.commit(Commit { writes, ..Commit::default() }).await? {
            Committed::Done => return Ok(block.until),
            Committed::Lost { found: standing, .. } => found = standing,
        }
    }
    Err(Outage::new("a block of an extension could not be made: others were faster"))
}

/// The record, its end in each window that it reaches into, and the line.
fn writes(
    ports: &Ports,
    place: &Place,
    key: &Key,
    block: Block,
    (last, found): (Option<Block>, Option<&Item>),
) -> Vec<Write> {
    let when = found.map_or(When::Absent, |item| When::Revision(item.revision));
    let start = |window: i64| Timestamp::from_secs(window.saturating_mul(60));
    // Nothing of the windows that hold this end is left when the record goes.
    let gone = window_end(block.until).plus(RATES_KEPT).plus(RATE_WINDOW);
    let record =
        Write::Put { key: key.clone(), data: stored::bytes(&block), expires_at: Some(gone), when };
    let ends = block.windows().map(|window| {
        // A tally adds, and the last window of the block before holds its end.
        let stands = last.filter(|last| last.windows().contains(&window));
        let stands = stands.map_or(0, |last| i128::from(last.until.millis()));
        Write::Tally {
            key: keys::rate_window(place.oid, &place.lock, start(window)),
            data: Vec::new(),
            add: vec![(of_block(&place.slug), i128::from(block.until.millis()) - stands)],
            expires_at: Some(window_end(start(window)).plus(RATES_KEPT)),
        }
    });
    [record].into_iter().chain(ends).chain([line(ports, place, block)]).collect()
}

/// The line in the history of the lock: one for each block (CH-045).
fn line(ports: &Ports, Place { oid, lock, slug }: &Place, block: Block) -> Write {
    let id = ports.ids.uuid().simple().to_string();
    let at = block.began();
    let minutes = EXTENSION_BLOCK.as_secs() / 60;
    let line = json!({
        "_id": id,
        "type": "extension_blocked",
        "payload": { "blockedUntil": block.until.to_string() },
        "role": "extension",
        "extension": slug,
        "title": "Extension blocked for a while",
        "description": format!(
            "{slug} did more than {EXTENSION_RATE_MAX} things on this lock in a minute, and is blocked for {minutes} \
             minutes"
        ),
        "icon": null,
        "color": null,
        "prefix": "default",
        "createdAt": at,
    });
    history_put(*oid, lock, &id, line.to_string().into_bytes(), at)
}

fn history_put(oid: Oid, lock: &LockId, id: &str, data: Vec<u8>, at: Timestamp) -> Write {
    Write::Put {
        key: Key::new(keys::history(oid, lock), id),
        data,
        expires_at: Some(at.plus(HISTORY_RETENTION)),
        when: When::Always,
    }
}
