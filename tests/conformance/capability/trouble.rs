//! What may go wrong in a process, its backend and its queues: a command under a key still has one result and one
//! delivery, and whatever was emitted arrives at each subscriber.

use std::collections::BTreeSet;

use annex_core::capability::id::{LockId, Slug};
use annex_core::ids::Oid;
use annex_core::keys;
use annex_core::ports::Query;
use serde_json::{Value, json};

use super::events::{event, numbers, subscribed};
use super::partners::Answer;
use super::scene::{LOCK, ORG, Scene};
use super::{Case, bare};
use crate::harness::Backend;
use crate::harness::disorder::Disorder;
use crate::harness::door::{Call, Reply};
use crate::harness::gate::Fault;
use crate::harness::process::Processes;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        at_each("CH-018", "a command under a key runs once", Subject::Keyed),
        at_each("", "an emitted event reaches both subscribers", Subject::Event),
        at_each("", "a failing webhook arrives in the end", Subject::Webhook),
        bare("", "queues in disorder: events arrive, and their calls run once", disorder),
        bare("", "queues in disorder: webhooks that fail arrive in the end", late_webhooks),
    ]
}

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Keyed,
    Event,
    Webhook,
}

impl Subject {
    async fn scene(self, backend: Backend) -> Scene {
        let one = backend.is_atomic();
        let processes = if one { Processes::One } else { Processes::Two { noticed: true } };
        let mut scene = Scene::on(backend, processes).await;
        match self {
            Self::Keyed => {}
            Self::Event => subscribed(&mut scene).await,
            Self::Webhook => {
                let fail = || Answer::status(500);
                let answers = [fail(), fail(), Answer::status(200)];
                scene.partners.answers("b:action_log.created", answers);
            }
        }
        scene
    }

    fn call(self, scene: &Scene) -> Call {
        match self {
            Self::Keyed => {
                let body = json!({ "idempotencyKey": "k", "input": 1 });
                scene.request("a", "POST /commands/b.run", &body)
            }
            Self::Event => scene.request("a", "POST /events", &event("a.done", 1)),
            Self::Webhook => scene.request("a", "POST /logs/custom", &json!({ "title": "x" })),
        }
    }

    async fn check(self, scene: &mut Scene, answered: Option<&Reply>) {
        match self {
            Self::Keyed => check_keyed(scene, answered).await,
            Self::Event => check_events(scene, answered).await,
            Self::Webhook => check_lines(scene, answered).await,
        }
        check_outboxes(scene).await;
    }
}

/// A case in which one thing goes wrong at each call of the backend, one after the other. On an emulator, where each life
/// takes its time, processes only die, but for a command.
fn at_each(clauses: &'static str, name: &'static str, subject: Subject) -> Case {
    let tried = bare(clauses, name, move |backend: Backend| async move {
        let calls = live(subject, backend, None).await;
        assert_ne!(calls, 0, "the backend is called");
        let faults: Vec<Fault> = match backend {
            Backend::Dynamo if subject != Subject::Keyed => Fault::DEATHS.to_vec(),
            _ if backend.is_atomic() => Fault::DEATHS.to_vec(),
            _ => Fault::DEATHS.iter().chain(Fault::OUTAGES).copied().collect(),
        };
        let mut lives = 0;
        for at in 0..calls {
            for &fault in &faults {
                live(subject, backend, Some((at, fault))).await;
                lives += 1;
            }
        }
        println!("{subject:?} [{}]: {lives} crash points", backend.name());
    });
    tried.on_dynamo()
}

/// Times that a client asks before it gives up.
const ASKS_MAX: usize = 4;

/// Longer than a call is worked on, in seconds.
const LEASE: u64 = 31;

/// One life of a scene; answers how often its backend was called.
async fn live(subject: Subject, backend: Backend, fault: Option<(usize, Fault)>) -> usize {
    let mut scene = subject.scene(backend).await;
    scene.world.site.gate.arm(fault);
    let mut answered = None;
    for _ in 0..ASKS_MAX {
        let life = scene.world.process.life.clone();
        let call = subject.call(&scene);
        let reply = tokio::select! {
            biased;
            reply = call.send(scene.world.process.router()) => Some(reply),
            () = life.ended() => None,
        };
        scene.world.revive();
        match reply {
            Some(reply) if reply.status == 201 => {
                answered = Some(reply);
                break;
            }
            // It runs, or ran in a process that is dead: how it ended shows when its lease has run out.
            Some(reply) if reply.status == 202 => scene.pass(LEASE),
            Some(reply) => {
                assert!(matches!(reply.status.as_u16(), 500 | 503), "{}", reply.body);
            }
            None => {}
        }
    }
    scene.world.settle_alone().await.expect("the queues run empty");
    let calls = scene.world.site.gate.calls();
    if let Some((at, fault)) = fault {
        assert!(at < calls.len(), "{fault:?} never came: there are {} calls", calls.len());
    }
    scene.world.site.gate.arm(None);
    scene.settle().await;
    let what = fault.map(|(at, fault)| format!("{fault:?} at {at}: {}", calls[at]));
    println!("{subject:?} [{}]: {}", backend.name(), what.as_deref().unwrap_or("nothing"));
    subject.check(&mut scene, answered.as_ref()).await;
    let dead = &scene.world.dead_letters;
    assert!(dead.is_empty(), "{dead:?}");
    assert_eq!(scene.partners.faults(), [""; 0], "what partners were sent is as it should be");
    calls.len()
}

