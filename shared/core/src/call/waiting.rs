//! The messages that have outboxes of capability extensions drained.

use std::time::Duration;

use crate::capability::outbox::{self, Drained, Place};
use crate::ids::ExtensionName;
use crate::limits::DELIVERIES_PER_EXTENSION_MAX;
use crate::ports::{Outage, Outgoing, QueueName};

use super::Calls;
use super::job::Job;
use super::run::send;
use super::start::Worked;

/// The message that has an outbox drained after a time; `entry` is the sort key of one that is due then.
pub(crate) fn deliver_message(
    place: &Place,
    entry: Option<String>,
    queue: QueueName,
    delay: Duration,
) -> Outgoing {
    send(queue, &Job::Deliver { place: place.clone(), entry }, delay)
}

impl Calls {
    /// Drains an outbox, unless the extension's other outboxes take all of its places already.
    pub(super) async fn deliver_waiting(
        &self,
        place: &Place,
        entry: Option<&str>,
    ) -> Result<Worked, Outage> {
        // Names are unique over both kinds of extensions.
        let name = ExtensionName::parse(place.extension.as_str());
        let name = name.map_err(|fault| Outage::new(fault.message))?;
        let Some(_slot) = self.inner.slots.take(&name, DELIVERIES_PER_EXTENSION_MAX) else {
            return Ok(Worked::Later(Duration::from_secs(1)));
        };
        Ok(match outbox::drain(self.ports(), self.capabilities(), place, entry).await? {
            Drained::Done => Worked::Done,
            Drained::Again(after) => Worked::Later(after),
        })
    }
}
