//! Death at every commit: a scenario is a case whose first step is what a client does. The process dies before or after
//! one of its commits, another one starts, the client that got no answer asks again, and everything happens that is
//! still to come. Then the promises must hold: the answer is what the step says, every message that the extension got
//! is one that it gets without a death, errors and usage are recorded once, nothing is published twice, and there are
//! no dead letters.

use std::collections::BTreeSet;

use serde_json::Value;

use super::case::Case;
use super::tap::Death;
use super::world::{Backend, World};

/// Runs a scenario without a death, and then once for each commit and way to die; answers how many those were.
pub(crate) async fn run(scenario: &Case, backend: Backend) -> Result<u64, String> {
    let (commits, whole) = survive(scenario, backend, None).await?;
    let mut points = 0;
    for at in 0..commits {
        for death in [Death::Before, Death::After] {
            let here = |error| format!("{death:?} commit {at}: {error}");
            let (_, got) = survive(scenario, backend, Some((at, death))).await.map_err(here)?;
            if got != whole {
                return Err(here(format!("the extension got {got:#?}, not {whole:#?}")));
            }
            points += 1;
        }
    }
    if points == 0 { Err("the scenario commits nothing".to_owned()) } else { Ok(points) }
}

/// One run. Answers how many commits there were without a death, and the different messages that were delivered.
async fn survive(
    scenario: &Case,
    backend: Backend,
    death: Option<(u64, Death)>,
) -> Result<(u64, BTreeSet<String>), String> {
    let mut world = World::new(backend);
    world.set_up(scenario).await?;
    world.restart(death);
    let tap = world.process.tap.clone();
    let died = tokio::select! {
        biased;
        () = tap.died() => true,
        done = live(&mut world, scenario) => { done?; false }
    };
    if died != death.is_some() {
        return Err(format!("died: {died}"));
    }
    let commits = tap.commits();
    if died {
        world.restart(None);
    }
    world.settle().await?;
    if let Some(first) = scenario.steps.first() {
        world.step(first).await.map_err(|error| format!("the client asks again: {error}"))?;
    }
    for step in &scenario.steps[1..] {
        world.step(step).await?;
    }
    world.settle().await?;
    world.check_records(scenario).await?;
    check_published(&world.process.tap.sent())?;
    Ok((commits, delivered(&mut world)?))
}

/// What happens unless the process dies.
async fn live(world: &mut World, scenario: &Case) -> Result<(), String> {
    if let Some(first) = scenario.steps.first() {
        // What it answers is looked at when it is asked again: a call that waits has another answer then.
        let _answer = world.step(first).await;
    }
    world.settle().await
}

/// Each occurrence of a continuation, an event or a report was sent once.
fn check_published(sent: &[String]) -> Result<(), String> {
    let mut claims = BTreeSet::new();
    for body in sent {
        let job: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
        if let Some(claim) = job["start"]["claim"].as_str()
            && !claims.insert(claim.to_owned())
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
