//! The set `hmac`: signatures, their verification, and keys' texts.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use annex_egress::hmac::{HmacAlgorithm, KeyEncoding, SignatureEncoding, key_bytes, sign, verify};
use serde_json::Value;

use crate::set::{cases, text};

#[test]
fn every_hmac_case_comes_out_as_published() {
    for case in cases("hmac") {
        let input = &case["input"];
        let expect = &case["expect"];
        match text(&case, "kind") {
            "sign" => check_sign(&case, input, expect),
            "verify" => check_verify(&case, input, expect),
            "key-decode" => check_key(&case, input, expect),
            other => panic!("an unknown kind {other}: {case}"),
        }
    }
}

fn algorithm(input: &Value) -> HmacAlgorithm {
    match text(input, "algorithm") {
        "sha1" => HmacAlgorithm::Sha1,
        "sha256" => HmacAlgorithm::Sha256,
        "sha512" => HmacAlgorithm::Sha512,
        other => panic!("an unknown algorithm {other}"),
    }
}

/// Bytes in hex, or a text.
fn bytes(input: &Value, name: &str) -> Vec<u8> {
    match input[format!("{name}_hex")].as_str() {
        Some(digits) => hex::decode(digits).unwrap(),
        None => input[name].as_str().unwrap().as_bytes().to_vec(),
    }
}

fn check_sign(case: &Value, input: &Value, expect: &Value) {
    let (key, data) = (bytes(input, "key"), bytes(input, "data"));
    let signed = |encoding| sign(algorithm(input), &key, &data, encoding);
    let hex = signed(SignatureEncoding::Hex);
    // Some RFCs print a part of a signature only.
    let length = expect["truncatedToBytes"].as_u64().map_or(hex.len(), |bytes| 2 * bytes as usize);
    assert_eq!(&hex[..length], expect["hex"].as_str().unwrap(), "{case}");
    if length == hex.len() {
        assert_eq!(signed(SignatureEncoding::Base64), expect["base64"].as_str().unwrap(), "{case}");
    }
}

fn check_verify(case: &Value, input: &Value, expect: &Value) {
    let encoding = match text(input, "encoding") {
        "hex" => SignatureEncoding::Hex,
        "base64" => SignatureEncoding::Base64,
        other => panic!("an unknown encoding {other}: {case}"),
    };
    let signature = text(input, "signature");
    let (key, data) = (bytes(input, "key"), bytes(input, "data"));
    let is_valid = verify(algorithm(input), &key, &data, encoding, signature);
    if let Some(valid) = expect["valid"].as_bool() {
        assert_eq!(is_valid, valid, "{case}");
    }
}

fn check_key(case: &Value, input: &Value, expect: &Value) {
    let encoding = match text(input, "keyEncoding") {
        "utf8" => KeyEncoding::Utf8,
        "base64" => KeyEncoding::Base64,
        "hex" => KeyEncoding::Hex,
        other => panic!("an unknown key encoding {other}: {case}"),
    };
    let key = key_bytes(text(input, "text"), encoding).ok().map(hex::encode);
    if expect.is_null() || (key.is_none() && expect["refusalAlsoFine"] == true) {
        return;
    }
    assert_eq!(key.as_deref(), expect["key_hex"].as_str(), "{case}");
}
