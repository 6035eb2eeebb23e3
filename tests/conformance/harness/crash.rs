//! Everything that may go wrong in a scenario, one thing at a time: a death, a fault of the backend, queues that deliver
//! as they like, and what was remembered having expired.

use std::collections::BTreeMap;
use std::time::Duration;

use annex_core::limits::{RECORD_RETENTION, REMOVED_INSTALL_GRACE, SLOW_RETRY_WINDOW};

use super::backend::Backend;
use super::case::Case;
use super::disorder::Disorder;
use super::gate::Fault;
use super::process::Processes;
use super::survive::{Client, Outcome, Trouble, survive};

/// What is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A death before and after each call of the backend.
    Crash,
    /// Each call of the backend fails, is throttled or comes late.
    Fault,
    /// Messages come twice, in another order, late.
    Disorder,
    /// Everything that was remembered has expired.
    Expiry,
}

impl Subject {
    /// Its name in the name of a trial.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Fault => "fault",
            Self::Disorder => "disorder",
            Self::Expiry => "expiry",
        }
    }
}

/// The processes of a world on a backend.
fn processes(backend: Backend) -> Processes {
    if backend.is_atomic() { Processes::One } else { Processes::Two { noticed: true } }
}

/// Tries a subject on a scenario; answers how many runs in which something went wrong those were.
pub(crate) async fn run(
    scenario: &Case,
    backend: Backend,
    subject: Subject,
) -> Result<usize, String> {
    let usual = Trouble::none(processes(backend));
    let whole = survive(scenario, backend, usual).await?;
    if whole.calls.is_empty() {
        return Err("the scenario calls no backend".to_owned());
    }
    let troubles = match subject {
        Subject::Crash => deaths(backend, usual, &whole),
        // A refusal is what the SDK answers to both, and tries again.
        Subject::Fault if backend == Backend::Dynamo => {
            at_each(usual, whole.calls.len(), &[Fault::FailAfter, Fault::Throttle]).collect()
        }
        Subject::Fault => at_each(usual, whole.calls.len(), Fault::OUTAGES).collect(),
        Subject::Disorder => {
            let trouble = |&disorder: &Disorder| {
                // A call that is to be tried again later is given up after some hours, and that is reported.
                let given_up = scenario.sheds_load() && SLOW_RETRY_WINDOW < disorder.delay();
                Trouble { disorder, only_ends: given_up, ..usual }
            };
            // The order of messages is the harness' doing; that they come again is for the store to notice.
            let tried = |disorder: &&Disorder| backend != Backend::Dynamo || disorder.repeats();
            // The data of a deleted organization waits an hour for what is under way, and no longer.
            let in_time = |disorder: &&Disorder| {
                scenario.gone.is_empty() || disorder.delays_at_most(REMOVED_INSTALL_GRACE)
            };
            Disorder::ALL.iter().filter(tried).filter(in_time).map(trouble).collect()
        }
        Subject::Expiry => return expire(scenario, backend, usual, &whole).await,
    };
    for trouble in &troubles {
        let at = trouble.fault.and_then(|(at, _)| whole.calls.get(at));
        let here = |error| format!("{trouble:?} ({at:?}): {error}");
        let outcome = survive(scenario, backend, *trouble).await.map_err(here)?;
        // An event is named by the time at which it happened.
        let same = match scenario.steps[0].call {
            Some(_) => outcome.delivered == whole.delivered,
            None => messages_without_keys(&outcome) == messages_without_keys(&whole),
        };
        if !same {
            let (got, want) = (outcome.delivered, &whole.delivered);
            return Err(here(format!("the extension got {got:#?}, not {want:#?}")));
        }
    }
    Ok(troubles.len())
}

fn at_each(usual: Trouble, calls: usize, faults: &[Fault]) -> impl Iterator<Item = Trouble> {
    let at =
        move |at| faults.iter().map(move |&fault| Trouble { fault: Some((at, fault)), ..usual });
    (0..calls).flat_map(at)
}

fn deaths(backend: Backend, usual: Trouble, whole: &Outcome) -> Vec<Trouble> {
    let mut troubles: Vec<Trouble> = at_each(usual, whole.calls.len(), Fault::DEATHS).collect();
    // What the client does, and how a run is waited for, has nothing to do with the adapter.
    if backend != Backend::TwoStep {
        return troubles;
    }
    // Once the client has its answer, it makes no difference what it would have done without.
    let reads = Trouble { client: Client::Reads, ..usual };
    let unnoticed = Trouble { processes: Processes::Two { noticed: false }, ..usual };
    troubles.extend(at_each(reads, whole.before_answer, Fault::DEATHS));
    troubles.extend(at_each(unnoticed, whole.before_answer, Fault::DEATHS));
    troubles
}

/// Once everything that was remembered of a request has expired, and still lies there, it is a new one.
async fn expire(
    scenario: &Case,
    backend: Backend,
    usual: Trouble,
    whole: &Outcome,
) -> Result<usize, String> {
    if scenario.steps[0].call.is_none() {
        // What is not named by a key is not remembered either.
        return Ok(0);
    }
    let mut twice = scenario.clone();
    twice.usage = scenario.usage.iter().map(|(sku, value)| (sku.clone(), 2 * value)).collect();
    let after = [Duration::from_millis(1), Duration::from_secs(48 * 3600)];
    for after in after {
        let later = RECORD_RETENTION + LONGEST + after;
        let trouble = Trouble { later: Some(later), ..usual };
        let outcome = survive(&twice, backend, trouble).await;
        let outcome = outcome.map_err(|error| format!("after {later:?}: {error}"))?;
        if messages_without_keys(&outcome) != messages_without_keys(whole) {
            let (got, want) = (outcome.delivered, &whole.delivered);
            return Err(format!("after {later:?}: the extension got {got:#?}, not {want:#?}"));
        }
    }
    Ok(after.len())
}

/// Longest that a scenario lasts.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// How often each message was delivered, whatever its key.
fn messages_without_keys(outcome: &Outcome) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for text in &outcome.delivered {
        let mut message: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        message["idempotency_key"] = serde_json::Value::Null;
        *counts.entry(message.to_string()).or_default() += 1;
    }
    counts
}
