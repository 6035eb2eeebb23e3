//! Many callers at once, over two processes of one backend, in random orders.

use std::collections::BTreeSet;
use std::sync::Mutex;

use futures_util::future::join_all;
use serde_json::json;

use super::codes::chain;
use super::events::event;
use super::manifests;
use super::scene::{LOCK, Scene};
use super::{Case, bare};
use crate::harness::Backend;
use crate::harness::door::{Call, Reply};
use crate::harness::process::Process;

/// Callers at once.
const CALLERS: usize = 64;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        storm("CH-041 CH-045", "64 callers get 120 through, and add one line", extension_rate),
        storm("CH-046", "64 callers of three extensions get 300 through", lock_rate),
        storm("CH-052", "64 callers get at most 60 requests for choices through", options_rate),
        storm("CH-018 CH-017", "64 callers with one key have it run once", one_key),
        storm("CH-018", "64 callers with eight keys have each run once", eight_keys),
        storm("", "who reads on while 64 callers emit misses nothing", reading_on),
        storm("CH-056 CH-058", "64 callers get no chain past its eighth link", chains),
    ]
}

/// A case that is tried in some random orders; on an emulator, where the network makes one, once.
fn storm<R>(clauses: &'static str, name: &'static str, run: fn(Storm) -> R) -> Case
where
    R: Future<Output = ()> + 'static,
{
    let tried = bare(clauses, name, move |backend: Backend| async move {
        let seeds = if backend == Backend::Dynamo { 1..2 } else { 1..5 };
        for seed in seeds {
            run(Storm::new(backend, seed).await).await;
        }
    });
    tried.on_dynamo()
}

struct Storm {
    scene: Scene,
    other: Process,
    random: Mutex<u64>,
}

impl Storm {
    /// `a`, `b` and `c` on [`LOCK`].
    async fn new(backend: Backend, seed: u64) -> Self {
        let mut scene = Scene::new(backend).await;
        scene.join("c", &manifests::caller("c")).await;
        scene.install("c", LOCK).await;
        scene.calm().await;
        scene.world.site.gate.shuffle(seed);
        Self { other: scene.another(), scene, random: Mutex::new(seed) }
    }

    /// A number below this one.
    fn below(&self, most: usize) -> usize {
        let mut seed = self.random.lock().expect("no holder of the lock panics");
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
        usize::try_from(*seed >> 33).expect("31 bits") % most
    }

    /// All callers do something again and again, each through one of the processes; answers what they were answered.
    async fn each(&self, times: usize, call: impl Fn(usize) -> Call) -> Vec<Reply> {
        let routers = [self.scene.world.process.router(), self.other.router()];
        let call = &call;
        let caller = |number: usize| async move {
            let mut replies = Vec::new();
            for _ in 0..times {
                replies.push(call(number).send(routers[number % 2]).await);
            }
            replies
        };
        join_all((0..CALLERS).map(caller)).await.into_iter().flatten().collect()
    }

    /// Something that counts, and needs no place at a target.
    fn something(&self, slug: &str) -> Call {
        match self.below(3) {
            0 => self.scene.request(slug, "POST /events", &event(&format!("{slug}.quiet"), 1)),
            1 => self.scene.request(slug, "POST /commands/b.none", &json!({})),
            _ => self.scene.request(slug, "POST /queries/nobody.get", &json!({})),
        }
    }
}

fn passed(replies: &[Reply]) -> usize {
    replies.iter().filter(|reply| reply.status != 429).count()
}

async fn extension_rate(storm: Storm) {
    let replies = storm.each(3, |_| storm.something("a")).await;
    assert_eq!((replies.len(), passed(&replies)), (192, 120));
    for reply in replies.iter().filter(|reply| reply.status == 429) {
        super::scene::limited(reply, "extension", 300);
    }
    assert_eq!(storm.scene.lines("b", "extension_blocked").await.len(), 1);
}

async fn lock_rate(storm: Storm) {
    let slugs = ["a", "b", "c"];
    let replies = storm.each(7, |number| storm.something(slugs[number % 3])).await;
    assert_eq!((replies.len(), passed(&replies)), (448, 300));
}

async fn options_rate(storm: Storm) {
    storm
        .scene
        .partners
        .answer("b.colors", super::partners::Answer::output(&json!({ "options": [] })));
    let body = json!({ "id": "b.choose", "field": "color" });
    let replies = storm.each(2, |_| storm.scene.request("a", "POST /options", &body)).await;
    let passed = passed(&replies);
    // What one process has reserved, the other cannot use.
    assert!((59..=60).contains(&passed), "{passed} of {}", replies.len());
    assert!(storm.scene.partners.received("b.colors").len() <= 2);
}

/// The ids of the records in some answers; those that had no place at the target have none.
fn ids(replies: &[Reply]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for reply in replies {
        match reply.status.as_u16() {
            201 | 202 => found.insert(reply.body["id"].to_string()),
            409 | 503 => false,
            other => panic!("{other}: {}", reply.body),
        };
    }
    found
}

