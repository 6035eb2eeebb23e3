//! The attempts of one delivery.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::delivery::answer::{Answer, Verdict, verdict};
use crate::delivery::retry;
use crate::delivery::wire::gzip;
use crate::fault::{Code, Fault};
use crate::meter::Report;
use crate::ports::{SendFault, WebhookAnswer, WebhookRequest};
use crate::trace::{TRACEPARENT_HEADER, Trace};

use super::Calls;
use super::install::Extension;
use super::sign::{Secret, Signatures, refuses_signature};

/// How the attempts of a delivery came out.
pub(super) struct Delivered {
    /// What the last one means. Never [`Verdict::RetrySoon`]: that was tried as often as it may be.
    pub(super) verdict: Verdict,
    /// Metric reports of attempts that failed before it; usage that an attempt reported was used (LC-100).
    pub(super) reports: Vec<Report>,
    /// Attempts made in all.
    pub(super) attempts: u32,
    /// From the first attempt's start to the last one's end, the delays between them included.
    pub(super) latency: Duration,
}

/// Whether an answer that carries an error text ends the delivery whatever its status says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnError {
    /// The status decides.
    Status,
    /// It does: a configuration that was refused is refused, and published SDKs say so with 503.
    Final,
}

/// How a message is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rules {
    /// Attempts that were made before.
    pub(super) made: u32,
    /// What an error text means.
    pub(super) on_error: OnError,
    /// Longest one attempt lasts.
    pub(super) timeout: Duration,
    /// The trace it is in.
    pub(super) trace: Trace,
}

/// A message as each of its attempts carries it: the same bytes, signed and compressed once (LC-022, LC-033, LC-058).
struct Prepared {
    body: Bytes,
    signatures: Signatures,
    rules: Rules,
}

impl Calls {
    /// Sends a message, and again soon as long as that may help.
    pub(super) async fn deliver(
        &self,
        extension: &Arc<Extension>,
        json: &[u8],
        rules: Rules,
    ) -> Delivered {
        let (profile, ports) = (self.profile(), self.ports());
        let message =
            Prepared { body: gzip(json), signatures: extension.signers.sign(json), rules };
        let began = ports.clock.steady();
        let mut attempts = rules.made;
        let mut reports = Vec::new();
        let mut secret = extension.signers.first();
        let verdict = loop {
            attempts += 1;
            let outcome = self.attempt(extension, &message, &mut secret).await;
            let (fault, answer) = match verdict(profile, outcome, ports.clock.now()) {
                Verdict::RetrySoon(fault, answer) => (fault, answer),
                verdict => break verdict,
            };
            let said = answer.as_ref().is_some_and(|answer| !answer.error.is_empty());
            if rules.on_error == OnError::Final && said {
                break Verdict::Failed(Fault::new(Code::ExtensionError, fault.message), answer);
            }
            if attempts >= profile.attempts_max {
                break Verdict::Failed(fault, answer);
            }
            // Not its text: those are the extension's words, with whatever secrets it quotes.
            tracing::debug!(attempts, code = fault.code.word(), "attempt failed");
            reports.extend(answer.and_then(|answer: Answer| answer.report));
            ports.clock.sleep(retry::delay(attempts, ports.ids.random())).await;
        };
        let latency = ports.clock.steady().since(began);
        Delivered { verdict, reports, attempts, latency }
    }

    /// One attempt. While two secrets verify, a message that was refused for its signature, as it seems, goes out once
    /// more at once with the signatures exchanged; what that is answered counts. Both together last as long as one.
    async fn attempt(
        &self,
        extension: &Extension,
        message: &Prepared,
        secret: &mut Secret,
    ) -> Result<WebhookAnswer, SendFault> {
        let (clock, signers) = (&self.ports().clock, &extension.signers);
        let timeout = message.rules.timeout;
        if !signers.overlap(clock.now()) {
            *secret = Secret::Current;
            return self.send(extension, message, *secret, timeout).await;
        }
        let began = clock.steady();
        let mut outcome = self.send(extension, message, *secret, timeout).await;
        let left = timeout.saturating_sub(clock.steady().since(began));
        let other_is_live = *secret == Secret::Previous || signers.overlap(clock.now());
        if refuses_signature(&outcome) && other_is_live && !left.is_zero() {
            *secret = secret.other();
            outcome = self.send(extension, message, *secret, left).await;
        }
        match &outcome {
            Ok(_) if !refuses_signature(&outcome) => signers.took(*secret),
            // So answers a Go extension without an error handler to a signature that it does not know.
            Err(SendFault::Broken(_)) => *secret = secret.other(),
            _ => {}
        }
        outcome
    }

    async fn send(
        &self,
        extension: &Extension,
        message: &Prepared,
        first: Secret,
        timeout: Duration,
    ) -> Result<WebhookAnswer, SendFault> {
        let ports = self.ports();
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            ("content-encoding", "gzip".to_owned()),
            (TRACEPARENT_HEADER, message.rules.trace.header(ports.ids.random())),
        ];
        headers.extend(message.signatures.headers(first, ports.clock.now()));
        let request = WebhookRequest {
            url: extension.definition.url.clone(),
            headers,
            body: message.body.clone(),
            timeout,
            response_bytes_max: self.profile().response_bytes_max,
        };
        ports.outbound.send(request).await
    }
}
