//! Answers as an HTTP API and a function URL take them (payload format 2.0), within what Lambda carries.

use std::collections::BTreeMap;

use annex_core::fault::{Code, Fault};
use axum::body::Bytes;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

/// Largest answer of a Lambda function, in bytes of its JSON text: 6 MB.
pub(crate) const ANSWER_BYTES_MAX: usize = 6 << 20;

/// An answer whose body is there as a whole.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Payload<'a> {
    status_code: u16,
    headers: BTreeMap<&'a str, String>,
    cookies: Vec<&'a str>,
    body: &'a str,
    is_base64_encoded: bool,
}

impl Answer {
    /// A fault.
    pub(crate) fn fault(fault: &Fault) -> Self {
        let status = StatusCode::from_u16(fault.code.status()).expect("codes have statuses");
        Self::json(status, fault.body())
    }

    fn json(status: StatusCode, text: String) -> Self {
        let json = axum::http::HeaderValue::from_static("application/json");
        let headers = HeaderMap::from_iter([(axum::http::header::CONTENT_TYPE, json)]);
        Self { status, headers, body: text.into() }
    }

    /// Stands in for an answer that is too large to be carried, and is found at `url`.
    pub(crate) fn elsewhere(&self, url: &str) -> Self {
        let text = format!(
            "the answer is larger than the {ANSWER_BYTES_MAX} bytes that a response carries; get it from url within 15 minutes"
        );
        let mut body = json!({"error": text, "code": Code::AnswerTooLarge.word()});
        body["status"] = self.status.as_u16().into();
        let id = self.headers.get("annex-invocation-id").cloned();
        if let Some(id) = id.as_ref().and_then(|id| id.to_str().ok()) {
            body["location"] = format!("/v1/invocations/{id}").into();
        }
        body["url"] = url.into();
        let mut answer = Self::json(StatusCode::PAYLOAD_TOO_LARGE, body.to_string());
        if let Some(id) = id {
            answer.headers.insert("annex-invocation-id", id);
        }
        answer
    }

    /// The text that Lambda gets; `None` where it is more than Lambda carries.
    pub(crate) fn payload(&self) -> Option<Box<RawValue>> {
        // No text is shorter than its body.
        if ANSWER_BYTES_MAX < self.body.len() {
            return None;
        }
        let encoded;
        let (body, is_base64_encoded) = match std::str::from_utf8(&self.body) {
            Ok(text) => (text, false),
            Err(_) => {
                encoded = STANDARD.encode(&self.body);
                (encoded.as_str(), true)
            }
        };
        let mut headers = BTreeMap::new();
        let mut cookies = Vec::new();
        for (name, value) in &self.headers {
            let Ok(value) = value.to_str() else { continue };
            if name == SET_COOKIE {
                cookies.push(value);
                continue;
            }
            let joined: &mut String = headers.entry(name.as_str()).or_default();
            if !joined.is_empty() {
                joined.push_str(", ");
            }
            joined.push_str(value);
        }
        let status_code = self.status.as_u16();
        let payload = Payload { status_code, headers, cookies, body, is_base64_encoded };
        let text = serde_json::value::to_raw_value(&payload).expect("an answer can be written");
        (text.get().len() <= ANSWER_BYTES_MAX).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn answer(body: impl Into<Bytes>, headers: &[(&'static str, &'static str)]) -> Answer {
        let header = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let headers = headers.iter().map(header).collect();
        Answer { status: StatusCode::OK, headers, body: body.into() }
    }

    #[track_caller]
    fn check(answer: &Answer, expected: &str) {
        assert_eq!(answer.payload().unwrap().get(), expected);
    }

    #[test]
    fn text_is_text_and_everything_else_base64() {
        let json = &[("content-type", "application/json")];
        check(
            &answer("{\"a\":\"\u{e9}\"}", json),
            "{\"statusCode\":200,\"headers\":{\"content-type\":\"application/json\"},\"cookies\":[],\
             \"body\":\"{\\\"a\\\":\\\"\u{e9}\\\"}\",\"isBase64Encoded\":false}",
        );
        check(
            &answer(&b"\xff\x00"[..], &[]),
            r#"{"statusCode":200,"headers":{},"cookies":[],"body":"/wA=","isBase64Encoded":true}"#,
        );
        let cookies = &[("set-cookie", "a=1"), ("x", "1"), ("set-cookie", "b=2"), ("x", "2")];
        check(
            &answer("", cookies),
            r#"{"statusCode":200,"headers":{"x":"1, 2"},"cookies":["a=1","b=2"],"body":"","isBase64Encoded":false}"#,
        );
    }

    #[test]
    fn the_limit_is_that_of_the_escaped_text() {
        let around = answer("", &[]).payload().unwrap().get().len();
        let full = ANSWER_BYTES_MAX - around;
        let fits = |body: Vec<u8>| answer(body, &[]).payload().is_some();
        assert!(fits(vec![b'x'; full]));
        assert!(!fits(vec![b'x'; full + 1]));
        // Each of these takes two bytes.
        assert!(fits([vec![b'"'; full / 2], vec![b'x'; full % 2]].concat()));
        assert!(!fits([vec![b'"'; full / 2], vec![b'x'; full % 2 + 1]].concat()));
        assert!(!fits(vec![b'x'; ANSWER_BYTES_MAX + 1]));
        assert!(!fits(vec![0xff; ANSWER_BYTES_MAX / 4 * 3]));
    }

    #[test]
    fn what_is_too_large_is_named_by_its_url_and_its_invocation() {
        let large = answer("", &[("annex-invocation-id", "i1"), ("content-type", "text/plain")]);
        check(
            &large.elsewhere("https://b/k?s"),
            r#"{"statusCode":413,"headers":{"annex-invocation-id":"i1","content-type":"application/json"},"cookies":[],"body":"{\"error\":\"the answer is larger than the 6291456 bytes that a response carries; get it from url within 15 minutes\",\"code\":\"answer-too-large\",\"status\":200,\"location\":\"/v1/invocations/i1\",\"url\":\"https://b/k?s\"}","isBase64Encoded":false}"#,
        );
        let other = answer("", &[]).elsewhere("u").body;
        let other: serde_json::Value = serde_json::from_slice(&other).unwrap();
        assert_eq!(other.get("location"), None);
    }
}
