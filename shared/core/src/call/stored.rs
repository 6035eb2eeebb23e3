//! What lies in stores and queues of platforms that run today is read by every later version.
//!
//! The files of `testdata/stored-1` are never changed: a new form gets new files beside them.

use super::job::Job;
use super::record::Record;
use crate::capability::history::HistoryLine;
use crate::capability::model::{Extension, Lock, Session, SessionPlace};
use crate::capability::outbox::Entry;
use crate::meter::Usage;
use crate::model::{ApiKey, Definition, HiveRecord, InstallationKey, Org, Subscription};

macro_rules! text {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/stored-1/", $name, ".json"))
    };
}

macro_rules! read {
    ($($kind:ty: $name:literal,)+) => {
        $(if let Err(error) = serde_json::from_str::<$kind>(text!($name)) {
            panic!("{} is not read any more: {error}", $name);
        })+
    };
}

#[test]
fn every_stored_form_is_still_read() {
    read! {
        ApiKey: "api-key",
        ApiKey: "api-key-rehashed",
        Definition: "definition",
        Entry: "outbox-call",
        Entry: "outbox-event",
        Extension: "capability-extension",
        Extension: "capability-extension-bare",
        HistoryLine: "history-line",
        HiveRecord: "hive-plain",
        HiveRecord: "hive-sealed",
        InstallationKey: "installation-key",
        Job: "message-deliver",
        Job: "message-deliver-all",
        Job: "message-erase",
        Job: "message-later",
        Job: "message-now",
        Job: "message-run",
        Job: "message-run-first",
        Job: "message-start-event",
        Job: "message-start-report",
        Job: "message-start-request",
        Lock: "lock",
        Org: "org",
        Org: "org-deleted",
        Record: "record",
        Record: "record-ended",
        Record: "record-short",
        Session: "session",
        SessionPlace: "session-place",
        Subscription: "subscription",
        Subscription: "subscription-removed",
        Usage: "usage",
    }
}

#[test]
fn each_kind_of_message_has_a_file() {
    // A new kind of message fails to compile here: give it a file.
    let file = |job: &Job| match job {
        Job::Start(_) => text!("message-start-request"),
        Job::Run { .. } => text!("message-run"),
        Job::Later(_) => text!("message-later"),
        Job::Now(_) => text!("message-now"),
        Job::Erase { .. } => text!("message-erase"),
        Job::Deliver { .. } => text!("message-deliver"),
    };
    for text in [
        text!("message-start-request"),
        text!("message-run"),
        text!("message-later"),
        text!("message-now"),
        text!("message-erase"),
        text!("message-deliver"),
    ] {
        assert_eq!(file(&serde_json::from_str(text).unwrap()), text);
    }
}
