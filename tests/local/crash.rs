//! `kill -9` in the middle of load, several times on one folder: what was accepted is executed or reported failed,
//! each key has one result and is metered once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use annex_core::ports::QueueName;
use annex_embedded::{Embedded, Options, SystemClock};
use annex_tests::client::Answer;
use annex_tests::extension::{Extension, Message, Reply};
use annex_tests::platform::Tenant;
use annex_tests::process::Annex;
use annex_tests::wait::until;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::PROGRAM;
use crate::process::started;

const ROUNDS: usize = 4;

/// Callers at a time.
const CALLERS: usize = 24;

/// Requests that are answered before each kill.
const ANSWERS: usize = 60;

/// Meters one call under the message's own key. A request continues once, at once or after a second.
fn answer(message: &Message) -> Reply {
    let metered = r#""metrics":{"metrics":[{"sku":"calls","value":1}]}"#;
    let number = message.value["request"]["data"]["number"].as_u64().unwrap_or_default();
    match message.action() {
        "echo" => Reply::ok(&format!(
            r#""data":{{"number":{number}}},{metered},"continuations":[{}]"#,
            json!({"in_delay_sec": number % 2, "action": "more", "state": {"number": number}})
        )),
        "more" => Reply::ok(&format!(r#""data":{{}},{metered}"#)),
        _ => Reply::data("{}"),
    }
}

/// What the platform said to a caller.
#[derive(Default)]
struct Said {
    /// The record of each number that was accepted.
    ids: BTreeMap<usize, String>,
    /// The body of each final answer.
    answers: BTreeMap<usize, String>,
}

/// One caller: calls, each with a key of its own, until the platform is gone.
async fn call_until_gone(
    tenant: Tenant,
    numbers: Arc<AtomicUsize>,
    answered: Arc<AtomicUsize>,
) -> Vec<(usize, Option<Answer>)> {
    let mut all = Vec::new();
    loop {
        let number = numbers.fetch_add(1, Ordering::SeqCst);
        let answer = call(&tenant, number).await.ok();
        answered.fetch_add(1, Ordering::SeqCst);
        let is_gone = answer.is_none();
        all.push((number, answer));
        if is_gone {
            return all;
        }
    }
}

async fn call(tenant: &Tenant, number: usize) -> std::io::Result<Answer> {
    let data = json!({"number": number}).to_string();
    let key = format!("key-{number}");
    let prefer = if number.is_multiple_of(3) { "respond-async" } else { "wait=25" };
    tenant.try_call("ext", "echo", &data, &[("idempotency-key", &key), ("prefer", prefer)]).await
}

impl Said {
    fn add(&mut self, number: usize, answer: &Answer) {
        let id = answer.header("annex-invocation-id").unwrap().to_owned();
        let known = self.ids.entry(number).or_insert_with(|| id.clone());
        assert_eq!(*known, id, "one key has two invocations");
        if answer.status == 200 {
            let body = answer.text();
            let known = self.answers.entry(number).or_insert_with(|| body.clone());
            assert_eq!(*known, body, "one key has two answers");
        } else {
            assert_eq!(answer.status, 202, "{}", answer.text());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_9_in_the_middle_of_load_loses_and_doubles_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let extension = Extension::start(|message| async move {
        // Long enough that a kill finds calls at every stage.
        tokio::time::sleep(Duration::from_millis(message.json.len() as u64 % 30)).await;
        answer(&message)
    });
    let extension = extension.await;
    let (mut annex, _, mut tenant) = started(&data, &extension).await;
    let numbers = Arc::new(AtomicUsize::new(0));
    let (mut said, mut unanswered) = (Said::default(), BTreeSet::new());
    for round in 1..=ROUNDS {
        let answered = Arc::new(AtomicUsize::new(0));
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            callers.spawn(call_until_gone(tenant.clone(), numbers.clone(), answered.clone()));
        }
        until("load", || async {
            (ANSWERS * round / 2 < answered.load(Ordering::SeqCst)).then_some(())
        })
        .await;
        annex.kill();
        for (number, answer) in callers.join_all().await.into_iter().flatten() {
            match answer {
                Some(answer) => said.add(number, &answer),
                None => drop(unanswered.insert(number)),
            }
        }
        annex = Annex::start(PROGRAM, &data);
        tenant = tenant.at(annex.address);
    }
    // A caller that got nothing asks again under the same key, as real ones do.
    for &number in &unanswered {
        said.add(number, &call(&tenant, number).await.unwrap());
    }
    check_all_ended(&tenant, &said).await;
    check_continued(&extension, said.ids.len()).await;
    let calls = said.ids.len() as u64;
    tenant.await_usage(&[("ext:calls", 2 * calls)]).await;
    assert_eq!(tenant.errors().await, []);
    // A repeat of each is still what it was, and is delivered to nobody.
    let delivered = extension.requests("echo").len();
    for number in said.ids.keys().copied().collect::<Vec<_>>() {
        let again = call(&tenant, number).await.unwrap();
        assert_eq!(again.status, 200);
        said.add(number, &again);
    }
    assert_eq!(extension.requests("echo").len(), delivered);
    assert!(annex.stop("TERM").await.success());
    check_no_messages(&data).await;
}

/// Every call that was accepted has its record, and ended with its own answer.
async fn check_all_ended(tenant: &Tenant, said: &Said) {
    for (number, id) in &said.ids {
        let record = tenant.ended(id).await;
        assert_eq!(record["status"], "succeeded", "{record}");
        assert_eq!(record["data"], json!({"number": number}));
    }
}

/// Every call's continuation was delivered, under its key. It may have been delivered twice, where the process died
/// between its delivery and its end.
async fn check_continued(extension: &Extension, calls: usize) {
    let seen = until("the continuation of every call", || async {
        let mut seen: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
        for message in extension.requests("more") {
            let number = message.value["request"]["data"]["number"].as_u64().unwrap();
            seen.entry(number).or_default().insert(message.key().to_owned());
        }
        (seen.len() == calls).then_some(seen)
    });
    for (number, keys) in seen.await {
        assert_eq!(keys.len(), 1, "{number}: {keys:?}");
    }
}

async fn check_no_messages(data: &std::path::Path) {
    let store = Embedded::open(data, Arc::new(SystemClock::start()), &Options::default()).unwrap();
    for &queue in QueueName::ALL {
        let depth = store.depth(queue).await.unwrap();
        assert_eq!(depth.dead, 0, "{}: dead letters", queue.name());
        assert_eq!(depth.ready + depth.delayed + depth.held, 0, "{}: messages left", queue.name());
    }
}

#[tokio::test]
async fn delayed_and_put_off_messages_are_taken_up_again_after_kill_9() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let extension = Extension::start(|message| async move {
        match message.action() {
            "echo" => Reply::ok(
                r#""data":{},"continuations":[{"in_delay_sec":3,"action":"more","state":{"n":1}}]"#,
            ),
            _ => Reply::data("{}"),
        }
    });
    let extension = extension.await;
    let (annex, _, tenant) = started(&data, &extension).await;
    let began = std::time::Instant::now();
    tenant.call("ext", "echo", "{}").await.ok();
    annex.kill();
    let annex = Annex::start(PROGRAM, &data);
    extension.await_requests("more", 1).await;
    assert!(Duration::from_secs(3) <= began.elapsed(), "the delay is over too early");
    // A message that is delivered again is one call with one record.
    let record: Value = json!(extension.requests("more")[0].data());
    assert_eq!(record, r#"{"n":1}"#);
    assert!(annex.stop("TERM").await.success());
    check_no_messages(&data).await;
    assert_eq!(extension.requests("more").len(), 1);
}
