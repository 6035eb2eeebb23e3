//! What lies in stores and queues of platforms that run today is read by every later version.
//!
//! The files of `testdata/stored-1` are never changed: a new form gets new files beside them.

use serde::de::DeserializeOwned;

use super::job::Job;
use super::record::Record;
use crate::meter::Usage;
use crate::model::{ApiKey, Definition, HiveRecord, InstallationKey, Org, Subscription};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/stored-1");

fn read<T: DeserializeOwned>(name: &str, text: &str) {
    if let Err(error) = serde_json::from_str::<T>(text) {
        panic!("{name} is not read any more: {error}");
    }
}

#[test]
fn every_stored_form_is_still_read() {
    let mut files = 0;
    for entry in std::fs::read_dir(FOLDER).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        match name {
            "usage" => read::<Usage>(name, &text),
            "definition" => read::<Definition>(name, &text),
            "installation-key" => read::<InstallationKey>(name, &text),
            _ if name.starts_with("message-") => read::<Job>(name, &text),
            _ if name.starts_with("record") => read::<Record>(name, &text),
            _ if name.starts_with("org") => read::<Org>(name, &text),
            _ if name.starts_with("api-key") => read::<ApiKey>(name, &text),
            _ if name.starts_with("subscription") => read::<Subscription>(name, &text),
            _ if name.starts_with("hive-") => read::<HiveRecord>(name, &text),
            _ => panic!("{name} is the form of nothing"),
        }
        files += 1;
    }
    assert!(20 <= files, "{files} files");
}

#[test]
fn each_kind_of_message_has_a_file() {
    // A new kind of message fails to compile here: give it a file.
    let file = |job: &Job| match job {
        Job::Start(_) => "message-start-request",
        Job::Run { .. } => "message-run",
        Job::Later(_) => "message-later",
        Job::Now(_) => "message-now",
        Job::Erase { .. } => "message-erase",
    };
    for name in
        ["message-start-request", "message-run", "message-later", "message-now", "message-erase"]
    {
        let text = std::fs::read_to_string(format!("{FOLDER}/{name}.json")).unwrap();
        assert_eq!(file(&serde_json::from_str(&text).unwrap()), name);
    }
}
