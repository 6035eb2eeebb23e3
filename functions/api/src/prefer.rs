//! `Prefer` (RFC 7240): how long a caller waits.

use std::time::Duration;

use annex_core::limits::WAIT_MAX;
use axum::http::HeaderMap;

/// How long the caller waits for the answer: `wait=N` seconds, not at all with `respond-async` alone, and
/// [`WAIT_MAX`] at most and unless told. What is not understood is ignored, as the RFC says.
pub(crate) fn wait(headers: &HeaderMap) -> Duration {
    let (mut asked, mut at_once) = (None, false);
    for value in headers.get_all("prefer") {
        for preference in value.to_str().unwrap_or("").split(',') {
            let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
            if name.trim().eq_ignore_ascii_case("respond-async") {
                at_once = true;
            } else if name.trim().eq_ignore_ascii_case("wait") && asked.is_none() {
                asked = seconds(value.split(';').next().unwrap_or("").trim().trim_matches('"'));
            }
        }
    }
    match (asked, at_once) {
        (Some(asked), _) => asked.min(WAIT_MAX),
        (None, true) => Duration::ZERO,
        (None, false) => WAIT_MAX,
    }
}

/// A number of seconds; more digits than a number has are very long.
fn seconds(text: &str) -> Option<Duration> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| Duration::from_secs(text.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[&'static str], secs: u64) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("prefer", value.parse().unwrap());
        }
        assert_eq!(wait(&headers), Duration::from_secs(secs), "{values:?}");
    }

    #[test]
    fn a_caller_waits_as_long_as_it_says_and_25_seconds_at_most() {
        check(&[], 25);
        check(&["wait=3"], 3);
        check(&["wait=0"], 0);
        check(&["wait=25"], 25);
        check(&["wait=26"], 25);
        check(&["wait=99999999999999999999999"], 25);
        check(&["Wait = \"7\"; x"], 7);
        check(&["respond-async"], 0);
        check(&["respond-async, wait=10"], 10);
        check(&["handling=lenient", "respond-async"], 0);
    }

    #[test]
    fn what_is_not_understood_is_ignored() {
        check(&["wait=-1"], 25);
        check(&["wait=1e3"], 25);
        check(&["wait"], 25);
        check(&["wait=,respond-async"], 0);
        check(&["nonsense"], 25);
    }
}
