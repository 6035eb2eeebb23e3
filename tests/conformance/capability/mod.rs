//! Cases of capability extensions (the Chaster contract): what happens between partners on a lock, and over which
//! requests, so that each is a Rust function over a [`scene`](scene::Scene).

mod answers;
mod availability;
mod chains;
mod codes;
mod concurrency;
mod control;
mod crowds;
mod events;
mod keys;
mod manifests;
mod options;
mod order;
pub(crate) mod partners;
mod places;
mod rates;
mod records;
mod scene;
mod trouble;
mod webhooks;

use std::pin::Pin;
use std::sync::Arc;

use scene::Scene;

use crate::harness::Backend;

/// A case under way.
type Run = Pin<Box<dyn Future<Output = ()>>>;

/// A case.
pub(crate) struct Case {
    /// Ids of the clauses that it checks, with spaces between them; none where it is about what the contract leaves open.
    pub(crate) clauses: &'static str,
    pub(crate) name: &'static str,
    /// Whether it runs on an emulator too.
    pub(crate) on_dynamo: bool,
    pub(crate) run: Arc<dyn Fn(Backend) -> Run + Send + Sync>,
}

impl Case {
    /// It touches the store in ways of its own.
    fn on_dynamo(self) -> Self {
        Self { on_dynamo: true, ..self }
    }
}

/// A case in the usual scene: one process, `a` and `b` on one lock.
fn case<R>(clauses: &'static str, name: &'static str, run: fn(Scene) -> R) -> Case
where
    R: Future<Output = ()> + 'static,
{
    bare(clauses, name, move |backend| async move {
        let scene = Scene::new(backend).await;
        let partners = scene.partners.clone();
        run(scene).await;
        assert_eq!(partners.faults(), [""; 0], "what partners were sent is as it should be");
    })
}

/// A case that makes its scenes itself.
fn bare<R>(
    clauses: &'static str,
    name: &'static str,
    run: impl Fn(Backend) -> R + Send + Sync + 'static,
) -> Case
where
    R: Future<Output = ()> + 'static,
{
    let run = Arc::new(move |backend| -> Run { Box::pin(run(backend)) });
    Case { clauses, name, on_dynamo: false, run }
}

/// Every case. Those that touch the store in ways of their own run on an emulator too: counters, claims, ranges, leases.
pub(crate) fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for cases in [answers::cases(), availability::cases(), codes::cases(), control::cases()] {
        all.extend(cases);
    }
    all.extend(crowds::cases());
    all.extend(order::cases());
    all.extend(concurrency::cases());
    all.extend(places::cases());
    all.extend(trouble::cases());
    for cases in [
        chains::cases(),
        events::cases(),
        keys::cases(),
        options::cases(),
        rates::cases(),
        records::cases(),
        webhooks::cases(),
    ] {
        all.extend(cases.into_iter().map(Case::on_dynamo));
    }
    all
}
