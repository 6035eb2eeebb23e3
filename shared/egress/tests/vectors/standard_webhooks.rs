//! The set `standard-webhooks`: signatures of messages, and their verification.

use annex_egress::standard_webhooks::{Headers, sign, verify};

use crate::set::{body, cases, text};

#[test]
fn every_message_is_signed_and_verified_as_published() {
    for case in cases("standard-webhooks") {
        let input = &case["input"];
        match text(&case, "kind") {
            "sign" => {
                let (secret, id) = (text(input, "secret"), text(input, "id"));
                let signed = sign(
                    secret,
                    id,
                    input["timestamp"].as_i64().unwrap(),
                    &body(input).unwrap_or_default(),
                );
                if !case["expect"].is_null() {
                    let expected = case["expect"]["signature"].as_str();
                    assert_eq!(signed.ok().as_deref(), expected, "{case}");
                }
            }
            "verify" => {
                let headers = input["headers"].as_object().unwrap();
                let headers =
                    headers.iter().map(|(name, value)| (&**name, value.as_str().unwrap()));
                let now = input["now"].as_i64().unwrap();
                let tolerance = input["toleranceSeconds"].as_u64().unwrap();
                let headers = Headers::of(headers);
                let is_valid = verify(
                    text(input, "secret"),
                    headers,
                    &body(input).unwrap_or_default(),
                    now,
                    tolerance,
                );
                if let Some(valid) = case["expect"]["valid"].as_bool() {
                    assert_eq!(is_valid, valid, "{case}");
                }
            }
            other => panic!("an unknown kind {other}: {case}"),
        }
    }
}
