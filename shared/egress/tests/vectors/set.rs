//! The cases of a set, and what they have in common.

use annex_egress::draft::{Draft, Nonces, Scheme, SentUrl};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

pub(crate) use annex_vectors::{cases, run, same};

/// Compares where the case expects something at all.
pub(crate) fn same_if_given(
    what: &str,
    found: impl Into<Value>,
    expected: &Value,
) -> Result<(), String> {
    if expected.is_null() { Ok(()) } else { same(what, found, expected) }
}

/// A text that a case or an input always has.
#[track_caller]
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} of {value} is text"))
}

/// A text of an input; empty where it is null or absent.
pub(crate) fn text_or_empty<'a>(input: &'a Value, name: &str) -> &'a str {
    input[name].as_str().unwrap_or_default()
}

/// A text of an input that may be absent.
pub(crate) fn optional(input: &Value, name: &str) -> Option<String> {
    input[name].as_str().map(str::to_owned)
}

/// The texts of a list.
pub(crate) fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The pairs of a list of names and values.
pub(crate) fn pairs(list: &Value) -> Vec<(String, String)> {
    let pairs = list.as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    pairs.map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
}

/// The body of an input: none where it is null or absent.
pub(crate) fn body(input: &Value) -> Option<Vec<u8>> {
    match input["body_b64"].as_str() {
        Some(text) => Some(STANDARD.decode(text).expect("it is base64")),
        None => input["body"].as_str().map(|text| text.as_bytes().to_vec()),
    }
}

/// The URL of a text, as a WHATWG URL sends it.
pub(crate) fn url(text: &str) -> SentUrl {
    let url = url::Url::parse(text).expect("it is a URL");
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    SentUrl {
        scheme: if url.scheme() == "https" { Scheme::Https } else { Scheme::Http },
        host: url.host_str().expect("it has a host").to_owned(),
        port: url.port(),
        target: format!("{}{query}", url.path()),
    }
}

/// A request of a case.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) url: SentUrl,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
}

impl Request {
    pub(crate) fn draft(&self) -> Draft<'_> {
        Draft {
            method: &self.method,
            url: &self.url,
            headers: &self.headers,
            body: self.body.as_deref(),
        }
    }
}

/// Answers the same for every random value.
pub(crate) struct Fixed(pub(crate) String);

impl Nonces for Fixed {
    fn hawk(&self) -> String {
        self.0.clone()
    }

    fn cnonce(&self) -> String {
        self.0.clone()
    }

    fn uuid(&self) -> String {
        self.0.clone()
    }

    fn boundary(&self) -> String {
        self.0.clone()
    }
}
