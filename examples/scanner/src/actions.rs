//! What callers can ask for.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::answer::Answer;
use crate::message::Request;

/// Pages that follow the first one of a scan.
const PAGES: u32 = 2;

/// Bytes that the scan of one page reads.
const PAGE_BYTES: u64 = 4096;

/// Keys of failed calls that are remembered at a time.
const FAILED_MAX: usize = 1024;

/// The actions, and what they remember.
#[derive(Default)]
pub struct Actions {
    failed: Mutex<HashSet<String>>,
}

/// The parameters of `scan`.
#[derive(Deserialize)]
struct Scan {
    target: String,
}

/// The state of a scan that goes on later.
#[derive(Serialize, Deserialize)]
struct Page {
    target: String,
    page: u32,
}

impl Actions {
    /// Runs an action. `key` is the same on every retry of one call.
    pub fn run(&self, key: &str, request: &Request<'_>) -> Answer {
        match request.action.as_ref() {
            "scan" => read(request.data, |Scan { target }| scan(key, target)),
            "scan_page" => read(request.data, |page| scan_page(key, page)),
            "echo" => Answer::raw_data(request.data),
            "fail" => Answer::permanent("target is not valid"),
            "flaky" => self.flaky(key),
            unknown => Answer::bad_request(format!("unknown request action: {unknown}")),
        }
    }

    /// Fails the first attempt of every call.
    fn flaky(&self, key: &str) -> Answer {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.remove(key) {
            return Answer::data(json!({ "attempts": 2 }));
        }
        if FAILED_MAX <= failed.len() {
            failed.clear();
        }
        failed.insert(key.to_owned());
        Answer::transient("not ready yet")
    }
}

/// Reads the data of a request. Data of another shape stays so: no retry can help.
fn read<'a, T: Deserialize<'a>>(data: &'a RawValue, then: impl FnOnce(T) -> Answer) -> Answer {
    match serde_json::from_str(data.get()) {
        Ok(data) => then(data),
        Err(error) => Answer::permanent(format!("failed to unmarshal request data: {error}")),
    }
}

/// Scans the first page at once, and leaves the others to continuations.
fn scan(key: &str, target: String) -> Answer {
    if target.trim().is_empty() {
        return Answer::permanent("target is not valid");
    }
    log(key, &target, 0);
    let answer = Answer::data(json!({ "target": target, "findings": 1, "pages_left": PAGES }));
    answer.meter(key, &[("scans", 1), ("bytes_scanned", PAGE_BYTES)]).continue_with(
        1,
        "scan_page",
        Page { target, page: 1 },
    )
}

/// Says on standard error what is scanned. Text from outside is quoted, so that it cannot pass for lines of our own.
fn log(key: &str, target: &str, page: u32) {
    eprintln!("scan of {target:?}, page {page}, key {key:?}");
}

/// Scans a further page. A continuation has a key of its own, so its metrics count beside those of the first page.
fn scan_page(key: &str, Page { target, page }: Page) -> Answer {
    log(key, &target, page);
    let left = PAGES.saturating_sub(page);
    let answer =
        Answer::data(json!({ "target": target, "page": page, "findings": 1, "pages_left": left }))
            .meter(key, &[("bytes_scanned", PAGE_BYTES)]);
    if left == 0 {
        answer
    } else {
        answer.continue_with(1, "scan_page", Page { target, page: page + 1 })
    }
}
