//! A commit: tried until it is done, or a condition of it does not hold.

use annex_core::ports::{Committed, Outage, When, Write};

use super::DynamoStore;
use super::item::{Stored, Writer, holds};
use super::plan::{Basis, Now, request};
use super::request::{Answer, Doubt};
use crate::backoff::{ATTEMPTS_MAX, pause};

impl DynamoStore {
    /// Does all writes, or none.
    pub(super) async fn write(&self, writes: &[Write]) -> Result<Committed, Outage> {
        let writer = new_writer()?;
        let doubt = Doubt::default();
        let mut bases = vec![Basis::Unknown; writes.len()];
        let mut last = String::new();
        for failed in 0..ATTEMPTS_MAX {
            // What stood in the way once is answered at once; who is in the way again and again is not alone.
            if 1 < failed {
                pause(failed).await;
            }
            let now = Now { at: self.clock.now(), writer };
            match self.attempt(writes, &mut bases, now, &doubt).await? {
                Answer::Done => return Ok(Committed::Done),
                Answer::Busy(text) => {
                    last = text;
                    if failed == 0 {
                        pause(1).await;
                    }
                }
                Answer::Refused(refused) => {
                    for (index, found) in refused {
                        let found = found.map(Stored::read).transpose()?;
                        if is_ours(&writes[index], found.as_ref(), writer, &doubt) {
                            return Ok(Committed::Done);
                        }
                        let live = found.as_ref().and_then(|found| found.live(now.at));
                        if !holds(condition(&writes[index]), live) {
                            return Ok(Committed::Lost { index, found: live.cloned() });
                        }
                        bases[index] = Basis::Seen(found);
                    }
                    last = "other writers were faster".to_owned();
                }
            }
        }
        Err(Outage::new(format!("items cannot be written after {ATTEMPTS_MAX} attempts: {last}")))
    }

    async fn attempt(
        &self,
        writes: &[Write],
        bases: &mut [Basis],
        now: Now,
        doubt: &Doubt,
    ) -> Result<Answer, Outage> {
        let mut requests = Vec::with_capacity(writes.len());
        for (write, basis) in writes.iter().zip(bases) {
            let request = match request(write, basis, now) {
                Some(request) => request,
                None => {
                    *basis = Basis::Seen(self.read_stored(write.key()).await?);
                    request(write, basis, now).expect("what was read says it all")
                }
            };
            requests.push(request);
        }
        if requests.len() == 1 {
            return self.send_one(requests.remove(0), doubt).await;
        }
        self.send_all(requests).await
    }
}

/// Whether a refusal means that an earlier attempt of the same request was done: the SDK sends it again where the
/// answer was lost on the way.
fn is_ours(write: &Write, found: Option<&Stored>, writer: Writer, doubt: &Doubt) -> bool {
    match found {
        Some(found) => found.writer == Some(writer),
        None => matches!(write, Write::Delete { .. }) && doubt.exists(),
    }
}

fn condition(write: &Write) -> When {
    match write {
        Write::Put { when, .. } | Write::Delete { when, .. } => *when,
        Write::Tally { .. } => When::Always,
    }
}

/// A name for the writes of one commit or count.
pub(super) fn new_writer() -> Result<Writer, Outage> {
    let mut writer = Writer::default();
    aws_lc_rs::rand::fill(&mut writer).map_err(|_| Outage::new("no random numbers"))?;
    Ok(writer)
}
