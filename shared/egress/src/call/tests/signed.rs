//! Signatures over the final request (AL-265, AL-385 to AL-402).

use super::*;
use crate::hmac::{HmacAlgorithm, SignatureEncoding, sign};

fn signed(fields: Value) -> Value {
    let mut sign = json!({"header": "X-Sig", "algorithm": "sha256", "key": {"secret": "apiKey"}});
    sign.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    sign
}

#[track_caller]
fn signs(request: Value, text: &'static str) -> impl Future<Output = ()> {
    let at = std::panic::Location::caller();
    async move {
        let sent = Scene::new().sends(&request).await;
        let expected =
            sign(HmacAlgorithm::Sha256, b"key-12345678", text.as_bytes(), SignatureEncoding::Hex);
        assert_eq!(sent.header("x-sig"), Some(expected.as_str()), "{at}");
    }
}

// covers: AL-081, AL-265, AL-385, AL-388, AL-389, AL-390, AL-391, AL-396, AL-397, AL-398
#[tokio::test]
async fn signature_covers_prefix_body_and_suffix() {
    let fields = json!({"method": "POST", "body": "b", "sign": signed(json!({"prefix": "a", "suffix": "c"}))});
    signs(to_vendor(fields), "abc").await;
    signs(to_vendor(json!({"method": "POST", "body": "b", "sign": signed(json!({}))})), "b").await;
    signs(to_vendor(json!({"sign": signed(json!({"suffix": "c"}))})), "c").await;
    let by_text = json!({"key": {"text": "key-12345678"}});
    signs(to_vendor(json!({"method": "POST", "body": "b", "sign": signed(by_text)})), "b").await;
    let names = json!({"prefix": "{{request:method}} {{request:target}} {{request:host}}"});
    let key = json!({"authType": "api-key", "key": "k", "value": "v w", "addTo": "QUERY_PARAMS"});
    let url = "https://alt.vendor.example:8443/p?a=1";
    signs(
        json!({"method": "PUT", "url": url, "auth": key, "sign": signed(names)}),
        "PUT /p?a=1&k=v%20w alt.vendor.example:8443",
    )
    .await;
}

// covers: AL-394, AL-395
#[tokio::test]
async fn what_was_filled_is_not_read_again() {
    let given = Given {
        secrets: vec![("apiKey", "key-12345678"), ("loop", "{{request:method}}")],
        ..Given::default()
    };
    let scene = Scene::given(given);
    let prefix = "{{secret:loop:TAG}}{{secret:apiKey}}";
    let sent = scene.sends(&to_vendor(json!({"sign": signed(json!({"prefix": prefix}))}))).await;
    let expected = sign(
        HmacAlgorithm::Sha256,
        b"key-12345678",
        b"{{request:method}}{{secret:apiKey}}",
        SignatureEncoding::Hex,
    );
    assert_eq!(sent.header("x-sig"), Some(expected.as_str()));
}

// covers: AL-387, AL-393, AL-399, AL-401
#[tokio::test]
async fn signature_that_cannot_be_made_sends_nothing() {
    for (fields, text) in [
        (json!({"key": {"text": "***"}, "keyEncoding": "base64"}), "sign: the key is not base64"),
        (json!({"key": {"text": "zz"}, "keyEncoding": "hex"}), "sign: the key is not hex"),
        (
            json!({"key": {"text": "a", "secret": "b"}}),
            "invalid request: sign.key: expected either secret or text",
        ),
        (
            json!({"algorithm": "md5"}),
            "invalid request: sign.algorithm: expected one of sha1, sha256, sha512",
        ),
        (
            json!({"encoding": "binary"}),
            "invalid request: sign.encoding: expected one of hex, base64",
        ),
    ] {
        refused(to_vendor(json!({"sign": signed(fields)})), text).await;
    }
    let unknown = json!({"sign": signed(json!({"prefix": "{{request:path}}"}))});
    refused_with(to_vendor(unknown), "invalid request: sign.prefix: ").await;
    let own = json!({"headers": {"x-SIG": "1"}, "sign": signed(json!({}))});
    refused(to_vendor(own), "sign: header x-sig is set already").await;
    let auth = json!({"authType": "api-key", "key": "x-sig", "value": "v"});
    let by_auth = json!({"auth": auth, "sign": signed(json!({}))});
    refused(to_vendor(by_auth), "sign: header x-sig is set already").await;
    let reserved = json!({"sign": signed(json!({"header": "Host"}))});
    refused(to_vendor(reserved), "header host is set by the host alone").await;
}

// covers: AL-402
#[tokio::test]
async fn each_request_of_a_digest_auth_is_signed() {
    let challenge = [("www-authenticate", "Digest realm=\"r\", nonce=\"n1\", qop=\"auth\"")];
    let scene = Scene::new().answering([answer(401, &challenge, ""), answer(200, &[], "")]);
    let auth = json!({"authType": "digest", "username": "u", "password": "p"});
    let prefix = json!({"prefix": "{{request:target}}"});
    scene.ask(&to_vendor(json!({"auth": auth, "sign": signed(prefix)}))).await;
    let sent = scene.sent();
    assert_eq!(sent.len(), 2);
    let expected = sign(HmacAlgorithm::Sha256, b"key-12345678", b"/v1", SignatureEncoding::Hex);
    for sent in sent {
        assert_eq!(sent.header("x-sig"), Some(expected.as_str()));
    }
}
