//! Delivering what waits in an outbox: by one worker at a time, oldest first, one after the other.
//!
//! What fails is put off with a message of its own, and the others go on. A worker that dies leaves its lease, which runs
//! out, and its message, which comes back: what it had not noted as delivered is delivered again.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::call::deliver_message;
use crate::fault::Fault;
use crate::keys;
use crate::limits::{
    DRAIN_AGAIN, DRAIN_LEASE, DRAIN_MAX, EXTENSION_WEBHOOK_ATTEMPTS_MAX,
    EXTENSION_WEBHOOK_RETRY_DELAY, LEASE,
};
use crate::org_errors;
use crate::orgs::{self, Standing};
use crate::ports::{
    Commit, Committed, Item, Key, Outage, Ports, Query, QueueName, SendFault, When, Write,
};
use crate::stored;
use crate::time::Timestamp;

use super::super::extensions;
use super::super::id::Qualified;
use super::super::message;
use super::super::model::Extension;
use super::{Entry, Place, What, put};

/// Entries that are read at a time.
const ENTRIES_READ: usize = 10;

/// What becomes of the message that had an outbox drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// It is done: what is due was tried, and the rest has messages of its own.
    Done,
    /// It comes back after this time.
    Again(Duration),
}

/// Makes calls of events that extensions subscribed to with a command.
///
/// **Contract.** A repeat under the same entry runs the command once.
#[async_trait]
pub trait EventCalls: Send + Sync {
    /// Calls `command` of the extension at `place`. The inner error says why that failed, and may be mended by another
    /// attempt.
    async fn call(
        &self,
        place: &Place,
        entry: &str,
        command: &Qualified,
        data: &RawValue,
    ) -> Result<Result<(), String>, Outage>;
}

/// Who drains an outbox, and until when on the steady clock.
#[derive(Serialize, Deserialize)]
struct Lease {
    until: Timestamp,
    epoch: u64,
}

/// Delivers what is due in an outbox. `entry` is the sort key of one that is due whatever the clock says: its message was
/// delayed by just that time.
pub async fn drain(
    ports: &Ports,
    calls: &dyn EventCalls,
    place: &Place,
    entry: Option<&str>,
) -> Result<Drained, Outage> {
    if orgs::standing(&*ports.store, place.oid).await? != Standing::Live {
        // Its data goes as a whole.
        return Ok(Drained::Done);
    }
    // A message that comes late, and there are such for each that came in time, costs a read and no write.
    let first = due(ports, place, entry).await?;
    if first.is_empty() {
        return Ok(Drained::Done);
    }
    let Some(revision) = take(ports, place).await? else {
        return Ok(Drained::Again(DRAIN_AGAIN));
    };
    let drained = Drain::load(ports, calls, place).await;
    let drained = match drained {
        Ok(drain) => drain.run(first).await,
        Err(outage) => Err(outage),
    };
    let key = keys::outbox_lease(place.oid, &place.lock, &place.extension);
    let release = Write::Delete { key, when: When::Revision(revision) };
    ports.store.commit(Commit { writes: vec![release], ..Commit::default() }).await?;
    drained
}

/// Takes the lease of an outbox: its revision; `None`: another worker has it.
async fn take(ports: &Ports, place: &Place) -> Result<Option<u64>, Outage> {
    let key = keys::outbox_lease(place.oid, &place.lock, &place.extension);
    let (now, epoch) = (ports.clock.steady(), ports.store.epoch());
    let lease = stored::bytes(&Lease { until: now.plus(DRAIN_LEASE), epoch });
    let put = |when| Write::Put {
        key: key.clone(),
        data: lease.clone(),
        // The steady clock ends it; this is for one that nobody takes over.
        expires_at: Some(ports.clock.now().plus(LEASE)),
        when,
    };
    let mut when = When::Absent;
    loop {
        let commit = Commit { writes: vec![put(when)], ..Commit::default() };
        let found = match (ports.store.commit(commit).await?, when) {
            (Committed::Done, When::Revision(before)) => return Ok(Some(before + 1)),
            (Committed::Done, _) => return Ok(Some(1)),
            (Committed::Lost { found, .. }, _) => found,
        };
        when = match found {
            None => When::Absent,
            Some(item) => {
                let held: Lease = stored::read(&item, &key.sort)?;
                if held.epoch == epoch && now < held.until {
                    return Ok(None);
                }
                When::Revision(item.revision)
            }
        };
    }
}

