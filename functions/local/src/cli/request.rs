//! `annex request`: calls an action of an extension.

use http::Method;
use serde_json::Value;

use super::client::{Answer, Call};
use super::error::Error;
use super::session::Session;
use super::{hive, input, invocation, output};

/// What to call, and how.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annex request scanner scan --data '{\"target\": \"example.com\"}'
  annex request scanner scan --data @request.json --idempotency-key nightly-2026-01-31
  annex request scanner scan --data - --async < request.json
  annex request scanner scan --data '{\"target\": \"example.com\"}' --follow --output json

A call that goes on for longer than the platform waits answers with its id; --follow waits for its end.")]
pub struct Options {
    /// Name of the extension
    extension: String,
    /// The action
    action: String,
    /// The parameters: a JSON object, @FILE, or - for standard input
    #[arg(long, value_name = "JSON|@FILE|-", default_value = "{}")]
    data: String,
    #[command(flatten)]
    how: How,
}

/// How a call is made, whatever it calls.
#[derive(Debug, clap::Args)]
pub struct How {
    /// Your name for the call: made again under the same name, it answers what it answered
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Do not wait for the answer
    #[arg(long = "async", conflicts_with = "wait")]
    no_wait: bool,
    /// Wait at most so many seconds for the answer
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u8).range(0..=25))]
    wait: Option<u8>,
    /// Wait until the call ended, however long it takes
    #[arg(long)]
    follow: bool,
    /// Let the action act as you, where it asks for that
    #[arg(long)]
    impersonate: bool,
    /// Print nothing but the id of the call
    #[arg(long, short, conflicts_with = "follow")]
    quiet: bool,
}

/// Does what was typed.
pub async fn run(options: Options, session: &Session) -> Result<(), Error> {
    let oid = session.oid()?;
    let data = input::json(&options.data)?;
    let fields = vec![("oid", oid), ("action", &options.action), ("data", &data)];
    let call = session.v1(Method::POST, &["extension", "request", &options.extension], oid);
    let what = format!("calling {} {}", options.extension, options.action);
    self::call(call, fields, &options.how, &what, session).await
}

/// Sends a call that was put together but for `how`, and prints what came of it.
pub async fn call(
    call: Call<'_>,
    fields: Vec<(&str, &str)>,
    how: &How,
    what: &str,
    session: &Session,
) -> Result<(), Error> {
    let answer = send(call, fields, how, what, session).await?;
    if how.quiet {
        let id = answer.headers.get("annex-invocation-id").and_then(|id| id.to_str().ok());
        return output::line(&output::printable(id.unwrap_or_default()));
    }
    if answer.status != 202 {
        return session.print_with(&answer, data);
    }
    let receipt: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let id = receipt["id"].as_str().unwrap_or_default();
    if !how.follow {
        return session.print_with(&answer, |record| {
            let next = format!("annex invocation show {} --follow", output::printable(id));
            format!("{}\n\nit goes on; wait for its end with\n\n  {next}", output::record(record))
        });
    }
    let ended = invocation::ended(id, session).await?;
    let record: Value = serde_json::from_slice(&ended.body).unwrap_or_default();
    session.print_with(&ended, data)?;
    failure(&record).map_or(Ok(()), Err)
}

async fn send(
    mut call: Call<'_>,
    mut fields: Vec<(&str, &str)>,
    how: &How,
    what: &str,
    session: &Session,
) -> Result<Answer, Error> {
    let token;
    if how.impersonate {
        token = session.client.token(session.oid()?).await?;
        fields.push(("impersonator_jwt", &token));
    }
    if let Some(key) = &how.idempotency_key {
        call = call.header("idempotency-key", key)?;
    }
    if let Some(prefer) = prefer(how.no_wait, how.wait) {
        call = call.header("prefer", &prefer)?;
    }
    call.form(&fields).send(what).await
}

/// The `Prefer` header that says how long to wait.
fn prefer(no_wait: bool, wait: Option<u8>) -> Option<String> {
    if no_wait {
        return Some("respond-async".to_owned());
    }
    wait.map(|seconds| format!("wait={seconds}"))
}

/// The data of an answer, or of the record of a call.
fn data(answer: &Value) -> String {
    match answer.get("data") {
        Some(data) if !data.is_null() => hive::pretty(data),
        _ => output::record(answer),
    }
}

/// Why the call of a record failed, if it did.
fn failure(record: &Value) -> Option<Error> {
    if record["status"] != "failed" {
        return None;
    }
    let text = record["error"].as_str().unwrap_or("the call failed").to_owned();
    Some(Error::Refused { text, code: "failed".to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn waiting_becomes_a_preference() {
        assert_eq!(prefer(false, None), None);
        assert_eq!(prefer(false, Some(3)).as_deref(), Some("wait=3"));
        assert_eq!(prefer(true, None).as_deref(), Some("respond-async"));
    }

    #[test]
    fn answers_show_their_data() {
        assert_eq!(data(&json!({"data": {"n": 1}, "version": 20_221_218})), "{\n  \"n\": 1\n}");
        assert_eq!(data(&json!({"id": "i", "status": "failed"})), "id      i\nstatus  failed");
    }

    #[test]
    fn a_failed_call_that_was_followed_exits_like_one_that_was_refused() {
        let failed = failure(&json!({"status": "failed", "error": "target is not valid"})).unwrap();
        assert_eq!(
            (failed.exit_code(), failed.to_string().as_str()),
            (1, "target is not valid (failed)")
        );
        assert!(failure(&json!({"status": "succeeded"})).is_none());
    }
}
