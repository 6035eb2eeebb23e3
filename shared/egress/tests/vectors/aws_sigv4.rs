//! AWS Signature Version 4: AWS's own test suite by the canonical request, aws4fetch's requests by the whole auth.

use annex_egress::auth::aws;
use annex_egress::auth::aws::canonical::{self, PathRule, SignedHeaders};
use annex_egress::auth::aws::scope::{Scope, sha256};
use annex_egress::auth::{AddTo, AwsAuth};
use serde_json::{Value, json};

use crate::set::{self, Request, body, optional, pairs, same, same_if_given, text_or_empty};

#[test]
fn every_request_is_signed_as_listed() {
    set::run("aws-sigv4", |case| match case["kind"].as_str() {
        Some("sign-header" | "sign-query") => suite(case),
        Some("s3-docs") => s3_documentation(case),
        Some("signing-key") => signing_key(case),
        Some("aws4fetch-header" | "aws4fetch-query") => aws4fetch(case),
        kind => Err(format!("unknown kind {kind:?}")),
    });
}

/// What a canonical request and its signature are made of.
struct Parts<'a> {
    input: &'a Value,
    date_time: String,
    path: &'a str,
    query: &'a str,
    headers: Vec<(String, String)>,
    payload_hash: String,
    rule: PathRule,
    /// Whether the token of a session is added after signing.
    token_is_unsigned: bool,
}

/// What came out.
struct Signed {
    canonical: String,
    string_to_sign: String,
    names: String,
    signature: String,
    added_query: Vec<(String, String)>,
}

impl Parts<'_> {
    fn sign(&self) -> Signed {
        let input = self.input;
        let scope = Scope {
            date_time: &self.date_time,
            region: text_or_empty(input, "region"),
            service: text_or_empty(input, "service"),
        };
        let headers: Vec<(&str, &str)> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let headers = SignedHeaders::new(headers);

        let mut added = Vec::new();
        let mut token = optional(input, "sessionToken");
        let mut add = |name: &str, value: String| added.push((name.to_owned(), value));
        if input["mode"] == "query" {
            add("X-Amz-Algorithm", "AWS4-HMAC-SHA256".to_owned());
            add(
                "X-Amz-Credential",
                format!("{}/{}", text_or_empty(input, "accessKey"), scope.text()),
            );
            add("X-Amz-Date", self.date_time.clone());
            add("X-Amz-SignedHeaders", headers.names());
            add("X-Amz-Expires", input["expiresSeconds"].to_string());
            if let Some(token) = token.take_if(|_| !self.token_is_unsigned) {
                add("X-Amz-Security-Token", token);
            }
        }
        let path = canonical::path(self.path, self.rule);
        let query = canonical::query(self.query, &added);
        let method = text_or_empty(input, "method");
        let canonical = canonical::request(method, &path, &query, &headers, &self.payload_hash);
        let signature = scope.signature(text_or_empty(input, "secretKey"), &canonical);
        if let (Some(token), "query") = (token, text_or_empty(input, "mode")) {
            added.push(("X-Amz-Security-Token".to_owned(), token));
        }
        added.push(("X-Amz-Signature".to_owned(), signature.clone()));
        Signed {
            string_to_sign: scope.string_to_sign(&canonical),
            names: headers.names(),
            canonical,
            signature,
            added_query: added,
        }
    }

    fn authorization(&self, signed: &Signed) -> String {
        let date = &self.date_time[..8];
        format!(
            "AWS4-HMAC-SHA256 Credential={}/{date}/{}/{}/aws4_request, SignedHeaders={}, \
             Signature={}",
            text_or_empty(self.input, "accessKey"),
            text_or_empty(self.input, "region"),
            text_or_empty(self.input, "service"),
            signed.names,
            signed.signature
        )
    }
}

fn same_texts(signed: &Signed, expect: &Value) -> Result<(), String> {
    same("canonical request", signed.canonical.as_str(), &expect["canonicalRequest"])?;
    same("string to sign", signed.string_to_sign.as_str(), &expect["stringToSign"])?;
    same("signature", signed.signature.as_str(), &expect["signature"])
}

/// A case of AWS's suite, which signs every header there is and adds parameters in an order of its own.
fn suite(case: &Value) -> Result<(), String> {
    let (input, expect) = (&case["input"], &case["expect"]);
    let in_headers = input["mode"] == "header";
    let target = text_or_empty(input, "target");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let date_time = text_or_empty(input, "timestamp").replace(['-', ':'], "");
    let payload_hash = sha256(&body(input).unwrap_or_default());
    let token_is_unsigned = input["omitSessionTokenFromSignature"] == true;

    let mut headers = pairs(&input["headers"]);
    let token = optional(input, "sessionToken").filter(|_| in_headers);
    if in_headers {
        // The suite's older part has them in its requests already.
        let mut add = |name: &str, value: &str| {
            if !headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                headers.push((name.to_owned(), value.to_owned()));
            }
        };
        if let Some(token) = token.as_deref().filter(|_| !token_is_unsigned) {
            add("X-Amz-Security-Token", token);
        }
        add("X-Amz-Date", &date_time);
        if input["addContentSha256Header"] == true {
            add("x-amz-content-sha256", &payload_hash);
        }
    }
    let rule = if input["normalizePath"] == true { PathRule::Normalized } else { PathRule::AsSent };
    let parts =
        Parts { input, date_time, path, query, headers, payload_hash, rule, token_is_unsigned };
    let signed = parts.sign();
    same_texts(&signed, expect)?;

    let mut sent = parts.headers.clone();
    if in_headers {
        let authorization = parts.authorization(&signed);
        same_if_given("authorization", authorization.as_str(), &expect["authorization"])?;
        sent.push(("Authorization".to_owned(), authorization));
        let unsigned = token.filter(|_| token_is_unsigned);
        sent.extend(unsigned.map(|token| ("X-Amz-Security-Token".to_owned(), token)));
        same_headers(sent, &expect["signedHeaders"])?;
        return same_if_given("target", target, &expect["signedTarget"]);
    }
    same_headers(sent, &expect["signedHeaders"])?;
    let added: Vec<String> = signed
        .added_query
        .iter()
        .map(|(name, value)| format!("{name}={}", canonical::encode(value)))
        .collect();
    let joint = if query.is_empty() { "?" } else { "&" };
    let target = format!("{target}{joint}{}", added.join("&"));
    same_if_given("target", target, &expect["signedTarget"])
}

