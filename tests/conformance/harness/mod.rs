//! The only code of the conformance tests that knows the platform's API.

mod backend;
pub(crate) mod bindings;
mod callers;
pub(crate) mod case;
pub(crate) mod crash;
pub(crate) mod disorder;
pub(crate) mod door;
mod ended;
mod expect;
pub(crate) mod extension;
pub(crate) mod gate;
pub(crate) mod process;
mod queues;
mod schema;
mod steps;
mod survive;
mod tap;
mod wire;
pub(crate) mod world;

pub(crate) use backend::Backend;

use case::Case;
use process::Processes;
use world::World;

/// Runs a case; the text says what is not as it says.
pub(crate) async fn run(case: &Case, backend: Backend) -> Result<(), String> {
    let mut world = World::new(backend, Processes::One).await;
    world.set_up(case).await.map_err(|error| format!("set-up: {error}"))?;
    for (number, step) in case.steps.iter().enumerate() {
        let at = |error| format!("step {number}: {error}");
        world.step(step).await.map_err(at)?;
        if let Some(expected) = &step.deliveries {
            world.check_deliveries(expected).map_err(at)?;
        }
    }
    world.settle().await?;
    world.check_end(case).await
}
