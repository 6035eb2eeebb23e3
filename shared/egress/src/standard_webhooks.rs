//! Standard Webhooks, version 1: HMAC-SHA256 over `id.timestamp.body` under a secret in base64 (AL-420).

use crate::hmac::{self, Hmac, HmacAlgorithm, KeyEncoding, KeyFault, SignatureEncoding};

/// The version of a signature that is an HMAC, in front of it.
const VERSION: &str = "v1,";

/// Digits of a timestamp that are read: seconds up to the year 33,658.
const TIMESTAMP_DIGITS_MAX: usize = 12;

/// Why a message cannot be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretFault {
    /// The secret does not decode.
    #[error(transparent)]
    Key(#[from] KeyFault),
    /// No bytes: anybody could sign the same.
    #[error("the key is empty")]
    Empty,
}

/// An entry of `webhook-signature` for a message: `v1,` and the signature in base64. The secret may begin with `whsec_`.
pub fn sign(secret: &str, id: &str, timestamp: i64, body: &[u8]) -> Result<String, SecretFault> {
    let signature = signature(secret, id, &timestamp.to_string(), body)?;
    Ok(format!("{VERSION}{signature}"))
}

fn signature(secret: &str, id: &str, timestamp: &str, body: &[u8]) -> Result<String, SecretFault> {
    let key = hmac::key_bytes(secret, KeyEncoding::Base64)?;
    if key.is_empty() {
        return Err(SecretFault::Empty);
    }
    let mut hmac = Hmac::new(HmacAlgorithm::Sha256, &key);
    for piece in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
        hmac.update(piece);
    }
    Ok(hmac.finish(SignatureEncoding::Base64))
}

/// The headers of a message that came. One that is missing, or stands twice, makes it not valid.
#[derive(Debug, Clone, Copy, Default)]
pub struct Headers<'a> {
    /// `webhook-id`
    pub id: Option<&'a str>,
    /// `webhook-timestamp`: whole seconds since 1970, in digits.
    pub timestamp: Option<&'a str>,
    /// `webhook-signature`: entries between spaces, one of which must be right.
    pub signature: Option<&'a str>,
}

impl<'a> Headers<'a> {
    /// The three among all headers, whose names may be in any case.
    pub fn of(headers: impl IntoIterator<Item = (&'a str, &'a str)> + Clone) -> Self {
        let only = |name: &str| {
            let mut found = headers
                .clone()
                .into_iter()
                .filter_map(|(known, value)| known.eq_ignore_ascii_case(name).then_some(value));
            found.next().filter(|_| found.next().is_none())
        };
        Self {
            id: only("webhook-id"),
            timestamp: only("webhook-timestamp"),
            signature: only("webhook-signature"),
        }
    }
}

