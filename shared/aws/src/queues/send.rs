//! Sending: in batches as large as SQS takes, again where SQS took only a part.

use std::time::Duration;

use annex_core::limits::{MESSAGE_BYTES_MAX, QUEUE_BATCH_MAX};
use annex_core::ports::{Outage, Outgoing, QueueName};
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;

use super::Queues;
use super::text::sendable;
use crate::backoff::{ATTEMPTS_MAX, pause};
use crate::outage::outage;

/// Bytes of all bodies of one batch (SQS).
const BATCH_BYTES_MAX: usize = MESSAGE_BYTES_MAX;

/// A message as SQS takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sendable {
    pub(crate) body: String,
    pub(crate) delay_secs: i32,
}

impl Sendable {
    /// A message of this body. Refuses one that is too large once what SQS refuses is escaped.
    pub(crate) fn new(body: String, delay: Duration) -> Result<Self, Outage> {
        let body = sendable(body);
        if MESSAGE_BYTES_MAX < body.len() {
            let size = body.len();
            let what =
                format!("{size} bytes of a message, at most {MESSAGE_BYTES_MAX} are possible");
            return Err(Outage::new(what));
        }
        Ok(Self { body, delay_secs: whole_secs(delay) })
    }
}

/// Seconds of a duration, rounded up: what waits must not come early.
pub(crate) fn whole_secs(duration: Duration) -> i32 {
    i32::try_from(duration.as_nanos().div_ceil(1_000_000_000)).unwrap_or(i32::MAX)
}

/// The messages of a commit by queue, in order, ready to be sent. Refuses all where one cannot be sent.
pub(crate) fn prepare(sends: Vec<Outgoing>) -> Result<Vec<(QueueName, Vec<Sendable>)>, Outage> {
    let mut queues: Vec<(QueueName, Vec<Sendable>)> = Vec::new();
    for send in sends {
        let message = Sendable::new(send.body, send.delay)?;
        match queues.iter_mut().find(|(queue, _)| *queue == send.queue) {
            Some((_, messages)) => messages.push(message),
            None => queues.push((send.queue, vec![message])),
        }
    }
    Ok(queues)
}

/// Sends to the queues of the platform.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    sqs: aws_sdk_sqs::Client,
    queues: Queues,
}

impl Sender {
    pub(crate) fn new(sqs: aws_sdk_sqs::Client, queues: Queues) -> Self {
        Self { sqs, queues }
    }

    /// Whether these queues can be reached at all: asked before anything is written.
    pub(crate) fn check(&self, queues: &[(QueueName, Vec<Sendable>)]) -> Result<(), Outage> {
        queues.iter().try_for_each(|(queue, _)| self.queues.url(*queue).map(drop))
    }

    /// Sends everything, or fails; then some of it may have been sent.
    pub(crate) async fn send(&self, queues: Vec<(QueueName, Vec<Sendable>)>) -> Result<(), Outage> {
        for (queue, messages) in queues {
            let unsent = deliver(&self.sqs, self.queues.url(queue)?, &messages).await;
            if let Some((_, outage)) = unsent.into_iter().next() {
                return Err(outage);
            }
        }
        Ok(())
    }
}

/// Sends messages to the queue of this URL, batch by batch. Answers which were not sent, and why.
pub(crate) async fn deliver(
    sqs: &aws_sdk_sqs::Client,
    url: &str,
    messages: &[Sendable],
) -> Vec<(usize, Outage)> {
    let mut unsent = Vec::new();
    for batch in batches(messages) {
        unsent.extend(deliver_batch(sqs, url, messages, batch.collect()).await);
    }
    unsent
}

/// Cuts messages into batches: as many as fit each, in order.
fn batches(messages: &[Sendable]) -> Vec<std::ops::Range<usize>> {
    let mut batches = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (index, message) in messages.iter().enumerate() {
        let is_full = index - start == QUEUE_BATCH_MAX
            || (start < index && BATCH_BYTES_MAX < bytes + message.body.len());
        if is_full {
            batches.push(start..index);
            (start, bytes) = (index, 0);
        }
        bytes += message.body.len();
    }
    if start < messages.len() {
        batches.push(start..messages.len());
    }
    batches
}

