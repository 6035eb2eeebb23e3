//! What dies and starts again: one process for all functions, or, as on AWS, one that callers reach and one that runs
//! calls and takes messages.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use annex_core::call::{CallSettings, Calls, Claimed, Launcher, Reply};
use annex_core::limits::TELEMETRY_RETENTION;
use annex_core::ports::{Blobs, Outage, Ports, Store};
use annex_core::telemetry::Telemetry;
use annex_core::testkit::ManualClock;
use async_trait::async_trait;
use axum::Router;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::backend::Backing;
use super::gate::{Fault, Gate, Life};
use super::tap::{Machine, Tap};

/// Which processes there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Processes {
    /// One for everything.
    One,
    /// One that is called, and one that runs calls. Whether its death is noticed by who waits for its answer.
    Two {
        /// Where not, who waits waits as long as it may.
        noticed: bool,
    },
}

/// What a process consists of.
pub(crate) struct Process {
    pub(crate) life: Life,
    pub(crate) ports: Ports,
    pub(crate) calls: Calls,
    pub(crate) telemetry: Telemetry,
    router: OnceLock<Router>,
}

impl Process {
    /// The way in.
    pub(crate) fn router(&self) -> &Router {
        self.router.get_or_init(|| {
            let settings = api::Settings { public_url: "http://127.0.0.1:8080".to_owned() };
            api::router(api::App {
                ports: self.ports.clone(),
                calls: self.calls.clone(),
                telemetry: self.telemetry.clone(),
                settings: Arc::new(settings),
            })
        })
    }
}

/// What processes start from.
pub(crate) struct Site {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) machine: Arc<Machine>,
    pub(crate) backing: Backing,
    /// The ports that never die; its store and blobs stand for those of the harness itself.
    pub(crate) ports: Ports,
    pub(crate) processes: Processes,
    pub(crate) epoch: AtomicU64,
    worker: Mutex<Option<Arc<Process>>>,
    running: Mutex<Vec<JoinHandle<()>>>,
}

impl Site {
    pub(crate) fn new(
        clock: Arc<ManualClock>,
        machine: (Arc<Gate>, Arc<Machine>),
        backing: Backing,
        ports: Ports,
        processes: Processes,
    ) -> Arc<Self> {
        let (gate, machine) = machine;
        Arc::new(Self {
            clock,
            gate,
            machine,
            backing,
            ports,
            processes,
            epoch: AtomicU64::new(1),
            worker: Mutex::default(),
            running: Mutex::default(),
        })
    }

    /// A process that callers reach.
    pub(crate) fn start(self: &Arc<Self>) -> Process {
        let life = Life::new();
        let launcher: Arc<dyn Launcher> = match self.processes {
            Processes::One => Arc::new(dispatch::InProcess),
            Processes::Two { noticed } => {
                Arc::new(Across { site: self.clone(), life: life.clone(), noticed })
            }
        };
        self.process(life, launcher)
    }

    /// The process that runs calls; a new one where the last one has died. `None`: there is only the one.
    pub(crate) fn worker(self: &Arc<Self>) -> Option<Arc<Process>> {
        if self.processes == Processes::One {
            return None;
        }
        let mut worker = self.worker.lock().expect("no holder of the lock panics");
        if let Some(worker) = worker.as_ref().filter(|worker| !worker.life.is_over()) {
            return Some(worker.clone());
        }
        let new = self.process(Life::new(), Arc::new(dispatch::InProcess));
        Some(worker.insert(Arc::new(new)).clone())
    }

    /// The process that runs calls ends.
    pub(crate) fn end_worker(&self) {
        if let Some(worker) = self.worker.lock().expect("no holder of the lock panics").take() {
            worker.life.end();
        }
    }

    /// Waits for the calls that were handed over: they end, or their process has died.
    pub(crate) async fn quiet(&self) {
        loop {
            let next = self.running.lock().expect("no holder of the lock panics").pop();
            let Some(next) = next else { return };
            next.await.expect("no run of a call panics");
        }
    }

    fn process(self: &Arc<Self>, life: Life, launcher: Arc<dyn Launcher>) -> Process {
        let (items, blobs) = self.backing.adapters(&self.clock, &self.gate, &life);
        let machine = self.machine.clone();
        let epoch = self.epoch.load(Ordering::Relaxed);
        let wired = self.backing.is_wired();
        let tap = Arc::new(Tap { machine, life: life.clone(), items, blobs, wired, epoch });
        let (store, blobs): (Arc<dyn Store>, Arc<dyn Blobs>) = (tap.clone(), tap);
        let ports = Ports { store, blobs, ..self.ports.clone() };
        let calls = Calls::new(ports.clone(), launcher, CallSettings::default());
        let telemetry = Telemetry::new(ports.clone(), calls.clone(), TELEMETRY_RETENTION);
        Process { life, ports, calls, telemetry, router: OnceLock::new() }
    }
}

/// Hands calls to the other process, as text.
struct Across {
    site: Arc<Site>,
    life: Life,
    noticed: bool,
}

/// Why a run has no answer.
enum Silence {
    Died,
    Failed(Outage),
}

impl Across {
    /// Starts a run in the other process, which goes on whatever becomes of this one.
    fn run(&self, text: String) -> oneshot::Receiver<Result<String, Silence>> {
        let worker = self.site.worker().expect("there are two processes");
        let (sender, receiver) = oneshot::channel();
        let run = async move {
            let answer = tokio::select! {
                biased;
                () = worker.life.ended() => Err(Silence::Died),
                answer = worker.calls.run_text(&text) => answer.map_err(Silence::Failed),
            };
            let _nobody_waits = sender.send(answer);
        };
        let handle = tokio::spawn(run);
        self.site.running.lock().expect("no holder of the lock panics").push(handle);
        receiver
    }
}

#[async_trait]
impl Launcher for Across {
    async fn launch(
        &self,
        calls: &Calls,
        claimed: Claimed,
        wait: Duration,
    ) -> Option<Result<Reply, Outage>> {
        self.life.goes_on().await;
        let fault = self.site.gate.count("invoke");
        match fault {
            Some(Fault::DieBefore) => self.life.die().await,
            Some(Fault::FailBefore | Fault::Throttle) => {
                return Some(Err(Outage::new("told to fail: invoke")));
            }
            _ => {}
        }
        let answer = self.run(claimed.to_text());
        match fault {
            Some(Fault::DieAfter) => self.life.die().await,
            Some(Fault::FailAfter | Fault::Late) => {
                self.site.clock.advance(wait);
                return None;
            }
            _ => {}
        }
        match answer.await.expect("a run does not panic") {
            Ok(text) => Some(calls.reply_of(&claimed, &text).await),
            Err(Silence::Failed(outage)) => Some(Err(outage)),
            Err(Silence::Died) if self.noticed => Some(Err(Outage::new("a run has died"))),
            Err(Silence::Died) => {
                self.site.clock.advance(wait);
                None
            }
        }
    }
}
