//! The batches that Lambda takes from a queue, record by record.

use std::borrow::Cow;

use annex_core::stored;
use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Error;

/// A batch, taken apart.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The messages.
    pub event: SqsEvent,
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
struct Named<'a> {
    #[serde(rename = "messageId", borrow)]
    message_id: Cow<'a, str>,
}

impl Batch {
    /// Whether an event is a batch of a queue.
    pub(crate) fn is_one(event: &RawValue) -> bool {
        serde_json::from_str::<Envelope<'_>>(event.get()).is_ok()
    }

    /// Takes an event apart. A record that holds no message fails alone; one without even an id cannot be named in the
    /// answer, so that the whole batch has to come back.
    pub(crate) fn read(event: &RawValue) -> Result<Self, Error> {
        let envelope: Envelope<'_> = serde_json::from_str(event.get()).map_err(|error| {
            format!("the event is no batch of a queue: {}", stored::fault(&error))
        })?;
        let mut batch = Self::default();
        for raw in envelope.records {
            let named: Named<'_> = serde_json::from_str(raw.get())
                .map_err(|_| "a record of the batch has no id: the batch comes back")?;
            match serde_json::from_str::<SqsMessage>(raw.get()) {
                Ok(message) => batch.event.records.push(message),
                Err(error) => {
                    let (id, fault) = (named.message_id.into_owned(), stored::fault(&error));
                    tracing::error!(message.id = id, fault, "a record of the batch is no message");
                    batch.malformed.push(id);
                }
            }
        }
        Ok(batch)
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

    #[test]
    fn a_record_that_is_no_message_fails_alone() {
        for bad in [
            r#"{"messageId":"2","receiptHandle":"r","body":7,"attributes":{}}"#,
            r#"{"messageId":"2","receiptHandle":"r","body":"x","attributes":[]}"#,
            r#"{"messageId":"2","receiptHandle":{},"body":"x"}"#,
        ] {
            let batch = read(&[bad, GOOD]).unwrap();
            let [message] = batch.event.records.as_slice() else { panic!("{bad}") };
            assert_eq!(message.message_id.as_deref(), Some("1"));
            assert_eq!(message.body.as_deref(), Some(r#"{"a":"\u00e9"}"#));
            assert_eq!(batch.malformed, ["2"], "{bad}");
        }
    }

    #[test]
    fn a_record_without_an_id_brings_the_batch_back() {
        for bad in ["{}", "7", r#"{"messageId":null}"#] {
            let expected = "a record of the batch has no id: the batch comes back";
            assert_eq!(read(&[GOOD, bad]).unwrap_err(), expected);
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
}