async fn one_key(storm: Storm) {
    let body = json!({ "idempotencyKey": "k", "input": 1 });
    let commands = ["POST /commands/b.run", "POST /commands/b.other"];
    let replies =
        storm.each(1, |number| storm.scene.request("a", commands[number / 2 % 2], &body)).await;
    assert_eq!(ids(&replies).len(), 1);
    let told = storm.scene.partners.take();
    assert_eq!(told.len(), 1, "{told:?}");
    // A repeat needs no place among the calls of the target.
    let busy = replies.iter().filter(|reply| reply.status == 503).count();
    assert_eq!(busy, 0, "of {CALLERS}");
    let ran = told[0].word();
    let conflicts = replies.iter().filter(|reply| reply.status == 409).count();
    assert!(conflicts <= CALLERS / 2, "{conflicts} conflicts");
    for id in ["b.run", "b.other"] {
        let reply = storm.scene.command("a", id, body.clone()).await;
        assert_eq!(reply.status, if id == ran { 201 } else { 409 }, "{}", reply.body);
    }
    assert_eq!(storm.scene.partners.count(), 0);
}

async fn eight_keys(storm: Storm) {
    let body = |number: usize| json!({ "idempotencyKey": format!("k{}", number / 2 % 8) });
    let replies = storm
        .each(1, |number| storm.scene.request("a", "POST /commands/b.run", &body(number)))
        .await;
    assert!(ids(&replies).len() <= 8);
    let told = storm.scene.partners.take();
    let keys: BTreeSet<String> =
        told.iter().map(|told| told.data["idempotencyKey"].to_string()).collect();
    assert_eq!(told.len(), keys.len(), "no key ran twice");
    assert_eq!(keys.len(), ids(&replies).len());
}

/// The ids of the events after one, as `b` reads them.
async fn after(storm: &Storm, last: &str) -> Vec<String> {
    let path = match last {
        "" => "GET /events".to_owned(),
        last => format!("GET /events?after={last}"),
    };
    let reply = storm.scene.ask("b", &path, &json!({})).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let events = reply.body["results"].as_array().expect("a list").iter();
    events.map(|event| event["id"].as_str().expect("an event has an id").to_owned()).collect()
}

async fn reading_on(mut storm: Storm) {
    let wants = json!([{ "type": "a.done" }]);
    storm.scene.sync("b", &json!({ "subscriptions": wants })).await;
    storm.scene.calm().await;
    let emitting = storm.each(1, |number| {
        let n = u32::try_from(number).expect("it fits");
        storm.scene.request("a", "POST /events", &event("a.done", n))
    });
    let reading = async {
        let (mut seen, mut rounds) = (Vec::<String>::new(), 0);
        while seen.len() < CALLERS && rounds < 10_000 {
            let last = seen.last().cloned().unwrap_or_default();
            seen.extend(after(&storm, &last).await);
            rounds += 1;
            tokio::task::yield_now().await;
        }
        seen
    };
    let (replies, seen) = futures_util::future::join(emitting, reading).await;
    assert!(replies.iter().all(|reply| reply.status == 201), "{:?}", replies[0].body);
    let all = after(&storm, "").await;
    assert_eq!((all.len(), &seen), (CALLERS, &all));
    storm.scene.settle().await;
    let told = storm.scene.partners.received("b:event.emitted");
    let told: Vec<_> = told.iter().filter_map(|told| told.data["event"]["id"].as_str()).collect();
    assert_eq!(told, all, "the order of the webhooks");
}

async fn chains(storm: Storm) {
    let (scene, storm) = (&storm.scene, &storm);
    let known = Mutex::new(Vec::new());
    for links in 1..=6 {
        let last = chain(scene, links).await;
        known.lock().expect("free").push((last, links as u64));
    }
    scene.next_minute();
    let routers = [scene.world.process.router(), storm.other.router()];
    let refused = Mutex::new(0);
    let caller = |number: usize| {
        let (known, refused) = (&known, &refused);
        async move {
            for _ in 0..3 {
                // Of two, the deeper one: chains grow.
                let (cause, depth) = {
                    let known = known.lock().expect("free");
                    let two = [storm.below(known.len()), storm.below(known.len())];
                    let two = two.map(|n| known[n].clone());
                    two.into_iter().max_by_key(|(_, depth)| *depth).expect("two")
                };
                let slug = ["a", "b"][number % 2];
                let call = match storm.below(3) {
                    0 => {
                        let mut body = event(&format!("{slug}.done"), 1);
                        body["causationId"] = json!(cause);
                        scene.request(slug, "POST /events", &body)
                    }
                    _ => {
                        let body = json!({ "causationId": cause });
                        let to = ["b", "a"][number % 2];
                        scene.request(slug, &format!("POST /commands/{to}.run"), &body)
                    }
                };
                let reply = call.send(routers[number / 2 % 2]).await;
                check_link(&reply, depth, known, refused);
            }
        }
    };
    join_all((0..CALLERS).map(caller)).await;
    assert!(0 < refused.into_inner().expect("free"), "no chain came to its end");
    for told in scene.partners.take() {
        assert!(told.data["depth"].as_u64().is_some_and(|depth| depth <= 8), "{told:?}");
    }
}

fn check_link(
    reply: &Reply,
    depth: u64,
    known: &Mutex<Vec<(String, u64)>>,
    refused: &Mutex<usize>,
) {
    match (reply.status.as_u16(), reply.body["code"].as_str()) {
        (201, _) => {
            assert!(depth < 8, "a ninth link: {}", reply.body);
            assert_eq!(reply.body["depth"], depth + 1);
            let id = reply.body["id"].as_str().unwrap_or_default().to_owned();
            known.lock().expect("free").push((id, depth + 1));
        }
        (422, Some("depth-exceeded")) => {
            assert_eq!(depth, 8, "too early");
            *refused.lock().expect("free") += 1;
        }
        (503, Some("partner-busy")) => {}
        _ => panic!("{}: {}", reply.status, reply.body),
    }
}