/// Whether a message is signed with the secret, within a tolerance of `now` to both sides, in seconds. Whatever cannot be
/// read is just not valid.
pub fn verify(secret: &str, headers: Headers<'_>, body: &[u8], now: i64, tolerance: u64) -> bool {
    let Headers { id: Some(id), timestamp: Some(timestamp), signature: Some(signatures) } = headers
    else {
        return false;
    };
    let is_number = !timestamp.is_empty()
        && timestamp.len() <= TIMESTAMP_DIGITS_MAX
        && timestamp.bytes().all(|byte| byte.is_ascii_digit());
    let Some(at) = timestamp.parse::<i64>().ok().filter(|_| is_number) else { return false };
    if id.is_empty() || at.abs_diff(now) > tolerance {
        return false;
    }
    // What was signed is the timestamp's text, not its number.
    let Ok(expected) = signature(secret, id, timestamp, body) else { return false };
    signatures
        .split(' ')
        .filter_map(|entry| entry.strip_prefix(VERSION))
        .any(|signature| hmac::is_same(&expected, signature, SignatureEncoding::Base64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    const ID: &str = "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk";
    const AT: i64 = 1_649_367_553;
    const BODY: &[u8] = br#"{"email":"test@example.com","username":"test_user"}"#;
    /// Of the published libraries' tests.
    const SIGNATURE: &str = "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=";

    #[test]
    fn the_published_example_is_signed_and_verified() {
        assert_eq!(sign(SECRET, ID, AT, BODY).as_deref(), Ok(SIGNATURE));
        check(SIGNATURE, true);
    }

    #[track_caller]
    fn check_headers(secret: &str, headers: Headers<'_>, now: i64, tolerance: u64, expected: bool) {
        assert_eq!(verify(secret, headers, BODY, now, tolerance), expected, "{headers:?}");
    }

    fn headers(signature: &str) -> Headers<'_> {
        Headers { id: Some(ID), timestamp: Some("1649367553"), signature: Some(signature) }
    }

    #[track_caller]
    fn check(signature: &str, expected: bool) {
        check_headers(SECRET, headers(signature), AT, 300, expected);
    }

    #[test]
    fn one_right_entry_among_others_is_enough() {
        for others in ["v1,bad v1a,x", "v2,y  v1a,z", " ", "", "v1, v1 v1,="] {
            check(&format!("{others} {SIGNATURE}"), true);
            check(&format!("{SIGNATURE} {others}"), true);
        }
        let mut many = "v1,AAAA ".repeat(49);
        check(&many, false);
        many.push_str(SIGNATURE);
        check(&many, true);
    }

    #[test]
    fn entries_that_cannot_be_read_are_not_valid_and_nothing_fails() {
        let bare = SIGNATURE.trim_start_matches("v1,");
        let long = "v1,".repeat(350_000);
        let other_version = SIGNATURE.replace("v1,", "v1a,");
        let upper = SIGNATURE.replace("v1,", "V1,");
        let tab = format!("v1,x\t{SIGNATURE}");
        for signature in [
            "",
            " ",
            ",",
            "v1",
            "v1,",
            "v1,=",
            "v1,***",
            "v1,é",
            "é",
            "v1,tZ1I4",
            bare,
            &long,
            &other_version,
            &upper,
            &tab,
        ] {
            check(signature, false);
        }
    }

    #[test]
    fn a_header_that_is_missing_or_stands_twice_is_not_valid() {
        let all = [
            ("Webhook-ID", ID),
            ("webhook-timestamp", "1649367553"),
            ("webhook-signature", SIGNATURE),
        ];
        check_headers(SECRET, Headers::of(all), AT, 0, true);
        for index in 0..all.len() {
            let without = all.iter().copied().enumerate().filter(|(at, _)| *at != index);
            let without: Vec<_> = without.map(|(_, header)| header).collect();
            check_headers(SECRET, Headers::of(without.clone()), AT, 0, false);
            let twice = [&all[..], &[(all[index].0, all[index].1)]].concat();
            check_headers(SECRET, Headers::of(twice), AT, 0, false);
        }
        check_headers(SECRET, Headers { id: Some(""), ..headers(SIGNATURE) }, AT, 0, false);
    }

    #[test]
    fn the_tolerance_ends_on_both_sides() {
        for (now, tolerance, expected) in [
            (AT - 300, 300, true),
            (AT + 300, 300, true),
            (AT - 301, 300, false),
            (AT + 301, 300, false),
            (AT, 0, true),
            (AT + 1, 0, false),
            (AT - 1, 0, false),
            (i64::MIN, u64::MAX, true),
            (i64::MAX, 300, false),
        ] {
            check_headers(SECRET, headers(SIGNATURE), now, tolerance, expected);
        }
    }

    #[test]
    fn a_timestamp_is_digits_alone() {
        for text in [
            "",
            "NaN",
            "inf",
            "1e10",
            " 1649367553",
            "1649367553 ",
            "-5",
            "+1649367553",
            "1649367553.0",
            "0x1",
            "１６４９",
            "1649367553000000",
            "99999999999999999999",
        ] {
            let signature = signature(SECRET, ID, text, BODY).unwrap();
            let signature = format!("{VERSION}{signature}");
            let headers = Headers { timestamp: Some(text), ..headers(&signature) };
            check_headers(SECRET, headers, AT, u64::MAX, false);
        }
    }

    #[test]
    fn a_secret_is_base64_of_any_spelling_and_never_empty() {
        for secret in [
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwBg==",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwBg",
            // Bits behind the last byte, as in the published libraries' tests.
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwBr",
        ] {
            let signature = sign(secret, ID, AT, BODY).unwrap();
            check_headers(secret, headers(&signature), AT, 0, true);
            assert_eq!(
                signature,
                sign("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwBg", ID, AT, BODY).unwrap()
            );
        }
        assert_eq!(sign("whsec_-_8", ID, AT, BODY).unwrap(), sign("+/8=", ID, AT, BODY).unwrap());
        for (secret, fault) in [
            ("", SecretFault::Empty),
            ("whsec_", SecretFault::Empty),
            ("whsec_*", SecretFault::Key(KeyFault::NotBase64)),
        ] {
            assert_eq!(sign(secret, ID, AT, BODY), Err(fault));
            check_headers(secret, headers(SIGNATURE), AT, 300, false);
        }
    }

    #[test]
    fn small_bodies_and_bodies_with_dots_are_signed_as_they_are() {
        for body in [&b""[..], b"0", b"{}", b"null", b"\"\"", b"x.y", &[0xFF, 0]] {
            let signature = sign(SECRET, "msg.a.b", AT, body).unwrap();
            let headers = Headers { id: Some("msg.a.b"), ..headers(&signature) };
            assert!(verify(SECRET, headers, body, AT, 0), "{body:?}");
            assert!(!verify(SECRET, headers, &[body, b" "].concat(), AT, 0), "{body:?}");
        }
    }
}
