//! AWS Signature Version 4 over the final request, in its headers or presigned (AL-312 to AL-325).
//!
//! What is signed follows AWS's rules for the URL as sent, a raw `+` in a query being a space. Which headers stay
//! unsigned, and in which order parameters are added, follows aws4fetch, which the contract names.

use jiff::Timestamp;

use self::canonical::{PathRule, SignedHeaders};
use self::scope::{ALGORITHM, Scope, sha256};
use super::{AddTo, AuthFault, AwsAuth};
use crate::draft::{Additions, Draft};

pub mod canonical;
pub mod scope;

pub use self::canonical::encode;

#[cfg(test)]
mod tests;

/// Headers that aws4fetch leaves unsigned (AL-322).
const UNSIGNED: &[&str] = &[
    "authorization",
    "content-type",
    "content-length",
    "user-agent",
    "presigned-expires",
    "expect",
    "x-amzn-trace-id",
    "range",
    "connection",
];

/// Says what the payload's hash is; a value of the request's own is kept (AL-317).
const CONTENT_HASH: &str = "x-amz-content-sha256";

/// Stands for the hash of a payload that is not signed (AL-321).
const UNSIGNED_PAYLOAD: &str = "UNSIGNED-PAYLOAD";

/// How long a presigned request of S3 holds where its URL does not say: a day, in seconds (AL-319).
const S3_EXPIRES: &str = "86400";

/// Signs a request at a time. Added headers are in the order of their names; added parameters are in aws4fetch's order.
///
/// # Errors
///
/// A field that is empty or not visible ASCII, a request that sets `x-amz-date` (AL-323), and a URL with a parameter that
/// the signature adds (AL-324).
pub fn build(auth: &AwsAuth, draft: &Draft<'_>, at: Timestamp) -> Result<Additions, AuthFault> {
    check(auth)?;
    let date_time = at.strftime("%Y%m%dT%H%M%SZ").to_string();
    let scope = Scope { date_time: &date_time, region: &auth.region, service: &auth.service_name };
    match auth.add_to {
        AddTo::Headers => in_headers(auth, draft, scope),
        AddTo::QueryParams => presigned(auth, draft, scope),
    }
}

fn fault(text: &str) -> AuthFault {
    AuthFault(format!("aws-signature auth: {text}"))
}

/// Refuses what no signature can be made of, or what a header or a scope cannot hold.
fn check(auth: &AwsAuth) -> Result<(), AuthFault> {
    let visible = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    let named = [
        ("accessKey", &auth.access_key),
        ("region", &auth.region),
        ("serviceName", &auth.service_name),
    ];
    for (name, value) in named {
        if value.is_empty() {
            return Err(fault(&format!("{name} is empty")));
        }
        if !visible(value) || value.contains([',', '/']) {
            return Err(fault(&format!(
                "{name} must be visible ASCII characters other than a comma and a slash"
            )));
        }
    }
    if auth.secret_key.is_empty() {
        return Err(fault("secretKey is empty"));
    }
    if !auth.service_token.as_deref().is_none_or(visible) {
        return Err(fault("serviceToken must be visible ASCII characters"));
    }
    Ok(())
}

fn is_s3(auth: &AwsAuth) -> bool {
    auth.service_name == "s3"
}

fn token(auth: &AwsAuth) -> Option<&str> {
    auth.service_token.as_deref().filter(|token| !token.is_empty())
}

