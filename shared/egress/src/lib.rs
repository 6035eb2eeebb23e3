//! The only way out of Annex: HTTP to checked addresses.
//!
//! [`address`] and [`target`] hold the rules and touch nothing; [`resolve`] and [`connect`] carry them out on the
//! network; [`webhook`] is the client that extensions are called through.

pub mod address;
pub mod connect;
pub mod resolve;
pub mod target;
pub mod webhook;

mod body;
mod failure;
mod known;
mod policy;

pub use policy::{CertificateDer, Policy};
pub use resolve::{Resolve, ResolveFault, SystemResolver};
pub use webhook::{BadRoot, WebhookClient};
