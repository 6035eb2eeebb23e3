//! How a Lambda function starts, and how it takes its events.
//!
//! [`start()`] reads the settings and builds the clients, once per process; the [`Lambda`] it answers gives the ports and
//! serves one kind of event until the process is ended. **Invariant:** nothing is decided here that is not about Lambda,
//! and every event from outside is read leniently where it may be and refused where it may not: none ends the process.

mod batch;
mod direct;
mod fresh;
mod http;
mod log;
#[cfg(test)]
mod published;
mod queue;
mod request;
mod response;
mod schedule;
mod settings;
mod start;

pub use self::fresh::RING_AGE_MAX;
pub use self::log::log;
pub use self::settings::{REFUSALS_FILED_EVERY, Settings};
pub use self::start::{Lambda, start};

/// What a function ends with that cannot start, and answers an event with that it cannot read.
pub type Error = lambda_runtime::Error;
