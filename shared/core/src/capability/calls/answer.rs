//! What the answer of a called extension means.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json;
use crate::limits::{CALL_ERROR_BYTES_MAX, CAPABILITY_TIMEOUT, NAME_BYTES_MAX};
use crate::ports::{SendFault, WebhookAnswer};
use crate::redact::Redactor;

use super::record::CallError;

/// An answer. Members of other names are left alone.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Failure {
    code: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    retryable: Option<bool>,
}

/// Reads an answer: its output, or why the call failed. A 2xx without a body, or without an output, has `null` as its
/// output.
pub(super) fn read(sent: Result<WebhookAnswer, SendFault>) -> Result<String, CallError> {
    let answer = sent.map_err(|fault| not_answered(&fault))?;
    if !(200..300).contains(&answer.status) {
        let text = format!("the extension answered {}", answer.status);
        return Err(CallError::new("http-status", text));
    }
    if answer.body.is_empty() {
        return Ok("null".to_owned());
    }
    let invalid = |what: &str| CallError::new("invalid-response", format!("the answer {what}"));
    let text = json::check(&answer.body).map_err(|fault| invalid(&format!("is {fault}")))?;
    // By itself the derived reader would take a list of values for the object.
    if !text.trim_start().starts_with('{') {
        return Err(invalid("is no JSON object"));
    }
    let shape = || invalid("has an output or an error that is not as it should be");
    let body: Body<'_> = serde_json::from_str(text).map_err(|_| shape())?;
    let Some(failure) = body.error else {
        return Ok(body.output.map_or("null", RawValue::get).to_owned());
    };
    if !failure.get().starts_with('{') {
        return Err(shape());
    }
    let Failure { code, message, retryable } =
        serde_json::from_str(failure.get()).map_err(|_| shape())?;
    Err(CallError { code, message, retryable })
}

/// Hides the target's credentials in a failure, and only then cuts it: what is cut off would no longer be found.
pub(super) fn shown(failure: CallError, redactor: &Redactor) -> CallError {
    let cut = |text: &str, most: usize| {
        let mut text = redactor.redact(text).into_owned();
        text.truncate(text.floor_char_boundary(most));
        text
    };
    CallError {
        code: cut(&failure.code, NAME_BYTES_MAX),
        message: cut(&failure.message, CALL_ERROR_BYTES_MAX),
        retryable: failure.retryable,
    }
}

fn not_answered(fault: &SendFault) -> CallError {
    match fault {
        SendFault::TimedOut(_) => {
            let text = format!("no answer within {} s", CAPABILITY_TIMEOUT.as_secs());
            CallError::new("timeout", text)
        }
        SendFault::TooLarge { .. } => CallError::new("response-too-large", fault.to_string()),
        // Where it is found is the extension's own affair, and none of the caller's.
        SendFault::Refused(_) | SendFault::NotSent(_) => {
            CallError::new("unreachable", "the extension cannot be reached")
        }
        SendFault::Broken(_) => CallError::new("unreachable", "the connection broke"),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[track_caller]
    fn check(status: u16, body: &str, expected: Result<&str, (&str, &str)>) {
        let body = Bytes::from(body.to_owned());
        let found = read(Ok(WebhookAnswer { status, retry_after: None, body }));
        let found = found.map_err(|error| (error.code, error.message));
        let expected = expected.map(str::to_owned);
        assert_eq!(found, expected.map_err(|(code, text)| (code.to_owned(), text.to_owned())));
    }

    #[test]
    fn an_output_is_what_was_answered_byte_for_byte() {
        check(
            200,
            r#"{"output": {"n": 1.0e+400, "b":1, "a":2}}"#,
            Ok(r#"{"n": 1.0e+400, "b":1, "a":2}"#),
        );
        check(201, r#"{"output":null}"#, Ok("null"));
        check(200, r#"{"other":1}"#, Ok("null"));
        check(204, "", Ok("null"));
        check(200, r#"{"error":null,"output":1}"#, Ok("1"));
    }

    #[test]
    fn a_failure_keeps_its_own_code() {
        check(
            200,
            r#"{"error":{"code":"sold-out","message":"none left"}}"#,
            Err(("sold-out", "none left")),
        );
        check(200, r#"{"error":{"code":"x"},"output":1}"#, Err(("x", "")));
    }

    #[test]
    fn a_failure_is_cut_after_its_secrets_are_hidden() {
        let secret = "p4ss-word-very-secret";
        let redactor = Redactor::new([("webhook.password".to_owned(), secret.to_owned())]);
        let at_the_end_of = |most: usize| "x".repeat(most - 18) + secret + "yz";
        let failure =
            CallError::new(&at_the_end_of(NAME_BYTES_MAX), at_the_end_of(CALL_ERROR_BYTES_MAX));
        let shown = shown(failure, &redactor);
        assert_eq!((shown.code.len(), shown.message.len()), (NAME_BYTES_MAX, CALL_ERROR_BYTES_MAX));
        for text in [shown.code, shown.message] {
            assert!(!text.contains("p4ss"), "{text:.300}");
        }
    }

    #[test]
    fn what_is_no_answer_is_a_failure_of_the_call() {
        let shape = "the answer has an output or an error that is not as it should be";
        check(500, r#"{"output":1}"#, Err(("http-status", "the extension answered 500")));
        check(302, "", Err(("http-status", "the extension answered 302")));
        check(200, "[1]", Err(("invalid-response", "the answer is no JSON object")));
        check(200, "<html>", Err(("invalid-response", "the answer is not valid JSON at byte 0")));
        check(200, r#"{"error":"no"}"#, Err(("invalid-response", shape)));
        check(200, r#"{"error":{}}"#, Err(("invalid-response", shape)));
        check(200, r#"{"error":["code","text",true]}"#, Err(("invalid-response", shape)));
        check(200, r#"{"error":false}"#, Err(("invalid-response", shape)));
        check(200, r#"{"output":1,"output":2}"#, Err(("invalid-response", shape)));
        let deep = format!(r#"{{"output":{}{}}}"#, "[".repeat(64), "]".repeat(64));
        check(
            200,
            &deep,
            Err(("invalid-response", "the answer is nested deeper than 64 levels at byte 73")),
        );
    }
}
