//! SQS: which queues there are, how messages are sent, and how a function answers a batch.

mod consumer;
mod send;
mod text;

use annex_core::ports::{Outage, QueueName};

pub use self::consumer::QueueConsumer;
pub(crate) use self::send::{Sendable, Sender, deliver, prepare};

/// The addresses of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Its URL.
    pub url: String,
    /// The URL of the queue of its dead letters, where the function may reach it.
    pub dead_letters_url: Option<String>,
}

/// The queues that a function may reach; a function that sends to another one gets an [`Outage`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queues {
    /// Calls, events and error reports to deliver now.
    pub dispatch: Option<Queue>,
    /// What comes back later.
    pub resume: Option<Queue>,
    /// Usage reports.
    pub meter: Option<Queue>,
}

impl Queues {
    /// Reads `ANNEX_DISPATCH_QUEUE_URL` and `ANNEX_DISPATCH_DEAD_LETTERS_URL`, and the same for `RESUME` and `METER`.
    /// A variable that is unset or empty is a queue that the function may not reach.
    pub fn from_env() -> Self {
        Self::from_vars(|name| std::env::var(name).ok())
    }

    /// As [`Self::from_env`], from any source of variables.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Self {
        let var = |name: String| var(&name).filter(|value| !value.is_empty());
        let queue = |queue: QueueName| {
            let name = queue.name().to_ascii_uppercase();
            let url = var(format!("ANNEX_{name}_QUEUE_URL"))?;
            let dead_letters_url = var(format!("ANNEX_{name}_DEAD_LETTERS_URL"));
            Some(Queue { url, dead_letters_url })
        };
        Self {
            dispatch: queue(QueueName::Dispatch),
            resume: queue(QueueName::Resume),
            meter: queue(QueueName::Meter),
        }
    }

    /// The addresses of a queue.
    pub fn get(&self, queue: QueueName) -> Option<&Queue> {
        match queue {
            QueueName::Dispatch => self.dispatch.as_ref(),
            QueueName::Resume => self.resume.as_ref(),
            QueueName::Meter => self.meter.as_ref(),
        }
    }

    /// The URL of a queue.
    pub(crate) fn url(&self, queue: QueueName) -> Result<&str, Outage> {
        let found = self.get(queue).map(|queue| queue.url.as_str());
        found.ok_or_else(|| Outage::new(format!("no URL of the queue {} is set", queue.name())))
    }

    /// The URL of the queue of a queue's dead letters.
    pub(crate) fn dead_letters_url(&self, queue: QueueName) -> Result<&str, Outage> {
        let found = self.get(queue).and_then(|queue| queue.dead_letters_url.as_deref());
        let missing = || format!("no URL of the dead letters of {} is set", queue.name());
        found.ok_or_else(|| Outage::new(missing()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_read_from_variables_and_what_is_unset_or_empty_cannot_be_reached() {
        let queues = Queues::from_vars(|name| {
            let value = match name {
                "ANNEX_DISPATCH_QUEUE_URL" => "http://d",
                "ANNEX_DISPATCH_DEAD_LETTERS_URL" => "http://dd",
                "ANNEX_RESUME_QUEUE_URL" => "http://r",
                "ANNEX_METER_QUEUE_URL" => "",
                _ => return None,
            };
            Some(value.to_owned())
        });
        let dead = Some("http://dd".to_owned());
        let dispatch = Queue { url: "http://d".to_owned(), dead_letters_url: dead };
        let resume = Queue { url: "http://r".to_owned(), dead_letters_url: None };
        let expected = Queues { dispatch: Some(dispatch), resume: Some(resume), meter: None };
        assert_eq!(queues, expected);
        assert_eq!(queues.url(QueueName::Resume).unwrap(), "http://r");
        let failed = |result: Result<&str, Outage>| result.unwrap_err().what;
        assert_eq!(failed(queues.url(QueueName::Meter)), "no URL of the queue meter is set");
        assert_eq!(
            failed(queues.dead_letters_url(QueueName::Resume)),
            "no URL of the dead letters of resume is set"
        );
    }
}