/// The first entries that are due, the named one before them.
async fn due(
    ports: &Ports,
    place: &Place,
    named: Option<&str>,
) -> Result<Vec<(Key, Item)>, Outage> {
    let partition = keys::outbox(place.oid, &place.lock, &place.extension);
    let mut found = Vec::new();
    if let Some(sort) = named {
        let key = Key::new(&*partition, sort);
        found.extend(ports.store.get(&key).await?.map(|item| (key, item)));
    }
    let soon = ports.clock.now().plus(Duration::from_millis(1));
    let query = Query {
        to: keys::outbox_due(soon),
        limit: ENTRIES_READ,
        ..Query::prefix(&*partition, keys::OUTBOX_ENTRIES)
    };
    let page = ports.store.query(query).await?;
    let others = page.items.into_iter().filter(|(sort, _)| Some(sort.as_str()) != named);
    found.extend(others.map(|(sort, item)| (Key::new(&*partition, sort), item)));
    Ok(found)
}

struct Drain<'a> {
    ports: &'a Ports,
    calls: &'a dyn EventCalls,
    place: &'a Place,
    /// `None`: the extension is gone, or receives nothing any more.
    target: Option<Arc<Extension>>,
}

impl<'a> Drain<'a> {
    async fn load(
        ports: &'a Ports,
        calls: &'a dyn EventCalls,
        place: &'a Place,
    ) -> Result<Self, Outage> {
        let outage = |fault: Fault| Outage::new(fault.message);
        let found = extensions::recent(ports, &place.extension).await.map_err(outage)?;
        let target = found.map(Arc::new).filter(|found| found.url.is_some());
        Ok(Self { ports, calls, place, target })
    }

    /// Delivers these entries and all that become due, for as long as a drain may last.
    async fn run(&self, mut entries: Vec<(Key, Item)>) -> Result<Drained, Outage> {
        let began = self.ports.clock.steady();
        while !entries.is_empty() {
            for (key, item) in entries {
                if DRAIN_MAX <= self.ports.clock.steady().since(began) {
                    return Ok(Drained::Again(Duration::ZERO));
                }
                self.deliver(key, &item).await?;
            }
            entries = due(self.ports, self.place, None).await?;
        }
        Ok(Drained::Done)
    }

    async fn deliver(&self, key: Key, item: &Item) -> Result<(), Outage> {
        let entry: Entry = stored::read(item, &key.sort)?;
        let outcome = match &entry.what {
            What::Event(event) => match &self.target {
                Some(target) => self.send(target, event, &entry.data).await?,
                None => Ok(()),
            },
            What::Call(command) => {
                self.calls.call(self.place, &entry.id, command, &entry.data).await?
            }
        };
        let gone = Write::Delete { key, when: When::Revision(item.revision) };
        let commit = match outcome {
            Ok(()) => Commit { writes: vec![gone], ..Commit::default() },
            Err(why) => self.failed(entry, gone, &why),
        };
        // Lost: another worker, whose lease ran out as well, was faster. Messages that wait go first: without their
        // entries they do nothing.
        self.ports.store.send_and_commit(commit).await.map(|_| ())
    }

    /// One attempt at a webhook.
    async fn send(
        &self,
        target: &Extension,
        event: &str,
        data: &RawValue,
    ) -> Result<Result<(), String>, Outage> {
        Ok(match message::post(self.ports, target, event, data, None).await? {
            Ok(answer) if (200..300).contains(&answer.status) => Ok(()),
            Ok(answer) => Err(format!("answered {}", answer.status)),
            // It was taken, whatever was said beside that.
            Err(SendFault::TooLarge { status, .. }) if (200..300).contains(&status) => Ok(()),
            Err(SendFault::TooLarge { status, .. }) => Err(format!("answered {status}")),
            Err(fault) => Err(fault.to_string()),
        })
    }

    /// What becomes of an entry whose attempt failed: it is put off, or given up.
    fn failed(&self, mut entry: Entry, gone: Write, why: &str) -> Commit {
        let now = self.ports.clock.now();
        let Place { oid, extension, .. } = self.place;
        entry.attempts += 1;
        if EXTENSION_WEBHOOK_ATTEMPTS_MAX <= entry.attempts {
            let what = match &entry.what {
                What::Event(event) => event.as_str(),
                What::Call(command) => command.as_str(),
            };
            let text = format!("{what} was given up after {} attempts: {why}", entry.attempts);
            let error = org_errors::write(*oid, &format!("{extension}:webhook"), &text, now);
            return Commit { writes: vec![gone, error], ..Commit::default() };
        }
        let delay = EXTENSION_WEBHOOK_RETRY_DELAY * (1 << (entry.attempts - 1));
        let due = now.plus(delay);
        let sort = entry.key(self.place, due).sort;
        let message = deliver_message(self.place, Some(sort), QueueName::Resume, delay);
        let writes = vec![gone, put(&entry, self.place, due)];
        Commit { writes, sends: vec![message], ..Commit::default() }
    }
}
