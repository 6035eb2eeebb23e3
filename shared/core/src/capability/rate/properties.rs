//! No interleaving of callers in several processes lets one call too many through.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex as StdMutex};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::*;
use crate::ports::{Clock as _, Commit, Committed, Item, Key, Page, Query, Scan, ScanPage, Store};
use crate::testkit::{ManualClock, MemoryStore, ports};

const PROCESSES: usize = 3;
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// A store that lets others go first, before and after what it does, as often as a seed says.
struct Interleaved {
    inner: Arc<MemoryStore>,
    seed: StdMutex<u64>,
}

/// Lets everything else that is ready go on.
struct GiveWay(u64);

impl Future for GiveWay {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Interleaved {
    async fn give_way(&self) {
        let turns = {
            let mut seed = self.seed.lock().unwrap();
            *seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (*seed >> 33) % 5
        };
        GiveWay(turns).await;
    }
}

#[async_trait]
impl Store for Interleaved {
    async fn get(&self, key: &Key) -> Result<Option<Item>, Outage> {
        self.give_way().await;
        let found = self.inner.get(key).await;
        self.give_way().await;
        found
    }

    async fn query(&self, query: Query) -> Result<Page, Outage> {
        self.inner.query(query).await
    }

    async fn scan(&self, scan: Scan) -> Result<ScanPage, Outage> {
        self.inner.scan(scan).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, Outage> {
        self.give_way().await;
        let committed = self.inner.commit(commit).await;
        self.give_way().await;
        committed
    }

    async fn count(&self, count: Count) -> Result<Counted, Outage> {
        self.give_way().await;
        let counted = self.inner.count(count).await;
        self.give_way().await;
        counted
    }

    fn holds(&self) -> bool {
        true
    }

    fn atomic(&self) -> bool {
        true
    }

    fn epoch(&self) -> u64 {
        1
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// Calls at the same time: of which process and which extension.
    Calls(Vec<(usize, usize)>),
    /// Requests for choices at the same time.
    Choices(Vec<(usize, usize)>),
    /// So many milliseconds pass.
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // One extension calls more often than the others, so that it is blocked now and then.
    let extension = prop_oneof![4 => Just(0_usize), 1 => 1..NAMES.len()];
    let calls = prop::collection::vec((0..PROCESSES, extension), 1..=64);
    let calls = prop_oneof![
        3 => calls,
        1 => prop::collection::vec((0..PROCESSES, 0..NAMES.len()), 64..=96),
    ];
    let choices = prop::collection::vec((0..PROCESSES, 0..NAMES.len()), 1..=64);
    let wait = prop_oneof![
        2 => 0_u64..2_000,
        1 => prop::sample::select(vec![1, 20_000, 59_999, 60_000, 239_000, 299_999, 300_000]),
    ];
    let step = prop_oneof![
        6 => calls.prop_map(Step::Calls),
        1 => choices.prop_map(Step::Choices),
        3 => wait.prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..40)
}

/// What may have happened so far.
#[derive(Default)]
struct Model {
    /// What passed, by minute and extension.
    passed: HashMap<(i64, usize), u32>,
    /// What passed on the lock, by minute.
    on_lock: HashMap<i64, u32>,
    choices: HashMap<(i64, usize), u32>,
    /// Until when each extension is blocked.
    blocked: HashMap<usize, Timestamp>,
    blocks: usize,
}

impl Model {
    /// What calls at the same time have led to.
    fn calls(&mut self, now: Timestamp, taken: &[(usize, Result<(), Refusal>)]) -> TestCaseResult {
        let window = minute(now);
        let was_blocked = |model: &Self, extension| {
            model.blocked.get(&extension).copied().filter(|until| now < *until)
        };
        let before: Vec<_> = (0..NAMES.len()).map(|it| was_blocked(self, it)).collect();
        for (extension, _) in taken.iter().filter(|(_, taken)| taken.is_ok()) {
            prop_assert_eq!(before[*extension], None, "a call gets through in a block");
            *self.passed.entry((window, *extension)).or_default() += 1;
            *self.on_lock.entry(window).or_default() += 1;
        }
        let on_lock = self.on_lock.get(&window).copied().unwrap_or(0);
        prop_assert!(on_lock <= LOCK_RATE_MAX);
        for (extension, refusal) in
            taken.iter().filter_map(|(it, taken)| Some((*it, taken.as_ref().err()?)))
        {
            let passed = self.passed.get(&(window, extension)).copied().unwrap_or(0);
            prop_assert!(passed <= EXTENSION_RATE_MAX);
            if before[extension].is_none() && *refusal == blocked(now.plus(EXTENSION_BLOCK), now) {
                prop_assert_eq!(passed, EXTENSION_RATE_MAX, "blocked before the limit is reached");
                if was_blocked(self, extension).is_none() {
                    self.blocked.insert(extension, now.plus(EXTENSION_BLOCK));
                    self.blocks += 1;
                }
                continue;
            }
            let expected = match before[extension] {
                Some(until) => blocked(until, now),
                None => {
                    prop_assert_eq!(on_lock, LOCK_RATE_MAX, "refused before the lock is full");
                    limited(Bucket::Lock, window_end(now), now)
                }
            };
            prop_assert_eq!(refusal, &expected);
        }
        Ok(())
    }

    fn choices(
        &mut self,
        now: Timestamp,
        taken: &[(usize, Result<(), Refusal>)],
    ) -> TestCaseResult {
        for (caller, _) in taken.iter().filter(|(_, taken)| taken.is_ok()) {
            let passed = self.choices.entry((minute(now), *caller)).or_default();
            *passed += 1;
            prop_assert!(*passed <= OPTIONS_RATE_MAX);
        }
        for (caller, taken) in taken {
            let Err(refusal) = taken else { continue };
            let passed = self.choices.get(&(minute(now), *caller)).copied().unwrap_or(0);
            prop_assert_eq!(refusal, &limited(Bucket::Options, window_end(now), now));
            // Each of the other processes may keep one that was counted and is not used.
            prop_assert!(OPTIONS_RATE_MAX < passed + u32::try_from(PROCESSES).unwrap());
        }
        Ok(())
    }
}

async fn run(seed: u64, steps: Vec<Step>) -> TestCaseResult {
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_700_000_000_123)));
    let inner = Arc::new(MemoryStore::new(clock.clone()));
    let store = Arc::new(Interleaved { inner: inner.clone(), seed: StdMutex::new(seed) });
    let processes: Vec<Rates> =
        (1..=PROCESSES as u64).map(|n| Rates::new(ports(store.clone(), &clock, n))).collect();
    let oid = Oid::parse("8cbe27f4-0000-4000-8000-138cd51389cd").unwrap();
    let lock = LockId::parse("lock").unwrap();
    let slugs = NAMES.map(|name| Slug::parse(name).unwrap());
    let mut model = Model::default();
    for step in steps {
        let now = clock.now();
        match step {
            Step::Wait(millis) => clock.advance(Duration::from_millis(millis)),
            Step::Calls(calls) => {
                let calls = calls.into_iter().map(async |(process, extension)| {
                    (extension, processes[process].take(oid, &lock, &slugs[extension]).await)
                });
                model.calls(now, &join_all(calls).await)?;
            }
            Step::Choices(calls) => {
                let calls = calls.into_iter().map(async |(process, caller)| {
                    let chooser = Chooser::Extension(&slugs[caller]);
                    (caller, processes[process].take_options(oid, &lock, chooser).await)
                });
                model.choices(now, &join_all(calls).await)?;
            }
        }
        let history = Query::prefix(keys::history(oid, &lock), "");
        let lines = inner.query(history).await.unwrap().items.len();
        prop_assert_eq!(lines, model.blocks, "one line for each block");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    // CH-041, CH-042, CH-044, CH-045, CH-046, CH-047, CH-050, CH-052.
    #[test]
    fn no_interleaving_lets_one_call_too_many_through(seed in any::<u64>(), steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(run(seed, steps))?;
    }
}
