//! On a store whose writes and messages are two steps, as two processes see it.

mod steps;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::*;
use crate::auth::{Caller, CallerKind};
use crate::call::{CallRequest, CallSettings, Launcher};
use crate::extensions::{self, DefinitionInput};
use crate::fault::Code;
use crate::ids::{ExtensionName, Oid};
use crate::keys;
use crate::limits::{LEASE, RECENT_MAX, RETURNED_BYTES_MAX};
use crate::ports::{
    Message, Outage, Outbound, Outgoing, Ports, Query, SendFault, Store as _, WebhookAnswer,
    WebhookRequest,
};
use crate::testkit::{FixedKeyring, ManualClock, MemoryBlobs, MemoryStore, SeededIds};
use crate::time::Timestamp;
use steps::Steps;

const OID: &str = "8cbe27f4-0000-4000-8000-138cd51389cd";

/// An extension with one action, whose answer holds a text of so many bytes and one metric.
struct Extension(Mutex<usize>);

#[async_trait]
impl Outbound for Extension {
    fn check_url(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    async fn send(&self, request: WebhookRequest) -> Result<WebhookAnswer, SendFault> {
        let mut text = String::new();
        let mut decoder = flate2::read::GzDecoder::new(&request.body[..]);
        std::io::Read::read_to_string(&mut decoder, &mut text).unwrap();
        let data = if text.contains("schema_request") {
            r#"{"config_schema":{"fields":{}},"required_events":[],"request_schema":{"run":{"parameters":{"fields":{}}}}}"#.to_owned()
        } else {
            format!("\"{}\"", "a".repeat(*self.0.lock().unwrap()))
        };
        let metrics = r#"{"metrics":[{"sku":"s","value":1}]}"#;
        let body = format!(r#"{{"version":20221218,"data":{data},"metrics":{metrics}}}"#);
        Ok(WebhookAnswer { status: 200, retry_after: None, body: Bytes::from(body) })
    }
}

/// What becomes of a call that is handed over.
#[derive(Clone, Copy)]
enum Fate {
    /// It takes that long, and longer.
    Takes(Duration),
    /// It dies.
    Dies,
}

struct Handed {
    clock: Arc<ManualClock>,
    fate: Fate,
    claimed: Mutex<Option<Claimed>>,
}

#[async_trait]
impl Launcher for Handed {
    async fn launch(
        &self,
        _: &Calls,
        claimed: Claimed,
        _: Duration,
    ) -> Option<Result<Reply, Outage>> {
        *self.claimed.lock().unwrap() = Some(claimed);
        match self.fate {
            Fate::Takes(time) => {
                self.clock.advance(time);
                None
            }
            Fate::Dies => Some(Err(Outage::new("a run has died"))),
        }
    }
}

struct World {
    calls: Calls,
    clock: Arc<ManualClock>,
    inner: Arc<MemoryStore>,
    steps: Arc<Steps>,
    extension: Arc<Extension>,
    handed: Arc<Handed>,
}

impl World {
    async fn new(fate: Fate) -> Self {
        let world = Self::unsubscribed(fate, Duration::ZERO).await;
        world.subscribe().await;
        world.inner.take_sent();
        world.steps.commits.lock().unwrap().clear();
        world
    }

    async fn unsubscribed(fate: Fate, refusals_filed_every: Duration) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_secs(1_700_000_000)));
        let inner = Arc::new(MemoryStore::new(clock.clone()));
        let steps = Steps::new(inner.clone(), clock.clone());
        let extension = Arc::new(Extension(Mutex::new(1)));
        let ports = Ports {
            store: steps.clone(),
            dead_letters: inner.clone(),
            blobs: Arc::new(MemoryBlobs::new(clock.clone())),
            keyring: Arc::new(FixedKeyring::new()),
            clock: clock.clone(),
            ids: Arc::new(SeededIds::new(1)),
            outbound: extension.clone(),
        };
        let input = br#"{"name":"demo","url":"https://e.example","secret":"test-secret-0123456789abcdef0123"}"#;
        extensions::create(&ports, DefinitionInput::parse(input).unwrap()).await.unwrap();
        crate::orgs::create(&ports, "A", "", Some(oid())).await.unwrap();
        let handed = Arc::new(Handed { clock: clock.clone(), fate, claimed: Mutex::default() });
        let settings = CallSettings { refusals_filed_every, ..CallSettings::default() };
        let calls = Calls::new(ports, handed.clone(), settings);
        Self { calls, clock, inner, steps, extension, handed }
    }

    /// Another process subscribes the organization.
    async fn subscribe(&self) {
        let ports = Ports { store: self.inner.clone(), ..self.calls.ports().clone() };
        extensions::subscribe(&ports, &self.calls, oid(), &demo(), "a").await.unwrap();
    }

    /// Another process unsubscribes it.
    async fn unsubscribe(&self) {
        let ports = Ports { store: self.inner.clone(), ..self.calls.ports().clone() };
        extensions::unsubscribe(&ports, &self.calls, oid(), &demo(), "a").await.unwrap();
    }

    async fn request(&self, action: &str, wait: Duration) -> Outcome<Reply> {
        let caller = Caller {
            kind: CallerKind::User,
            oid: Some(oid()),
            ident: "a".to_owned(),
            permissions: vec!["*".to_owned()],
        };
        let request = CallRequest {
            oid: oid(),
            extension: demo(),
            action: action.to_owned(),
            data: Vec::new(),
            caller,
            impersonator: None,
            idempotency_key: Some("k".to_owned()),
            investigation: String::new(),
            wait,
            trace: None,
        };
        self.calls.request(request).await
    }

    /// Asks for the action; answers the record's status, or the code of the refusal.
    async fn ask(&self, wait: Duration) -> String {
        match self.request("run", wait).await {
            Ok(Reply::Accepted { body, .. }) => {
                let view: serde_json::Value = serde_json::from_slice(&body).unwrap();
                view["status"].as_str().unwrap().to_owned()
            }
            Ok(Reply::Ended { status, .. }) => status.to_string(),
            Err(fault) => fault.code.word().to_owned(),
        }
    }

    fn claimed(&self) -> Claimed {
        self.handed.claimed.lock().unwrap().clone().unwrap()
    }

    /// Delays of the messages sent since the last look, and the revisions that they say are abandoned.
    fn watches(&self) -> Vec<(Duration, Option<u64>)> {
        self.inner.take_sent().iter().map(|out| (out.delay, abandoned(out))).collect()
    }

    async fn read(&self, id: &str) -> String {
        let view = self.calls.record(oid(), id).await.unwrap().unwrap();
        let view: serde_json::Value = serde_json::from_slice(&view).unwrap();
        view["status"].as_str().unwrap().to_owned()
    }

    /// Works on a watch message of the call that was handed over; whether it is done.
    async fn work(&self, abandoned: Option<u64>) -> bool {
        let record = self.claimed().record;
        let job = Job::Run { oid: record.oid, id: record.id, slow_retries: 0, abandoned };
        let body = serde_json::to_string(&job).unwrap();
        self.calls.work(Message { id: "m".to_owned(), body, receives: 1 }).await.is_none()
    }
}

