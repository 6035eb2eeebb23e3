//! One run of a scenario in which something goes wrong. A scenario is a case whose first step is what a client does, and
//! these promises must hold at its end: whatever was accepted has ended, once; the answer is what the first step says;
//! every message that the extension got is one that it gets when nothing goes wrong; errors and usage are recorded once;
//! there are no dead letters.

use std::collections::BTreeSet;
use std::time::Duration;

use annex_core::ports::Scan;
use serde_json::Value;

use super::backend::Backend;
use super::case::{Case, Step};
use super::disorder::Disorder;
use super::door::{Call, Reply};
use super::ended::is_ended;
use super::gate::Fault;
use super::process::Processes;
use super::queues::VISIBILITY;
use super::world::World;

/// Times that a client asks before it gives up.
const ASKS_MAX: usize = 4;

/// What a client does that got no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    /// It sends its request again, with its key, until it has an answer, and nothing after that.
    Asks,
    /// It reads the record from time to time.
    Reads,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trouble {
    pub(crate) processes: Processes,
    pub(crate) fault: Option<(usize, Fault)>,
    pub(crate) client: Client,
    pub(crate) disorder: Disorder,
    /// So much time passes afterwards, and the client asks anew: whatever was remembered has expired.
    pub(crate) later: Option<Duration>,
    /// How it ends does not matter.
    pub(crate) only_ends: bool,
}

impl Trouble {
    /// Nothing.
    pub(crate) const fn none(processes: Processes) -> Self {
        let client = Client::Asks;
        Self {
            processes,
            fault: None,
            client,
            disorder: Disorder::None,
            later: None,
            only_ends: false,
        }
    }
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The calls of the backend.
    pub(crate) calls: Vec<String>,
    /// How many of them were made before the client had its answer.
    pub(crate) before_answer: usize,
    /// The different messages that were delivered.
    pub(crate) delivered: BTreeSet<String>,
}

/// Runs a scenario.
pub(crate) async fn survive(
    scenario: &Case,
    backend: Backend,
    trouble: Trouble,
) -> Result<Outcome, String> {
    let mut world = World::new(backend, trouble.processes).await;
    world.set_up(scenario).await.map_err(|error| format!("set-up: {error}"))?;
    let first = scenario.steps.first().ok_or("a scenario has a first step")?;
    world.site.machine.disorder(trouble.disorder);
    world.side_by_side = trouble.disorder == Disorder::SideBySide;
    let (calls, before_answer) = world.live(first, trouble).await?;
    world.site.machine.disorder(Disorder::None);
    world.side_by_side = false;
    world.settle().await?;
    world.all_have_ended().await?;
    if trouble.only_ends {
        return Ok(Outcome { calls, before_answer, delivered: delivered(&mut world)? });
    }
    if let Some(later) = trouble.later {
        world.clock.advance(later);
        world.restart();
        world.extensions.take();
        world.live(first, Trouble { fault: None, ..trouble }).await?;
        world.settle().await?;
        world.all_have_ended().await?;
    }
    if is_request(first) {
        world.step(first).await.map_err(|error| format!("the client asks again: {error}"))?;
    }
    for step in &scenario.steps[1..] {
        world.step(step).await?;
    }
    world.settle().await?;
    if let Some(twice) = world.site.machine.ended().twice() {
        return Err(twice.to_owned());
    }
    world.check_records(scenario).await?;
    // A schedule that runs again sends again; what it sends is claimed once.
    let sent_once = backend.is_atomic() && is_request(first);
    if sent_once && trouble.disorder == Disorder::None && trouble.later.is_none() {
        check_published(&world.site.machine.sent())?;
    }
    Ok(Outcome { calls, before_answer, delivered: delivered(&mut world)? })
}

fn is_request(step: &Step) -> bool {
    step.call.is_some() || step.http.is_some()
}

impl World {
    /// What a client does, and everything that follows. Answers the calls of the backend, and how many of them came before
    /// the answer.
    async fn live(
        &mut self,
        first: &Step,
        trouble: Trouble,
    ) -> Result<(Vec<String>, usize), String> {
        let call = if is_request(first) { Some(self.request_of(first).await?) } else { None };
        self.site.gate.arm(trouble.fault);
        for asked in 0..ASKS_MAX {
            let answered = match &call {
                Some(call) => self.ask(call).await,
                None => self.act(first).await,
            };
            // Runs go on whether or not somebody waits for them.
            self.site.quiet().await;
            if answered || asked + 1 == ASKS_MAX {
                break;
            }
            // Nothing was accepted where there is no record to read.
            if trouble.client == Client::Reads && first.call.is_some() {
                let records = self.records().await?;
                if !records.is_empty() {
                    self.read_again_and_again(&records).await?;
                    break;
                }
            }
        }
        let before_answer = self.site.gate.calls().len();
        self.settle_alone().await?;
        let calls = self.site.gate.calls();
        if let Some((at, fault)) = trouble.fault
            && calls.len() <= at
        {
            return Err(format!("{fault:?} never came: there are {} calls", calls.len()));
        }
        self.site.gate.arm(None);
        Ok((calls, before_answer))
    }

