//! The dead letters of the SQS queues.

use annex_core::limits::QUEUE_BATCH_MAX;
use annex_core::ports::{DeadLetter, DeadLetters, Outage, QueueName};
use async_trait::async_trait;
use aws_sdk_sqs::types::{
    ChangeMessageVisibilityBatchRequestEntry, DeleteMessageBatchRequestEntry, Message,
};
use std::time::Duration;

use crate::Clients;
use crate::outage::outage;
use crate::queues::{Queues, Sendable, deliver};

/// How long a letter is hidden while it is listed or redriven, in seconds.
const HIDDEN_SECS: i32 = 60;

/// Seconds that a receive waits. Only a receive that waits asks every server of SQS.
const WAIT_SECS: i32 = 1;

/// Dead letters in SQS queues of their own.
#[derive(Debug, Clone)]
pub struct SqsDeadLetters {
    sqs: aws_sdk_sqs::Client,
    queues: Queues,
}

impl SqsDeadLetters {
    /// The dead letters of these queues.
    pub fn new(clients: &Clients, queues: Queues) -> Self {
        Self { sqs: clients.sqs.clone(), queues }
    }

    /// Up to a batch of letters, hidden from others.
    async fn receive(&self, url: &str, most: usize) -> Result<Vec<Message>, Outage> {
        let most = i32::try_from(most.min(QUEUE_BATCH_MAX)).expect("a batch is small");
        let answer = self
            .sqs
            .receive_message()
            .queue_url(url)
            .max_number_of_messages(most)
            .visibility_timeout(HIDDEN_SECS)
            .wait_time_seconds(WAIT_SECS)
            .send()
            .await
            .map_err(|error| outage("dead letters cannot be received", error))?;
        Ok(answer.messages.unwrap_or_default())
    }

    /// Shows letters again. Where that fails they show up by themselves, a little later.
    async fn release(&self, url: &str, letters: &[Message]) {
        for letters in letters.chunks(QUEUE_BATCH_MAX) {
            let entries = letters.iter().enumerate().map(|(index, letter)| {
                ChangeMessageVisibilityBatchRequestEntry::builder()
                    .id(index.to_string())
                    .receipt_handle(letter.receipt_handle().unwrap_or_default())
                    .visibility_timeout(0)
                    .build()
                    .expect("an entry has an id and a receipt")
            });
            let request = self.sqs.change_message_visibility_batch().queue_url(url);
            if let Err(error) = request.set_entries(Some(entries.collect())).send().await {
                let error = outage("the visibility cannot be changed", error);
                tracing::warn!(%error, "dead letters stay hidden for {HIDDEN_SECS} s");
            }
        }
    }

    async fn delete(&self, url: &str, letters: &[Message]) -> Result<(), Outage> {
        let entries = letters.iter().enumerate().map(|(index, letter)| {
            DeleteMessageBatchRequestEntry::builder()
                .id(index.to_string())
                .receipt_handle(letter.receipt_handle().unwrap_or_default())
                .build()
                .expect("an entry has an id and a receipt")
        });
        let request = self.sqs.delete_message_batch().queue_url(url);
        let answer = request
            .set_entries(Some(entries.collect()))
            .send()
            .await
            .map_err(|error| outage("redriven letters cannot be deleted", error))?;
        if answer.failed().is_empty() {
            return Ok(());
        }
        Err(Outage::new(format!("redriven letters cannot be deleted: {:?}", answer.failed())))
    }
}

#[async_trait]
impl DeadLetters for SqsDeadLetters {
    async fn list(&self, queue: QueueName, limit: usize) -> Result<Vec<DeadLetter>, Outage> {
        let url = self.queues.dead_letters_url(queue)?;
        let mut letters: Vec<Message> = Vec::new();
        while letters.len() < limit {
            match self.receive(url, limit - letters.len()).await {
                Ok(more) if more.is_empty() => break,
                Ok(more) => letters.extend(more),
                Err(outage) => {
                    self.release(url, &letters).await;
                    return Err(outage);
                }
            }
        }
        self.release(url, &letters).await;
        let letter = |letter: Message| DeadLetter {
            id: letter.message_id.unwrap_or_default(),
            body: letter.body.unwrap_or_default(),
            // SQS counts the receives of each queue by itself.
            receives: None,
        };
        Ok(letters.into_iter().map(letter).collect())
    }

    async fn redrive(&self, queue: QueueName, limit: usize) -> Result<usize, Outage> {
        let (source, dead) = (self.queues.url(queue)?, self.queues.dead_letters_url(queue)?);
        let mut redriven = 0;
        while redriven < limit {
            let mut letters = self.receive(dead, limit - redriven).await?;
            if letters.is_empty() {
                break;
            }
            let messages = letters
                .iter()
                .map(|letter| {
                    Sendable::new(letter.body().unwrap_or_default().to_owned(), Duration::ZERO)
                })
                .collect::<Result<Vec<_>, _>>()?;
            let unsent = deliver(&self.sqs, source, &messages).await;
            let mut index = 0;
            letters.retain(|_| {
                index += 1;
                !unsent.iter().any(|(failed, _)| *failed == index - 1)
            });
            // Sent first: what stops between the two sends a letter twice, and loses none.
            if !letters.is_empty() {
                self.delete(dead, &letters).await?;
            }
            redriven += letters.len();
            if let Some((_, outage)) = unsent.into_iter().next() {
                return Err(outage);
            }
        }
        Ok(redriven)
    }
}
