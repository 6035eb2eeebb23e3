//! The ports of Annex on AWS.

pub mod metrics;
