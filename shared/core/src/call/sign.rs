//! Signing with the shared secret of an extension, and with two of them while one takes over from the other.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::delivery::wire::{PREVIOUS_SIGNATURE_HEADER, SIGNATURE_HEADER, Signer};
use crate::ports::{SendFault, WebhookAnswer};
use crate::time::Timestamp;

/// One of the secrets of an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Secret {
    /// The one of its definition.
    Current,
    /// The one before, while both verify.
    Previous,
}

impl Secret {
    /// The other one.
    pub(super) fn other(self) -> Self {
        match self {
            Self::Current => Self::Previous,
            Self::Previous => Self::Current,
        }
    }
}

/// What signs the messages of an extension.
#[derive(Debug)]
pub(super) struct Signers {
    current: Signer,
    /// Until when it signs as well.
    previous: Option<(Signer, Timestamp)>,
    /// Whether the extension took a message of the previous secret last: it is asked with that one first.
    previous_first: AtomicBool,
}

impl Signers {
    pub(super) fn new(current: Signer, previous: Option<(Signer, Timestamp)>) -> Self {
        Self { current, previous, previous_first: AtomicBool::new(false) }
    }

    /// Whether two secrets verify now.
    pub(super) fn overlap(&self, now: Timestamp) -> bool {
        self.previous.as_ref().is_some_and(|(_, until)| now < *until)
    }

    /// The secret that the extension took last.
    pub(super) fn first(&self) -> Secret {
        if self.previous_first.load(Ordering::Relaxed) { Secret::Previous } else { Secret::Current }
    }

    /// The extension took a message of this secret.
    pub(super) fn took(&self, secret: Secret) {
        self.previous_first.store(secret == Secret::Previous, Ordering::Relaxed);
    }

    /// The signatures of a message, made once for all of its attempts.
    pub(super) fn sign(&self, json: &[u8]) -> Signatures {
        Signatures {
            current: self.current.sign(json),
            previous: self.previous.as_ref().map(|(signer, until)| (signer.sign(json), *until)),
        }
    }
}

/// The signatures of a message.
pub(super) struct Signatures {
    current: String,
    previous: Option<(String, Timestamp)>,
}

impl Signatures {
    /// The headers where `first` is the secret that the extension may know: its signature stands where every extension
    /// looks (LC-018), the other beside it while both verify.
    pub(super) fn headers(&self, first: Secret, now: Timestamp) -> Vec<(&'static str, String)> {
        let live = self.previous.as_ref().filter(|(_, until)| now < *until);
        let (one, other) = match (live, first) {
            (Some((previous, _)), Secret::Previous) => (previous, Some(&self.current)),
            (Some((previous, _)), Secret::Current) => (&self.current, Some(previous)),
            (None, _) => (&self.current, None),
        };
        let mut headers = vec![(SIGNATURE_HEADER, one.clone())];
        headers.extend(other.map(|other| (PREVIOUS_SIGNATURE_HEADER, other.clone())));
        headers
    }
}

/// Whether an extension may have answered so because the signature is of a secret that it does not know: 401 is what
/// the published SDKs say, 403 what others do.
pub(super) fn refuses_signature(outcome: &Result<WebhookAnswer, SendFault>) -> bool {
    matches!(outcome, Ok(answer) if matches!(answer.status, 401 | 403))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNTIL: Timestamp = Timestamp::from_millis(1_000);

    #[track_caller]
    fn check(signers: &Signers, first: Secret, millis: i64, expected: &[(&str, &str)]) {
        let headers = signers.sign(b"{}").headers(first, Timestamp::from_millis(millis));
        let expected: Vec<_> =
            expected.iter().map(|(name, key)| (*name, Signer::new(key).sign(b"{}"))).collect();
        assert_eq!(headers, expected);
    }

    #[test]
    fn the_previous_secret_signs_to_the_last_millisecond_of_its_time() {
        let signers = Signers::new(Signer::new("new"), Some((Signer::new("old"), UNTIL)));
        let (one, other) = ("lc-ext-sig", "lc-ext-sig-previous");
        check(&signers, Secret::Current, 999, &[(one, "new"), (other, "old")]);
        check(&signers, Secret::Previous, 999, &[(one, "old"), (other, "new")]);
        check(&signers, Secret::Current, 1_000, &[(one, "new")]);
        check(&signers, Secret::Previous, 1_000, &[(one, "new")]);
        assert!(signers.overlap(Timestamp::from_millis(999)) && !signers.overlap(UNTIL));
        let alone = Signers::new(Signer::new("new"), None);
        check(&alone, Secret::Previous, 0, &[(one, "new")]);
    }

    #[test]
    fn only_401_and_403_may_mean_a_wrong_signature() {
        for status in 100..600 {
            let answer = WebhookAnswer { status, retry_after: None, body: bytes::Bytes::new() };
            assert_eq!(refuses_signature(&Ok(answer)), status == 401 || status == 403);
        }
        assert!(!refuses_signature(&Err(SendFault::Broken("reset".into()))));
    }
}
