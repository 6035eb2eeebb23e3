//! What the tests of this package share: platforms to test, extensions that misbehave, and clients that ask.
//!
//! **Panics:** everything here panics where a test cannot go on.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

pub mod clauses;
pub mod client;
pub mod clock;
pub mod extension;
pub mod markdown;
pub mod platform;
pub mod process;
pub mod repository;
pub mod wait;
