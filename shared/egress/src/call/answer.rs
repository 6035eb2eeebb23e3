//! What a call's requests are answered with.

use annex_core::json;
use annex_core::strict::RequestFault;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::auth::AuthFault;
use crate::placeholder::FillFault;
use crate::request::ResponseAs;
use crate::vendor::{Answer, Network, VendorFault};

/// Why a request has no answer. The text may hold secrets: it is redacted before it leaves the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFault {
    /// For the caller.
    pub text: String,
    /// How far a request got that failed in transit.
    pub network: Option<Network>,
}

impl CallFault {
    /// A request that was refused: it never reached the network.
    pub fn refused(text: impl Into<String>) -> Self {
        Self { text: text.into(), network: None }
    }

    /// A request that the vendor has, although its answer cannot be used.
    pub(super) fn answered(fault: AuthFault) -> Self {
        Self { text: fault.0, network: Some(Network::Unknown) }
    }

    /// `{"error"}`, with `network` where the request was handed to it.
    pub(super) fn to_json(&self, redacted: &str) -> String {
        let error = json::quote(redacted);
        match self.network {
            None => format!("{{\"error\":{error}}}"),
            Some(network) => {
                format!("{{\"error\":{error},\"network\":\"{}\"}}", network.as_str())
            }
        }
    }
}

impl From<RequestFault> for CallFault {
    fn from(fault: RequestFault) -> Self {
        Self::refused(fault.to_string())
    }
}

impl From<FillFault> for CallFault {
    fn from(fault: FillFault) -> Self {
        Self::refused(fault.to_string())
    }
}

impl From<AuthFault> for CallFault {
    fn from(fault: AuthFault) -> Self {
        Self::refused(fault.0)
    }
}

impl From<VendorFault> for CallFault {
    fn from(fault: VendorFault) -> Self {
        Self { text: fault.text, network: fault.network }
    }
}

/// A vendor's answer, as the module asked for it.
#[derive(Debug, Clone)]
pub struct HttpAnswer {
    pub(super) answer: Answer,
    pub(super) response_as: ResponseAs,
}

impl HttpAnswer {
    /// `{status, headers, bodyText}` or `{status, headers, bodyBase64}` (AL-167 to AL-173).
    pub fn to_json(&self) -> String {
        let mut out = format!("{{\"status\":{},\"headers\":{{", self.answer.status);
        for (index, (name, value)) in joined(&self.answer.headers).iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            out.push_str(&json::quote(name));
            out.push(':');
            out.push_str(&json::quote(value));
        }
        match self.response_as {
            ResponseAs::Text => {
                out.push_str("},\"bodyText\":");
                out.push_str(&json::quote(&text(&self.answer.body)));
            }
            ResponseAs::Base64 => {
                out.push_str("},\"bodyBase64\":\"");
                STANDARD.encode_string(&self.answer.body, &mut out);
                out.push('"');
            }
        }
        out.push('}');
        out
    }
}

/// Headers by their lower-case names, values of repeated ones joined by a comma and a space.
fn joined(headers: &[(String, String)]) -> Vec<(String, String)> {
    let mut joined: Vec<(String, String)> = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        match joined.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some((_, values)) => {
                values.push_str(", ");
                values.push_str(value);
            }
            None => joined.push((name.to_ascii_lowercase(), value.clone())),
        }
    }
    joined
}

/// A body as text: UTF-8 without its mark, each sequence that is none as U+FFFD, as browsers read a response's text.
fn text(body: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body))
}
