//! Capability extensions: commands, queries and events between extensions on one scope (the Chaster contract).
//!
//! An [`Extension`](model::Extension) declares in its manifest what others may call and what it emits; a
//! [`Session`](model::Session) is its install on one lock. The wire beyond the contract's own page is this platform's
//! profile of it, see `docs/capability-extensions.md`.

pub mod availability;
pub mod compiled;
pub mod extensions;
pub mod history;
pub mod id;
pub mod locks;
pub mod manifest;
pub mod members;
pub mod model;
pub mod operations;
pub mod outbox;
pub mod refusal;
pub mod schema;
pub mod sessions;
pub mod view;