/// In any order, which is not the signature's business.
fn same_headers(mut found: Vec<(String, String)>, expected: &Value) -> Result<(), String> {
    let mut expected = match expected {
        Value::Null => return Ok(()),
        headers => pairs(headers),
    };
    found.sort();
    expected.sort();
    if found == expected { Ok(()) } else { Err(format!("headers: {found:?}, not {expected:?}")) }
}

/// An example of the documentation of S3, which signs `range` as well.
fn s3_documentation(case: &Value) -> Result<(), String> {
    let (input, expect) = (&case["input"], &case["expect"]);
    let hash = sha256(&body(input).unwrap_or_default());
    let query: Vec<String> = pairs(&input["query"])
        .iter()
        .map(|(name, value)| format!("{}={}", canonical::encode(name), canonical::encode(value)))
        .collect();
    let mut headers = pairs(&input["headers"]);
    headers.push(("host".to_owned(), text_or_empty(input, "host").to_owned()));
    let in_headers = input["mode"] == "header";
    if in_headers {
        headers.push(("x-amz-content-sha256".to_owned(), hash.clone()));
        headers.push(("x-amz-date".to_owned(), text_or_empty(input, "datetime").to_owned()));
    }
    let parts = Parts {
        input,
        date_time: text_or_empty(input, "datetime").to_owned(),
        path: text_or_empty(input, "path"),
        query: &query.join("&"),
        headers,
        payload_hash: if in_headers { hash } else { "UNSIGNED-PAYLOAD".to_owned() },
        rule: PathRule::Decoded,
        token_is_unsigned: false,
    };
    let signed = parts.sign();
    same_texts(&signed, expect)?;
    same("signed headers", signed.names, &expect["signedHeaders"])
}

fn signing_key(case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let scope = Scope {
        date_time: text_or_empty(input, "date"),
        region: text_or_empty(input, "region"),
        service: text_or_empty(input, "service"),
    };
    let key = hex::encode(scope.signing_key(text_or_empty(input, "secretKey")));
    same("signing key", key, &case["expect"]["signingKey_hex"])
}

/// A request that aws4fetch signed. Where it departs from AWS's rules, only a raw plus sign in a query is followed.
fn aws4fetch(case: &Value) -> Result<(), String> {
    let (input, expect) = (&case["input"], &case["expect"]);
    let request = Request {
        method: text_or_empty(input, "method").to_owned(),
        url: set::url(text_or_empty(input, "url")),
        headers: pairs(&input["headers"]),
        body: body(input),
    };
    same("target", request.url.target.as_str(), &expect["wireTarget"])?;
    let auth = AwsAuth {
        access_key: text_or_empty(input, "accessKey").to_owned(),
        secret_key: text_or_empty(input, "secretKey").to_owned(),
        region: text_or_empty(input, "region").to_owned(),
        service_name: text_or_empty(input, "service").to_owned(),
        service_token: optional(input, "sessionToken"),
        add_to: if input["mode"] == "query" { AddTo::QueryParams } else { AddTo::Headers },
    };
    let at: jiff::Timestamp = text_or_empty(input, "datetime").parse().expect("it is a time");
    let added = aws::build(&auth, &request.draft(), at).map_err(|fault| fault.0)?;
    let plus_in_query = request.url.query().is_some_and(|query| query.contains('+'));
    if expect["agreesWithSpec"] == false && !plus_in_query {
        return Ok(());
    }
    same("signature", added.derived[0].as_str(), &expect["signature"])?;
    if input["mode"] == "query" {
        return same("added query", json!(added.query), &expect["addedQuery"]);
    }
    // Of the list's requests, those of S3 set the hash of their body themselves, as we would.
    let same_hash = request.headers.iter().filter(|(name, _)| name != "x-amz-content-sha256");
    let without = Request { headers: same_hash.cloned().collect(), ..request };
    let own = pairs(&input["headers"]).into_iter().find(|(name, _)| name == "x-amz-content-sha256");
    if own.is_some_and(|(_, value)| value == sha256(without.draft().body_bytes())) {
        let again = aws::build(&auth, &without.draft(), at).map_err(|fault| fault.0)?;
        same("signature", again.derived[0].as_str(), &expect["signature"])?;
    }
    same("added headers", json!(added.headers), &expect["addedHeaders"])
}