/// One record, one delivery at most, and one answer from now on.
async fn check_keyed(scene: &mut Scene, answered: Option<&Reply>) {
    let first = Subject::Keyed.call(scene).send(scene.world.process.router()).await;
    if first.status == 202 {
        scene.pass(LEASE);
    }
    let first = Subject::Keyed.call(scene).send(scene.world.process.router()).await;
    assert_eq!(first.status, 201, "{}", first.body);
    let again = Subject::Keyed.call(scene).send(scene.world.process.router()).await;
    assert_eq!((again.status, &again.body), (first.status, &first.body));
    if let Some(answered) = answered {
        assert_eq!(answered.body, first.body, "the first answer stands");
    }
    let told = scene.partners.take();
    assert!(told.len() <= 1, "delivered {} times", told.len());
    match first.body["status"].as_str() {
        Some("succeeded") => assert_eq!(told.len(), 1),
        _ => assert_eq!(first.body["error"]["code"], "interrupted", "{}", first.body),
    }
    assert!(told.iter().all(|told| told.data["invocationId"] == first.body["id"]));
}

/// Every event that was kept has arrived at both, and has its line.
async fn check_events(scene: &mut Scene, answered: Option<&Reply>) {
    let listed = scene.ask("a", "GET /events", &json!({})).await;
    let listed = listed.body["results"].as_array().expect("a list").clone();
    assert!(!listed.is_empty(), "the client asked until it was emitted");
    if let Some(answered) = answered {
        assert!(listed.contains(&answered.body), "what was answered is kept");
    }
    assert_eq!(scene.lines("b", "a.done").await.len(), listed.len());
    let webhooks = scene.partners.received("b:event.emitted");
    let calls = scene.partners.received("c.run");
    for event in &listed {
        assert!(webhooks.iter().any(|told| told.data["event"] == *event), "no webhook: {event}");
        let is_cause = |data: &Value| data["causationId"] == event["id"];
        assert!(calls.iter().any(|told| is_cause(&told.data)), "no call: {event}");
    }
    // No record of a call was delivered twice.
    let ids: BTreeSet<String> =
        calls.iter().map(|told| told.data["invocationId"].to_string()).collect();
    assert_eq!(ids.len(), calls.len());
}

/// Every line has arrived.
async fn check_lines(scene: &mut Scene, answered: Option<&Reply>) {
    let lines = scene.lines("b", "custom").await;
    if let Some(answered) = answered {
        assert!(lines.contains(&answered.body), "what was answered is kept");
    }
    let told = scene.partners.received("b:action_log.created");
    for line in &lines {
        assert!(told.iter().any(|told| told.data["actionLog"] == *line), "no webhook: {line}");
    }
    assert!(lines.len() + 2 <= told.len(), "two attempts failed");
}

/// Nothing waits any more, and nothing was given up.
async fn check_outboxes(scene: &mut Scene) {
    let oid = Oid::parse(ORG).expect("the organization has an id");
    let lock = LockId::parse(LOCK).expect("the lock has an id");
    for slug in ["a", "b", "c"] {
        let slug = Slug::parse(slug).expect("a slug");
        let partition = keys::outbox(oid, &lock, &slug);
        let query = Query::prefix(partition, keys::OUTBOX_ENTRIES);
        let page = scene.world.process.ports.store.query(query).await.expect("the store answers");
        assert!(page.items.is_empty(), "{} entries wait for {slug}", page.items.len());
    }
    let token = scene.world.token("user", "A").await.expect("a user signs in");
    let call = Call::new("GET", &format!("/v1/errors/{ORG}")).token(token);
    let errors = scene.world.send(call).await;
    assert_eq!(errors.body["errors"], json!([]), "{}", errors.body);
}

async fn disorder(backend: Backend) {
    for &disorder in Disorder::ALL {
        let mut scene = Subject::Event.scene(backend).await;
        scene.world.site.machine.disorder(disorder);
        scene.world.side_by_side = disorder == Disorder::SideBySide;
        for n in 0..3 {
            let reply = scene.emit("a", event("a.done", n)).await;
            assert_eq!(reply.status, 201, "{}", reply.body);
        }
        scene.settle().await;
        let mut calls = numbers(&scene, "c.run");
        calls.sort_unstable();
        assert_eq!(calls, [0, 1, 2], "{disorder:?}");
        let webhooks: BTreeSet<i64> = numbers(&scene, "b:event.emitted").into_iter().collect();
        assert_eq!(webhooks, BTreeSet::from([0, 1, 2]), "{disorder:?}");
        check_outboxes(&mut scene).await;
        assert!(scene.world.dead_letters.is_empty(), "{disorder:?}");
    }
}

async fn late_webhooks(backend: Backend) {
    for &disorder in Disorder::ALL {
        let mut scene = Subject::Webhook.scene(backend).await;
        scene.world.site.machine.disorder(disorder);
        scene.world.side_by_side = disorder == Disorder::SideBySide;
        for _ in 0..3 {
            let call = Subject::Webhook.call(&scene);
            assert_eq!(scene.world.send(call).await.status, 201);
        }
        scene.settle().await;
        let told = scene.partners.received("b:action_log.created");
        let lines: BTreeSet<String> =
            told.iter().map(|told| told.data["actionLog"]["_id"].to_string()).collect();
        assert_eq!(lines.len(), 3, "{disorder:?}");
        check_outboxes(&mut scene).await;
        assert!(scene.world.dead_letters.is_empty(), "{disorder:?}");
    }
}
