//! `annex lock call` and `annex lock ask`: commands and queries of capability extensions, on behalf of a lock's people.

use http::Method;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::error::Error;
use super::session::Session;
use super::{hive, input, output};

/// What is called, and on whose behalf.
#[derive(Debug, clap::Args)]
pub struct Call {
    /// The lock
    lock: String,
    /// The command or query, as the extension declares it: <slug>.<name>
    capability: String,
    /// On whose behalf
    #[arg(long = "as", value_enum, default_value_t = Person::Wearer)]
    person: Person,
    /// The input: JSON, @FILE, or - for standard input
    #[arg(long, value_name = "JSON|@FILE|-", default_value = "{}")]
    data: String,
    /// Your name for the call: made again under the same name, it answers what it answered
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// The event or the invocation that caused it
    #[arg(long, value_name = "ID")]
    causation_id: Option<String>,
}

/// The people of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Person {
    /// The wearer
    Wearer,
    /// The keyholder
    Keyholder,
}

/// Calls, and prints the output; fails where the call failed.
pub(super) async fn run(call: Call, is_query: bool, session: &Session) -> Result<(), Error> {
    let kind = if is_query { "queries" } else { "commands" };
    let person = super::lock::word(call.person);
    let path = ["scopes", "lock", &call.lock, &person, kind, &call.capability];
    let request = session.org(Method::POST, &path)?.json(call.body()?);
    let answer = request.send(&format!("calling {}", call.capability)).await?;
    session.print_with(&answer, shown)?;
    let record: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    failure(&record).map_or(Ok(()), Err)
}

impl Call {
    /// The body, with the input as it was written.
    fn body(&self) -> Result<String, Error> {
        let data = input::json(&self.data)?;
        let data = RawValue::from_string(data).map_err(|error| Error::Usage(error.to_string()))?;
        let mut more = Map::new();
        let given =
            [("idempotencyKey", &self.idempotency_key), ("causationId", &self.causation_id)];
        for (name, value) in given {
            if let Some(value) = value {
                more.insert(name.to_owned(), json!(value));
            }
        }
        #[derive(serde::Serialize)]
        struct Body<'a> {
            input: &'a RawValue,
            #[serde(flatten)]
            more: Map<String, Value>,
        }
        let body = serde_json::to_string(&Body { input: &data, more });
        body.map_err(|error| Error::Usage(error.to_string()))
    }
}

/// The output of a call that succeeded, or else its record.
fn shown(record: &Value) -> String {
    match (record["status"].as_str(), record.get("output")) {
        (Some("succeeded"), Some(output)) => hive::pretty(output),
        _ => output::record(record),
    }
}

/// Why the call of a record failed, if it did.
fn failure(record: &Value) -> Option<Error> {
    if record["status"] != "failed" {
        return None;
    }
    let member = |name: &str| record["error"][name].as_str().unwrap_or_default().to_owned();
    Some(Error::Refused { text: member("message"), code: member("code") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(data: &str, key: Option<&str>) -> Call {
        Call {
            lock: "l".into(),
            capability: "dice.roll".into(),
            person: Person::Wearer,
            data: data.into(),
            idempotency_key: key.map(str::to_owned),
            causation_id: None,
        }
    }

    #[test]
    fn an_input_goes_out_as_it_was_written() {
        let check = |data: &str, key: Option<&str>, expected: &str| {
            assert_eq!(call(data, key).body().unwrap(), expected);
        };
        check("{}", None, r#"{"input":{}}"#);
        check(r#"{"n" : 1.0e2}"#, Some("k"), r#"{"input":{"n" : 1.0e2},"idempotencyKey":"k"}"#);
        assert_eq!(call("{", None).body().unwrap_err().exit_code(), 2);
    }

    #[test]
    fn an_output_is_shown_alone_and_anything_else_as_a_record() {
        assert_eq!(
            shown(&json!({"status": "succeeded", "output": {"value": 4}})),
            "{\n  \"value\": 4\n}"
        );
        assert_eq!(shown(&json!({"id": "i", "status": "running"})), "id      i\nstatus  running");
    }

    #[test]
    fn a_call_that_failed_exits_like_one_that_was_refused() {
        let record =
            json!({"status": "failed", "error": {"code": "no-dice", "message": "none left"}});
        let failed = failure(&record).unwrap();
        assert_eq!((failed.exit_code(), &*failed.to_string()), (1, "none left (no-dice)"));
        assert!(failure(&json!({"status": "succeeded"})).is_none());
    }
}
