//! The host functions `hmac` and `hmac_verify` as JSON (AL-403 to AL-420).

use super::*;

fn hmac(request: &Value) -> Value {
    let answer = Scene::new().call.hmac(request.to_string().replace("TAG", TAG).as_bytes());
    serde_json::from_str(&answer).unwrap()
}

fn verify(request: &Value) -> Value {
    serde_json::from_str(&Scene::new().call.hmac_verify(request.to_string().as_bytes())).unwrap()
}

fn request(fields: Value) -> Value {
    // RFC 4231, test case 2.
    let mut request = json!({
        "algorithm": "sha256",
        "key": {"text": "Jefe"},
        "data": {"text": "what do ya want for nothing?"},
    });
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    request
}

const HEX: &str = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";

// covers: AL-081, AL-403, AL-404, AL-405, AL-406, AL-407
#[test]
fn signature_is_answered() {
    assert_eq!(hmac(&request(json!({}))), json!({"signature": HEX}));
    let base64 = json!({"data": {"base64": "d2hhdCBkbyB5YSB3YW50IGZvciBub3RoaW5nPw=="}});
    assert_eq!(hmac(&request(base64)), json!({"signature": HEX}));
    let encoded = json!({"signature": "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM="});
    assert_eq!(hmac(&request(json!({"encoding": "base64"}))), encoded);
    let by_name = request(json!({"key": {"secret": "apiKey"}}));
    let by_text = request(json!({"key": {"text": "key-12345678"}}));
    assert_eq!(hmac(&by_name), hmac(&by_text));
    let hex = request(json!({"key": {"text": "4A656665"}, "keyEncoding": "hex"}));
    assert_eq!(hmac(&hex), json!({"signature": HEX}));
    let whsec = request(json!({"key": {"text": "whsec_SmVmZQ"}, "keyEncoding": "base64"}));
    assert_eq!(hmac(&whsec), json!({"signature": HEX}));
}

// covers: AL-029, AL-032, AL-406, AL-412, AL-413, AL-414
#[test]
fn what_cannot_be_signed_is_an_error() {
    let error = |text: &str| json!({"error": text});
    let bad = request(json!({"key": {"text": "***secretkey***"}, "keyEncoding": "base64"}));
    assert_eq!(hmac(&bad), error("the key is not base64"));
    let bad = request(json!({"key": {"text": "zz"}, "keyEncoding": "hex"}));
    assert_eq!(hmac(&bad), error("the key is not hex"));
    let nope = request(json!({"key": {"secret": "nope"}}));
    assert_eq!(hmac(&nope), error("secret nope is not set for this install"));
    let md5 = request(json!({"algorithm": "md5", "more": 1}));
    assert_eq!(
        hmac(&md5),
        error(
            "invalid request: algorithm: expected one of sha1, sha256, sha512; more: unknown \
             field (the app may be built with a newer SDK than this platform runs)"
        )
    );
    let both = request(json!({"data": {"text": "a", "base64": "YQ=="}}));
    assert_eq!(hmac(&both), error("invalid request: data: expected either text or base64"));
    let call = Scene::new().call;
    assert_eq!(call.hmac(b"{"), "{\"error\":\"request is not JSON\"}");
    assert_eq!(call.hmac_verify(b"[1"), "{\"error\":\"request is not JSON\"}");
}

// covers: AL-081, AL-415, AL-417, AL-418, AL-419
#[test]
fn signature_is_verified() {
    let valid = |signature: &str, encoding: &str| {
        verify(&request(json!({"signature": signature, "encoding": encoding})))
    };
    let base64 = "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=";
    for (signature, encoding, expected) in [
        (HEX, "hex", true),
        (&HEX.to_uppercase(), "hex", true),
        (&HEX.replace('5', "6"), "hex", false),
        (&HEX[2..], "hex", false),
        ("", "hex", false),
        (base64, "base64", true),
        (&base64.to_lowercase(), "base64", false),
        (HEX, "base64", false),
    ] {
        assert_eq!(valid(signature, encoding), json!({"valid": expected}), "{signature}");
    }
    let by_name = |signature: &str| {
        verify(&request(json!({"key": {"secret": "jefe"}, "signature": signature})))
    };
    assert_eq!(by_name(HEX), json!({"valid": true}));
    assert_eq!(by_name(&HEX.replace('5', "6")), json!({"valid": false}));
    let missing = json!({"error": "invalid request: signature: is missing"});
    assert_eq!(verify(&request(json!({}))), missing);
}
