//! Why a call of a capability is refused before it runs, and the body that says so (CH-002 to CH-006).

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

use crate::fault::{Code, Fault};
use crate::limits::{BUSY_RETRY_AFTER, PARTNER_BUSY_RETRY_AFTER};
use crate::ports::Outage;

/// Which counter is full (CH-049).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bucket {
    /// That of one extension on one lock; also while the extension is blocked there (CH-041, CH-042).
    Extension,
    /// That of one lock, over all extensions (CH-046).
    Lock,
    /// That of dynamic choices, for one lock and caller (CH-052).
    Options,
}

impl Bucket {
    /// The word that travels.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Extension => "extension",
            Self::Lock => "lock",
            Self::Options => "options",
        }
    }
}

macro_rules! refusals {
    ($($(#[doc = $doc:literal])+ $name:ident $({ $($(#[doc = $field_doc:literal])+ $field:ident: $type:ty,)+ })?
        = $status:literal $code:literal;)*) => {
        /// A refusal of the contract, or another fault in the contract's shape.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Refusal {
            $($(#[doc = $doc])+ $name $({ $($(#[doc = $field_doc])+ $field: $type,)+ })?,)*
            /// Not one of the contract's codes: a fault of the platform's own, in the same shape.
            Other(Fault),
        }

        impl Refusal {
            /// The contract's codes in its order: status, code, and what it means, for the reference page.
            pub const TABLE: &[(u16, &str, &str)] = &[$(($status, $code, concat!($($doc),+)),)*];

            /// The HTTP status, which is the body's `statusCode` too (CH-004).
            pub const fn status(&self) -> u16 {
                match self {
                    $(Self::$name { .. } => $status,)*
                    Self::Other(fault) => fault.code.status(),
                }
            }

            /// The stable code (CH-002).
            pub const fn code(&self) -> &'static str {
                match self {
                    $(Self::$name { .. } => $code,)*
                    Self::Other(fault) => other_code(fault.code),
                }
            }
        }
    };
}

refusals! {
    /// The command id is not a valid capability id.
    InvalidCommandId = 400 "invalid-command-id";
    /// The capability does not list the current caller in `invocableBy`.
    CallerNotAllowed = 403 "caller-not-allowed";
    /// The lock namespace, or another that the event names, belongs to the platform.
    ReservedNamespace = 403 "reserved-namespace";
    /// The event is outside the emitter's own namespace.
    ForeignNamespace = 403 "foreign-namespace";
    /// The target extension is not installed on this lock.
    NotInstalled = 404 "not-installed";
    /// There is no such command or query on this lock.
    UnknownCommand = 404 "unknown-command";
    /// The event is not declared in the emitter's manifest.
    UnknownEvent = 404 "unknown-event";
    /// The field has no `x-chaster-options`.
    OptionsNotDeclared = 404 "options-not-declared";
    /// The idempotency key was already used for another command or input on this lock.
    IdempotencyKeyConflict = 409 "idempotency-key-conflict";
    /// The command is unavailable right now; `details.reason` says why.
    CommandUnavailable {
        /// For example `lock-not-active`.
        reason: String,
    } = 422 "command-unavailable";
    /// The input does not match the `inputSchema`.
    InvalidInput = 422 "invalid-input";
    /// The event's payload does not match the `payloadSchema`.
    InvalidPayload = 422 "invalid-payload";
    /// `actor` is keyholder on a lock without a keyholder.
    InvalidActor = 422 "invalid-actor";
    /// `causationId` is not an event or invocation that the extension can refer to on this lock.
    InvalidCausation = 422 "invalid-causation";
    /// The chain of calls reached the maximum depth.
    DepthExceeded = 422 "depth-exceeded";
    /// `start` commands of partner extensions cannot be called.
    StartNotSupported = 422 "start-not-supported";
    /// The target extension has no endpoint or no webhook credentials to receive calls.
    NotDispatchable = 422 "not-dispatchable";
    /// An availability push tried to add callers that the manifest does not allow.
    InvocableByWidened = 422 "invocable-by-widened";
    /// A rate limit was reached; `details` say which one and for how long.
    RateLimited {
        /// Which limit.
        bucket: Bucket,
        /// Seconds to wait, at least 1 (CH-050, CH-051).
        retry_after: u64,
    } = 429 "rate-limited";
    /// The query behind `x-chaster-options` failed.
    OptionsUnavailable = 502 "options-unavailable";
    /// The target extension already handles too many calls; `details.retryAfterSeconds` is 1.
    PartnerBusy = 503 "partner-busy";
}

/// The code of a fault of the platform's own. The contract's clients know a failed authentication by another word than
/// the platform's own API uses.
const fn other_code(code: Code) -> &'static str {
    match code {
        Code::Unauthenticated => "unauthorized",
        _ => code.word(),
    }
}

impl Refusal {
    /// The text for people: the code itself, but for faults of the platform's own (CH-005).
    pub fn message(&self) -> &str {
        match self {
            Self::Other(fault) => &fault.message,
            _ => self.code(),
        }
    }

    /// What else there is to say; `None` for the codes that have nothing: the body has no such key then (CH-006).
    pub fn details(&self) -> Option<Value> {
        match self {
            Self::CommandUnavailable { reason } => Some(json!({ "reason": reason })),
            Self::RateLimited { bucket, retry_after } => {
                Some(json!({ "bucket": bucket.word(), "retryAfterSeconds": retry_after }))
            }
            Self::PartnerBusy => {
                Some(json!({ "retryAfterSeconds": PARTNER_BUSY_RETRY_AFTER.as_secs() }))
            }
            _ => None,
        }
    }

