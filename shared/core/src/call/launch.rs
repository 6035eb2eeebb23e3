//! Handing a claimed call to whoever runs it, and seeing to it that it is run when that one dies.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::fault::Outcome;
use crate::limits;
use crate::ports::{Commit, Outage, QueueName};
use crate::stored;

use super::job::Job;
use super::record::{Record, Status};
use super::run::{Claimed, send};
use super::{Calls, Reply};

/// A claimed call on its way to another process.
#[derive(Serialize, Deserialize)]
struct Handed {
    record: Record,
    revision: u64,
}

/// What that process answers.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Returned {
    /// The reply of an ended call.
    Ended { status: u16, body: Box<RawValue> },
    /// Anything else, and what is too large to be carried: it is in the record.
    Stored,
}

impl Claimed {
    /// The call for another process to run with [`Calls::run_text`]: JSON of at most a few hundred kilobytes, since
    /// larger data is in the blobs.
    pub fn to_text(&self) -> String {
        let handed = Handed { record: self.record.clone(), revision: self.revision };
        serde_json::to_string(&handed).expect("a record can be written as JSON")
    }
}

impl Calls {
    /// Runs a call that another process claimed, and answers what [`Calls::reply_of`] reads there.
    pub async fn run_text(&self, text: &str) -> Result<String, Outage> {
        let Handed { record, revision } = serde_json::from_str(text)
            .map_err(|error| stored::unreadable("a call that was handed over", &error))?;
        let claimed = Claimed { record, revision, hold: None, install: None, slot: None };
        let returned = match self.run_claimed(claimed).await? {
            Reply::Ended { status, body, .. } if body.len() <= limits::RETURNED_BYTES_MAX => {
                let body = serde_json::from_slice(&body)
                    .map_err(|error| Outage::caused("a reply is not JSON", error))?;
                Returned::Ended { status, body }
            }
            Reply::Ended { .. } | Reply::Accepted { .. } => Returned::Stored,
        };
        Ok(serde_json::to_string(&returned).expect("a reply can be written as JSON"))
    }

    /// The reply to the caller of a call that another process has run and answered with `text`.
    pub async fn reply_of(&self, claimed: &Claimed, text: &str) -> Result<Reply, Outage> {
        let returned = serde_json::from_str(text)
            .map_err(|error| stored::unreadable("the answer of a run", &error))?;
        match returned {
            Returned::Ended { status, body } => {
                let id = claimed.record.id.hyphenated().to_string();
                let body = String::from(Box::<str>::from(body)).into();
                Ok(Reply::Ended { id, status, body })
            }
            Returned::Stored => {
                let item = self.ports().store.get(&claimed.record.item_key()).await?;
                let item = item.ok_or_else(|| Outage::new("the record of a run is gone"))?;
                self.reply(&Record::read(&item)?).await
            }
        }
    }

    /// Launches a claimed call whose caller waits. What is not ended when the wait is over is answered with 202, and from
    /// then on nothing but a message may lose it.
    pub(super) async fn launch(&self, claimed: Claimed, wait: Duration) -> Outcome<Reply> {
        let (record, revision) = (claimed.record.clone(), claimed.revision);
        // A held message comes back by itself.
        let held = claimed.hold.is_some();
        match self.inner.launcher.launch(self, claimed, wait).await {
            Some(Ok(reply)) => Ok(reply),
            Some(Err(error)) if held => Err(error.into()),
            Some(Err(error)) => {
                tracing::error!(source = ?error.source, "a run has failed: {error}");
                self.watch(&record, Some(revision)).await?;
                Ok(self.reply(&record).await?)
            }
            None => {
                if !held {
                    self.watch(&record, None).await?;
                }
                Ok(self.reply(&record).await?)
            }
        }
    }

    /// Sends the message that runs a call again unless it has ended by the end of its lease, or at once where its worker
    /// is known to be gone.
    async fn watch(&self, record: &Record, abandoned: Option<u64>) -> Result<(), Outage> {
        let delay = if abandoned.is_some() { Duration::ZERO } else { self.taken_for(record) };
        let (oid, id, slow_retries) = (record.oid, record.id, record.slow_retries);
        let job = Job::Run { oid, id, slow_retries, abandoned };
        let sends = vec![send(QueueName::Resume, &job, delay)];
        self.ports().store.commit(Commit { sends, ..Commit::default() }).await?;
        Ok(())
    }

    /// How long a call that has not ended may still be in somebody's hands: its worker's until the lease ends, or, where
    /// it is queued, its message's, which may just be waiting for its turn.
    fn taken_for(&self, record: &Record) -> Duration {
        let ports = self.ports();
        match record.status {
            Status::Running if !record.is_leased(ports.clock.steady(), ports.store.epoch()) => {
                Duration::ZERO
            }
            Status::Running => record.lease.map_or(Duration::ZERO, |lease| {
                lease.until.since(ports.clock.steady()).min(limits::LEASE)
            }),
            Status::Queued => {
                limits::LEASE.saturating_sub(ports.clock.now().since(record.created_at))
            }
            Status::Waiting | Status::Succeeded | Status::Failed => Duration::ZERO,
        }
    }

    /// Whether somebody else than a message would have to see to it that a call ends: its process may have died before a
    /// message stood behind it. A waiting call has its own.
    fn may_be_orphaned(&self, record: &Record) -> bool {
        !self.ports().store.holds() && matches!(record.status, Status::Running | Status::Queued)
    }

    /// Takes up a call that somebody reads and nobody works on. Whoever claimed it got no answer.
    pub(super) async fn revive(&self, record: &Record, revision: u64) -> Result<(), Outage> {
        if self.may_be_orphaned(record) && self.taken_for(record).is_zero() {
            return self.watch(record, Some(revision)).await;
        }
        Ok(())
    }

    /// Sees to it that a call ends whose repeat is answered 202. That answer is a promise, and whoever claimed the call
    /// may have died before a message stood behind it: so one is sent, for when nobody else has it in hands any more.
    pub(super) async fn promise(&self, record: &Record, revision: u64) -> Result<(), Outage> {
        if !self.may_be_orphaned(record) {
            return Ok(());
        }
        let abandoned = self.taken_for(record).is_zero().then_some(revision);
        self.watch(record, abandoned).await
    }
}

#[cfg(test)]
mod tests;
