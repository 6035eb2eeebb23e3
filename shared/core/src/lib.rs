//! The contracts of Annex and the life of a call.
//!
//! **Invariant:** nothing here reads a clock, the environment, a socket or a file; time, randomness and the outside
//! come through [`ports`]. **Invariant:** no engine, store or cloud type appears here. **Invariant:** what an answer
//! means is decided by pure functions that return what to do; thin shells do it.
//!
//! The modules in reading order: the numbers ([`limits`]), what a refusal looks like ([`fault`]), names and times, the
//! [`ports`], where things lie ([`keys`], [`model`], [`seal`]), and then one module for each promise.

mod cursor;
pub mod fault;
pub mod gzip;
pub mod ids;
pub mod json;
pub mod key_check;
pub mod keyring;
pub mod keys;
pub mod limits;
pub mod model;
pub mod ports;
pub mod profile;
pub mod remembered;
pub mod seal;
mod slots;
pub mod stored;
pub mod strict;
pub mod time;
pub mod trace;

pub mod auth;
pub mod extensions;
pub mod hive;
pub mod org_errors;
pub mod orgs;
pub mod usage;

pub mod call;
pub mod chain;
pub mod daily;
pub mod delivery;
pub mod meter;
pub mod redact;
pub mod reseal;
pub mod schema;

pub mod rules;
pub mod telemetry;

pub mod capability;

#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
