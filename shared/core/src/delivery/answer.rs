//! What an extension answered, and what that means for the call.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chain::Asks;
use crate::fault::{Code, Fault};
use crate::json;
use crate::limits::ANSWER_ERROR_BYTES_MAX;
use crate::meter::Report;
use crate::ports::{SendFault, WebhookAnswer};
use crate::profile::Profile;
use crate::time::Timestamp;

use super::retry;

/// An answer of the protocol, read leniently: what is absent, null or of no use is nothing.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// What went wrong; empty: nothing. At most [`ANSWER_ERROR_BYTES_MAX`] of it.
    pub error: String,
    /// Whether a retry may help, where the extension said so (LC-054).
    pub retriable: Option<bool>,
    /// Whether the answer has a `version`: every processed message's has one.
    pub processed: bool,
    /// The data, exactly as it came.
    pub data: Option<Box<RawValue>>,
    /// Continuations asked for, in order.
    pub continuations: Asks,
    /// Usage to record.
    pub report: Option<Report>,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(default)]
    error: Option<String>,
    #[serde(default, borrow)]
    retriable: Option<&'a RawValue>,
    #[serde(default, borrow)]
    version: Option<&'a RawValue>,
    #[serde(default)]
    data: Option<Box<RawValue>>,
    #[serde(default)]
    continuations: Option<Asks>,
    #[serde(default)]
    metrics: Option<Report>,
}

impl Answer {
    /// Reads an answer's body; the text says why it is none.
    pub fn read(body: &[u8]) -> Result<Self, String> {
        let text = json::check(body).map_err(|fault| format!("answer cannot be read: {fault}"))?;
        let foreign = || "answer is not an answer of the protocol".to_owned();
        // A list would be read as the members in their order.
        if !text.trim_start().starts_with('{') {
            return Err(foreign());
        }
        let wire: Wire<'_> = serde_json::from_str(text).map_err(|_| foreign())?;
        Ok(Self {
            error: wire.error.map_or_else(String::new, |mut error| {
                error.truncate(error.floor_char_boundary(ANSWER_ERROR_BYTES_MAX));
                error.shrink_to_fit();
                error
            }),
            retriable: match wire.retriable.map(RawValue::get) {
                Some("true") => Some(true),
                Some("false") => Some(false),
                _ => None,
            },
            processed: wire.version.is_some_and(|version| version.get() != "null"),
            data: wire.data.filter(|data| data.get() != "null"),
            continuations: wire.continuations.unwrap_or_default(),
            report: wire.metrics,
        })
    }
}

/// What an attempt means for the call.
#[derive(Debug)]
pub enum Verdict {
    /// It succeeded.
    Done(Answer),
    /// It failed for good.
    Failed(Fault, Option<Answer>),
    /// It failed in a way that a retry may mend soon.
    RetrySoon(Fault, Option<Answer>),
    /// The extension sheds load: try again much later, not before what it asked for (LC-044, LC-045).
    RetryLater(Fault, Option<Duration>),
}

/// Reads an attempt's outcome under a profile.
///
/// The status decides, except that an answer which carries an error and `retriable: false` is permanent whatever its
/// status: published SDKs answer it with 503. A 2xx without a `version` was not processed by anybody.
pub fn verdict(
    profile: &Profile,
    outcome: Result<WebhookAnswer, SendFault>,
    now: Timestamp,
) -> Verdict {
    let answer = match outcome {
        Ok(answer) => answer,
        Err(fault) => return unanswered(&fault),
    };
    let read = Answer::read(&answer.body);
    if (200..300).contains(&answer.status) {
        return accepted(read);
    }
    let read = read.ok();
    let said = read.as_ref().map(|read| read.error.as_str()).filter(|error| !error.is_empty());
    let permanent =
        said.is_some() && read.as_ref().is_some_and(|read| read.retriable == Some(false));
    let text =
        said.map_or_else(|| format!("extension answered status {}", answer.status), str::to_owned);
    if permanent || (answer.status == 400 && said.is_some()) {
        return Verdict::Failed(Fault::new(Code::ExtensionError, text), read);
    }
    let fault = Fault::new(Code::ExtensionFailed, text);
    if profile.slow_statuses.contains(&answer.status) {
        let asked = answer.retry_after.as_deref().and_then(|value| retry::retry_after(value, now));
        return Verdict::RetryLater(fault, asked);
    }
    if profile.retry_statuses.contains(&answer.status) {
        return Verdict::RetrySoon(fault, read);
    }
    Verdict::Failed(fault, read)
}

fn accepted(read: Result<Answer, String>) -> Verdict {
    match read {
        Ok(read) if !read.error.is_empty() => {
            Verdict::Failed(Fault::new(Code::ExtensionError, read.error.clone()), Some(read))
        }
        Ok(read) if read.processed => Verdict::Done(read),
        Ok(_) => Verdict::Failed(
            Fault::new(
                Code::BadAnswer,
                "extension did not process the message: its answer has no version",
            ),
            None,
        ),
        Err(text) => Verdict::Failed(Fault::new(Code::BadAnswer, text), None),
    }
}

