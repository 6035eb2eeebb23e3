//! The block of an extension on a lock.
//!
//! The record of the last one decides who makes the next, so that there is one for each time that a limit was passed.
//! Its end stands in the counters of every window that it reaches into too, so that a count sees it without a read.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::keys;
use crate::limits::{EXTENSION_BLOCK, EXTENSION_RATE_MAX, RATE_WINDOW, RATES_KEPT};
use crate::ports::{Committed, Key, Outage, Ports, When, Write};
use crate::stored;
use crate::time::Timestamp;

use super::super::history::{self, HistoryLine};
use super::super::id::Slug;
use super::super::model::Lock;
use super::super::outbox::{Change, Place};
use super::{Rates, minute, of_block, window_end};

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
        let made = self.making.try_get_or(
            (place.clone(), minute(now)),
            // One at a time in this process.
            make(&self.ports, &place, now),
        );
        let until = *made.await.map_err(|outage| Outage {
            write_refused: outage.write_refused,
            ..Outage::new(outage.what.clone())
        })?;
        self.blocks.insert(place, until).await;
        Ok(until)
    }
}

async fn make(ports: &Ports, place: &Place, now: Timestamp) -> Result<Timestamp, Outage> {
    let key = keys::rate_block(place.oid, &place.lock, &place.extension);
    let mut found = ports.store.get(&key).await?;
    for _ in 0..ATTEMPTS_MAX {
        let last = found.as_ref().map(|item| stored::read::<Block>(item, &key.sort)).transpose()?;
        // It is the time of the refused call that counts: one that comes here late finds the block that others made for
        // the same window, also where that is over by now.
        if let Some(last) = last.filter(|last| now < last.until) {
            return Ok(last.until);
        }
        let block = Block { until: now.plus(EXTENSION_BLOCK) };
        let when = found.map_or(When::Absent, |item| When::Revision(item.revision));
        let mut change = Change::of(record(&key, block, when));
        change.writes.extend(ends(place, block, last));
        add_line(ports, &mut change, place, block).await?;
        match change.commit(ports).await? {
            Committed::Done => return Ok(block.until),
            Committed::Lost { found: standing, .. } => found = standing,
        }
    }
    Err(Outage::new("a block of an extension could not be made: others were faster"))
}

fn record(key: &Key, block: Block, when: When) -> Write {
    // Nothing of the windows that hold its end is left when it goes.
    let gone = window_end(block.until).plus(RATES_KEPT).plus(RATE_WINDOW);
    Write::Put { key: key.clone(), data: stored::bytes(&block), expires_at: Some(gone), when }
}

/// The end of a block in each window that it reaches into.
fn ends(place: &Place, block: Block, last: Option<Block>) -> impl Iterator<Item = Write> {
    block.windows().map(move |window| {
        // A tally adds, and the last window of the block before holds its end.
        let stands = last.filter(|last| last.windows().contains(&window));
        let stands = stands.map_or(0, |last| i128::from(last.until.millis()));
        let start = Timestamp::from_secs(window.saturating_mul(60));
        Write::Tally {
            key: keys::rate_window(place.oid, &place.lock, start),
            data: Vec::new(),
            add: vec![(of_block(&place.extension), i128::from(block.until.millis()) - stands)],
            expires_at: Some(window_end(start).plus(RATES_KEPT)),
        }
    })
}

/// Adds the line in the history of the lock, one for each block (CH-045), and tells the other extensions on it.
async fn add_line(
    ports: &Ports,
    change: &mut Change,
    place: &Place,
    block: Block,
) -> Result<(), Outage> {
    let line = line(ports, &place.extension, block);
    let key = keys::lock(place.oid, &place.lock);
    match ports.store.get(&key).await? {
        Some(item) => {
            let lock: Lock = stored::read(&item, &key.sort)?;
            history::add(ports, change, (place.oid, &place.lock), &lock, &line).await
        }
        None => {
            change.writes.push(line.write(place.oid, &place.lock));
            Ok(())
        }
    }
}

fn line(ports: &Ports, slug: &Slug, block: Block) -> HistoryLine {
    let payload = json!({ "blockedUntil": block.until.to_string() }).to_string();
    let minutes = EXTENSION_BLOCK.as_secs() / 60;
    HistoryLine {
        payload: RawValue::from_string(payload).expect("it was just written as JSON"),
        description: format!(
            "{slug} did more than {EXTENSION_RATE_MAX} things on this lock in a minute, and is blocked for {minutes} \
             minutes"
        ),
        created_at: block.began(),
        ..HistoryLine::new(
            ports,
            "extension_blocked",
            "An extension is blocked for a while",
            Some(slug),
        )
    }
}
