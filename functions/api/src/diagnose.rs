//! Why an extension is not called (LC-150).

use annex_core::auth::permission;
use annex_core::extensions;
use annex_core::fault::{Code, Fault, Outcome};
use annex_core::ids::ExtensionName;
use annex_core::json::Object;
use annex_core::schema::ExtensionSchema;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::calls::{data, oid_of};
use crate::routes::{Routes, routes};
use crate::{ApiResult, App, Authed, Form, Params, json};

pub(crate) fn routes() -> Routes {
    routes!(diagnose)
}

/// A diagnosis.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
struct Diagnosis {
    extension: String,
    /// Whether a call would reach the extension, as far as was asked.
    ok: bool,
    /// The first check that failed.
    first_failure: Option<&'static str>,
    /// Every check, in the order in which they are to be looked at.
    checks: Vec<Check>,
}

/// A check.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
struct Check {
    check: &'static str,
    /// `ok`, `failed` or `skipped`: what it needs is not there.
    outcome: &'static str,
    /// What is wrong, or missing to check it.
    detail: String,
}

impl Check {
    fn new(check: &'static str, outcome: Outcome<()>) -> Self {
        match outcome {
            Ok(()) => Self { check, outcome: "ok", detail: String::new() },
            Err(fault) => Self { check, outcome: "failed", detail: fault.message },
        }
    }

    fn skipped(check: &'static str, why: &str) -> Self {
        Self { check, outcome: "skipped", detail: why.to_owned() }
    }
}

/// Find out why an extension is not called. Nothing but the schema is asked of it.
#[utoipa::path(get, path = "/v1/extension/diagnose/{name}", tag = "calls",
    params(
        ("name" = String, Path, description = "The extension"),
        ("oid" = Option<String>, Query, description = "The organization; the token's unless given"),
        ("action" = Option<String>, Query, description = "The action that is not called"),
        ("data" = Option<String>, Query, description = "The data it is called with; `{}` unless given")),
    responses((status = 200, description = "The checks, in order", body = Diagnosis)))]
async fn diagnose(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(name): Params<String>,
    Form(mut fields): Form,
) -> ApiResult {
    let oid = oid_of(&caller, &fields)?;
    caller.require(oid, permission::EXT_REQUEST)?;
    let name = ExtensionName::parse(&name)?;
    let data = data(&mut fields)?;
    let schema = app.calls.extension_schema(&name).await;
    let subscribed = extensions::require_subscription(&app.ports, oid, &name).await;
    let mut checks = vec![
        Check::new("schema request", schema.as_ref().map(|_| ()).map_err(Clone::clone)),
        Check::new("subscribed", subscribed.map(|_| ())),
    ];
    let action = fields.get("action")?.filter(|action| !action.is_empty());
    checks.extend(check_action(schema.as_deref().ok(), action, &data));
    Ok(json(&diagnosis(name.to_string(), checks)))
}

/// The checks that need the schema.
fn check_action(schema: Option<&ExtensionSchema>, action: Option<&str>, data: &[u8]) -> [Check; 2] {
    const NAMES: [&str; 2] = ["action name", "parameters"];
    let Some(schema) = schema else {
        return NAMES.map(|name| Check::skipped(name, "there is no schema"));
    };
    let Some(action) = action else {
        return NAMES.map(|name| Check::skipped(name, "no action was named"));
    };
    let refused = |text| Fault::new(Code::SchemaRefused, text);
    let action = match schema.advertised(action).map_err(refused) {
        Ok(action) => action,
        Err(fault) => {
            return [
                Check::new(NAMES[0], Err(fault)),
                Check::skipped(NAMES[1], "there is no such action"),
            ];
        }
    };
    let data = if data.is_empty() { b"{}" } else { data };
    let fits = Object::read(data)
        .map_err(|fault| refused(format!("data is refused: {fault}")))
        .and_then(|data| action.prepare(data).map(|_| ()).map_err(refused));
    [Check::new(NAMES[0], Ok(())), Check::new(NAMES[1], fits)]
}

fn diagnosis(extension: String, checks: Vec<Check>) -> Diagnosis {
    let first_failure =
        checks.iter().find(|check| check.outcome == "failed").map(|check| check.check);
    Diagnosis { extension, ok: first_failure.is_none(), first_failure, checks }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"config_schema":{"fields":{}},"request_schema":{"run":{"parameters":
        {"fields":{"n":{"data_type":"integer"}},"requirements":[["n"]]}}},"required_events":[]}"#;

    fn check(action: Option<&str>, data: &str, expected: [(&str, &str); 2]) {
        let schema = ExtensionSchema::parse(SCHEMA.as_bytes()).unwrap();
        let checks = check_action(Some(&schema), action, data.as_bytes());
        let got = checks.each_ref().map(|check| (check.outcome, check.detail.as_str()));
        assert_eq!(got, expected);
    }

    #[test]
    fn an_action_and_its_parameters_are_checked_in_this_order() {
        // LC-150
        check(Some("run"), r#"{"n":1}"#, [("ok", ""), ("ok", "")]);
        check(Some("run"), "", [("ok", ""), ("failed", "missing one of n")]);
        check(Some("run"), "[]", [("ok", ""), ("failed", "data is refused: not a JSON object")]);
        check(
            Some("nope"),
            "{}",
            [("failed", "unknown request action: nope"), ("skipped", "there is no such action")],
        );
        check(None, "{}", [("skipped", "no action was named"); 2]);
    }

    #[test]
    fn the_first_failure_is_the_first_in_order() {
        // LC-150
        let failed = |name| Check::new(name, Err(Fault::new(Code::NotFound, "x")));
        let all = vec![failed("schema request"), failed("subscribed")];
        assert_eq!(diagnosis("e".into(), all).first_failure, Some("schema request"));
        let second = vec![Check::new("schema request", Ok(())), failed("subscribed")];
        assert_eq!(diagnosis("e".into(), second).first_failure, Some("subscribed"));
        assert!(diagnosis("e".into(), vec![Check::skipped("action name", "x")]).ok);
    }
}
