//! One call of untrusted code, and what it asks of the way out: `http_request`, `hmac`, `hmac_verify`.
//!
//! A [`Call`] is bound to its tenant, its install's hosts, its secrets and its tag; nothing that is asked of it can change
//! that. What it answers is JSON, errors included, with no secret in it.

mod answer;
mod content;
mod digest;
mod exchange;
mod keyed;
mod prepare;
mod transport;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use annex_core::redact::RedactionList;
use jiff::Timestamp;
use tokio::time::Instant;

use crate::draft::Nonces;
use crate::hosts::Hosts;
use crate::placeholder::Secrets;
use crate::request::HttpRequest;

pub use answer::{CallFault, HttpAnswer};
pub use content::{Document, Documents};
pub use transport::Transport;

/// HTTP requests of one call, every request that a digest auth sends included.
pub const REQUESTS_PER_CALL_MAX: usize = 25;

/// Documents that one call may read, those that are sent as bodies included.
pub const DOCUMENT_READS_PER_CALL_MAX: usize = 10;

/// What a call is bound to.
#[derive(Debug)]
pub struct Binding {
    /// Whose call it is: kept connections are never shared between tenants.
    pub tenant: String,
    /// The hosts that the install approved.
    pub hosts: Hosts,
    /// The secrets that the install requires, and the call's tag: [`Secrets::of_call`].
    pub secrets: Secrets,
    /// Whether private networks may be reached, and plain HTTP used.
    pub allow_private_networks: bool,
    /// How long the call may still take; no request outlives it (AL-166).
    pub time_left: Duration,
}

/// What a call uses of the process that it runs in.
#[derive(Clone)]
pub struct Outside {
    /// Sends requests.
    pub transport: Arc<dyn Transport>,
    /// The wall clock.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Random values.
    pub nonces: Arc<dyn Nonces>,
    /// The documents that the call may read, where it may read any.
    pub documents: Option<Arc<dyn Documents>>,
}

/// A running call.
pub struct Call {
    tenant: String,
    hosts: Hosts,
    secrets: Secrets,
    allow_private_networks: bool,
    deadline: Instant,
    outside: Outside,
    redactions: RedactionList,
    requests: AtomicUsize,
    document_reads: AtomicUsize,
    ended: AtomicBool,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("tenant", &self.tenant).finish_non_exhaustive()
    }
}

impl Call {
    /// The longest that any call takes: two minutes.
    pub const TIME_MAX: Duration = Duration::from_secs(120);

    /// Starts a call.
    pub fn new(binding: Binding, outside: Outside) -> Self {
        let Binding { tenant, hosts, secrets, allow_private_networks, time_left } = binding;
        let values = secrets.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let redactions = RedactionList::new(values, secrets.tag());
        Self {
            tenant,
            hosts,
            secrets,
            allow_private_networks,
            deadline: Instant::now() + time_left,
            outside,
            redactions,
            requests: AtomicUsize::new(0),
            document_reads: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        }
    }

    /// What everything that leaves the call is led through: its answers, its log lines, its failures.
    pub fn redactions(&self) -> &RedactionList {
        &self.redactions
    }

    /// Ends the call: what is asked of it from now on is refused (AL-195).
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Sends one HTTP request, and answers as the contract says.
    pub async fn http_request(&self, json: &[u8]) -> String {
        let answered = match HttpRequest::read(json) {
            Ok(request) => self.request(&request).await,
            Err(fault) => Err(fault.into()),
        };
        match answered {
            Ok(answer) => answer.to_json(),
            Err(fault) => self.error(&fault),
        }
    }

    /// A keyed hash: `{"signature"}`.
    pub fn hmac(&self, json: &[u8]) -> String {
        self.hmac_of(json).unwrap_or_else(|fault| self.error(&fault))
    }

    /// Whether a keyed hash is right: `{"valid"}`.
    pub fn hmac_verify(&self, json: &[u8]) -> String {
        self.hmac_verify_of(json).unwrap_or_else(|fault| self.error(&fault))
    }

    async fn request(&self, request: &HttpRequest) -> Result<HttpAnswer, CallFault> {
        self.check_running()?;
        let prepared = self.prepare(request).await?;
        let answer = self.exchange(&prepared).await?;
        Ok(HttpAnswer { answer, response_as: request.response_as })
    }

    fn check_running(&self) -> Result<(), CallFault> {
        let ended = self.ended.load(Ordering::Acquire) || self.deadline <= Instant::now();
        if ended { Err(CallFault::refused("the call has ended")) } else { Ok(()) }
    }

    /// Counts a request that is about to be sent.
    fn count_request(&self) -> Result<(), CallFault> {
        if self.requests.fetch_add(1, Ordering::AcqRel) < REQUESTS_PER_CALL_MAX {
            return Ok(());
        }
        let text = format!("HTTP request limit of {REQUESTS_PER_CALL_MAX} per call reached");
        Err(CallFault::refused(text))
    }

    /// An error as the caller gets it: without a secret in any form.
    fn error(&self, fault: &CallFault) -> String {
        fault.to_json(&self.redactions.hide(&fault.text))
    }
}

#[cfg(test)]
mod tests;
