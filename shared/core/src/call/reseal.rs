//! What invocations have sealed, under another key of the ring.

use crate::ports::{Item, Outage, QueueName, When};
use crate::reseal::{Due, Mode, decide};
use crate::seal;

use super::Calls;
use super::job::Job;
use super::payload::{Payload, state_binding};
use super::record::Record;

impl Calls {
    /// Seals the state of an invocation anew once it has ended. One that runs keeps its record: a write between would take
    /// the run's end from it, and it ends soon.
    pub(crate) async fn reseal_record(&self, item: &Item, mode: Mode) -> Result<Due, Outage> {
        let ports = self.ports();
        let mut record = Record::read(item)?;
        let current = ports.keyring.current();
        if let Some(with) = record.impersonator.as_ref().and_then(|sealed| sealed.key_id())
            && with != current
        {
            return Ok(Due::Stays(with));
        }
        let Some(with) = self.sealed_with(&record.data).await?.filter(|with| *with != current)
        else {
            return Ok(Due::Nothing);
        };
        if mode == Mode::Seal && matches!(record.data, Payload::SealedBlob(_)) {
            return self.reseal_blob(&record, item, with).await;
        }
        if record.ending.is_none() {
            return Ok(Due::Stays(with));
        }
        let Payload::Sealed(sealed) = &record.data else { return Ok(Due::Stays(with)) };
        let sealed = sealed.clone();
        decide(ports, Some(with), mode, || {
            let oid = record.oid.to_string();
            let binding = state_binding(&oid, &record.extension);
            let new = seal::reseal(&*ports.keyring, &*ports.ids, &binding, &sealed)?;
            Ok(new.map(|new| {
                record.data = Payload::Sealed(new);
                record.write(When::Revision(item.revision))
            }))
        })
    }

    /// A blob is replaced whole where it lies, so that whoever reads it gets one or the other.
    async fn reseal_blob(&self, record: &Record, item: &Item, with: u32) -> Result<Due, Outage> {
        let ports = self.ports();
        let (Payload::SealedBlob(key), Some(until)) = (&record.data, item.expires_at) else {
            return Ok(Due::Stays(with));
        };
        match record.data.load(ports, record.oid, &record.extension).await {
            Ok(text) => {
                Payload::put_sealed(ports, key, record.oid, &record.extension, &text, until)
                    .await?;
                Ok(Due::Done)
            }
            Err(outage) => {
                tracing::error!(key = with, "a sealed payload cannot be sealed anew: {outage}");
                Ok(Due::Stays(with))
            }
        }
    }

    /// The key that sealed what a message carries, where it carries something sealed.
    pub(crate) async fn sealed_in_message(&self, queue: QueueName, body: &str) -> Option<u32> {
        if queue == QueueName::Meter {
            return None;
        }
        match serde_json::from_str(body) {
            Ok(Job::Start(start)) => self.sealed_with(&start.data).await.ok().flatten(),
            _ => None,
        }
    }

    /// The key that sealed a payload. One that is gone from the blobs needs none.
    async fn sealed_with(&self, payload: &Payload) -> Result<Option<u32>, Outage> {
        match payload {
            Payload::Json(_) | Payload::Blob(_) => Ok(None),
            Payload::Sealed(sealed) => Ok(sealed.key_id()),
            Payload::SealedBlob(key) => {
                let found = self.ports().blobs.get(key).await?;
                let sealed: Option<seal::Sealed> =
                    found.and_then(|bytes| serde_json::from_slice(&bytes).ok());
                Ok(sealed.and_then(|sealed| sealed.key_id()))
            }
        }
    }
}