fn in_headers(auth: &AwsAuth, draft: &Draft<'_>, scope: Scope<'_>) -> Result<Additions, AuthFault> {
    if draft.header("x-amz-date").is_some() {
        return Err(AuthFault::new("header x-amz-date is set by both the request and its auth"));
    }
    let payload_hash = own_hash(draft).unwrap_or_else(|| sha256(draft.body_bytes()));
    let mut added = Vec::new();
    if is_s3(auth) && draft.header(CONTENT_HASH).is_none() {
        added.push((CONTENT_HASH.to_owned(), payload_hash.clone()));
    }
    added.push(("x-amz-date".to_owned(), scope.date_time.to_owned()));
    if let Some(token) = token(auth) {
        added.push(("x-amz-security-token".to_owned(), token.to_owned()));
    }

    let headers = signed_headers(draft, &added);
    let signature = sign(auth, draft, scope, &[], &headers, &payload_hash);
    let value = format!(
        "{ALGORITHM} Credential={}/{}, SignedHeaders={}, Signature={signature}",
        auth.access_key,
        scope.text(),
        headers.names()
    );
    added.insert(0, ("authorization".to_owned(), value));
    Ok(Additions { headers: added, query: Vec::new(), derived: vec![signature] })
}

fn presigned(auth: &AwsAuth, draft: &Draft<'_>, scope: Scope<'_>) -> Result<Additions, AuthFault> {
    if draft.header("x-amz-date").is_some() {
        return Err(fault("the request sets x-amz-date, and the signature has its own date"));
    }
    let payload_hash = own_hash(draft).unwrap_or_else(|| {
        if is_s3(auth) { UNSIGNED_PAYLOAD.to_owned() } else { sha256(draft.body_bytes()) }
    });
    let headers = signed_headers(draft, &[]);

    let mut added: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: &str| added.push((name.to_owned(), value.to_owned()));
    add("X-Amz-Date", scope.date_time);
    if let Some(token) = token(auth) {
        add("X-Amz-Security-Token", token);
    }
    if is_s3(auth) && !has_parameter(draft, "X-Amz-Expires") {
        add("X-Amz-Expires", S3_EXPIRES);
    }
    add("X-Amz-Algorithm", ALGORITHM);
    add("X-Amz-Credential", &format!("{}/{}", auth.access_key, scope.text()));
    add("X-Amz-SignedHeaders", &headers.names());

    let names = added.iter().map(|(name, _)| name.as_str()).chain(["X-Amz-Signature"]);
    if let Some(name) = names.into_iter().find(|name| has_parameter(draft, name)) {
        return Err(fault(&format!("query parameter {name} is set by both the URL and its auth")));
    }
    let signature = sign(auth, draft, scope, &added, &headers, &payload_hash);
    added.push(("X-Amz-Signature".to_owned(), signature.clone()));
    Ok(Additions { headers: Vec::new(), query: added, derived: vec![signature] })
}

/// The payload's hash as the request says it.
fn own_hash(draft: &Draft<'_>) -> Option<String> {
    let value = draft.header(CONTENT_HASH)?.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

/// Whether the URL's query has a parameter of this name, however it is encoded.
fn has_parameter(draft: &Draft<'_>, name: &str) -> bool {
    let query = draft.url.query().unwrap_or_default();
    canonical::parameters(query).any(|(known, _)| known == name.as_bytes())
}

fn signed_headers(draft: &Draft<'_>, added: &[(String, String)]) -> SignedHeaders {
    let host = draft.url.host_header();
    let others = draft.headers.iter().filter(|(name, _)| !UNSIGNED.contains(&name.as_str()));
    let others = others.chain(added).map(|(name, value)| (name.as_str(), value.as_str()));
    SignedHeaders::new([("host", host.as_str())].into_iter().chain(others))
}

fn sign(
    auth: &AwsAuth,
    draft: &Draft<'_>,
    scope: Scope<'_>,
    added_query: &[(String, String)],
    headers: &SignedHeaders,
    payload_hash: &str,
) -> String {
    let rule = if is_s3(auth) { PathRule::Decoded } else { PathRule::Normalized };
    let path = canonical::path(draft.url.path(), rule);
    let query = canonical::query(draft.url.query().unwrap_or_default(), added_query);
    let request = canonical::request(draft.method, &path, &query, headers, payload_hash);
    scope.signature(&auth.secret_key, &request)
}
