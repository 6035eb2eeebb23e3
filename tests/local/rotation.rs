//! A new shared secret, whichever of the two an extension knows, and whenever it is deployed.

use std::sync::{Arc, Mutex};

use annex_core::time::Timestamp;
use annex_tests::client::Answer;
use annex_tests::extension::{Extension, Message, Reply, SCHEMA, SECRET, echo};
use annex_tests::platform::{Tenant, World};
use serde_json::Value;

const NEW: &str = "another-shared-secret-of-the-extension";
const PATH: &str = "/v1/extension/definition/ext/rotate-secret";

/// The secrets that an extension verifies with; it can be deployed anew.
type Known = Arc<Mutex<Vec<&'static str>>>;

/// An extension that verifies as the published SDKs do: it looks at one header, and answers 401 without a body.
async fn verifying(known: &Known) -> Extension {
    answering(known, || Reply::status(401, "")).await
}

/// One that has another answer to a signature that it does not know.
async fn answering(known: &Known, refusal: fn() -> Reply) -> Extension {
    let known = Arc::clone(known);
    Extension::start_bare(move |message| {
        let is_known = known.lock().unwrap().iter().any(|secret| message.is_signed_with(secret));
        async move {
            match is_known {
                false => refusal(),
                true if message.value.get("schema_request").is_some() => Reply::data(SCHEMA),
                true => echo(&message),
            }
        }
    })
    .await
}

async fn rotate(world: &World, secret: &str, more: &[(&str, &str)]) -> Value {
    let fields: Vec<_> = [("secret", secret)].iter().chain(more).copied().collect();
    world.operator.form("POST", PATH, &fields).await.ok()
}

