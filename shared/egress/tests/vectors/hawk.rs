//! Hawk: headers of requests, checks of answers, and what is refused.

use annex_egress::auth::hawk::mac::{Kind, Parts, payload_hash};
use annex_egress::auth::hawk::{self, Artifacts};
use annex_egress::auth::{HawkAlgorithm, HawkAuth};
use serde_json::Value;

use crate::set::{self, Fixed, Request, body, optional, same, text_or_empty};

#[test]
fn every_exchange_is_made_and_checked_as_listed() {
    set::run("hawk", |case| match case["kind"].as_str() {
        Some("header") => header(case),
        Some("refused") => refused(case),
        Some("response") => response(case),
        Some("server-mac") => server_mac(case),
        Some("normalized") => normalized(case),
        kind => Err(format!("unknown kind {kind:?}")),
    });
}

fn algorithm(input: &Value) -> HawkAlgorithm {
    match text_or_empty(input, "algorithm") {
        "sha1" => HawkAlgorithm::Sha1,
        _ => HawkAlgorithm::Sha256,
    }
}

/// A number or the text of one.
fn number(value: &Value) -> i64 {
    value.as_i64().or_else(|| value.as_str()?.parse().ok()).expect("a number")
}

type Built = Result<(annex_egress::draft::Additions, Artifacts), String>;

fn build(input: &Value) -> Built {
    let auth = HawkAuth {
        auth_id: text_or_empty(input, "authId").to_owned(),
        auth_key: text_or_empty(input, "authKey").to_owned(),
        algorithm: algorithm(input),
        include_payload_hash: input["includePayloadHash"] == true,
        ext: optional(input, "ext"),
        app: optional(input, "app"),
        dlg: optional(input, "dlg"),
        nonce: optional(input, "nonce"),
        timestamp: Some(number(&input["timestamp"])),
    };
    let content_type = optional(input, "contentType");
    let request = Request {
        method: text_or_empty(input, "method").to_owned(),
        url: set::url(text_or_empty(input, "url")),
        headers: content_type.map(|kind| ("content-type".to_owned(), kind)).into_iter().collect(),
        body: body(input),
    };
    let at = jiff::Timestamp::UNIX_EPOCH;
    hawk::build(&auth, &request.draft(), at, &Fixed("fresh".to_owned())).map_err(|fault| fault.0)
}

fn header(case: &Value) -> Result<(), String> {
    let (added, artifacts) = build(&case["input"])?;
    let expect = &case["expect"];
    same("authorization", added.headers[0].1.as_str(), &expect["authorization"])?;
    same("mac", added.derived[0].as_str(), &expect["mac"])?;
    let (ext, hash) = (optional(&case["input"], "ext"), optional(expect, "payloadHash"));
    let parts = Parts {
        timestamp: &artifacts.timestamp,
        nonce: &artifacts.nonce,
        method: &artifacts.method,
        resource: &artifacts.resource,
        host: &artifacts.host,
        port: artifacts.port,
        hash: hash.as_deref(),
        ext: ext.as_deref(),
        app: artifacts.app.as_deref(),
        dlg: artifacts.dlg.as_deref(),
    };
    same("normalized text", parts.normalized(Kind::Header), &expect["normalized"])
}

fn refused(case: &Value) -> Result<(), String> {
    match build(&case["input"]).err() {
        Some(text) if text.starts_with("hawk auth: ") => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

fn artifacts(input: &Value) -> Artifacts {
    Artifacts {
        key: text_or_empty(input, "authKey").to_owned(),
        algorithm: algorithm(input),
        timestamp: number(&input["timestamp"]).to_string(),
        nonce: text_or_empty(input, "nonce").to_owned(),
        method: text_or_empty(input, "method").to_owned(),
        resource: text_or_empty(input, "resource").to_owned(),
        host: text_or_empty(input, "host").to_owned(),
        port: number(&input["port"]).try_into().expect("a port"),
        app: optional(input, "app"),
        dlg: optional(input, "dlg"),
    }
}

fn response(case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let kind = optional(input, "contentType");
    let body = body(input).unwrap_or_default();
    let checked = optional(input, "serverAuthorization").map_or(Ok(()), |header| {
        artifacts(input).check_answer(&header, kind.as_deref(), &body).map_err(|fault| fault.0)
    });
    let outcome = match checked.err().as_deref() {
        None => "ok",
        Some("hawk auth: the vendor's server-authorization cannot be read") => "unreadable",
        Some("hawk auth: the vendor's server-authorization does not verify") => "mac",
        Some(
            "hawk auth: the vendor's answer does not match the hash in its server-authorization",
        ) => "hash",
        Some(other) => return Err(other.to_owned()),
    };
    same("outcome", outcome, &case["expect"]["outcome"])
}

fn server_mac(case: &Value) -> Result<(), String> {
    let (input, expect) = (&case["input"], &case["expect"]);
    let kind = optional(input, "contentType");
    let hash = optional(expect, "hash");
    if hash.is_some() {
        let bytes = body(input).unwrap_or_default();
        let found = payload_hash(algorithm(input), kind.as_deref(), &bytes);
        same("hash", found, &expect["hash"])?;
    }
    let (mac, hash) = (text_or_empty(expect, "mac"), hash.map(|hash| format!(", hash=\"{hash}\"")));
    let ext = optional(input, "ext").map(|ext| format!(", ext=\"{ext}\""));
    let header =
        format!("Hawk mac=\"{mac}\"{}{}", hash.unwrap_or_default(), ext.unwrap_or_default());
    let bytes = body(input).unwrap_or_default();
    artifacts(input).check_answer(&header, kind.as_deref(), &bytes).map_err(|fault| fault.0)
}

fn normalized(case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let timestamp = number(&input["ts"]).to_string();
    let given = |name| input[name].as_str();
    let parts = Parts {
        timestamp: &timestamp,
        nonce: text_or_empty(input, "nonce"),
        method: text_or_empty(input, "method"),
        resource: text_or_empty(input, "resource"),
        host: text_or_empty(input, "host"),
        port: number(&input["port"]).try_into().expect("a port"),
        hash: given("hash"),
        ext: given("ext"),
        app: given("app"),
        dlg: given("dlg"),
    };
    let kind = if given("type") == Some("response") { Kind::Response } else { Kind::Header };
    same("normalized text", parts.normalized(kind), &case["expect"]["normalized"])
}
