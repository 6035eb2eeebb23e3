//! Where a process reaches its backend: every call is counted, and one of them may be disturbed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use annex_core::ports::Outage;
use annex_core::testkit::ManualClock;
use tokio::sync::watch;

/// How late an answer is that is late.
pub(crate) const LATE: Duration = Duration::from_secs(30);

/// What happens at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The process dies, and the call never reaches the backend.
    DieBefore,
    /// The call happens, and nobody is there any more to hear of it.
    DieAfter,
    /// It fails without effect.
    FailBefore,
    /// It happens, and its answer is lost.
    FailAfter,
    /// It is refused because there are too many.
    Throttle,
    /// It is answered late.
    Late,
}

impl Fault {
    /// Deaths.
    pub(crate) const DEATHS: &[Self] = &[Self::DieBefore, Self::DieAfter];
    /// What a process survives.
    pub(crate) const OUTAGES: &[Self] =
        &[Self::FailBefore, Self::FailAfter, Self::Throttle, Self::Late];
}

/// The life of one process.
#[derive(Debug, Clone)]
pub(crate) struct Life(Arc<watch::Sender<bool>>);

impl Life {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// The process dies.
    pub(crate) fn end(&self) {
        self.0.send_replace(true);
    }

    pub(crate) fn is_over(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the process has died.
    pub(crate) async fn ended(&self) {
        let mut over = self.0.subscribe();
        over.wait_for(|over| *over).await.expect("the sender lives as long as this");
    }

    /// Never comes back once the process is dead.
    pub(crate) async fn goes_on(&self) {
        if self.is_over() {
            std::future::pending::<()>().await;
        }
    }

    /// The process dies here.
    pub(crate) async fn die<T>(&self) -> T {
        self.end();
        std::future::pending().await
    }
}

#[derive(Debug, Default)]
struct State {
    calls: Vec<String>,
    plan: Option<(usize, Fault)>,
    /// Where the order in which calls go on is random: the last number.
    random: Option<u64>,
}

/// Counts the calls of all processes of a world, and says which is disturbed.
#[derive(Debug)]
pub(crate) struct Gate {
    clock: Arc<ManualClock>,
    state: Mutex<State>,
}

impl Gate {
    pub(crate) fn new(clock: Arc<ManualClock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }

    /// Counts anew, and disturbs the call of this number, counted from 0.
    pub(crate) fn arm(&self, plan: Option<(usize, Fault)>) {
        let mut state = self.state();
        *state = State { calls: Vec::new(), plan, random: state.random };
    }

    /// From now on calls go on in a random order.
    pub(crate) fn shuffle(&self, seed: u64) {
        self.state().random = Some(seed);
    }

    /// Others go on, for a random while.
    async fn others(&self) {
        let mut times = 0;
        if let Some(seed) = &mut self.state().random {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
            times = *seed >> 61;
        }
        for _ in 0..times {
            tokio::task::yield_now().await;
        }
    }

    /// What was called since then.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.state().calls.clone()
    }

    /// Counts a call; answers what happens at it.
    pub(crate) fn count(&self, what: &str) -> Option<Fault> {
        let mut state = self.state();
        let number = state.calls.len();
        state.calls.push(what.to_owned());
        state.plan.and_then(|(at, fault)| (at == number).then_some(fault))
    }

    /// The answer comes late.
    pub(crate) fn late(&self) {
        self.clock.advance(LATE);
    }

    /// A call of a port.
    pub(crate) async fn pass<T>(
        &self,
        life: &Life,
        what: &str,
        call: impl Future<Output = Result<T, Outage>> + Send,
    ) -> Result<T, Outage> {
        life.goes_on().await;
        let failed = || Outage::new(format!("told to fail: {what}"));
        match self.count(what) {
            None => {
                self.others().await;
                let answer = call.await;
                self.others().await;
                answer
            }
            Some(Fault::DieBefore) => life.die().await,
            Some(Fault::DieAfter) => {
                let _unheard = call.await;
                life.die().await
            }
            Some(Fault::FailBefore | Fault::Throttle) => Err(failed()),
            Some(Fault::FailAfter) => {
                let _unheard = call.await;
                Err(failed())
            }
            Some(Fault::Late) => {
                self.late();
                let answer = call.await;
                self.late();
                answer
            }
        }
    }
}
