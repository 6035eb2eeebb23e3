//! One idempotency key: one delivery, one recorded result, one metering entry.

use std::sync::Arc;

use annex_tests::extension::{Extension, Reply};
use annex_tests::platform::World;
use annex_tests::wait::until;
use futures_util::future::join_all;
use tokio::sync::watch;

const KEY: (&str, &str) = ("idempotency-key", "k");

/// An answer that meters one scan under the message's own key.
const METERED: &str =
    r#""data":{"n":1152921506151679042},"metrics":{"metrics":[{"sku":"scans","value":1}]}"#;

#[tokio::test]
async fn of_64_concurrent_requests_with_one_key_one_is_delivered() {
    let (gate, closed) = watch::channel(true);
    let closed = Arc::new(closed);
    let extension = Extension::start(move |message| {
        let mut closed = closed.as_ref().clone();
        async move {
            if message.action() == "echo" {
                closed.wait_for(|closed| !closed).await.unwrap();
            }
            Reply::ok(METERED)
        }
    });
    let extension = extension.await;
    let (world, tenant) = World::with(&extension).await;
    let before = tenant.usage().await;
    let calls = (0..64).map(|_| tenant.call_with("ext", "echo", r#"{"text":"a"}"#, &[KEY]));
    let open = async {
        extension.await_requests("echo", 1).await;
        gate.send(false).unwrap();
    };
    let (answers, ()) = tokio::join!(join_all(calls), open);
    let id = answers[0].header("annex-invocation-id").unwrap().to_owned();
    let location = format!("/v1/invocations/{id}");
    for answer in &answers {
        assert_eq!(answer.header("annex-invocation-id"), Some(id.as_str()));
        match answer.status {
            200 => assert_eq!(answer.text(), r#"{"data":{"n":1152921506151679042}}"#),
            202 => assert_eq!(answer.header("location"), Some(location.as_str())),
            other => panic!("{other}: {}", answer.text()),
        }
    }
    assert!(answers.iter().any(|answer| answer.status == 200));
    assert_eq!(tenant.ended(&id).await["status"], "succeeded");
    world.settled().await;
    assert_eq!(extension.requests("echo").len(), 1);
    // The subscribe event was metered too: it has a key of its own.
    let scans = |usage: &[(String, u64)]| usage.iter().map(|(_, n)| n).sum::<u64>();
    let events = extension.seen().len() as u64 - 1;
    assert!(scans(&before) <= events);
    assert_eq!(scans(&tenant.usage().await), events + 1);
}

#[tokio::test]
async fn a_repeat_answers_exactly_what_the_first_call_answered() {
    // The second answer would be another one.
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let extension = Extension::start(move |message| {
        let n = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async move {
            match message.value["request"]["data"]["text"].as_str() {
                Some("fail") => {
                    Reply::status(400, &format!(r#"{{"error":"failure {n}","retriable":false}}"#))
                }
                _ => Reply::data(&format!(r#"{{"z":{n},"a":0.10}}"#)),
            }
        }
    });
    let extension = extension.await;
    let (world, tenant) = World::with(&extension).await;
    for data in [r#"{"text":"fine"}"#, r#"{"text":"fail"}"#] {
        let key = ("idempotency-key", data);
        let first = tenant.call_with("ext", "echo", data, &[key]).await;
        let delivered = extension.requests("echo").len();
        // White space, the order of members and how long one waits make no other call.
        for (data, prefer) in [
            (data.to_owned(), "wait=25"),
            (data.replace(':', " : "), "respond-async"),
            (data.to_owned(), "wait=0"),
        ] {
            let again = tenant.call_with("ext", "echo", &data, &[key, ("prefer", prefer)]).await;
            assert_eq!((again.status, &again.body), (first.status, &first.body));
            let id = "annex-invocation-id";
            assert_eq!(again.header(id), first.header(id));
        }
        assert_eq!(extension.requests("echo").len(), delivered);
    }
    // Nor does a restart, or a change of what the call needs.
    let first = tenant.call_with("ext", "echo", r#"{"text":"fine"}"#, &[KEY]).await;
    world.operator.form("DELETE", "/v1/extension/definition/ext", &[]).await.ok();
    let world = world.restart().await;
    let tenant = world.operator.tenant_of(&tenant.oid).await;
    let again = tenant.call_with("ext", "echo", r#"{"text":"fine"}"#, &[KEY]).await;
    assert_eq!((again.status, &again.body), (first.status, &first.body));
}

#[tokio::test]
async fn another_action_or_other_data_under_a_key_is_a_conflict() {
    let extension = Extension::echo().await;
    let (world, tenant) = World::with(&extension).await;
    world.operator.register("second", &extension).await;
    tenant.subscribe("second").await;
    tenant.call_with("ext", "echo", r#"{"text":"a"}"#, &[KEY]).await.ok();
    let text = "the idempotency key was used for another action or other data";
    let conflict = (409, "idempotency-key-conflict".to_owned(), text.to_owned());
    for (name, action, data) in [
        ("ext", "echo", r#"{"text":"b"}"#),
        ("ext", "echo", "{}"),
        ("ext", "echo", r#"{"text":"a","number":1}"#),
        ("ext", "other", r#"{"text":"a"}"#),
        ("ext", "no-such-action", r#"{"text":"a"}"#),
        ("second", "echo", r#"{"text":"a"}"#),
    ] {
        for prefer in ["wait=25", "respond-async"] {
            let answer = tenant.call_with(name, action, data, &[KEY, ("prefer", prefer)]).await;
            assert_eq!(answer.fault(), conflict, "{name} {action} {data}");
        }
    }
    assert_eq!(extension.requests("echo").len() + extension.requests("other").len(), 1);
}

#[tokio::test]
async fn a_key_is_any_text_of_1_to_256_bytes_and_each_spelling_is_its_own() {
    let extension = Extension::echo().await;
    let (_world, tenant) = World::with(&extension).await;
    let longest = "k".repeat(256);
    for key in ["0", "false", "[]", "{}", "null", "\"\"", "a#b", "a", "A", longest.as_str()] {
        let data = r#"{"text":"x"}"#;
        tenant.call_with("ext", "echo", data, &[("idempotency-key", key)]).await.ok();
    }
    assert_eq!(extension.requests("echo").len(), 10);
    let text = "an idempotency key has 1 to 256 bytes";
    for key in ["", &format!("{longest}k")] {
        let fault =
            tenant.call_with("ext", "echo", "{}", &[("idempotency-key", key)]).await.fault();
        assert_eq!(fault, (400, "bad-request".to_owned(), text.to_owned()));
    }
    let mut request =
        b"POST /v1/extension/request/ext HTTP/1.1\r\nhost: x\r\nconnection: close\r\n".to_vec();
    request.extend(format!("authorization: Bearer {}\r\n", tenant.token).bytes());
    let body = format!("oid={}&action=echo", tenant.oid);
    request.extend(b"idempotency-key: caf\xe9\r\n");
    request.extend(format!("content-length: {}\r\n\r\n{body}", body.len()).bytes());
    let answer = String::from_utf8(tenant.raw(&request).await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(
        answer.ends_with(
            r#"{"error":"the header idempotency-key is not ASCII","code":"bad-request"}"#
        )
    );
    assert_eq!(extension.requests("echo").len(), 10);
}

#[tokio::test]
async fn a_call_without_a_key_is_a_call_of_its_own_each_time() {
    let extension = Extension::echo().await;
    let (_world, tenant) = World::with(&extension).await;
    for _ in 0..3 {
        tenant.call("ext", "echo", "{}").await.ok();
    }
    let mut keys: Vec<_> = extension.requests("echo").iter().map(|m| m.key().to_owned()).collect();
    keys.dedup();
    assert_eq!(keys.len(), 3); // LC-059
}

// covers: LC-099, LC-101
#[tokio::test]
async fn a_metric_key_is_recorded_once_over_many_calls_at_a_time() {
    let extension = Extension::start(|_| async {
        Reply::ok(
            r#""metrics":{"idempotent_key":"one","metrics":[{"sku":"s","value":7},{"sku":"t","value":0}]}"#,
        )
    });
    let extension = extension.await;
    let (world, tenant) = World::with(&extension).await;
    join_all((0..32).map(|_| tenant.call("ext", "echo", "{}"))).await;
    world.settled().await;
    assert_eq!(tenant.usage().await, [("ext:s".to_owned(), 7)]);
}

#[tokio::test]
async fn two_keys_at_two_extensions_fail_and_are_retried_each_on_its_own() {
    // A retry's id must not collide where one caller's key goes to two extensions.
    let world = World::start_at_speed(50).await;
    let failing = || Extension::start(|_| async { Reply::status(503, "") });
    let extensions = [failing().await, failing().await];
    let tenant = world.operator.tenant("demo").await;
    for (name, extension) in ["one", "two"].iter().zip(&extensions) {
        world.operator.register(name, extension).await;
        tenant.subscribe(name).await;
    }
    let (first, second) = tokio::join!(
        tenant.call_with("one", "echo", "{}", &[("idempotency-key", "1")]),
        tenant.call_with("two", "echo", "{}", &[("idempotency-key", "2")]),
    );
    for (answer, extension) in [first, second].iter().zip(&extensions) {
        assert_eq!(answer.fault().0, 502);
        assert_eq!(extension.requests("echo").len(), 3);
    }
    until("the events' ends", || async { (world.dead_letters().await == 0).then_some(()) }).await;
}
