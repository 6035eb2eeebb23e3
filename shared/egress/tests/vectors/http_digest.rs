//! HTTP Digest: answers, the choice of a challenge, and a third request.

use annex_egress::auth::digest::{self, Challenge, Choice, Digest, header};
use serde_json::Value;

use crate::set::{self, Fixed, Request, body, same, same_if_given, text_or_empty, texts};

#[test]
fn every_challenge_is_answered_as_listed() {
    set::run("http-digest", |case| match case["kind"].as_str() {
        Some("respond") => respond(case),
        Some("choose") => choose(case),
        Some("stale") => stale(case),
        kind => Err(format!("unknown kind {kind:?}")),
    });
}

fn chosen(lines: &[&str]) -> Result<Challenge, String> {
    match digest::choose(lines) {
        Choice::Answer(challenge) => Ok(*challenge),
        other => Err(format!("{other:?}")),
    }
}

fn respond(case: &Value) -> Result<(), String> {
    let (input, expect) = (&case["input"], &case["expect"]);
    let challenge = chosen(&[text_or_empty(input, "challenge")])?;
    let request = Request {
        method: text_or_empty(input, "method").to_owned(),
        url: annex_egress::draft::SentUrl {
            target: text_or_empty(input, "target").to_owned(),
            ..set::url("https://vendor.example/")
        },
        headers: Vec::new(),
        body: body(input),
    };
    let digest = Digest::new(text_or_empty(input, "username"), text_or_empty(input, "password"));
    let nonces = Fixed(text_or_empty(input, "cnonce").to_owned());
    let added = digest.respond(&challenge, &request.draft(), &nonces);
    same("derived value", added.derived[0].as_str(), &expect["response"])?;

    // What was sent is read back by the grammar it is written in.
    let sent = header::offers(&[&added.headers[0].1]).remove(0);
    let value = |name| sent.parameter(name).ok().flatten();
    same("response", value("response"), &expect["response"])?;
    same("qop", value("qop"), &expect["qop"])?;
    same("nc", value("nc"), &input["nc"])?;
    same("cnonce", value("cnonce"), &input["cnonce"])?;
    same("uri", value("uri"), &input["target"])?;
    for name in ["algorithm", "opaque", "realm", "nonce"] {
        same_if_given(name, value(name), &expect[name])?;
    }
    same_if_given("userhash", value("userhash") == Some("true"), &expect["userhash"])?;
    match (&expect["username"], &expect["usernameStar"]) {
        (Value::Null, Value::Null) => same("username", value("username"), &input["username"]),
        (Value::Null, star) => same("username*", value("username*"), star),
        (username, _) => same("username", value("username"), username),
    }
}

fn choose(case: &Value) -> Result<(), String> {
    let answer = match digest::choose(&texts(&case["input"]["wwwAuthenticate"])) {
        Choice::Answer(challenge) => challenge.nonce,
        Choice::NotDigest => "none".to_owned(),
        Choice::Error(fault) => {
            let start = "digest auth: the vendor's challenge cannot be answered: ";
            assert!(fault.0.starts_with(start), "{fault}");
            "error".to_owned()
        }
    };
    same_if_given("answer", answer, &case["expect"]["answer"])
}

fn stale(case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let first = chosen(&[text_or_empty(input, "first")])?;
    let third = digest::wants_third(&first, &[text_or_empty(input, "second")]);
    same_if_given("third request", third.is_some(), &case["expect"]["thirdRequest"])
}