    /// The `Retry-After` header in seconds, for every 429 and 503.
    pub const fn retry_after(&self) -> Option<u64> {
        match self {
            Self::RateLimited { retry_after, .. } => Some(*retry_after),
            Self::PartnerBusy => Some(PARTNER_BUSY_RETRY_AFTER.as_secs()),
            Self::Other(fault) => match fault.code.status() {
                429 | 503 => Some(BUSY_RETRY_AFTER.as_secs()),
                _ => None,
            },
            _ => None,
        }
    }

    /// The body an HTTP caller reads: `{"statusCode", "code", "message", "details"?}` (CH-003).
    pub fn body(&self) -> String {
        let mut body = json!({
            "statusCode": self.status(),
            "code": self.code(),
            "message": self.message(),
        });
        if let Some(details) = self.details() {
            body["details"] = details;
        }
        body.to_string()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Refusal {}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::Other(fault)
    }
}

impl From<Outage> for Refusal {
    /// What a caller learns of an outage: no detail. The detail goes to the log.
    fn from(outage: Outage) -> Self {
        Self::Other(outage.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One refusal of each code, in the contract's order.
    fn all() -> Vec<Refusal> {
        use Refusal::*;
        vec![
            InvalidCommandId,
            CallerNotAllowed,
            ReservedNamespace,
            ForeignNamespace,
            NotInstalled,
            UnknownCommand,
            UnknownEvent,
            OptionsNotDeclared,
            IdempotencyKeyConflict,
            CommandUnavailable { reason: "lock-not-active".into() },
            InvalidInput,
            InvalidPayload,
            InvalidActor,
            InvalidCausation,
            DepthExceeded,
            StartNotSupported,
            NotDispatchable,
            InvocableByWidened,
            RateLimited { bucket: Bucket::Extension, retry_after: 240 },
            OptionsUnavailable,
            PartnerBusy,
        ]
    }

    #[test]
    fn the_table_is_the_contracts() {
        let expected = [
            (400, "invalid-command-id"),
            (403, "caller-not-allowed"),
            (403, "reserved-namespace"),
            (403, "foreign-namespace"),
            (404, "not-installed"),
            (404, "unknown-command"),
            (404, "unknown-event"),
            (404, "options-not-declared"),
            (409, "idempotency-key-conflict"),
            (422, "command-unavailable"),
            (422, "invalid-input"),
            (422, "invalid-payload"),
            (422, "invalid-actor"),
            (422, "invalid-causation"),
            (422, "depth-exceeded"),
            (422, "start-not-supported"),
            (422, "not-dispatchable"),
            (422, "invocable-by-widened"),
            (429, "rate-limited"),
            (502, "options-unavailable"),
            (503, "partner-busy"),
        ];
        let table: Vec<_> =
            Refusal::TABLE.iter().map(|(status, code, _)| (*status, *code)).collect();
        assert_eq!(table, expected);
        let refusals: Vec<_> = all().iter().map(|each| (each.status(), each.code())).collect();
        assert_eq!(refusals, expected);
    }

    #[test]
    fn a_body_says_status_code_and_message_and_details_only_where_there_are_any() {
        // CH-002, CH-003, CH-004, CH-005, CH-006
        for refusal in all() {
            let (status, code) = (refusal.status(), refusal.code());
            let details = match code {
                "command-unavailable" => r#","details":{"reason":"lock-not-active"}"#, // CH-021
                "rate-limited" => {
                    r#","details":{"bucket":"extension","retryAfterSeconds":240}"# // CH-048, CH-050
                }
                "partner-busy" => r#","details":{"retryAfterSeconds":1}"#, // CH-036
                _ => "",
            };
            assert_eq!(
                refusal.body(),
                format!(r#"{{"statusCode":{status},"code":"{code}","message":"{code}"{details}}}"#)
            );
        }
    }

    #[test]
    fn every_bucket_has_its_word() {
        // CH-049
        let check = |bucket: Bucket, word: &str| {
            let details = Refusal::RateLimited { bucket, retry_after: 7 }.details();
            assert_eq!(details, Some(json!({ "bucket": word, "retryAfterSeconds": 7 })));
            assert_eq!(serde_json::to_value(bucket).unwrap(), word);
        };
        check(Bucket::Extension, "extension");
        check(Bucket::Lock, "lock");
        check(Bucket::Options, "options");
    }

    #[test]
    fn a_429_and_a_503_say_when_to_come_back_and_nothing_else_does() {
        let others = Code::ALL.iter().map(|code| Refusal::from(Fault::new(*code, "text")));
        for refusal in all().into_iter().chain(others) {
            let expected = match refusal.code() {
                "rate-limited" => Some(240),
                "partner-busy" | "busy" | "unavailable" => Some(1),
                _ => None,
            };
            assert_eq!(refusal.retry_after(), expected, "{}", refusal.code());
            assert_eq!(refusal.retry_after().is_some(), matches!(refusal.status(), 429 | 503));
        }
    }

    #[test]
    fn a_fault_of_the_platforms_own_has_the_same_shape() {
        let check = |code: Code, status: u16, word: &str| {
            let refusal = Refusal::from(Fault::new(code, "because \"so\""));
            let expected =
                format!(r#"{{"statusCode":{status},"code":"{word}","message":"because \"so\""}}"#);
            assert_eq!(refusal.body(), expected);
        };
        check(Code::Unauthenticated, 401, "unauthorized");
        check(Code::NotFound, 404, "not-found");
        check(Code::BadRequest, 400, "bad-request");
        check(Code::TooLarge, 413, "too-large");
    }

    #[test]
    fn an_outage_tells_no_detail() {
        let refusal = Refusal::from(Outage::new("the table is gone"));
        assert_eq!(
            refusal.body(),
            r#"{"statusCode":500,"code":"internal","message":"internal error"}"#
        );
    }
}
