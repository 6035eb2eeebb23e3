//! Akamai EdgeGrid, as Akamai's own clients sign (AL-363 to AL-384).

use std::collections::HashSet;

use aws_lc_rs::{digest, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use super::{AuthFault, EdgeGridAuth};
use crate::draft::{Additions, Draft, Nonces};

#[cfg(test)]
mod tests;

/// Bytes of a POST's body that are hashed where the auth does not say (AL-374).
const BODY_BYTES_MAX: u64 = 131_072;

/// Headers that cannot be signed: the auth's own, and those the host sets (AL-377, AL-378).
const RESERVED: &[&str] = &[
    "authorization",
    "connection",
    "content-length",
    "expect",
    "host",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// Builds the header of a request at a time. `sign_header` is the name in lower case of the header that the request's own
/// signature goes into, after this one was made.
///
/// # Errors
///
/// Tokens and a nonce with other characters than a header's part can hold (AL-381), a secret that is empty, a host that is
/// not the URL's (AL-376), headers that cannot be signed (AL-377 to AL-379), and a timestamp of another form.
pub fn build(
    auth: &EdgeGridAuth,
    draft: &Draft<'_>,
    sign_header: Option<&str>,
    at: Timestamp,
    nonces: &dyn Nonces,
) -> Result<Additions, AuthFault> {
    let nonce = given(&auth.nonce).map_or_else(|| nonces.uuid(), str::to_owned);
    check(auth, draft, &nonce)?;
    let timestamp = timestamp(auth, at)?;
    let names = headers_to_sign(auth, sign_header)?;

    let unsigned = format!(
        "EG1-HMAC-SHA256 client_token={};access_token={};timestamp={timestamp};nonce={nonce};",
        auth.client_token, auth.access_token
    );
    let size_max = auth.max_body_size.unwrap_or(BODY_BYTES_MAX);
    let data = data_to_sign(draft, &names, size_max) + &unsigned;
    let key = signing_key(&auth.client_secret, &timestamp);
    let signature = mac(&key, &data);
    Ok(Additions {
        headers: vec![("authorization".to_owned(), format!("{unsigned}signature={signature}"))],
        query: Vec::new(),
        derived: vec![key, signature],
    })
}

/// The text under the signature, up to the unsigned authorization that ends it (AL-368 to AL-373). `names` are in lower
/// case.
pub fn data_to_sign(draft: &Draft<'_>, names: &[String], body_size_max: u64) -> String {
    let headers: Vec<String> = names
        .iter()
        .filter_map(|name| Some(format!("{name}:{}", tidy(draft.header(name)?))))
        .collect();
    let url = draft.url;
    format!(
        "{}\t{}\t{}\t{}\t{}\t{}\t",
        draft.method,
        url.scheme.as_str(),
        url.host_header(),
        url.target,
        headers.join("\t"),
        content_hash(draft.method, draft.body_bytes(), body_size_max)
    )
}

/// The hash of the first bytes of a POST's body in base64; empty for other methods, and where there are no such bytes
/// (AL-372, AL-373). A size of 0 leaves none, as in Akamai's Python client.
pub fn content_hash(method: &str, body: &[u8], size_max: u64) -> String {
    let size = usize::try_from(size_max).unwrap_or(usize::MAX).min(body.len());
    let head = &body[..size];
    if method != "POST" || head.is_empty() {
        return String::new();
    }
    STANDARD.encode(digest::digest(&digest::SHA256, head))
}

/// The key derived from the client secret and a timestamp (AL-366).
pub fn signing_key(client_secret: &str, timestamp: &str) -> String {
    mac(client_secret, timestamp)
}

fn mac(key: &str, text: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    STANDARD.encode(hmac::sign(&key, text.as_bytes()))
}

fn fault(text: &str) -> AuthFault {
    AuthFault(format!("akamai-eg auth: {text}"))
}

/// An optional text that is not empty.
fn given(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

/// Outer white space off, inner white space as one space (AL-371).
fn tidy(value: &str) -> String {
    let words: Vec<&str> = value.split_ascii_whitespace().collect();
    words.join(" ")
}

fn check(auth: &EdgeGridAuth, draft: &Draft<'_>, nonce: &str) -> Result<(), AuthFault> {
    let parts = [
        ("accessToken", auth.access_token.as_str()),
        ("clientToken", &auth.client_token),
        ("nonce", nonce),
    ];
    for (name, text) in parts {
        if text.is_empty() {
            return Err(fault(&format!("{name} is empty")));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b';') {
            return Err(fault(&format!(
                "{name} must be printable ASCII without a space and without a semicolon"
            )));
        }
    }
    if auth.client_secret.is_empty() {
        return Err(fault("clientSecret is empty"));
    }
    match given(&auth.host) {
        Some(host) if !is_host(host, draft) => {
            Err(fault("host is not the host of the request's URL"))
        }
        _ => Ok(()),
    }
}

/// Whether a text is the URL's host, with its port or without (AL-376).
fn is_host(text: &str, draft: &Draft<'_>) -> bool {
    let url = draft.url;
    let with_port = format!("{}:{}", url.host, url.port_or_default());
    text.eq_ignore_ascii_case(&url.host) || text.eq_ignore_ascii_case(&with_port)
}

/// `yyyyMMddTHH:mm:ss+0000` (AL-367).
fn timestamp(auth: &EdgeGridAuth, at: Timestamp) -> Result<String, AuthFault> {
    let Some(text) = given(&auth.timestamp) else {
        return Ok(at.strftime("%Y%m%dT%H:%M:%S+0000").to_string());
    };
    let form = "ddddddddTdd:dd:dd+0000";
    let fits = text.len() == form.len()
        && text.bytes().zip(form.bytes()).all(|(byte, place)| match place {
            b'd' => byte.is_ascii_digit(),
            place => byte == place,
        });
    if !fits {
        return Err(fault("timestamp must have the form yyyyMMddTHH:mm:ss+0000"));
    }
    Ok(text.to_owned())
}

/// The names of the headers to sign, in lower case and in their order (AL-369).
fn headers_to_sign(
    auth: &EdgeGridAuth,
    sign_header: Option<&str>,
) -> Result<Vec<String>, AuthFault> {
    let list = given(&auth.headers_to_sign).unwrap_or_default();
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    let mut seen = HashSet::new();
    names
        .map(|name| {
            let name = http::HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| fault("headersToSign holds text that is no header name"))?;
            let name = name.as_str();
            if RESERVED.contains(&name) {
                return Err(fault(&format!("headersToSign cannot name {name}")));
            }
            if sign_header.is_some_and(|header| header.eq_ignore_ascii_case(name)) {
                return Err(fault("headersToSign cannot name the header of the request's sign"));
            }
            // A long header that is named over and over would be signed as often.
            if !seen.insert(name.to_owned()) {
                return Err(fault("headersToSign names a header twice"));
            }
            Ok(name.to_owned())
        })
        .collect()
}
