//! What a caller is told when something is refused or fails: stable codes, their statuses, and the body.
//!
//! A code is a word, is never renamed, and stands in one table: [`Code::ALL`]. `docs/errors.md` is checked against it.

use serde_json::json;

use crate::limits::CALL_ERROR_BYTES_MAX;
use crate::ports::Outage;

/// A refusal or a failure, as the caller sees it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// Which kind of refusal.
    pub code: Code,
    /// For the caller: lower case, names the thing and the limit, no inner detail.
    pub message: String,
}

impl Fault {
    /// A fault with its own text.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// With a text of at most [`CALL_ERROR_BYTES_MAX`]: the start of it. For texts from outside, once their secrets are
    /// hidden.
    pub fn cut(mut self) -> Self {
        self.message.truncate(self.message.floor_char_boundary(CALL_ERROR_BYTES_MAX));
        self
    }

    /// The body an HTTP caller reads: `{"error": text, "code": word}`.
    pub fn body(&self) -> String {
        json!({ "error": self.message, "code": self.code.word() }).to_string()
    }
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $status:literal $word:literal;)*) => {
        /// A stable code of a fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[doc = $doc])+ $name,)* }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The word that travels.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// The HTTP status that goes with it.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// What it means, for the reference page.
            pub const fn doc(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+),)* }
            }

            /// The code with this word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|code| code.word() == word)
            }
        }
    };
}

codes! {
    /// The request itself is not well formed: a missing field, a wrong encoding, a bad parameter.
    BadRequest = 400 "bad-request";
    /// The compressed body was damaged by the gateway on its way, which took it for text.
    BodyDamaged = 400 "body-damaged";
    /// A JSON text is not valid, too deep, has doubled keys where it is read strictly, or holds a lone surrogate.
    InvalidJson = 400 "invalid-json";
    /// The request does not fit the schema of the action.
    SchemaRefused = 400 "schema-refused";
    /// The extension refused the configuration, or it does not fit the configuration schema.
    ConfigRefused = 400 "config-refused";
    /// The deletion of an organization was not confirmed with its name.
    ConfirmationRefused = 400 "confirmation-refused";
    /// A secret that the request or the configuration refers to does not exist or is not a string.
    SecretMissing = 400 "secret-missing";
    /// The extension answered with an error that it declared permanent.
    ExtensionError = 400 "extension-error";
    /// The action acts as the calling user, and the call carries no valid token of one.
    ImpersonationRefused = 400 "impersonation-refused";
    /// No token, or one that is not valid any more.
    Unauthenticated = 401 "unauthenticated";
    /// The token does not carry the permission that the operation needs.
    Forbidden = 403 "forbidden";
    /// The organization is not subscribed to the extension.
    NotSubscribed = 403 "not-subscribed";
    /// There is no such thing, or not for this caller.
    NotFound = 404 "not-found";
    /// The method is not one that the route answers.
    MethodNotAllowed = 405 "method-not-allowed";
    /// There is no such hive record. Real clients look for this status and the text `RECORD_NOT_FOUND`.
    RecordNotFound = 400 "record-not-found";
    /// It exists already.
    Conflict = 409 "conflict";
    /// The shared secret of the extension is being rotated: the one before still verifies.
    RotationUnderWay = 409 "rotation-under-way";
    /// Only an invocation that has failed is replayed, and no end of a subscription that is there again.
    NotReplayable = 409 "not-replayable";
    /// The record changed since the etag that the request names.
    EtagMismatch = 409 "etag-mismatch";
    /// The idempotency key was used for another action or other data.
    IdempotencyKeyConflict = 409 "idempotency-key-conflict";
    /// The body, or a part of it, is larger than it may be.
    TooLarge = 413 "too-large";
    /// The answer is larger than a response carries; its body says where it is found.
    AnswerTooLarge = 413 "answer-too-large";
    /// The chain of calls across extensions is as deep as it may be.
    DepthExceeded = 422 "depth-exceeded";
    /// Too many requests at a time; try again later.
    Busy = 429 "busy";
    /// The extension failed in a way that a retry may mend, and its attempts are used up.
    ExtensionFailed = 502 "extension-failed";
    /// The extension could not be reached, or did not answer in time.
    ExtensionUnreachable = 502 "extension-unreachable";
    /// The answer of the extension is larger than it may be, or is not what the contract says.
    BadAnswer = 502 "bad-answer";
    /// A fault of the platform; nothing of the request is lost where it was accepted.
    Internal = 500 "internal";
    /// The platform cannot write at the moment, for example because its disk is full.
    Unavailable = 503 "unavailable";
}

impl From<Outage> for Fault {
    /// What a caller learns of an outage: no detail. The detail goes to the log.
    fn from(outage: Outage) -> Self {
        tracing::error!(source = ?outage.source, "outage: {outage}");
        if outage.write_refused {
            return Self::new(Code::Unavailable, "the platform cannot write at the moment");
        }
        Self::new(Code::Internal, "internal error")
    }
}

/// What core operations answer with.
pub type Outcome<T> = Result<T, Fault>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters_at_the_limit() {
        let check = |text: &str, cut: &str| {
            assert_eq!(Fault::new(Code::Internal, text).cut().message, cut);
        };
        let full = "x".repeat(CALL_ERROR_BYTES_MAX);
        check(&full, &full);
        check(&format!("{full}y"), &full);
        check(&format!("{}é", &full[1..]), &full[1..]);
    }

    #[test]
    fn codes_are_unique_words_and_none_is_a_504() {
        for (index, code) in Code::ALL.iter().enumerate() {
            assert_eq!(Code::parse(code.word()), Some(*code));
            assert!(Code::ALL[..index].iter().all(|other| other.word() != code.word()));
            assert_ne!(code.status(), 504, "a real client sends again on 504");
            assert!((400..600).contains(&code.status()));
        }
    }
}
