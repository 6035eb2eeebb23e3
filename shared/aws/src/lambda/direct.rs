//! The two ways into dispatch: batches of its queue, and single calls whose caller waits.

use annex_core::call::Calls;
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::value::{RawValue, to_raw_value};

use super::Error;
use super::batch::Batch;
use super::queue::Worker;

/// Answers one event: a batch as such, and anything else as a call that was handed over.
async fn answer(worker: &Worker, calls: &Calls, event: &RawValue) -> Result<Box<RawValue>, Error> {
    if Batch::is_one(event) {
        return Ok(to_raw_value(&worker.work(event).await?)?);
    }
    worker.fresh.look().await;
    let returned = calls.run_text(event.get()).await.map_err(|outage| {
        // Why stands here alone: what the invoker gets is an answer like any other.
        tracing::error!(source = ?outage.source, "a call could not be run: {outage}");
        "a call could not be run"
    })?;
    Ok(RawValue::from_string(returned)?)
}

/// Serves batches and calls until the process is ended.
pub(crate) async fn run(worker: Worker, calls: Calls) -> Result<(), Error> {
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Box<RawValue>>| {
        let (worker, calls) = (worker.clone(), calls.clone());
        async move { answer(&worker, &calls, &event.payload).await }
    }))
    .await
}
