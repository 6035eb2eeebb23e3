//! Signed gzip webhooks: what is sent, when it is sent again, and what the answer means.

pub mod answer;
pub mod message;
#[cfg(test)]
mod published;
pub mod retry;
pub mod wire;