    /// Sends a request; whether it has an answer that is worth one.
    async fn ask(&mut self, call: &Call) -> bool {
        let life = self.process.life.clone();
        let reply: Option<Reply> = tokio::select! {
            biased;
            reply = call.clone().send(self.process.router()) => Some(reply),
            () = life.ended() => None,
        };
        self.revive();
        // 502 is what an extension's failure is answered with.
        reply.is_some_and(|reply| !matches!(reply.status.as_u16(), 500 | 503))
    }

    /// Does a step that is no request; whether that went well.
    async fn act(&mut self, step: &Step) -> bool {
        let life = self.process.life.clone();
        let done = tokio::select! {
            biased;
            done = self.step(step) => Some(done.is_ok()),
            () = life.ended() => None,
        };
        self.revive();
        done == Some(true)
    }

    /// Lets everything happen, however often the one process dies meanwhile.
    pub(crate) async fn settle_alone(&mut self) -> Result<(), String> {
        loop {
            let life = self.process.life.clone();
            let settled = tokio::select! {
                biased;
                settled = self.settle() => Some(settled),
                () = life.ended() => None,
            };
            match settled {
                Some(settled) => return settled,
                None => self.revive(),
            }
        }
    }

    /// Starts a process anew that has died.
    pub(crate) fn revive(&mut self) {
        if self.process.life.is_over() {
            if self.site.processes == Processes::One {
                self.restart();
            } else {
                self.process = self.site.start();
            }
        }
    }

    /// Reads records now, and after their leases.
    async fn read_again_and_again(&mut self, records: &[Value]) -> Result<(), String> {
        let token = self.token("operator", "A").await?;
        for _ in 0..2 {
            for record in records {
                let text = |name: &str| record[name].as_str().unwrap_or_default();
                let path = format!("/v1/invocations/{}?oid={}", text("id"), text("oid"));
                let call = Call::new("GET", &path).token(&token);
                if !self.ask(&call).await {
                    self.ask(&call).await;
                }
                self.site.quiet().await;
            }
            self.clock.advance(VISIBILITY);
        }
        Ok(())
    }

    /// The records of all invocations, as they are stored.
    async fn records(&mut self) -> Result<Vec<Value>, String> {
        let (mut records, mut cursor) = (Vec::new(), None);
        loop {
            let scan = Scan { cursor, ..Scan::prefix("inv#") };
            let page = self.process.ports.store.scan(scan).await.map_err(|e| e.to_string())?;
            for (_, item) in page.items {
                records.push(serde_json::from_slice(&item.data).map_err(|e| e.to_string())?);
            }
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(records),
            }
        }
    }

    async fn all_have_ended(&mut self) -> Result<(), String> {
        match self.records().await?.iter().find(|record| !is_ended(record)) {
            Some(lost) => Err(format!("a call is lost: {lost}")),
            None => Ok(()),
        }
    }
}

/// Each occurrence of a continuation, an event or a report was sent once.
fn check_published(sent: &[String]) -> Result<(), String> {
    let mut claims = BTreeSet::new();
    for body in sent {
        let job: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
        let start = &job["start"];
        if let Some(claim) = start["claim"].as_str()
            && !claims.insert(format!("{claim} of {}", start["oid"]))
        {
            return Err(format!("{claim} was published twice"));
        }
    }
    Ok(())
}

/// The different messages that were delivered: without the token, which is made anew for each attempt, and without the
/// requests for a schema, which every process makes.
fn delivered(world: &mut World) -> Result<BTreeSet<String>, String> {
    let (found, faults) = world.extensions.take();
    if let Some(fault) = faults.first() {
        return Err(format!("a message that no extension accepts: {fault}"));
    }
    let messages = found.into_iter().filter(|found| found.message.get("schema_request").is_none());
    Ok(messages
        .map(|mut found| {
            for part in ["request", "event"] {
                if let Some(org) = found.message.get_mut(part).map(|part| &mut part["org"]) {
                    org["jwt"] = Value::Null;
                }
            }
            found.message.to_string()
        })
        .collect())
}
