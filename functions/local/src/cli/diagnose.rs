//! `annex extension diagnose`: why an extension is not called, or why its calls fail.

use http::Method;
use serde_json::{Map, Value, json};

use super::client::Answer;
use super::error::Error;
use super::hive::Hive;
use super::output::{self, Format};
use super::session::Session;

/// What a check found.
struct Finding {
    check: &'static str,
    /// `None`: it does not matter here.
    ok: Option<bool>,
    detail: String,
}

/// Checks an extension, prints what was found, and fails when a check failed.
pub async fn run(name: &str, session: &Session) -> Result<(), Error> {
    let mut findings = vec![definition(name, session).await?, schema(name, session).await?];
    if session.oid.is_some() {
        findings.push(subscription(name, session).await?);
        findings.push(config(name, session).await?);
        findings.push(errors(name, session).await?);
    }
    print(&findings, session.format)?;
    let failed = findings.iter().filter(|finding| finding.ok == Some(false)).count();
    match failed {
        0 => Ok(()),
        1 => Err(Error::Local("1 check failed".to_owned())),
        _ => Err(Error::Local(format!("{failed} checks failed"))),
    }
}

fn print(findings: &[Finding], format: Format) -> Result<(), Error> {
    let rows: Vec<Map<String, Value>> = findings
        .iter()
        .map(|finding| {
            let result = match finding.ok {
                Some(true) => "ok",
                Some(false) => "failed",
                None => "-",
            };
            Map::from_iter([
                ("check".to_owned(), finding.check.into()),
                ("result".to_owned(), result.into()),
                ("detail".to_owned(), finding.detail.clone().into()),
            ])
        })
        .collect();
    match format {
        Format::Json => output::line(&json!(rows).to_string()),
        Format::Table => {
            let columns = [("CHECK", "check"), ("RESULT", "result"), ("DETAIL", "detail")];
            output::line(&output::table(&rows, &columns, ""))
        }
    }
}

/// Turns a refusal into a finding. What is not a refusal, such as a lost connection, ends the diagnosis.
fn judge(
    check: &'static str,
    asked: Result<Answer, Error>,
    read: impl FnOnce(Value) -> (Option<bool>, String),
) -> Result<Finding, Error> {
    let (ok, detail) = match asked {
        Ok(answer) => read(serde_json::from_slice(&answer.body).unwrap_or_default()),
        Err(Error::Refused { text, code }) => (Some(false), advised(&text, &code)),
        Err(other) => return Err(other),
    };
    Ok(Finding { check, ok, detail })
}

/// A text of a failure, with what usually helps.
fn advised(text: &str, code: &str) -> String {
    let advice = match (text, code) {
        (text, _) if text.contains("invalid signature") => {
            "the extension was started with another shared secret, or checks the signature over the compressed body"
        }
        (_, "extension-unreachable") => {
            "start the extension, or correct its URL with `annex extension update`"
        }
        (_, "bad-answer") => "the answer must be a JSON object with version, within 100 MB",
        (_, "not-found") => "register it with `annex extension register`",
        (_, "forbidden" | "unauthenticated") => "use a key that may do this",
        _ => return format!("{text} ({code})"),
    };
    format!("{text} ({code}): {advice}")
}

async fn definition(name: &str, session: &Session) -> Result<Finding, Error> {
    let call = session.operator(Method::GET, &["extension", "definition", name]);
    judge("registered", call.send("reading the extension").await, |value| {
        (Some(true), value["url"].as_str().unwrap_or_default().to_owned())
    })
}

async fn schema(name: &str, session: &Session) -> Result<Finding, Error> {
    let oid = session.oid.as_deref().map(|oid| ("oid", oid));
    let call = session.any(Method::GET, &["extension", "schema", name]).query(oid.as_slice());
    judge("answers", call.send("asking the extension").await, |value| {
        (Some(true), schema_detail(&value))
    })
}

/// What a schema declares, in one line.
fn schema_detail(schema: &Value) -> String {
    let actions: Vec<_> =
        schema["request_schema"].as_object().into_iter().flat_map(Map::keys).collect();
    let events: Vec<_> = schema["required_events"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let join = |names: String| if names.is_empty() { "none".to_owned() } else { names };
    let actions = join(actions.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", "));
    format!("actions: {actions}; events: {}", join(events.join(", ")))
}

async fn subscription(name: &str, session: &Session) -> Result<Finding, Error> {
    let call = session.org(Method::GET, &["subscriptions"])?;
    judge("subscribed", call.send("listing subscriptions").await, |value| {
        if value.get(name).is_some() {
            (Some(true), String::new())
        } else {
            (Some(false), format!("run `annex subscribe {name}`"))
        }
    })
}

async fn config(name: &str, session: &Session) -> Result<Finding, Error> {
    let configs = Hive::new(session, "extension_config");
    let data = match configs.get(name).await {
        Ok(answer) => {
            let record: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            record["data"].to_string()
        }
        Err(error) if error.is_missing_record() => {
            let detail = "none: the extension gets an empty one".to_owned();
            return Ok(Finding { check: "configured", ok: None, detail });
        }
        Err(error) => return judge("configured", Err(error), |_| (None, String::new())),
    };
    judge("configured", configs.validate(name, &data).await, |_| {
        (Some(true), "the extension accepts its configuration".to_owned())
    })
}

async fn errors(name: &str, session: &Session) -> Result<Finding, Error> {
    let oid = session.oid()?;
    let call = session.v1(Method::GET, &["errors", oid], oid);
    judge("no errors", call.send("listing errors").await, |value| error_detail(name, &value))
}

/// What was filed about the extension.
fn error_detail(name: &str, value: &Value) -> (Option<bool>, String) {
    let about = |error: &&Value| error["component"].as_str().is_some_and(|c| c.contains(name));
    let texts: Vec<_> = value["errors"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(about)
        .filter_map(|error| error["error"].as_str())
        .collect();
    (Some(texts.is_empty()), texts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_failures_come_with_advice() {
        assert_eq!(advised("boom", "extension-error"), "boom (extension-error)");
        assert_eq!(
            advised("extension x is not known", "not-found"),
            "extension x is not known (not-found): register it with `annex extension register`"
        );
    }

    #[test]
    fn schemas_are_summed_up_in_a_line() {
        let schema =
            json!({"request_schema": {"scan": {}, "echo": {}}, "required_events": ["update"]});
        assert_eq!(schema_detail(&schema), "actions: scan, echo; events: update");
        assert_eq!(schema_detail(&json!({"request_schema": null})), "actions: none; events: none");
    }

    #[test]
    fn only_errors_about_the_extension_count() {
        let errors = json!({"errors": [
            {"component": "scanner", "error": "a"}, {"component": "other", "error": "b"},
        ]});
        assert_eq!(error_detail("scanner", &errors), (Some(false), "a".to_owned()));
        assert_eq!(error_detail("third", &errors), (Some(true), String::new()));
    }
}
