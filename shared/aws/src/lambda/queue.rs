//! A function behind a queue: batches in, the messages that come back out.

use std::sync::Arc;

use annex_core::ports::Handler;
use aws_lambda_events::sqs::SqsBatchResponse;
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::value::RawValue;

use super::Error;
use super::batch::Batch;
use super::fresh::Fresh;
use crate::QueueConsumer;

/// A function behind a queue.
#[derive(Clone)]
pub(crate) struct Worker {
    /// What works on the messages.
    pub handler: Arc<dyn Handler>,
    /// What answers a batch.
    pub consumer: QueueConsumer,
    /// What keeps the key ring up to date.
    pub fresh: Fresh,
}

impl Worker {
    /// Works on a batch, and answers which of its messages come back.
    pub(crate) async fn work(&self, event: &RawValue) -> Result<SqsBatchResponse, Error> {
        self.fresh.look().await;
        let batch = Batch::read(event)?;
        let mut answer = self.consumer.run(&*self.handler, batch.event).await;
        batch.malformed.into_iter().for_each(|id| answer.add_failure(id));
        Ok(answer)
    }
}

/// Serves batches until the process is ended.
pub(crate) async fn run(worker: Worker) -> Result<(), Error> {
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Box<RawValue>>| {
        let worker = worker.clone();
        async move { worker.work(&event.payload).await }
    }))
    .await
}
