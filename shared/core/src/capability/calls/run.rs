//! A claimed call, to its end.

use futures_util::lock::{Mutex, OwnedMutexGuard};

use crate::capability::refusal::Refusal;
use crate::capability::service::Capabilities;
use crate::ports::{Commit, Committed, Outage, When};

use super::admit::Admitted;
use super::record::{CallError, CallRecord, Ending};
use super::{Origin, interrupted};

/// While it is held, no other call of this process with the same key is claimed.
pub(super) type Turn = OwnedMutexGuard<()>;

impl Capabilities {
    /// The turn of a call with a key among those of this process with the same one.
    pub(super) async fn turn(&self, call: &str) -> Turn {
        let turns = self.inner.turns.get_or(call.to_owned(), async { Mutex::new(()) }).await;
        turns.lock_owned().await
    }

    /// Claims a call and runs it, unless its key is taken. The turn ends with the claim.
    pub(super) async fn claim_and_run(
        &self,
        origin: &Origin,
        admitted: Admitted,
        turn: Option<Turn>,
    ) -> Result<CallRecord, Refusal> {
        let Admitted { ref record, .. } = admitted;
        let claim = record.write(origin.oid, &origin.lock, When::Absent);
        let commit = Commit { writes: vec![claim], ..Commit::default() };
        let claimed = self.ports().store.commit(commit).await?;
        drop(turn);
        match claimed {
            Committed::Lost { found, .. } => {
                let item = found.ok_or_else(|| Outage::new("a lost claim found nothing"))?;
                let stands = self.repeated(origin, &item, &record.fingerprint).await;
                self.clear(admitted.place).await;
                stands
            }
            Committed::Done => {
                let result = self.deliver(origin, &admitted).await;
                let settled = self.settle(origin, admitted.record, 1, result).await;
                self.leave(admitted.place).await;
                settled
            }
        }
    }

    /// Writes the end of a call, unless somebody else has: then that one stands.
    async fn settle(
        &self,
        origin: &Origin,
        mut record: CallRecord,
        revision: u64,
        result: Result<Box<serde_json::value::RawValue>, CallError>,
    ) -> Result<CallRecord, Refusal> {
        let at = self.ports().clock.now();
        let (output, error) = match result {
            Ok(output) => (Some(output), None),
            Err(error) => (None, Some(error)),
        };
        record.lease = None;
        record.ending = Some(Ending { at, output, error });
        let write = record.write(origin.oid, &origin.lock, When::Revision(revision));
        let commit = Commit { writes: vec![write], ..Commit::default() };
        match self.ports().store.commit(commit).await? {
            Committed::Done => Ok(record),
            Committed::Lost { found: Some(item), .. } => Ok(CallRecord::read(&item)?),
            Committed::Lost { found: None, .. } => {
                Err(Outage::new("the record of a running call is gone").into())
            }
        }
    }

    /// The record as it stands now: a call that runs and whose worker is gone has failed.
    pub(super) async fn current(
        &self,
        origin: &Origin,
        record: CallRecord,
        revision: u64,
    ) -> Result<CallRecord, Refusal> {
        let ports = self.ports();
        if record.ending.is_some() || record.is_leased(ports.clock.steady(), ports.store.epoch()) {
            return Ok(record);
        }
        self.settle(origin, record, revision, Err(interrupted())).await
    }
}
