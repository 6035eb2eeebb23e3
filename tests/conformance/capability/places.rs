//! Places among the calls of a target that are under way: sixteen, over all processes.

use std::time::Duration;

use annex_core::limits::{CAPABILITY_LEASE, PARTNER_CALLS_MAX, QUICK_CALL};
use annex_core::ports::Query;
use serde_json::json;
use tokio::task::JoinSet;

use super::partners::Answer;
use super::scene::{Scene, refused_with};
use super::{Case, bare};
use crate::harness::Backend;
use crate::harness::door::{Call, Reply};
use crate::harness::process::Process;

/// Processes of a store that several may work on. Each has as many callers as it would let run by itself.
const PROCESSES: usize = 4;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        bare("CH-035 CH-036", "a target has 16 calls under way, over all processes", one_cap)
            .on_dynamo(),
        bare("CH-035", "the places of a process that is gone are free after 30 s", gone),
        bare("CH-035", "a target that answers within 100 ms costs no place in the store", quick)
            .on_dynamo(),
    ]
}

struct Crowd {
    scene: Scene,
    /// Beside the scene's own.
    others: Vec<Process>,
    is_shared: bool,
}

impl Crowd {
    /// `b.run` answers once the test lets go.
    async fn new(backend: Backend) -> Self {
        let scene = Scene::new(backend).await;
        scene.partners.answer("b.run", Answer::Echo.held());
        // A store whose writes and messages are one step has one process.
        let is_shared = !backend.is_atomic();
        let others = match is_shared {
            true => (1..PROCESSES).map(|_| scene.another()).collect(),
            false => Vec::new(),
        };
        Self { scene, others, is_shared }
    }

    fn call(&self) -> Call {
        self.scene.request("a", "POST /commands/b.run", &json!({}))
    }

    /// One caller, of the process with this number.
    async fn ask(&self, number: usize) -> Reply {
        let processes = self.others.len() + 1;
        let process = match number % processes {
            0 => &self.scene.world.process,
            other => &self.others[other - 1],
        };
        self.call().send(process.router()).await
    }

    /// Many callers at once.
    fn begin(&self, callers: usize) -> JoinSet<Reply> {
        let own = &self.scene.world.process;
        let routers: Vec<_> = [own].into_iter().chain(&self.others).map(Process::router).collect();
        let begin = |number: usize| {
            let (router, call) = (routers[number % routers.len()].clone(), self.call());
            async move { call.send(&router).await }
        };
        (0..callers).map(begin).collect()
    }

    /// Places that are taken in the store.
    async fn taken(&self) -> usize {
        let all = Query::prefix("running#b", "");
        let page = self.scene.world.process.ports.store.query(all).await.expect("it can be read");
        page.items.len()
    }

    fn calls(&self) -> usize {
        self.scene.world.site.gate.calls().len()
    }
}

#[track_caller]
fn busy(reply: &Reply) {
    refused_with(reply, 503, "partner-busy", json!({ "retryAfterSeconds": 1 }));
}

async fn one_cap(backend: Backend) {
    let crowd = Crowd::new(backend).await;
    let callers = PROCESSES * PARTNER_CALLS_MAX;
    let mut running = crowd.begin(callers);
    // Whoever is not let in is told so while the others run.
    for _ in PARTNER_CALLS_MAX..callers {
        busy(&running.join_next().await.expect("there are more").expect("no call panics"));
    }
    crowd.scene.partners.held(PARTNER_CALLS_MAX).await;
    assert_eq!(crowd.taken().await, if crowd.is_shared { PARTNER_CALLS_MAX } else { 0 });
    for number in 0..PROCESSES {
        busy(&crowd.ask(number).await);
    }
    crowd.scene.partners.let_go();
    let mut succeeded = 0;
    while let Some(reply) = running.join_next().await {
        assert_eq!(reply.expect("no call panics").status, 201);
        succeeded += 1;
    }
    assert_eq!((succeeded, crowd.taken().await), (PARTNER_CALLS_MAX, 0));
    assert_eq!(crowd.ask(1).await.status, 201);
    assert_eq!(crowd.scene.partners.received("b.run").len(), PARTNER_CALLS_MAX + 1);
}

async fn gone(backend: Backend) {
    let crowd = Crowd::new(backend).await;
    let _running = crowd.begin(PARTNER_CALLS_MAX);
    crowd.scene.partners.held(PARTNER_CALLS_MAX).await;
    for process in [&crowd.scene.world.process].into_iter().chain(&crowd.others) {
        process.life.end();
    }
    crowd.scene.partners.let_go();
    let next = crowd.scene.another();
    if crowd.is_shared {
        crowd.scene.pass_millis(u64::try_from(CAPABILITY_LEASE.as_millis()).expect("small") - 1);
        busy(&crowd.call().send(next.router()).await);
        crowd.scene.pass_millis(1);
    }
    // Otherwise the places were of the process alone, and went with it.
    assert_eq!(crowd.call().send(next.router()).await.status, 201);
}

async fn quick(backend: Backend) {
    let crowd = Crowd::new(backend).await;
    crowd.scene.partners.let_go();
    let mut cost = Vec::new();
    let almost = QUICK_CALL - Duration::from_millis(1);
    // The first one reads what is remembered from then on.
    for took in [QUICK_CALL, almost, QUICK_CALL, almost] {
        let took = u64::try_from(took.as_millis()).expect("small");
        crowd.scene.partners.answer("b.run", Answer::Echo.after_millis(took));
        let before = crowd.calls();
        assert_eq!(crowd.ask(0).await.status, 201);
        cost.push(crowd.calls() - before);
        assert_eq!(crowd.taken().await, 0);
    }
    // One to look, one to take the place and one to give it back.
    let place = if crowd.is_shared { 3 } else { 0 };
    let [_, first, second, third] = cost[..] else { unreachable!() };
    assert_eq!((first, third), (second + place, second + place), "{cost:?}");
}
