//! Every webhook says which trace it is in: that of the caller, or one of the invocation's own.

use std::collections::BTreeSet;

use annex_tests::extension::{Extension, Message, Reply};
use annex_tests::platform::World;
use annex_tests::wait::until;
use serde_json::json;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// Trace id, parent id and flags of a message's only `traceparent`.
#[track_caller]
fn traceparent(message: &Message) -> (String, String, String) {
    let found: Vec<_> =
        message.head.iter().filter_map(|line| line.strip_prefix("traceparent: ")).collect();
    assert_eq!(found.len(), 1, "{:?}", message.head);
    let parts: Vec<_> = found[0].split('-').map(str::to_owned).collect();
    let [version, trace, parent, flags] = <[String; 4]>::try_from(parts).unwrap();
    assert_eq!((version.as_str(), trace.len(), parent.len()), ("00", 32, 16));
    assert_ne!(parent, "0".repeat(16));
    (trace, parent, flags)
}

/// Fails the first two attempts of a request, then asks for two continuations, one of them for too late: an error that
/// the extension is told of.
async fn branching() -> Extension {
    let count = std::sync::atomic::AtomicUsize::new(0);
    Extension::start(move |message| {
        let first = message.action() == "echo"
            && count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 2;
        async move {
            match message.action() {
                "echo" if first => Reply::status(500, r#"{"error":"not yet"}"#),
                "echo" => Reply::ok(&format!(
                    r#""data":{{}},"continuations":{}"#,
                    json!([
                        {"in_delay_sec": 0, "action": "more", "state": {}},
                        {"in_delay_sec": 301, "action": "more", "state": {}},
                    ])
                )),
                _ => Reply::data("{}"),
            }
        }
    })
    .await
}

#[tokio::test]
async fn all_attempts_continuations_and_reports_of_a_call_stay_in_the_trace_of_its_caller() {
    let extension = branching().await;
    let (_world, tenant) = World::with_at_speed(&extension, 100).await;
    let header = format!("00-{TRACE}-{PARENT}-00");
    let answer = tenant.call_with("ext", "echo", "{}", &[("traceparent", &header)]).await;
    answer.ok();
    extension.await_requests("more", 2).await;
    until("the report", || async { extension.reports().first().map(|_| ()) }).await;
    let seen = extension.seen();
    let of_call: Vec<_> = seen.iter().filter(|message| message.event().is_empty()).collect();
    // Three attempts, two continuations and a report.
    assert_eq!(of_call.len(), 6);
    let mut parents = BTreeSet::from([PARENT.to_owned()]);
    for message in of_call {
        let (trace, parent, flags) = traceparent(message);
        // What the caller does not record stays unrecorded.
        assert_eq!((trace.as_str(), flags.as_str()), (TRACE, "00"), "{}", message.json);
        assert!(parents.insert(parent), "each request has an id of its own");
    }
}

#[tokio::test]
async fn a_call_without_a_trace_is_in_one_that_is_named_as_the_invocation() {
    let extension = branching().await;
    let (_world, tenant) = World::with_at_speed(&extension, 100).await;
    let upper = format!("00-{}-{PARENT}-01", TRACE.to_uppercase());
    for (nth, headers) in [
        vec![],
        vec![("traceparent", upper.as_str())],
        vec![("traceparent", "00-0-0-0")],
        vec![
            ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4737-00f067aa0ba902b7-01"),
        ],
    ]
    .into_iter()
    .enumerate()
    {
        let answer = tenant.call_with("ext", "echo", "{}", &headers).await;
        answer.ok();
        let id = answer.header("annex-invocation-id").unwrap().replace('-', "");
        let last = extension.requests("echo").pop().unwrap();
        let (trace, _, flags) = traceparent(&last);
        assert_eq!((trace, flags.as_str()), (id.clone(), "01"), "{headers:?}");
        let children = extension.await_requests("more", 2 * (nth + 1)).await;
        let of_this = children.iter().filter(|message| traceparent(message).0 == id);
        assert_eq!(of_this.count(), 2);
    }
    // What is no call has a trace too.
    for message in extension.all() {
        traceparent(&message);
    }
}

#[tokio::test]
async fn a_call_that_waits_for_its_turn_or_its_slow_retry_keeps_the_trace() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let extension = Extension::start(move |message| {
        let shed = message.action() == "echo"
            && count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
        async move { if shed { Reply::status(429, "") } else { Reply::data("{}") } }
    })
    .await;
    let (_world, tenant) = World::with_at_speed(&extension, 100).await;
    let header = format!("00-{TRACE}-{PARENT}-01");
    let headers = [("traceparent", header.as_str()), ("prefer", "respond-async")];
    let answer = tenant.call_with("ext", "echo", "{}", &headers).await;
    assert_eq!(answer.status, 202);
    for message in extension.await_requests("echo", 2).await {
        let (trace, _, flags) = traceparent(&message);
        assert_eq!((trace.as_str(), flags.as_str()), (TRACE, "01"));
    }
}
