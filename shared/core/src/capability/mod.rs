//! Capability extensions: commands, queries and events between extensions on one scope (the Chaster contract).
//!
//! An [`Extension`](model::Extension) declares in its manifest what others may call and what it emits; a
//! [`Session`](model::Session) is its install on one lock. The wire beyond the contract's own page is this platform's
//! profile of it, see `docs/capability-extensions.md`.

pub mod availability;
pub mod calls;
pub mod compiled;
pub mod events;
pub mod extensions;
pub mod history;
pub mod id;
pub mod link;
mod listing;
pub mod locks;
pub mod manifest;
pub mod members;
mod message;
pub mod model;
pub mod operations;
mod options;
pub mod outbox;
pub mod rate;
pub mod refusal;
pub mod schema;
mod service;
pub mod sessions;
pub mod view;

pub use self::service::{Capabilities, Known};
