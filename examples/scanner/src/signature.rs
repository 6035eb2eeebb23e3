//! Who sent it: bounded decompression and the check of `lc-ext-sig`.

use std::borrow::Cow;
use std::io::Read;

use aws_lc_rs::{constant_time, hmac};
use axum::http::{HeaderMap, StatusCode};
use flate2::read::MultiGzDecoder;

use crate::answer::Answer;

/// Largest body as it travels, in bytes.
pub const WIRE_BYTES_MAX: usize = 16 << 20;

/// Largest body once decompressed, in bytes: a megabyte of gzip can hold a gigabyte of zeros.
pub const JSON_BYTES_MAX: usize = 64 << 20;

/// The header that carries the signature.
pub const HEADER: &str = "lc-ext-sig";

/// The check of messages against the shared secret.
pub struct Signature {
    key: hmac::Key,
}

impl Signature {
    /// For this shared secret.
    pub fn new(secret: &[u8]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, secret) }
    }

    /// The signature of a JSON text: 64 lower-case hexadecimal digits.
    pub fn sign(&self, json: &[u8]) -> String {
        hex::encode(hmac::sign(&self.key, json))
    }

    /// The JSON text of a request that was signed with the secret, or what to answer instead.
    ///
    /// The signature covers the JSON text, so a compressed body is decompressed first.
    pub fn open<'a>(&self, headers: &HeaderMap, body: &'a [u8]) -> Result<Cow<'a, [u8]>, Answer> {
        // No signature: nothing about the body is worth the work of decompressing it.
        let given = headers.get(HEADER).ok_or_else(refused)?;
        let json = match headers.get("content-encoding") {
            Some(encoding) if encoding == "gzip" => Cow::Owned(decompress(body)?),
            _ => Cow::Borrowed(body),
        };
        // Comparing in constant time tells nobody how many digits were right.
        let expected = self.sign(&json);
        constant_time::verify_slices_are_equal(expected.as_bytes(), given.as_bytes())
            .map_err(|_| refused())?;
        Ok(json)
    }
}

fn refused() -> Answer {
    Answer::error(StatusCode::UNAUTHORIZED, "invalid signature")
}

/// Decompresses at most [`JSON_BYTES_MAX`] bytes.
fn decompress(body: &[u8]) -> Result<Vec<u8>, Answer> {
    let mut json = Vec::new();
    // One byte more than allowed shows that there is too much, without reading the rest.
    let bound = JSON_BYTES_MAX as u64 + 1;
    MultiGzDecoder::new(body)
        .take(bound)
        .read_to_end(&mut json)
        .map_err(|error| Answer::bad_request(format!("invalid gzip body: {error}")))?;
    if JSON_BYTES_MAX < json.len() {
        return Err(Answer::error(StatusCode::PAYLOAD_TOO_LARGE, "request body too large"));
    }
    Ok(json)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::Value;

    use super::*;

    const SECRET: &str = "test-secret-0123456789abcdef0123";

    #[track_caller]
    fn check(json: &str, expected: &str) {
        assert_eq!(Signature::new(SECRET.as_bytes()).sign(json.as_bytes()), expected);
    }

    #[test]
    fn published_vectors_are_met() {
        check(
            r#"{"version":20221218,"idempotency_key":"5f0c7a3e-1111-4222-8333-9c1d2e3f4a5b","heartbeat":{}}"#,
            "f7dfa89e7cc3a7151688ab3fb8dfefed0efffddcc880ee8aa3cb48b9afbaa7e3",
        );
        check(
            r#"{"k":"é<&>"}"#,
            "48d3e9e316f49b8b48b3a46c93b7af6306e3f63b09bcc4ae5d59e24cf4921703",
        );
    }

    #[test]
    fn the_published_webhooks_are_opened_as_they_say() {
        annex_vectors::run("limacharlie", |case| {
            let (input, expected) = (&case["input"], &case["expect"]);
            if case["kind"] != "webhook" {
                return Ok(());
            }
            let text = |value: &Value| value.as_str().expect("it is text").to_owned();
            let headers = input["headers"].as_object().expect("an object").iter();
            let headers = headers.map(|(name, value)| {
                let name: HeaderName = name.parse().expect("it is a name");
                (name, HeaderValue::from_str(&text(value)).expect("it is a value"))
            });
            let body = STANDARD.decode(text(&input["body_b64"])).expect("it is base64");
            let signature = Signature::new(text(&input["secret"]).as_bytes());
            let opened = match signature.open(&headers.collect(), &body) {
                Ok(json) => String::from_utf8_lossy(&json).into_owned().into(),
                Err(_) => Value::Null,
            };
            // Without a signature nothing is opened.
            let valid = expected["signatureValid"] == true;
            let message = if valid { input["message"].clone() } else { Value::Null };
            annex_vectors::same("the message", opened, &message)
        });
    }
}
