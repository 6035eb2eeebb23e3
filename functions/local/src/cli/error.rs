//! What can go wrong with a command, and the exit code that says so.

use std::fmt;
use std::io;

use annex_core::capability::refusal::Refusal;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub enum Error {
    /// The platform refused, or the call failed.
    Refused {
        /// What the platform says.
        text: String,
        /// Its code, or the HTTP status where it gave none.
        code: String,
    },
    /// The command line does not say enough, or says something that cannot be.
    Usage(String),
    /// The platform could not be reached.
    Unreachable(String),
    /// Something on this machine failed.
    Local(String),
}

impl Error {
    /// The exit code of the process: 1 refused or failed, 2 usage, 3 not reached.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Refused { .. } | Self::Local(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable(_) => 3,
        }
    }

    /// A refusal with the platform's body: `{"error": text, "code": word}` where it is one, or what a call of a capability
    /// is refused with, `{"code": word, "message": text, "details"?: {…}}`.
    pub fn refused(status: u16, body: &[u8]) -> Self {
        let value: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        let member = |name: &str| value.get(name).and_then(|v| v.as_str()).map(str::to_owned);
        let message = || {
            let message = member("message")?;
            let meaning = Refusal::TABLE.iter().find(|(_, code, _)| *code == message);
            let text = meaning.map_or(&*message, |(_, _, text)| text.trim().trim_end_matches('.'));
            let details = value.get("details").map_or(String::new(), |more| format!(" {more}"));
            Some(format!("{text}{details}"))
        };
        Self::Refused {
            text: member("error")
                .or_else(message)
                .unwrap_or_else(|| format!("the platform answered {status}")),
            code: member("code").unwrap_or_else(|| format!("HTTP {status}")),
        }
    }

    /// Whether the platform says that a hive record does not exist.
    pub fn is_missing_record(&self) -> bool {
        matches!(self, Self::Refused { text, .. } if text.contains("RECORD_NOT_FOUND"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { text, code } => write!(f, "{text} ({code})"),
            Self::Usage(text) | Self::Unreachable(text) | Self::Local(text) => f.write_str(text),
        }
    }
}

impl From<annex_embedded::RootKeyError> for Error {
    fn from(error: annex_embedded::RootKeyError) -> Self {
        Self::Local(error.to_string())
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Local(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: &Error, code: u8, text: &str) {
        assert_eq!((error.exit_code(), error.to_string().as_str()), (code, text));
    }

    #[test]
    fn refusals_show_text_and_code() {
        let body = br#"{"error": "unknown parameter name: x", "code": "schema-refused"}"#;
        check(&Error::refused(400, body), 1, "unknown parameter name: x (schema-refused)");
        check(&Error::refused(400, br#"{"error": "boom"}"#), 1, "boom (HTTP 400)");
        let body = br#"{"statusCode": 422, "code": "invalid-actor", "message": "invalid-actor"}"#;
        check(
            &Error::refused(422, body),
            1,
            "`actor` is keyholder on a lock without a keyholder (invalid-actor)",
        );
        let body = br#"{"code": "c", "message": "m", "details": {"reason": "r"}}"#;
        check(&Error::refused(422, body), 1, r#"m {"reason":"r"} (c)"#);
        check(&Error::refused(502, b"<html>"), 1, "the platform answered 502 (HTTP 502)");
    }

    #[test]
    fn exit_codes_tell_usage_and_connection_apart() {
        check(&Error::Usage("no organization".into()), 2, "no organization");
        check(&Error::Unreachable("could not connect".into()), 3, "could not connect");
        check(&Error::Local("disk full".into()), 1, "disk full");
    }

    #[test]
    fn missing_records_are_known_by_their_text() {
        let missing = br#"{"error": "lc_error_code:RECORD_NOT_FOUND - record x not found"}"#;
        assert!(Error::refused(400, missing).is_missing_record());
        assert!(!Error::refused(400, b"{}").is_missing_record());
    }
}
