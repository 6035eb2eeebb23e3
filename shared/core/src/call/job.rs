//! What the dispatch and resume queues carry.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::capability::outbox::Place;
use crate::ids::{ExtensionName, Oid};
use crate::time::Timestamp;
use crate::trace::Trace;

use super::payload::Payload;
use super::record::{Kind, Origin, Record};

/// A message of the dispatch or the resume queue.
///
/// Its variant is a key and not a tag beside the members: reading a tag would buffer them, and raw JSON text cannot be
/// read from a buffer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Job {
    /// Make a new invocation, and run it.
    Start(Box<Start>),
    /// Run an invocation that has its record: a queued call, a slow retry, or one whose worker is gone.
    Run {
        /// The tenant.
        oid: Oid,
        /// The invocation.
        id: Uuid,
        /// Which of its slow retries this is; a message of an earlier one is out of date.
        #[serde(default)]
        slow_retries: u32,
        /// The revision of the record whose worker is known to be gone: its lease counts no more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        abandoned: Option<u64>,
    },
    /// Updates of a day that are not due yet.
    Later(Updates),
    /// Updates to deliver now.
    Now(Updates),
    /// Remove the data of a deleted organization, a step at a time. How far that has come stands in the organization's
    /// own item, so that a repeat of this message does nothing twice.
    Erase {
        /// The tenant.
        oid: Oid,
    },
    /// Deliver what waits for a capability extension on a lock.
    Deliver {
        /// Where.
        place: Place,
        /// The sort key of an entry that is due now, whatever the clock says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entry: Option<String>,
    },
}

/// The daily update of some installs of an extension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Updates {
    /// The extension.
    pub(super) extension: ExtensionName,
    /// The day, since the epoch.
    pub(super) day: i64,
    /// The minute of the day in which each is due, and the organization; in order.
    pub(super) installs: Vec<(u32, Oid)>,
}

impl Job {
    /// Run this invocation.
    pub(super) fn run(record: &Record) -> Self {
        Self::Run {
            oid: record.oid,
            id: record.id,
            slow_retries: record.slow_retries,
            abandoned: None,
        }
    }
}

/// An invocation to make.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Start {
    /// The tenant.
    pub(super) oid: Oid,
    /// The extension.
    pub(super) extension: ExtensionName,
    /// What is delivered.
    pub(super) kind: Kind,
    /// What started it.
    pub(super) origin: Origin,
    /// What the invocation is told apart by.
    pub(super) claim: String,
    /// The idempotency key that the extension sees; `None`: the invocation's id.
    pub(super) key: Option<String>,
    /// The data.
    pub(super) data: Payload,
    /// Who asked.
    pub(super) ident: String,
    /// Level in its chain of continuations.
    pub(super) level: u32,
    /// Depth in its chain of calls across extensions.
    pub(super) depth: u32,
    /// Names of the secrets that the extension got before in the chain: its answer is redacted of them too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) secrets: Vec<String>,
    /// The trace of the call that it goes on from; absent: one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) trace: Option<Trace>,
    /// When it was published. A repeat within the dedupe time of an earlier publish is dropped.
    pub(super) published_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::payload::raw;

    #[test]
    fn a_message_with_raw_data_reads_as_it_was_written() {
        let start = Start {
            oid: Oid::parse("8cbe27f4-0000-4000-8000-138cd51389cd").unwrap(),
            extension: ExtensionName::parse("demo").unwrap(),
            kind: Kind::Event { event: "subscribe".to_owned() },
            origin: Origin::Platform,
            claim: "c".to_owned(),
            key: None,
            data: Payload::Json(raw(r#"{"n": 1e400}"#)),
            ident: "i".to_owned(),
            level: 0,
            depth: 1,
            secrets: vec!["key".to_owned()],
            trace: None,
            published_at: Timestamp::default(),
        };
        let text = serde_json::to_string(&Job::Start(Box::new(start))).unwrap();
        let back: Job = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
    }
}
