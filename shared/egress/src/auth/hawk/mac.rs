//! What a Hawk MAC and a payload hash are made of.

use aws_lc_rs::{digest, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::auth::HawkAlgorithm;

/// Which MAC of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The request's.
    Header,
    /// The answer's.
    Response,
}

/// The parts of an exchange that a MAC covers (AL-328, AL-339).
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// Seconds since 1970.
    pub timestamp: &'a str,
    /// The request's nonce.
    pub nonce: &'a str,
    /// Any case; covered in upper case.
    pub method: &'a str,
    /// Path and query as sent.
    pub resource: &'a str,
    /// Any case; covered in lower case.
    pub host: &'a str,
    /// The port, the scheme's own included.
    pub port: u16,
    /// The payload's hash.
    pub hash: Option<&'a str>,
    /// Text of the application.
    pub ext: Option<&'a str>,
    /// The application's id.
    pub app: Option<&'a str>,
    /// Who delegated; covered with `app` only.
    pub dlg: Option<&'a str>,
}

impl Parts<'_> {
    /// The text under the MAC.
    pub fn normalized(&self, kind: Kind) -> String {
        let kind = match kind {
            Kind::Header => "header",
            Kind::Response => "response",
        };
        let mut text = format!(
            "hawk.1.{kind}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n",
            self.timestamp,
            self.nonce,
            self.method.to_ascii_uppercase(),
            self.resource,
            self.host.to_ascii_lowercase(),
            self.port,
            self.hash.unwrap_or_default(),
            self.ext.unwrap_or_default(),
        );
        if let Some(app) = self.app {
            text.push_str(&format!("{app}\n{}\n", self.dlg.unwrap_or_default()));
        }
        text
    }

    /// The MAC under a key, in base64.
    pub fn mac(&self, kind: Kind, key: &str, algorithm: HawkAlgorithm) -> String {
        let algorithm = match algorithm {
            HawkAlgorithm::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            HawkAlgorithm::Sha256 => hmac::HMAC_SHA256,
        };
        let key = hmac::Key::new(algorithm, key.as_bytes());
        STANDARD.encode(hmac::sign(&key, self.normalized(kind).as_bytes()))
    }
}

/// The hash of a payload in base64: over the media type in lower case without its parameters, and the bytes (AL-331).
pub fn payload_hash(
    algorithm: HawkAlgorithm,
    content_type: Option<&str>,
    payload: &[u8],
) -> String {
    let algorithm = match algorithm {
        HawkAlgorithm::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
        HawkAlgorithm::Sha256 => &digest::SHA256,
    };
    let media_type = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
    let mut hash = digest::Context::new(algorithm);
    hash.update(b"hawk.1.payload\n");
    hash.update(media_type.trim().to_ascii_lowercase().as_bytes());
    hash.update(b"\n");
    hash.update(payload);
    hash.update(b"\n");
    STANDARD.encode(hash.finish())
}
