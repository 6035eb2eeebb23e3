//! Notes what goes out, and either sends it or answers from what was given.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use annex_core::json;
use annex_egress::call::Transport;
use annex_egress::vendor::{Answer, Network, Outgoing, OutgoingBody, VendorClient, VendorFault};
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Records the requests of one line.
pub(super) struct Recorder {
    sent: Mutex<Vec<String>>,
    to: Target,
}

enum Target {
    Network(Arc<VendorClient>),
    Script(Mutex<VecDeque<Answer>>),
}

impl Recorder {
    /// Sends for real.
    pub(super) fn sending(client: Arc<VendorClient>) -> Self {
        Self { sent: Mutex::default(), to: Target::Network(client) }
    }

    /// Touches no network: each request gets the next of these answers.
    pub(super) fn scripted(answers: Vec<Answer>) -> Self {
        Self { sent: Mutex::default(), to: Target::Script(Mutex::new(answers.into())) }
    }

    /// What went out, each as JSON.
    pub(super) fn sent(&self) -> Vec<String> {
        locked(&self.sent).clone()
    }
}

#[async_trait]
impl Transport for Recorder {
    async fn send(
        &self,
        tenant: &str,
        outgoing: Outgoing,
        timeout: Duration,
    ) -> Result<Answer, VendorFault> {
        locked(&self.sent).push(described(&outgoing));
        match &self.to {
            Target::Network(client) => client.send(tenant, outgoing, timeout).await,
            Target::Script(answers) => locked(answers).pop_front().ok_or_else(|| VendorFault {
                text: "no answer is given for this request".to_owned(),
                network: Some(Network::Unknown),
            }),
        }
    }
}

/// A request as it goes out, byte for byte.
fn described(outgoing: &Outgoing) -> String {
    let headers: Vec<_> = outgoing
        .sent_headers()
        .iter()
        .map(|(name, value)| format!("{}:{}", json::quote(name), json::quote(value)))
        .collect();
    let body = match &outgoing.body {
        OutgoingBody::Bytes(bytes) => STANDARD.encode(bytes),
        // There are no documents here, and nothing else is streamed.
        OutgoingBody::None | OutgoingBody::Stream { .. } => String::new(),
    };
    format!(
        "{{\"method\":\"{}\",\"url\":{},\"headers\":{{{}}},\"bodyBase64\":\"{body}\"}}",
        outgoing.method,
        json::quote(&outgoing.url.to_string()),
        headers.join(",")
    )
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
