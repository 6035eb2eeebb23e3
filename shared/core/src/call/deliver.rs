//! The attempts of one delivery.

use std::sync::Arc;
use std::time::Duration;

use crate::delivery::answer::{Answer, Verdict, verdict};
use crate::delivery::retry;
use crate::delivery::wire::{SIGNATURE_HEADER, gzip};
use crate::fault::{Code, Fault};
use crate::meter::Report;
use crate::ports::WebhookRequest;
use crate::profile::Profile;

use super::Calls;
use super::install::Extension;

/// How the attempts of a delivery came out.
pub(super) struct Delivered {
    /// What the last one means. Never [`Verdict::RetrySoon`]: that was tried as often as it may be.
    pub(super) verdict: Verdict,
    /// Metric reports of attempts that failed before it; usage that an attempt reported was used (LC-100).
    pub(super) reports: Vec<Report>,
    /// Attempts made in all.
    pub(super) attempts: u32,
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
}

impl Calls {
    /// Sends a message, and again soon as long as that may help.
    ///
    /// Each attempt carries the same bytes, signed and compressed once (LC-022, LC-033, LC-058).
    pub(super) async fn deliver(
        &self,
        extension: &Arc<Extension>,
        json: &[u8],
        rules: Rules,
    ) -> Delivered {
        let profile = self.profile();
        let request = request(profile, extension, json, rules.timeout);
        let ports = self.ports();
        let mut attempts = rules.made;
        let mut reports = Vec::new();
        loop {
            attempts += 1;
            let outcome = ports.outbound.send(request.clone()).await;
            let (fault, answer) = match verdict(profile, outcome, ports.clock.now()) {
                Verdict::RetrySoon(fault, answer) => (fault, answer),
                verdict => return Delivered { verdict, reports, attempts },
            };
            let said = answer.as_ref().is_some_and(|answer| !answer.error.is_empty());
            if rules.on_error == OnError::Final && said {
                let fault = Fault::new(Code::ExtensionError, fault.message);
                return Delivered { verdict: Verdict::Failed(fault, answer), reports, attempts };
            }
            if attempts >= profile.attempts_max {
                return Delivered { verdict: Verdict::Failed(fault, answer), reports, attempts };
            }
            // Not its text: those are the extension's words, with whatever secrets it quotes.
            let (name, code) = (&extension.definition.name, fault.code.word());
            tracing::debug!(extension = %name, attempts, code, "attempt failed");
            reports.extend(answer.and_then(|answer: Answer| answer.report));
            ports.clock.sleep(retry::delay(attempts, ports.ids.random())).await;
        }
    }
}

fn request(
    profile: &Profile,
    extension: &Extension,
    json: &[u8],
    timeout: Duration,
) -> WebhookRequest {
    WebhookRequest {
        url: extension.definition.url.clone(),
        headers: vec![
            ("content-type", "application/json".to_owned()),
            ("content-encoding", "gzip".to_owned()),
            (SIGNATURE_HEADER, extension.signer.sign(json)),
        ],
        body: gzip(json),
        timeout,
        response_bytes_max: profile.response_bytes_max,
    }
}
