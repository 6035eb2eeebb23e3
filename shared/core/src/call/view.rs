//! What callers see of an invocation: its reply, and its record.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use crate::fault::{Code, Fault, Outcome};
use crate::ids::{ExtensionName, Oid};
use crate::keys;
use crate::ports::{Item, Outage};

use super::payload::{Payload, raw};
use super::record::{Ending, Record, Status};
use super::{Calls, Reply};

/// An invocation as an export holds it.
#[derive(Debug, Serialize)]
pub(crate) struct Exported {
    extension: ExtensionName,
    /// The action or the event.
    kind: String,
    /// What its organization sees of it.
    record: Box<RawValue>,
    /// Where the whole record is read, when its data is too large for an export.
    #[serde(skip_serializing_if = "Option::is_none")]
    data_in: Option<String>,
}

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

    /// What an export tells of the invocation in an item. Data that lies in the blobs is not in it: an export of one
    /// page must not grow beyond bounds.
    pub(crate) async fn exported(&self, item: &Item) -> Outcome<Exported> {
        let mut record = Record::read(item)?;
        let blob = |ending: &Ending| matches!(ending.data, Some(Payload::Blob(_)));
        let is_large = record.ending.as_ref().is_some_and(blob);
        if let Some(ending) = record.ending.as_mut().filter(|_| is_large) {
            ending.data = Some(Payload::Json(raw("null")));
        }
        let view = self.view(&record).await?;
        let view = String::from_utf8(view.into()).map_err(|_| Outage::new("a view is no text"))?;
        let id = record.id.hyphenated();
        Ok(Exported {
            extension: record.extension,
            kind: record.kind.word().to_owned(),
            record: raw(&view),
            data_in: is_large.then(|| format!("/v1/invocations/{id}?oid={}", record.oid)),
        })
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
