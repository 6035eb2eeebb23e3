//! The only way out of Annex: HTTP to checked addresses.
//!
//! [`address`] and [`target`] hold the rules and touch nothing; [`resolve`] and [`connect`] carry them out on the
//! network; [`webhook`] is the client that extensions are called through, [`vendor`] the one that vendors are.

pub mod address;
pub mod auth;
pub mod call;
pub mod connect;
pub mod draft;
pub mod form;
pub mod hmac;
pub mod hosts;
pub mod multipart;
pub mod nonces;
pub mod placeholder;
pub mod request;
pub mod resolve;
pub mod sign;
pub mod standard_webhooks;
pub mod target;
pub mod vendor;
pub mod webhook;

mod body;
mod failure;
mod known;
mod policy;
mod tls;
mod url_rules;

pub use policy::{CertificateDer, Policy};
pub use resolve::{Resolve, ResolveFault, SystemResolver};
pub use tls::BadRoot;
pub use vendor::VendorClient;
pub use webhook::WebhookClient;