async fn deliver_batch(
    sqs: &aws_sdk_sqs::Client,
    url: &str,
    messages: &[Sendable],
    mut waiting: Vec<usize>,
) -> Vec<(usize, Outage)> {
    let mut refused = Vec::new();
    let mut failed = 1;
    loop {
        let (again, refused_now) = match attempt(sqs, url, messages, &waiting).await {
            Ok(failures) => failures.into_iter().partition(|failure| !failure.is_final),
            Err(outage) => {
                // The SDK has tried again already what can be tried again.
                let text = outage.what.clone();
                refused.push((waiting[0], outage));
                refused.extend(waiting[1..].iter().map(|&index| (index, Outage::new(&text))));
                return refused;
            }
        };
        let lost = |failures: Vec<Failure>| {
            failures.into_iter().map(|failure| (failure.index, Outage::new(failure.why)))
        };
        refused.extend(lost(refused_now));
        if again.is_empty() || ATTEMPTS_MAX <= failed {
            refused.extend(lost(again));
            return refused;
        }
        waiting = again.into_iter().map(|failure| failure.index).collect();
        pause(failed).await;
        failed += 1;
    }
}

/// A message that SQS did not take.
struct Failure {
    index: usize,
    why: String,
    /// Whether the message itself is at fault, so that another attempt changes nothing.
    is_final: bool,
}

async fn attempt(
    sqs: &aws_sdk_sqs::Client,
    url: &str,
    messages: &[Sendable],
    waiting: &[usize],
) -> Result<Vec<Failure>, Outage> {
    let entries = waiting.iter().map(|&index| {
        SendMessageBatchRequestEntry::builder()
            .id(index.to_string())
            .message_body(&messages[index].body)
            .delay_seconds(messages[index].delay_secs)
            .build()
            .expect("an entry has an id and a body")
    });
    let answer = sqs
        .send_message_batch()
        .queue_url(url)
        .set_entries(Some(entries.collect()))
        .send()
        .await
        .map_err(|error| outage("messages cannot be sent", error))?;
    let sent: Vec<&str> = answer.successful().iter().map(|entry| entry.id()).collect();
    // What the answer does not name at all was not sent as far as anybody knows.
    let failures = waiting.iter().filter(|index| !sent.contains(&index.to_string().as_str()));
    Ok(failures
        .map(|&index| {
            let id = index.to_string();
            let entry = answer.failed().iter().find(|entry| entry.id() == id);
            let (code, text) = entry.map_or(("unknown", ""), |entry| {
                (entry.code(), entry.message().unwrap_or_default())
            });
            Failure {
                index,
                why: format!("a message cannot be sent: {code}: {text}"),
                is_final: entry.is_some_and(|entry| entry.sender_fault()),
            }
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(size: usize) -> Sendable {
        Sendable { body: "x".repeat(size), delay_secs: 0 }
    }

    #[test]
    fn a_batch_has_at_most_10_messages_and_1_mib() {
        let half = BATCH_BYTES_MAX / 2;
        for (sizes, expected) in [
            (vec![], vec![]),
            (vec![1; 10], vec![10]),
            (vec![1; 11], vec![10, 1]),
            (vec![half, half], vec![2]),
            (vec![half, half + 1], vec![1, 1]),
            (vec![BATCH_BYTES_MAX, 1, BATCH_BYTES_MAX], vec![1, 1, 1]),
        ] {
            let messages: Vec<Sendable> = sizes.iter().map(|&size| message(size)).collect();
            let batches = batches(&messages);
            let lengths: Vec<usize> = batches.iter().map(ExactSizeIterator::len).collect();
            assert_eq!(lengths, expected, "{sizes:?}");
            let all: Vec<usize> = batches.into_iter().flatten().collect();
            assert_eq!(all, (0..sizes.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_delay_is_rounded_up_to_whole_seconds() {
        for (millis, secs) in [(0, 0), (1, 1), (1000, 1), (899_001, 900), (900_000, 900)] {
            assert_eq!(whole_secs(Duration::from_millis(millis)), secs);
        }
        assert_eq!(whole_secs(Duration::MAX), i32::MAX);
    }

    #[test]
    fn a_message_that_grows_too_large_by_its_escapes_is_refused() {
        let grown = |chars: usize| {
            let body = format!("{}\u{ffff}", "x".repeat(chars));
            Sendable::new(body, Duration::ZERO).map(|message| message.body.len())
        };
        assert_eq!(grown(MESSAGE_BYTES_MAX - 6).unwrap(), MESSAGE_BYTES_MAX);
        assert!(grown(MESSAGE_BYTES_MAX - 5).is_err());
    }

    #[test]
    fn messages_of_a_commit_keep_their_order_within_each_queue() {
        let send = |queue, body: &str| Outgoing {
            queue,
            body: body.to_owned(),
            delay: Duration::from_millis(1),
        };
        let sends = vec![
            send(QueueName::Resume, "1"),
            send(QueueName::Meter, "2"),
            send(QueueName::Resume, "3"),
        ];
        let message = |body: &str| Sendable { body: body.to_owned(), delay_secs: 1 };
        let expected = [
            (QueueName::Resume, vec![message("1"), message("3")]),
            (QueueName::Meter, vec![message("2")]),
        ];
        assert_eq!(prepare(sends).unwrap(), expected);
    }
}
