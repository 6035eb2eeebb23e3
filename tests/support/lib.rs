//! What the tests of this package share.

pub mod clauses;
pub mod repository;