fn unanswered(fault: &SendFault) -> Verdict {
    let text = fault.to_string();
    match fault {
        SendFault::Refused(_) => {
            Verdict::Failed(Fault::new(Code::ExtensionUnreachable, text), None)
        }
        SendFault::TooLarge { .. } => Verdict::Failed(Fault::new(Code::BadAnswer, text), None),
        SendFault::NotSent(_) | SendFault::Broken(_) | SendFault::TimedOut(_) => {
            Verdict::RetrySoon(Fault::new(Code::ExtensionUnreachable, text), None)
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::profile::LIMACHARLIE;

    fn of(status: u16, body: &str) -> Verdict {
        let answer = WebhookAnswer {
            status,
            retry_after: None,
            body: Bytes::copy_from_slice(body.as_bytes()),
        };
        verdict(&LIMACHARLIE, Ok(answer), Timestamp::default())
    }

    /// A verdict in one line.
    fn short(verdict: Verdict) -> String {
        match verdict {
            Verdict::Done(answer) => {
                format!("done {}", answer.data.map_or("-".into(), |d| d.get().to_owned()))
            }
            Verdict::Failed(fault, _) => format!("failed {} {}", fault.code.word(), fault.message),
            Verdict::RetrySoon(fault, _) => format!("soon {} {}", fault.code.word(), fault.message),
            Verdict::RetryLater(fault, asked) => format!("later {} {asked:?}", fault.message),
        }
    }

    #[test]
    fn every_status_is_decided_by_the_list_of_the_contract() {
        for status in 100..600_u16 {
            let expected = match status {
                200..=299 => "failed bad-answer",
                429 => "later",
                408 | 500 | 502 | 503 | 504 => "soon extension-failed", // LC-040
                _ => "failed extension-failed",                         // LC-041 to LC-043
            };
            let verdict = short(of(status, "<html>"));
            assert!(verdict.starts_with(expected), "{status}: {verdict}");
        }
    }

    #[test]
    fn the_body_overrides_the_status_only_to_stop() {
        for (status, body, expected) in [
            (500, r#"{"error":"e","retriable":false,"version":0}"#, "failed extension-error e"),
            (503, r#"{"error":"e","retriable":false}"#, "failed extension-error e"), // Python 1.1.10
            (503, r#"{"error":"e","retriable":true}"#, "soon extension-failed e"),
            (500, r#"{"error":"e"}"#, "soon extension-failed e"), // LC-049
            (400, r#"{"error":"e","retriable":true}"#, "failed extension-error e"), // Python, newer
            (400, r#"{"error":"e"}"#, "failed extension-error e"),
            (429, r#"{"error":"e","retriable":false}"#, "failed extension-error e"),
            (429, r#"{"error":"e"}"#, "later e None"),
            (
                500,
                r#"{"error":"","retriable":false}"#,
                "soon extension-failed extension answered status 500",
            ),
            (401, r#"{"error":"invalid signature"}"#, "failed extension-failed invalid signature"),
            (501, r#"{"error":"e","retriable":true}"#, "failed extension-failed e"),
        ] {
            assert_eq!(short(of(status, body)), expected, "{status} {body}");
        }
    }

    #[test]
    fn a_success_has_a_version_and_no_error() {
        for (body, expected) in [
            (r#"{"version":20221218,"data":{"a":1.0},"retriable":true}"#, "done {\"a\":1.0}"),
            (
                r#"{"version":20221218,"error":"","data":null,"continuations":null,"metrics":null}"#,
                "done -",
            ),
            (r#"{"version":20221218,"data":[],"ssc":{"sid":"x"},"new":1}"#, "done []"),
            (
                r#"{}"#,
                "failed bad-answer extension did not process the message: its answer has no version",
            ),
            (
                r#"{"version":null,"data":{}}"#,
                "failed bad-answer extension did not process the message: its answer has no version",
            ),
            (r#"{"version":20221218,"error":"e"}"#, "failed extension-error e"),
            (
                r#"{"version":20221218,"error":7}"#,
                "failed bad-answer answer is not an answer of the protocol",
            ),
            (r#"[1]"#, "failed bad-answer answer is not an answer of the protocol"),
        ] {
            assert_eq!(short(of(200, body)), expected, "{body}");
        }
        for body in ["", r#"{"version":1,"data":NaN}"#, r#"{"version":1,"data":"\ud800"}"#] {
            assert!(
                short(of(200, body)).starts_with("failed bad-answer answer cannot be read: "),
                "{body}"
            );
        }
    }

    #[test]
    fn what_was_not_answered_is_retried_unless_our_rules_or_the_size_forbid() {
        for (fault, expected) in [
            (
                SendFault::NotSent("refused".into()),
                "soon extension-unreachable could not connect: refused",
            ),
            (
                SendFault::Broken("reset".into()),
                "soon extension-unreachable connection failed: reset",
            ),
            (
                SendFault::TimedOut(Duration::from_secs(120)),
                "soon extension-unreachable no answer within 120 s",
            ),
            (
                SendFault::Refused("private".into()),
                "failed extension-unreachable target refused: private",
            ),
            (
                SendFault::TooLarge { status: 200, size: 100_000_001 },
                "failed bad-answer response body size 100000001 exceeds limit",
            ),
        ] {
            assert_eq!(short(verdict(&LIMACHARLIE, Err(fault), Timestamp::default())), expected);
        }
    }

    #[test]
    fn retry_after_of_a_429_is_passed_on() {
        for (value, expected) in [
            ("60", "later extension answered status 429 Some(60s)"),
            ("1e30", "later extension answered status 429 None"),
        ] {
            let answer =
                WebhookAnswer { status: 429, retry_after: Some(value.into()), body: Bytes::new() };
            assert_eq!(short(verdict(&LIMACHARLIE, Ok(answer), Timestamp::default())), expected);
        }
    }
}
