//! Akamai EdgeGrid: Akamai's published tests, and what its Python client signs.

use annex_egress::auth::EdgeGridAuth;
use annex_egress::auth::edgegrid;
use annex_egress::draft::{Scheme, SentUrl};
use serde_json::Value;

use crate::set::{
    self, Fixed, Request, body, optional, pairs, same, same_if_given, text_or_empty, texts,
};

#[test]
fn every_request_is_signed_as_listed() {
    set::run("akamai-edgegrid", |case| match case["kind"].as_str() {
        Some("sign") => sign(case),
        Some("content-hash") => content_hash(case),
        Some("signing-key") => signing_key(case),
        kind => Err(format!("unknown kind {kind:?}")),
    });
}

fn sign(case: &Value) -> Result<(), String> {
    let (input, expect) = (&case["input"], &case["expect"]);
    let (host, port) = match text_or_empty(input, "host").split_once(':') {
        Some((host, port)) => (host, port.parse().ok()),
        None => (text_or_empty(input, "host"), None),
    };
    let https = text_or_empty(input, "scheme") == "https";
    let lower = |(name, value): (String, String)| (name.to_lowercase(), value);
    let request = Request {
        method: text_or_empty(input, "method").to_owned(),
        url: SentUrl {
            scheme: if https { Scheme::Https } else { Scheme::Http },
            host: host.to_owned(),
            port,
            target: text_or_empty(input, "target").to_owned(),
        },
        headers: pairs(&input["headers"]).into_iter().map(lower).collect(),
        body: body(input),
    };
    let names = texts(&input["headersToSign"]);
    let size_max = input["maxBodySize"].as_u64();
    let auth = EdgeGridAuth {
        access_token: text_or_empty(input, "accessToken").to_owned(),
        client_token: text_or_empty(input, "clientToken").to_owned(),
        client_secret: text_or_empty(input, "clientSecret").to_owned(),
        host: None,
        headers_to_sign: Some(names.join(",")),
        max_body_size: size_max,
        nonce: optional(input, "nonce"),
        timestamp: optional(input, "timestamp"),
    };
    let at = jiff::Timestamp::UNIX_EPOCH;
    let nonces = Fixed("fresh".to_owned());
    let added =
        edgegrid::build(&auth, &request.draft(), None, at, &nonces).map_err(|fault| fault.0)?;
    same("authorization", added.headers[0].1.as_str(), &expect["authorization"])?;
    let names: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let data = edgegrid::data_to_sign(&request.draft(), &names, size_max.unwrap_or(131_072));
    same_if_given("signed text", data, &expect["dataToSign"])
}

fn content_hash(case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let bytes = body(input).unwrap_or_default();
    let size_max = input["maxBodySize"].as_u64().unwrap_or(131_072);
    let hash = edgegrid::content_hash(text_or_empty(input, "method"), &bytes, size_max);
    same("hash", hash, &case["expect"]["contentHash"])
}

fn signing_key(case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let key = edgegrid::signing_key(
        text_or_empty(input, "clientSecret"),
        text_or_empty(input, "timestamp"),
    );
    let expect = case["expect"].as_object().into_iter().flatten().next();
    same("key", key, expect.ok_or("nothing is expected")?.1)
}
