//! How a function answers a batch of SQS messages: message by message.

use std::time::Duration;

use annex_core::limits::{LEASE, QUEUE_BATCH_MAX, QUEUE_DELAY_MAX};
use annex_core::ports::{Handler, Message, Undone};
use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use aws_sdk_sqs::types::ChangeMessageVisibilityBatchRequestEntry;

use super::send::{Sendable, deliver, whole_secs};
use crate::Clients;

/// Longest that a message can stay hidden (SQS).
const VISIBILITY_MAX: Duration = Duration::from_secs(43_200);

/// Feeds the batches of one queue to a [`Handler`], and answers which messages come back.
#[derive(Debug, Clone)]
pub struct QueueConsumer {
    sqs: aws_sdk_sqs::Client,
    url: String,
}

impl QueueConsumer {
    /// A consumer of the queue of this URL: the one that feeds the function.
    pub fn new(clients: &Clients, url: impl Into<String>) -> Self {
        Self { sqs: clients.sqs.clone(), url: url.into() }
    }

    /// Works on a batch. The event source must have `ReportBatchItemFailures`: what is not in the answer is deleted.
    ///
    /// A message that failed comes back when it asked to. One that only waits for its turn is replaced by a copy,
    /// because SQS would count the receive towards the dead letters.
    pub async fn run(&self, handler: &dyn Handler, event: SqsEvent) -> SqsBatchResponse {
        let mut answer = SqsBatchResponse::default();
        let Some(records) = event.records.into_iter().map(Record::read).collect::<Option<Vec<_>>>()
        else {
            // A failure without a name returns the whole batch, which loses nothing.
            tracing::error!("a message without an id: the batch comes back");
            answer.add_failure("");
            return answer;
        };
        let batch = records.iter().map(Record::message).collect();
        let mut undone = handler.handle(batch).await;
        // A name that is not in the batch would return all of it.
        undone.retain(|undone| records.iter().any(|record| record.id == undone.id));
        let (failed, waiting): (Vec<Undone>, Vec<Undone>) =
            undone.into_iter().partition(|undone| undone.counts);
        self.delay(&records, &failed).await;
        failed.into_iter().for_each(|undone| answer.add_failure(undone.id));
        for id in self.replace(&records, &waiting).await {
            answer.add_failure(id);
        }
        answer
    }

    /// Sets when failed messages come back. Where that fails, they come back when their visibility ends.
    async fn delay(&self, records: &[Record], failed: &[Undone]) {
        let entries: Vec<_> = failed
            .iter()
            .enumerate()
            .filter_map(|(index, undone)| {
                let after = undone.retry_after?.min(VISIBILITY_MAX);
                let record = records.iter().find(|record| record.id == undone.id)?;
                let entry = ChangeMessageVisibilityBatchRequestEntry::builder()
                    .id(index.to_string())
                    .receipt_handle(record.receipt.clone()?)
                    .visibility_timeout(whole_secs(after));
                Some(entry.build().expect("an entry has an id and a receipt"))
            })
            .collect();
        for entries in entries.chunks(QUEUE_BATCH_MAX) {
            let request = self.sqs.change_message_visibility_batch().queue_url(&self.url);
            match request.set_entries(Some(entries.to_vec())).send().await {
                Ok(answer) if answer.failed().is_empty() => {}
                Ok(answer) => tracing::warn!(failed = ?answer.failed(), "messages keep their time"),
                Err(error) => {
                    let error = crate::outage::outage("the visibility cannot be changed", error);
                    tracing::warn!(%error, "messages keep their time");
                }
            }
        }
    }

    /// Sends a copy of each message that waits. Answers the ids of those for which that failed.
    async fn replace(&self, records: &[Record], waiting: &[Undone]) -> Vec<String> {
        let copies: Vec<(&str, Option<Sendable>)> = waiting
            .iter()
            .map(|undone| {
                let record = records.iter().find(|record| record.id == undone.id);
                let delay = undone.retry_after.unwrap_or(LEASE).min(QUEUE_DELAY_MAX);
                let copy = record.and_then(|record| Sendable::new(record.body.clone(), delay).ok());
                (undone.id.as_str(), copy)
            })
            .collect();
        let (sendable, mut failed): (Vec<_>, Vec<_>) =
            copies.into_iter().partition(|(_, copy)| copy.is_some());
        let (ids, messages): (Vec<&str>, Vec<Sendable>) =
            sendable.into_iter().filter_map(|(id, copy)| Some((id, copy?))).unzip();
        for (index, outage) in deliver(&self.sqs, &self.url, &messages).await {
            tracing::warn!(error = %outage, "a message that waits could not be replaced");
            failed.push((ids[index], None));
        }
        failed.into_iter().map(|(id, _)| id.to_owned()).collect()
    }
}

/// A message of a batch, as far as it is needed.
struct Record {
    id: String,
    receipt: Option<String>,
    body: String,
    receives: u32,
}

impl Record {
    fn read(message: SqsMessage) -> Option<Self> {
        let receives = message.attributes.get("ApproximateReceiveCount");
        Some(Self {
            id: message.message_id.filter(|id| !id.is_empty())?,
            receipt: message.receipt_handle,
            body: message.body.unwrap_or_default(),
            receives: receives.and_then(|count| count.parse().ok()).unwrap_or(1),
        })
    }

    fn message(&self) -> Message {
        Message { id: self.id.clone(), body: self.body.clone(), receives: self.receives }
    }
}
