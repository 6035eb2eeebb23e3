//! `template.yaml` against the code: what no linter knows.

use std::collections::BTreeSet;

use annex_core::limits;
use annex_tests::repository::root;
use serde_json::Value;

fn template() -> String {
    std::fs::read_to_string(root().join("template.yaml")).expect("it is committed")
}

/// The lines of a resource.
fn resource<'a>(template: &'a str, name: &str) -> Vec<&'a str> {
    let head = format!("  {name}:");
    let mut lines = template.lines().skip_while(|line| *line != head);
    assert!(lines.next().is_some(), "there is no {name}");
    lines.take_while(|line| line.is_empty() || line.starts_with("   ")).collect()
}

/// What stands behind `key:` in a resource, at any depth, first.
fn value<'a>(lines: &[&'a str], key: &str) -> Option<&'a str> {
    lines.iter().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix(": "))
}

fn functions() -> Vec<String> {
    let folders = std::fs::read_dir(root().join("functions")).expect("there are functions");
    let names = folders.map(|folder| folder.expect("it can be read").file_name());
    let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
    names.retain(|name| name != "local");
    names.sort();
    names
}

/// A function's resource.
fn resource_of(function: &str) -> String {
    format!("{}{}Function", function[..1].to_uppercase(), &function[1..])
}

#[test]
fn the_routes_are_those_of_the_router_and_no_others() {
    let document: Value = serde_json::from_str(api::document()).expect("it is JSON");
    let paths = document["paths"].as_object().expect("it has paths");
    let route = |path: &String| {
        let mut parts = path.trim_start_matches('/').split('/');
        let first = parts.next().unwrap_or_default();
        match parts.next() {
            Some(_) => format!("ANY /{first}/{{proxy+}}"),
            None => format!("ANY /{first}"),
        }
    };
    let wanted: BTreeSet<String> = paths.keys().map(route).collect();
    let template = template();
    let keys = template.split("RouteKey: ").skip(1).filter_map(|rest| {
        let rest = rest.trim_start_matches('"');
        let end = rest.find(['"', ',', '\n'])?;
        Some(rest[..end].to_owned())
    });
    assert_eq!(keys.collect::<BTreeSet<_>>(), wanted);
}

#[test]
fn every_lambda_function_has_its_resource_role_log_and_alarms() {
    let template = template();
    for function in functions() {
        let resource_name = resource_of(&function);
        let name = resource_name.trim_end_matches("Function");
        let lines = resource(&template, &resource_name);
        assert_eq!(value(&lines, "CodeUri"), Some(&*format!("functions/{function}")));
        assert_eq!(value(&lines, "Role"), Some(&*format!("!GetAtt {name}Role.Arn")));
        let logging = format!("{{LogFormat: JSON, LogGroup: !Ref {name}Logs}}");
        assert_eq!(value(&lines, "LoggingConfig"), Some(&*logging));
        for alarm in ["Errors", "Throttles"] {
            let lines = resource(&template, &format!("{name}{alarm}Alarm"));
            assert_eq!(value(&lines, "MetricName"), Some(alarm));
        }
    }
    assert_eq!(template.matches("Type: AWS::Serverless::Function").count(), functions().len());
}

#[test]
fn queues_and_their_functions_keep_the_limits_of_the_core() {
    let template = template();
    let lease = limits::LEASE.as_secs().to_string();
    let receives = format!("maxReceiveCount: {}}}", limits::QUEUE_RECEIVES_MAX);
    for (name, visibility) in [("Dispatch", lease.as_str()), ("Resume", &lease), ("Meter", "120")] {
        let queue = resource(&template, &format!("{name}Queue"));
        assert_eq!(value(&queue, "VisibilityTimeout"), Some(visibility));
        let redrive = value(&queue, "RedrivePolicy").unwrap_or_default();
        assert!(
            redrive.contains(&format!("{name}DeadLetters.Arn")) && redrive.ends_with(&receives)
        );
        let function = resource(&template, &format!("{name}Function"));
        let seconds = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok());
        let timeout = seconds(value(&function, "Timeout")).expect("a function has a timeout");
        assert!(timeout < seconds(Some(visibility)).expect("it is a number"));
        assert_eq!(value(&function, "FunctionResponseTypes"), Some("[ReportBatchItemFailures]"));
        assert_eq!(value(&function, "BatchSize"), Some(&*limits::QUEUE_BATCH_MAX.to_string()));
    }
    // The longest run of a call fits its function.
    let attempts = limits::WEBHOOK_TIMEOUT * limits::ATTEMPTS_MAX + limits::RETRY_DELAY_MAX;
    let dispatch = resource(&template, "DispatchFunction");
    let timeout: u64 = value(&dispatch, "Timeout").and_then(|text| text.parse().ok()).unwrap_or(0);
    assert!(attempts.as_secs() < timeout);
    assert_eq!(value(&resource(&template, "ResumeFunction"), "RecursiveLoop"), Some("Allow"));
    // An HTTP API gives up after 30 s.
    let api = resource(&template, "ApiFunction");
    assert_eq!(value(&api, "Timeout"), Some("29"));
    assert!(limits::WAIT_MAX.as_secs() <= 25);
}

#[test]
fn no_permission_is_for_everything() {
    let template = template();
    let policies = template.lines().map(str::trim).filter(|line| {
        let resource = line.strip_prefix("Resource: ").unwrap_or_default();
        let action = line.strip_prefix("Action: ").unwrap_or_default();
        resource.trim_matches(['"', '\'']) == "*" || action.trim_matches(['"', '\'']) == "*"
    });
    assert_eq!(policies.collect::<Vec<_>>(), Vec::<&str>::new());
}

/// S3 answers 403 and not 404 for an object that is not there, to whoever may not list its bucket; an absent blob would
/// be an outage.
#[test]
fn who_reads_objects_may_know_that_there_are_none() {
    let template = template();
    for function in functions() {
        let name = resource_of(&function).replace("Function", "Role");
        let role = resource(&template, &name);
        let has = |action: &str| role.iter().any(|line| line.contains(action));
        assert_eq!(has("s3:GetObject"), has("Action: s3:ListBucket"), "{name}");
    }
}

#[test]
fn objects_outlive_their_records_and_answers_last_a_day() {
    let template = template();
    let bucket = resource(&template, "Bucket");
    let days: u64 =
        value(&bucket, "ExpirationInDays").and_then(|text| text.parse().ok()).unwrap_or(0);
    assert!(limits::RECORD_RETENTION.as_secs() < days * 86_400);
    let answers = "- {Id: answers, Status: Enabled, Prefix: answer-, ExpirationInDays: 1}";
    assert!(bucket.iter().any(|line| line.trim() == answers));
}

#[test]
fn what_is_kept_outlives_its_stack() {
    let template = template();
    for name in ["Table", "Bucket", "Keyring"] {
        let lines = resource(&template, name);
        assert_eq!(value(&lines, "DeletionPolicy"), Some("Retain"), "{name}");
        assert_eq!(value(&lines, "UpdateReplacePolicy"), Some("Retain"), "{name}");
    }
}