fn abandoned(out: &Outgoing) -> Option<u64> {
    match serde_json::from_str(&out.body).unwrap() {
        Job::Run { abandoned, .. } => abandoned,
        other => panic!("{other:?}"),
    }
}

fn oid() -> Oid {
    Oid::parse(OID).unwrap()
}

fn demo() -> ExtensionName {
    ExtensionName::parse("demo").unwrap()
}

const WAIT: Duration = Duration::from_secs(25);
const TAKES_LONG: Fate = Fate::Takes(WAIT);
const MILLI: Duration = Duration::from_millis(1);

#[tokio::test]
async fn a_reply_goes_from_one_process_to_another_as_text_and_a_larger_one_in_the_record() {
    // Around the text stand `{"data":"` and `"}`.
    let around = 11;
    for (bytes, stored) in [(RETURNED_BYTES_MAX, false), (RETURNED_BYTES_MAX + 1, true)] {
        let world = World::new(TAKES_LONG).await;
        *world.extension.0.lock().unwrap() = bytes - around;
        assert_eq!(world.ask(WAIT).await, "running");
        let claimed = world.claimed();
        let text = world.calls.run_text(&claimed.to_text()).await.unwrap();
        assert_eq!(text == "\"stored\"", stored, "{bytes}");
        let Reply::Ended { id, status, body } =
            world.calls.reply_of(&claimed, &text).await.unwrap()
        else {
            panic!("it has ended");
        };
        assert_eq!((id, status), (claimed.record.id.to_string(), 200));
        let expected = format!("{{\"data\":\"{}\"}}", "a".repeat(bytes - around));
        assert!(body == expected.as_bytes(), "{} bytes", body.len());
    }
}

#[tokio::test]
async fn what_another_process_says_that_is_not_understood_is_an_outage() {
    let world = World::new(TAKES_LONG).await;
    world.ask(WAIT).await;
    assert!(world.calls.run_text("{}").await.is_err());
    assert!(world.calls.reply_of(&world.claimed(), "{}").await.is_err());
}

#[tokio::test]
async fn a_call_that_takes_longer_than_its_caller_waits_is_watched_until_its_lease_ends() {
    let world = World::new(TAKES_LONG).await;
    assert_eq!(world.ask(WAIT).await, "running");
    assert_eq!(world.watches(), [(LEASE - WAIT, None)]);
    assert!(!world.work(None).await, "it is leased");
    world.clock.advance(LEASE - WAIT);
    assert!(world.work(None).await);
    assert_eq!(world.ask(WAIT).await, "200");
}

