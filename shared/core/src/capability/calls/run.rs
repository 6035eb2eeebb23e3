//! A claimed call, to its end.

use crate::capability::refusal::Refusal;
use crate::capability::service::Capabilities;
use crate::ports::{Commit, Committed, Outage, When};

use super::admit::Admitted;
use super::record::{CallError, CallRecord, Ending};
use super::{Origin, interrupted};

impl Capabilities {
    /// Claims a call and runs it, unless its key is taken.
    pub(super) async fn claim_and_run(
        &self,
        origin: &Origin,
        admitted: Admitted,
    ) -> Result<CallRecord, Refusal> {
        let record = &admitted.record;
        let claim = record.write(origin.oid, &origin.lock, When::Absent);
        let commit = Commit { writes: vec![claim], ..Commit::default() };
        match self.ports().store.commit(commit).await? {
            Committed::Lost { found, .. } => {
                let item = found.ok_or_else(|| Outage::new("a lost claim found nothing"))?;
                self.repeated(origin, &item, &record.fingerprint).await
            }
            Committed::Done => {
                let result = self.deliver(origin, &admitted).await;
                self.settle(origin, admitted.record, 1, result).await
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
