//! A function behind a queue: batches in, the messages that come back out.

use std::sync::Arc;
use std::time::Duration;

use annex_core::limits;
use annex_core::ports::{Handler, Message, Undone};
use futures_util::future::join_all;
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::value::RawValue;

use super::Error;
use super::batch::{Batch, BatchAnswer};

/// Longest visibility timeout (SQS).
const HIDDEN_MAX: Duration = Duration::from_secs(12 * 3600);

/// A function behind a queue.
#[derive(Clone)]
pub(crate) struct Worker {
    /// What works on the messages.
    pub handler: Arc<dyn Handler>,
    /// The queue they come from.
    pub source: Source,
}

/// The queue that messages come from, to put them off.
#[derive(Clone)]
pub(crate) struct Source {
    /// The client.
    pub sqs: aws_sdk_sqs::Client,
    /// The queue's URL.
    pub url: String,
}

impl Worker {
    /// Works on a batch, and answers which of its messages come back.
    pub(crate) async fn work(&self, event: &RawValue) -> Result<BatchAnswer, Error> {
        let batch = Batch::read(event)?;
        let undone = self.handler.handle(batch.messages.clone()).await;
        let put_off = undone.into_iter().map(|undone| self.put_off(&batch, undone));
        let back = join_all(put_off).await.into_iter().flatten();
        Ok(BatchAnswer::new(batch.malformed.iter().cloned().chain(back)))
    }

    /// Sees to it that a message comes back when it may; answers its id where that is by not being done.
    async fn put_off(&self, batch: &Batch, undone: Undone) -> Option<String> {
        let Undone { id, retry_after, counts } = undone;
        let Some(after) = retry_after else { return Some(id) };
        let message = batch.messages.iter().find(|message| message.id == id);
        // SQS counts every receive. What is not to count is sent anew, and then this message is done.
        if !counts
            && let Some(message) = message
            && self.source.send_again(message, after).await
        {
            return None;
        }
        if let Some(receipt) = batch.receipt(&id) {
            self.source.hide(receipt, after).await;
        }
        Some(id)
    }
}

impl Source {
    async fn send_again(&self, message: &Message, after: Duration) -> bool {
        let delay = after.min(limits::QUEUE_DELAY_MAX).as_secs();
        let sent = self
            .sqs
            .send_message()
            .queue_url(&self.url)
            .message_body(&message.body)
            .delay_seconds(i32::try_from(delay).unwrap_or(0))
            .send()
            .await;
        if let Err(error) = &sent {
            tracing::warn!(message.id, source = ?error, "a message could not be sent again");
        }
        sent.is_ok()
    }

    /// Hides a message for so long. Where that fails, it comes back when its visibility ends.
    async fn hide(&self, receipt: &str, after: Duration) {
        let seconds = after.min(HIDDEN_MAX).as_secs();
        let hidden = self
            .sqs
            .change_message_visibility()
            .queue_url(&self.url)
            .receipt_handle(receipt)
            .visibility_timeout(i32::try_from(seconds).unwrap_or(0))
            .send()
            .await;
        if let Err(error) = hidden {
            tracing::warn!(source = ?error, "a message could not be put off");
        }
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