#[tokio::test]
async fn a_call_whose_worker_died_is_run_at_once_unless_another_one_has_it() {
    let world = World::new(Fate::Dies).await;
    assert_eq!(world.ask(WAIT).await, "running");
    assert_eq!(world.watches(), [(Duration::ZERO, Some(1))]);
    assert!(!world.work(Some(2)).await, "another worker's revision");
    assert!(!world.work(None).await);
    assert!(world.work(Some(1)).await);
    assert_eq!(world.ask(WAIT).await, "200");
    assert!(world.work(Some(1)).await, "it has ended");
}

#[tokio::test]
async fn a_running_orphan_is_taken_up_when_it_is_read_after_its_lease() {
    let world = World::new(TAKES_LONG).await;
    world.ask(WAIT).await;
    world.watches();
    let id = world.claimed().record.id.to_string();
    world.clock.advance(LEASE - WAIT - MILLI);
    assert_eq!((world.read(&id).await.as_str(), world.watches()), ("running", vec![]));
    world.clock.advance(MILLI);
    assert_eq!(world.read(&id).await, "running");
    assert_eq!(world.watches(), [(Duration::ZERO, Some(1))]);
}

#[tokio::test]
async fn a_queued_orphan_is_taken_up_when_it_is_read_after_the_time_of_a_lease() {
    let world = World::new(TAKES_LONG).await;
    let Ok(Reply::Accepted { id, .. }) = world.request("run", Duration::ZERO).await else {
        panic!("it is queued");
    };
    assert_eq!(world.watches(), [(Duration::ZERO, None)], "its own message");
    world.clock.advance(LEASE - MILLI);
    assert_eq!((world.read(&id).await.as_str(), world.watches()), ("queued", vec![]));
    world.clock.advance(MILLI);
    assert_eq!(world.read(&id).await, "queued");
    assert_eq!(world.watches(), [(Duration::ZERO, Some(1))]);
}

#[tokio::test]
async fn a_repeat_that_is_answered_202_has_a_message_behind_it() {
    for wait in [WAIT, Duration::ZERO] {
        let world = World::new(TAKES_LONG).await;
        world.ask(wait).await;
        world.watches();
        let gone = if wait.is_zero() { Duration::ZERO } else { WAIT };
        world.ask(wait).await;
        assert_eq!(world.watches(), [(LEASE - gone, None)]);
        world.clock.advance(LEASE - gone);
        world.ask(wait).await;
        assert_eq!(world.watches(), [(Duration::ZERO, Some(1))]);
    }
}

#[tokio::test]
async fn what_follows_from_a_call_is_sent_before_its_end_is_written() {
    let world = World::new(TAKES_LONG).await;
    world.ask(WAIT).await;
    world.steps.commits.lock().unwrap().clear();
    world.calls.run_text(&world.claimed().to_text()).await.unwrap();
    assert_eq!(*world.steps.commits.lock().unwrap(), [(0, 1), (1, 0)]);
}

#[tokio::test]
async fn a_refusal_that_repeats_is_written_once_a_minute() {
    // LC-005, LC-062
    let world = World::unsubscribed(TAKES_LONG, Duration::from_secs(60)).await;
    world.subscribe().await;
    let writes = async |expected: usize| {
        let before = world.steps.commits.lock().unwrap().len();
        let refused = world.request("unknown", WAIT).await;
        assert_eq!(refused.unwrap_err().code, Code::SchemaRefused);
        assert_eq!(world.steps.commits.lock().unwrap().len() - before, expected);
    };
    writes(1).await;
    writes(0).await;
    world.clock.advance(Duration::from_secs(60));
    writes(1).await;
    let page = world.inner.query(Query::prefix(keys::errors(oid()), "")).await.unwrap();
    let counts: Vec<i128> =
        page.items.iter().flat_map(|(_, item)| item.counters.values().copied()).collect();
    assert_eq!(counts, [3]);
}

#[tokio::test]
async fn a_new_install_can_be_called_at_once_and_a_removed_one_for_a_minute_at_most() {
    let world = World::unsubscribed(TAKES_LONG, Duration::ZERO).await;
    assert_eq!(world.ask(Duration::ZERO).await, "not-subscribed");
    world.subscribe().await;
    assert_eq!(world.ask(Duration::ZERO).await, "queued");
    let world = World::new(TAKES_LONG).await;
    assert_eq!(world.request("unknown", WAIT).await.unwrap_err().code, Code::SchemaRefused);
    world.unsubscribe().await;
    world.clock.advance(RECENT_MAX - MILLI);
    assert_eq!(world.request("unknown", WAIT).await.unwrap_err().code, Code::SchemaRefused);
    world.clock.advance(MILLI);
    assert_eq!(world.ask(WAIT).await, "not-subscribed");
    // What is known to be removed is looked at anew.
    world.subscribe().await;
    assert_eq!(world.ask(Duration::ZERO).await, "queued");
}
