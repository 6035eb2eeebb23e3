//! What callers see of an invocation: its reply, and its record.

use bytes::Bytes;
use zeroize::Zeroizing;

use crate::fault::{Code, Fault, Outcome};
use crate::ids::Oid;
use crate::keys;
use crate::ports::Outage;

use super::record::{Ending, Record, Status};
use super::{Calls, Reply};

impl Calls {
    /// The JSON of an invocation's record as its organization sees it:
    /// `{id, status, data?, error?, replay_of?, created_at, finished_at?}`. `None`: there is no such invocation.
    pub async fn record(&self, oid: Oid, id: &str) -> Outcome<Option<Bytes>> {
        let Ok(id) = uuid::Uuid::try_parse(id) else {
            return Ok(None);
        };
        let key = keys::invocation(oid, &id.hyphenated().to_string());
        let Some(item) = self.ports().store.get(&key).await? else {
            return Ok(None);
        };
        let record = Record::read(&item)?;
        self.revive(&record, item.revision).await?;
        Ok(Some(self.view(&record).await?))
    }

    /// The reply that a caller of this record gets now.
    pub(super) async fn reply(&self, record: &Record) -> Result<Reply, Outage> {
        let id = record.id.hyphenated().to_string();
        match &record.ending {
            Some(ending) => {
                let body = self.body(record, ending).await?;
                Ok(Reply::Ended { id, status: ending.http, body })
            }
            None => Ok(Reply::Accepted { id, body: self.view(record).await? }),
        }
    }

    async fn body(&self, record: &Record, ending: &Ending) -> Result<Bytes, Outage> {
        if let Some(error) = &ending.error {
            let code = ending.code.as_deref().and_then(Code::parse).unwrap_or(Code::Internal);
            return Ok(Bytes::from(Fault::new(code, error).body()));
        }
        let mut body = b"{\"data\":".to_vec();
        body.extend_from_slice(self.data(record, ending).await?.as_bytes());
        body.push(b'}');
        Ok(Bytes::from(body))
    }

    /// The data of a success. It can be a hundred megabytes: it is copied once, into the answer.
    async fn data(&self, record: &Record, ending: &Ending) -> Result<Zeroizing<String>, Outage> {
        match &ending.data {
            Some(data) => data.load(self.ports(), record.oid, &record.extension).await,
            None => Ok(Zeroizing::new("{}".to_owned())),
        }
    }

    async fn view(&self, record: &Record) -> Result<Bytes, Outage> {
        let status = match record.status {
            Status::Queued => "queued",
            Status::Running => "running",
            Status::Waiting => "waiting",
            Status::Succeeded => "succeeded",
            Status::Failed => "failed",
        };
        let mut body =
            format!(r#"{{"id":"{}","status":"{status}""#, record.id.hyphenated()).into_bytes();
        if let Some(ending) = &record.ending {
            match &ending.error {
                Some(error) => {
                    body.extend_from_slice(b",\"error\":");
                    serde_json::to_writer(&mut body, error).expect("text can be written as JSON");
                }
                None => {
                    body.extend_from_slice(b",\"data\":");
                    body.extend_from_slice(self.data(record, ending).await?.as_bytes());
                }
            }
        }
        if let Some(old) = record.replay_of {
            body.extend_from_slice(format!(r#","replay_of":"{}""#, old.hyphenated()).as_bytes());
        }
        body.extend_from_slice(format!(r#","created_at":"{}""#, record.created_at).as_bytes());
        if let Some(ending) = &record.ending {
            body.extend_from_slice(format!(r#","finished_at":"{}""#, ending.at).as_bytes());
        }
        body.push(b'}');
        Ok(Bytes::from(body))
    }
}