async fn call(tenant: &Tenant) -> Answer {
    tenant.call("ext", "echo", r#"{"text":"a"}"#).await
}

/// The secrets whose signatures a message has: where every extension looks, and beside it.
fn signed(message: &Message) -> (Option<&'static str>, Option<&'static str>) {
    let of = |header: &str| {
        let value = message.header(header)?;
        [SECRET, NEW].into_iter().find(|secret| {
            annex_core::delivery::wire::Signer::new(secret).sign(message.json.as_bytes()) == value
        })
    };
    (of("lc-ext-sig"), of("lc-ext-sig-previous"))
}

/// Rotates while the extension verifies with `known`, and calls twice: how each request was signed first, in all, and
/// how the last call ended.
async fn check(known: &[&'static str], expected: &[&[&str]], status: u16) {
    let deployed = Arc::new(Mutex::new(vec![SECRET]));
    let extension = verifying(&deployed).await;
    let (world, tenant) = World::with(&extension).await;
    world.settled().await;
    call(&tenant).await.ok();
    rotate(&world, NEW, &[]).await;
    *deployed.lock().unwrap() = known.to_vec();
    let mut before = extension.all().len();
    for expected in expected {
        assert_eq!(call(&tenant).await.status, status, "{known:?}");
        let all = extension.all();
        let first: Vec<_> =
            all[before..].iter().map(|message| signed(message).0.unwrap()).collect();
        assert_eq!(&first, expected, "{known:?}");
        for message in &all[before..] {
            let (one, other) = signed(message);
            assert_ne!(one, other, "both secrets sign");
            assert!(one.is_some() && other.is_some());
        }
        before = all.len();
    }
}

#[tokio::test]
async fn an_extension_that_knows_the_old_secret_is_asked_once_more_and_then_with_the_old_one_first()
{
    // The schema is asked for first.
    check(&[SECRET], &[&[NEW, SECRET, SECRET], &[SECRET]], 200).await;
}

#[tokio::test]
async fn an_extension_that_knows_the_new_secret_or_both_is_asked_once() {
    check(&[NEW], &[&[NEW, NEW], &[NEW]], 200).await;
    check(&[SECRET, NEW], &[&[NEW, NEW], &[NEW]], 200).await;
}

#[tokio::test]
async fn an_extension_that_knows_neither_secret_is_asked_twice_and_has_failed() {
    // A 401 is no reason for another attempt (LC-041).
    check(&[], &[&[NEW, SECRET], &[NEW, SECRET]], 502).await;
}

#[tokio::test]
async fn a_deployment_during_the_overlap_is_noticed_at_the_next_call() {
    let known = Arc::new(Mutex::new(vec![SECRET]));
    let extension = verifying(&known).await;
    let (world, tenant) = World::with(&extension).await;
    world.settled().await;
    rotate(&world, NEW, &[]).await;
    call(&tenant).await.ok();
    for (deployed, sent) in [(SECRET, 1), (NEW, 2), (NEW, 1), (SECRET, 2), (SECRET, 1)] {
        *known.lock().unwrap() = vec![deployed];
        let before = extension.requests("echo").len();
        call(&tenant).await.ok();
        let requests = extension.requests("echo").split_off(before);
        assert_eq!(requests.len(), sent, "{deployed}");
        assert!(requests.iter().all(|message| message.json == requests[0].json), "the same bytes");
    }
    // What is asked once more is no further attempt: three are made where they are needed.
    *known.lock().unwrap() = vec![NEW];
    world.operator.form("DELETE", PATH, &[]).await.ok();
    call(&tenant).await.ok();
    let last = extension.requests("echo").pop().unwrap();
    assert_eq!(signed(&last), (Some(NEW), None));
}

#[tokio::test]
async fn the_old_secret_signs_to_the_last_millisecond_of_the_overlap() {
    let known = Arc::new(Mutex::new(vec![SECRET]));
    let extension = verifying(&known).await;
    // On a clock that stands still.
    let (world, tenant) = World::with_at_speed(&extension, 0).await;
    let made = rotate(&world, NEW, &[("overlap", "10")]).await;
    let until = Timestamp::parse(made["previous_secret_until"].as_str().unwrap()).unwrap();
    world.clock.jump_to(Timestamp::from_millis(until.millis() - 1));
    call(&tenant).await.ok();
    assert_eq!(signed(&extension.requests("echo")[0]), (Some(SECRET), Some(NEW)));
    world.clock.jump_to(until);
    assert_eq!(call(&tenant).await.fault().1, "extension-failed");
    let last = extension.all().pop().unwrap();
    assert_eq!(signed(&last), (Some(NEW), None), "{last:?}");
    let shown = world.operator.get("/v1/extension/definition/ext").await.ok();
    assert!(shown.get("previous_secret_until").is_none(), "{shown}");
    // The next rotation needs no force.
    rotate(&world, SECRET, &[("overlap", "0")]).await;
    call(&tenant).await.ok();
    assert_eq!(signed(&extension.requests("echo").pop().unwrap()), (Some(SECRET), None));
}

#[tokio::test]
async fn of_an_extension_that_answers_401_for_its_own_reasons_the_second_answer_counts() {
    let extension = Extension::start(|message| async move {
        match (message.action(), message.is_signed_with(NEW)) {
            ("echo", true) => Reply::status(401, r#"{"error":"no licence"}"#),
            ("echo", false) => Reply::status(401, r#"{"error":"invalid signature"}"#),
            _ => Reply::data("{}"),
        }
    })
    .await;
    let (world, tenant) = World::with(&extension).await;
    rotate(&world, NEW, &[]).await;
    assert_eq!(call(&tenant).await.fault().2, "invalid signature");
    assert_eq!(extension.requests("echo").len(), 2);
    world.operator.form("DELETE", PATH, &[]).await.ok();
    assert_eq!(call(&tenant).await.fault().2, "no licence");
    assert_eq!(extension.requests("echo").len(), 3);
}

#[tokio::test]
async fn an_extension_that_hangs_up_on_a_wrong_signature_is_asked_with_the_other_one_next() {
    // So does a Go extension without an error handler.
    let known = Arc::new(Mutex::new(vec![SECRET]));
    let extension = answering(&known, Reply::dropped).await;
    let (world, tenant) = World::with_at_speed(&extension, 100).await;
    world.settled().await;
    rotate(&world, NEW, &[]).await;
    call(&tenant).await.ok();
    let first: Vec<_> = extension.requests("echo").iter().map(|m| signed(m).0).collect();
    assert_eq!(first, [Some(SECRET)], "the schema request has found out");
}

#[tokio::test]
async fn a_403_is_asked_once_more_and_a_500_is_not_taken_for_a_wrong_signature() {
    for (refusal, expected) in [(403, 200), (400, 502)] {
        let known = Arc::new(Mutex::new(vec![SECRET]));
        let answer = match refusal {
            403 => || Reply::status(403, "no"),
            _ => || Reply::status(400, "no"),
        };
        let extension = answering(&known, answer).await;
        let (world, tenant) = World::with(&extension).await;
        rotate(&world, NEW, &[]).await;
        assert_eq!(call(&tenant).await.status, expected, "{refusal}");
    }
}
