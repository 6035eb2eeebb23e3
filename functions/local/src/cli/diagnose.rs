//! `annex extension diagnose`: why an extension is not called, or why its calls fail.

use http::Method;
use serde_json::Value;

use super::error::Error;
use super::session::Session;
use super::{input, output};

/// What is not called.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Name of the extension
    name: String,
    /// The action that is not called
    #[arg(long)]
    action: Option<String>,
    /// The parameters that it is not called with: a JSON object, @FILE, or - for standard input
    #[arg(long, value_name = "JSON|@FILE|-", requires = "action")]
    data: Option<String>,
}

/// Asks the platform for its checks, prints them, and fails when one of them failed.
pub async fn run(options: &Options, session: &Session) -> Result<(), Error> {
    let oid = session.oid()?;
    let data = options.data.as_deref().map(input::json).transpose()?;
    let given =
        [("oid", Some(oid)), ("action", options.action.as_deref()), ("data", data.as_deref())];
    let query: Vec<_> = given.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect();
    let path = ["extension", "diagnose", &options.name];
    let call = session.v1(Method::GET, &path, oid).query(&query);
    let answer = call.send("asking the extension").await?;
    session.print_with(&answer, table)?;
    verdict(&serde_json::from_slice(&answer.body).unwrap_or_default())
}

fn table(diagnosis: &Value) -> String {
    let mut rows = output::rows(&diagnosis["checks"]);
    for row in &mut rows {
        let detail = row.get("detail").and_then(Value::as_str).unwrap_or_default();
        row.insert("advice".to_owned(), advice(detail).into());
    }
    let columns =
        [("CHECK", "check"), ("RESULT", "outcome"), ("DETAIL", "detail"), ("ADVICE", "advice")];
    output::table(&rows, &columns, "no checks")
}

/// What usually helps when a check says this.
fn advice(detail: &str) -> &'static str {
    const KNOWN: &[(&str, &str)] = &[
        (
            "invalid signature",
            "start the extension with the secret that it is registered with, and let it check the \
             signature over the decompressed body",
        ),
        ("connect", "start the extension, or correct its URL: annex extension update"),
        ("subscribed", "annex subscribe"),
        ("no action was named", "--action names one"),
    ];
    KNOWN.iter().find(|(part, _)| detail.contains(part)).map_or("", |(_, advice)| advice)
}

fn verdict(diagnosis: &Value) -> Result<(), Error> {
    match diagnosis["first_failure"].as_str() {
        None => Ok(()),
        Some(check) => Err(Error::Local(format!("a check failed: {check}"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn failed_checks_come_with_advice_and_exit_1() {
        let diagnosis = json!({"ok": false, "first_failure": "subscribed", "checks": [
            {"check": "schema request", "outcome": "ok", "detail": ""},
            {"check": "subscribed", "outcome": "failed", "detail": "not subscribed to x"},
        ]});
        assert_eq!(
            table(&diagnosis),
            "CHECK           RESULT  DETAIL               ADVICE\n\
             schema request  ok\n\
             subscribed      failed  not subscribed to x  annex subscribe"
        );
        let failed = verdict(&diagnosis).unwrap_err();
        assert_eq!(
            (failed.exit_code(), failed.to_string().as_str()),
            (1, "a check failed: subscribed")
        );
        assert!(verdict(&json!({"ok": true, "first_failure": null})).is_ok());
    }
}
