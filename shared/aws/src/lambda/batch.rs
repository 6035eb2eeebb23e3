//! The batches that Lambda takes from a queue, record by record.

use std::borrow::Cow;

use annex_core::ports::Message;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Error;

/// A batch, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    /// The messages.
    pub messages: Vec<Message>,
    /// Under which handle each message's visibility is changed; in the order of the messages.
    pub receipts: Vec<String>,
    /// Ids of the records that hold no message.
    pub malformed: Vec<String>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "Records", borrow)]
    records: Vec<&'a RawValue>,
}

/// What alone can be read of a record that holds no message.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named<'a> {
    #[serde(borrow)]
    message_id: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    message_id: String,
    receipt_handle: String,
    #[serde(borrow)]
    body: Cow<'a, str>,
    #[serde(borrow)]
    attributes: Attributes<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Attributes<'a> {
    #[serde(borrow)]
    approximate_receive_count: Cow<'a, str>,
}

/// What a batch is answered with: the messages that come back. The others are deleted.
#[derive(Debug, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BatchAnswer {
    batch_item_failures: Vec<Failure>,
}

#[derive(Debug, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
struct Failure {
    item_identifier: String,
}

impl BatchAnswer {
    /// These messages come back.
    pub(crate) fn new(ids: impl IntoIterator<Item = String>) -> Self {
        let failure = |id| Failure { item_identifier: id };
        Self { batch_item_failures: ids.into_iter().map(failure).collect() }
    }
}

impl Batch {
    /// Whether an event is a batch of a queue.
    pub(crate) fn is_one(event: &RawValue) -> bool {
        serde_json::from_str::<Envelope<'_>>(event.get()).is_ok()
    }

    /// Takes an event apart. A record that holds no message fails alone; one without even an id cannot be named in the
    /// answer, so that the whole batch has to come back.
    pub(crate) fn read(event: &RawValue) -> Result<Self, Error> {
        let envelope: Envelope<'_> = serde_json::from_str(event.get())
            .map_err(|error| format!("the event is not a batch of a queue: {error}"))?;
        let mut batch = Self::default();
        for raw in envelope.records {
            match serde_json::from_str::<Record<'_>>(raw.get()) {
                Ok(record) => {
                    let count = &record.attributes.approximate_receive_count;
                    batch.receipts.push(record.receipt_handle);
                    batch.messages.push(Message {
                        id: record.message_id,
                        body: record.body.into_owned(),
                        receives: count.parse().unwrap_or(1),
                    });
                }
                Err(error) => {
                    let named: Named<'_> = serde_json::from_str(raw.get())
                        .map_err(|_| format!("a record of the batch has no id: {error}"))?;
                    let id = named.message_id.into_owned();
                    tracing::error!(
                        message.id = id,
                        "a record of the batch is no message: {error}"
                    );
                    batch.malformed.push(id);
                }
            }
        }
        Ok(batch)
    }

    /// The handle of a message.
    pub(crate) fn receipt(&self, id: &str) -> Option<&str> {
        let index = self.messages.iter().position(|message| message.id == id)?;
        self.receipts.get(index).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"messageId":"1","receiptHandle":"r1","body":"{\"a\":\"\\u00e9\"}",
        "attributes":{"ApproximateReceiveCount":"3"},"messageAttributes":{}}"#;

    fn read(records: &[&str]) -> Result<Batch, String> {
        let text = format!(r#"{{"Records":[{}]}}"#, records.join(","));
        let raw = RawValue::from_string(text).unwrap();
        Batch::read(&raw).map_err(|error| error.to_string())
    }

    fn message() -> Message {
        Message { id: "1".into(), body: r#"{"a":"\u00e9"}"#.into(), receives: 3 }
    }

    #[test]
    fn a_record_that_is_no_message_fails_alone() {
        for bad in [
            r#"{"messageId":"2"}"#,
            r#"{"messageId":"2","receiptHandle":"r","body":7,"attributes":{}}"#,
            r#"{"messageId":"2","receiptHandle":"r","body":"x","attributes":{}}"#,
        ] {
            let batch = read(&[bad, GOOD]).unwrap();
            let expected = Batch {
                messages: vec![message()],
                receipts: vec!["r1".into()],
                malformed: vec!["2".into()],
            };
            assert_eq!(batch, expected, "{bad}");
            assert_eq!((batch.receipt("1"), batch.receipt("2")), (Some("r1"), None));
        }
    }

    #[test]
    fn a_record_without_an_id_brings_the_batch_back() {
        for bad in ["{}", "7", r#"{"messageId":null}"#] {
            assert!(read(&[GOOD, bad]).unwrap_err().starts_with("a record of the batch has no id"));
        }
    }

    #[test]
    fn what_is_no_batch_is_refused() {
        for event in ["{}", "[]", r#"{"Records":7}"#, r#"{"record":{},"revision":1}"#] {
            let raw = RawValue::from_string(event.into()).unwrap();
            assert!(!Batch::is_one(&raw), "{event}");
            assert!(Batch::read(&raw).is_err(), "{event}");
        }
    }

    #[test]
    fn the_answer_names_what_comes_back() {
        let text = |ids: &[&str]| {
            let answer = BatchAnswer::new(ids.iter().map(|id| (*id).to_owned()));
            serde_json::to_string(&answer).unwrap()
        };
        assert_eq!(text(&[]), r#"{"batchItemFailures":[]}"#);
        assert_eq!(text(&["1"]), r#"{"batchItemFailures":[{"itemIdentifier":"1"}]}"#);
    }
}
