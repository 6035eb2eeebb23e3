//! Answers that are of the protocol, and ask for too much: each costs its own call, and no message is stuck.

use annex_core::limits::{
    CALL_ERROR_BYTES_MAX, CONTINUATION_LEVEL_MAX, CONTINUATIONS_PER_RESPONSE_MAX,
    ERROR_TEXT_BYTES_MAX,
};
use annex_tests::extension::{Extension, Reply};
use annex_tests::platform::{Tenant, World};
use serde_json::json;

/// The first call's answer has these members; later ones are empty. The call succeeds.
async fn answering(members: String) -> (Extension, World, Tenant) {
    let extension = Extension::start(move |message| {
        let members = members.clone();
        async move {
            match message.action() {
                "echo" => Reply::ok(&members),
                _ => Reply::data("{}"),
            }
        }
    });
    let extension = extension.await;
    let (world, tenant) = World::with_at_speed(&extension, 20).await;
    let answer = tenant.call("ext", "echo", "{}").await;
    assert_eq!((answer.status, answer.text()), (200, r#"{"data":{}}"#.to_owned()));
    world.settled().await;
    (extension, world, tenant)
}

fn continuations(asks: &serde_json::Value) -> String {
    format!(r#""data":{{}},"continuations":{asks}"#)
}

#[tokio::test]
async fn an_action_of_two_megabytes_is_no_action() {
    let long = "a".repeat(2 << 20);
    let asks = json!([{"action": long}, {"action": "more", "state": {"n": 1}}]);
    let (extension, _world, tenant) = answering(continuations(&asks)).await;
    assert_eq!(extension.requests("more").len(), 1, "the other one goes out");
    let text = "continuation of an action of more than 128 bytes dropped";
    assert_eq!(tenant.errors().await, [("ext.echo".to_owned(), text.to_owned())]);
}

#[tokio::test]
async fn a_hundred_large_states_all_go_out() {
    let state = |n: usize| json!({"n": n, "text": "x".repeat(60_000)});
    let asks: Vec<_> = (0..CONTINUATIONS_PER_RESPONSE_MAX)
        .map(|n| json!({"action": "more", "state": state(n)}))
        .collect();
    let (extension, _world, tenant) = answering(continuations(&json!(asks))).await;
    assert_eq!(extension.requests("more").len(), CONTINUATIONS_PER_RESPONSE_MAX);
    assert_eq!(tenant.errors().await, []);
}

#[tokio::test]
async fn a_state_of_three_megabytes_comes_back_byte_for_byte() {
    let state = format!(r#"{{"z":1e5,"text":"{}"}}"#, "\u{e9}".repeat(3 << 19));
    let members = format!(r#""data":{{}},"continuations":[{{"action":"more","state":{state}}}]"#);
    let (extension, _world, _tenant) = answering(members).await;
    assert_eq!(extension.requests("more")[0].data(), state.replace("1e5", "1.0e5"));
}

// covers: LC-080, LC-081
#[tokio::test]
async fn a_hundred_thousand_continuations_are_cut_to_the_first_hundred() {
    let asks = vec![json!({"action": "more", "state": {}}); 100_000];
    let (extension, _world, tenant) = answering(continuations(&json!(asks))).await;
    assert_eq!(extension.requests("more").len(), CONTINUATIONS_PER_RESPONSE_MAX);
    let text = "continuation count 100000 exceeds max 100";
    assert_eq!(tenant.errors().await, [("ext.echo".to_owned(), text.to_owned())]);
    assert_eq!(extension.reports(), [text]);
}

#[tokio::test]
async fn metric_keys_and_names_of_any_size_are_recorded_or_refused() {
    let long = "k".repeat(2 << 20);
    let metrics = json!({"idempotent_key": long, "metrics": [{"sku": "s", "value": 1}]});
    let (_extension, _world, tenant) =
        answering(format!(r#""data":{{}},"metrics":{metrics}"#)).await;
    assert_eq!(tenant.usage().await, [("ext:s".to_owned(), 1)]);

    let widest = "\u{e9}".repeat(64);
    let skus = ["", "a#b", "a\nb", &widest, &format!("{widest}x"), &long];
    let lines: Vec<_> = skus.iter().map(|sku| json!({"sku": sku, "value": 2})).collect();
    let metrics = json!({"idempotent_key": "k", "metrics": lines});
    let (_extension, _world, tenant) =
        answering(format!(r#""data":{{}},"metrics":{metrics}"#)).await;
    assert_eq!(tenant.usage().await, [(format!("ext:{widest}"), 2)]);
    let text = "metric without a valid sku skipped";
    assert_eq!(tenant.errors().await, [("ext.echo".to_owned(), text.to_owned())]);
}

#[tokio::test]
async fn values_of_metrics_add_up_without_overflow() {
    let most = u64::MAX;
    let text = format!(
        r#""data":{{}},"metrics":{{"metrics":[{{"sku":"s","value":{most}}},{{"sku":"s","value":{most}}},
        {{"sku":"t","value":1e400}},{{"sku":"u","value":-1e400}},{{"sku":"v","value":18446744073709551616}},
        {{"sku":"w","value":"7"}},{{"sku":"x","value":NaN_}}]}}"#
    )
    .replace("NaN_", "null");
    let (_extension, _world, tenant) = answering(text).await;
    assert_eq!(tenant.usage().await, [("ext:s".to_owned(), most)]);
}

#[tokio::test]
async fn an_error_of_ten_megabytes_is_cut_where_it_is_filed() {
    let text_of = |bytes: usize| "\u{e9}".repeat(bytes / 2);
    let text = text_of(10 << 20);
    let body = json!({"error": text, "retriable": false}).to_string();
    let extension = Extension::start(move |_| {
        let body = body.clone();
        async move { Reply::status(400, &body) }
    });
    let extension = extension.await;
    let (world, tenant) = World::with(&extension).await;
    let answer = tenant.call("ext", "echo", "{}").await;
    let (status, code, said) = answer.fault();
    assert_eq!((status, code.as_str()), (400, "extension-error"));
    assert_eq!(said, text_of(CALL_ERROR_BYTES_MAX));
    let id = answer.header("annex-invocation-id").unwrap().to_owned();
    assert_eq!(tenant.record(&id).await["status"], "failed");
    let errors = tenant.errors().await;
    assert!(errors.iter().all(|(_, error)| error.len() <= ERROR_TEXT_BYTES_MAX));
    assert!(errors.iter().any(|(component, _)| component == "ext.echo"));
    world.settled().await;
}

// covers: LC-076, LC-077, LC-078, LC-079
#[tokio::test]
async fn a_chain_that_never_ends_is_stopped_after_a_hundred_levels() {
    let extension = Extension::start(|message| async move {
        match message.action() {
            "" => Reply::data("{}"),
            _ => Reply::ok(r#""data":{},"continuations":[{"action":"more","in_delay_sec":0}]"#),
        }
    });
    let extension = extension.await;
    let (world, tenant) = World::with(&extension).await;
    tenant.call("ext", "echo", "{}").await.ok();
    let text = "max continuation level reached";
    tenant.await_error("ext.more", text).await;
    world.settled().await;
    let requests = extension.requests("more");
    assert_eq!(requests.len(), usize::try_from(CONTINUATION_LEVEL_MAX).unwrap());
    let root = extension.requests("echo")[0].key().to_owned();
    assert_eq!(requests[0].key(), format!("{root}:1"));
    assert_eq!(requests[1].key(), format!("{root}:1:2"));
    assert_eq!(extension.reports(), [text]);
}

#[tokio::test]
async fn a_schema_that_is_none_fails_the_calls_and_is_asked_for_again() {
    for schema in
        ["", "null", "[]", "{}", r#"{"request_schema":[]}"#, r#"{"request_schema":{"echo":7}}"#]
    {
        let extension = Extension::start_bare(move |_| async move { Reply::data(schema) }).await;
        let (world, tenant) = World::with(&extension).await;
        let (status, _, _) = tenant.call("ext", "echo", "{}").await.fault();
        assert!(matches!(status, 400 | 502), "{schema}: {status}");
        assert!(extension.requests("echo").is_empty());
        assert_eq!(world.dead_letters().await, 0);
    }
    let large = format!(r#"{{"request_schema":{{}},"x":"{}"}}"#, "x".repeat(5 << 20));
    let extension = Extension::start_bare(move |_| {
        let large = large.clone();
        async move { Reply::data(&large) }
    });
    let extension = extension.await;
    let (_world, tenant) = World::with(&extension).await;
    let (status, code, _) = tenant.call("ext", "echo", "{}").await.fault();
    assert_eq!((status, code.as_str()), (502, "bad-answer"));
}

#[tokio::test]
async fn a_delay_and_an_investigation_of_any_size_are_cut_or_refused() {
    let delay = "9".repeat(2 << 20);
    let members =
        format!(r#""data":{{}},"continuations":[{{"action":"more","in_delay_sec":{delay}}}]"#);
    let (extension, _world, tenant) = answering(members).await;
    assert_eq!(extension.requests("more").len(), 1);
    assert_eq!(extension.reports().len(), 1);
    assert!(tenant.errors().await[0].1.starts_with("continuation delay 999"));
    let long = "x".repeat(2_049);
    for (investigation, status) in [(&long[1..], 200), (&long, 400)] {
        let fields = [
            ("oid", tenant.oid.as_str()),
            ("action", "other"),
            ("investigation_id", investigation),
        ];
        let answer = tenant.form("POST", "/v1/extension/request/ext", &fields).await;
        assert_eq!(answer.status, status);
    }
}
