//! Telemetry: events come in through an organization's adapters, are kept and searched, and make rules call extensions.
//!
//! An adapter is a record of hive `cloud_sensor` of type `webhook` and an installation key (LC-115 to LC-118). Whoever
//! knows its secret may post events to `/hook/{oid}/{adapter}/{secret}`. An event is stored byte for byte inside an
//! envelope (see [`envelope`]), and what the rules of the organization ask for leaves in the same commit.

pub mod adapter;
pub mod body;
pub mod envelope;
pub mod installation_keys;
mod receive;
mod rules;
mod search;

use std::time::Duration;

use crate::call::Calls;
use crate::ports::Ports;

pub use receive::{Delivery, Received};
pub use search::{EventPage, EventQuery};

/// The telemetry of organizations.
#[derive(Clone)]
pub struct Telemetry {
    ports: Ports,
    calls: Calls,
    retention: Duration,
    rules: rules::Parsed,
}

impl Telemetry {
    /// Over these ports; events are kept for `retention` ([`crate::limits::TELEMETRY_RETENTION`] unless set
    /// otherwise), and rules call through `calls`.
    pub fn new(ports: Ports, calls: Calls, retention: Duration) -> Self {
        Self { ports, calls, retention, rules: rules::Parsed::new() }
    }

    /// The ports it works on.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }
}

#[cfg(test)]
mod tests;
