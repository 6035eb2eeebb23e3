//! What every auth has in common, and each of them end to end (AL-155, AL-159, AL-258 to AL-280, AL-312 to AL-384).

use super::*;

fn with_auth(auth: Value) -> Value {
    to_vendor(json!({"auth": auth}))
}

const ALL: &[&str] = &[
    r#"{"authType": "basic", "username": "u", "password": "p"}"#,
    r#"{"authType": "bearer", "token": "t"}"#,
    r#"{"authType": "api-key", "key": "authorization", "value": "v"}"#,
    r#"{"authType": "digest", "username": "u", "password": "p"}"#,
    r#"{"authType": "aws-signature", "accessKey": "a", "secretKey": "s", "region": "r", "serviceName": "x"}"#,
    r#"{"authType": "hawk", "authId": "i", "authKey": "k"}"#,
    r#"{"authType": "jwt", "secret": "s", "payload": {}}"#,
    r#"{"authType": "akamai-eg", "accessToken": "a", "clientToken": "c", "clientSecret": "s"}"#,
];

// Nothing is overwritten, whichever auth it is.
// covers: AL-269, AL-310, AL-311, AL-401
#[tokio::test]
async fn header_of_the_request_is_never_overwritten() {
    for auth in ALL {
        let auth: Value = serde_json::from_str(auth).unwrap();
        let own = json!({"headers": {"Authorization": "mine"}, "auth": auth});
        let text = "header authorization is set by both the request and its auth";
        refused(to_vendor(own), text).await;
        let sign = json!({"header": "Authorization", "algorithm": "sha1", "key": {"text": "k"}});
        let signed = json!({"auth": auth, "sign": sign});
        refused_with(
            to_vendor(signed),
            match auth["authType"].as_str() {
                // It names the header as one that EdgeGrid itself sets.
                Some("akamai-eg") => "",
                _ => "sign: header authorization is set already",
            },
        )
        .await;
    }
}

// Fields of another auth are unknown.
// covers: AL-032, AL-139, AL-313, AL-327, AL-346, AL-364
#[tokio::test]
async fn each_auth_has_its_own_fields_and_no_others() {
    for auth in ALL.iter().chain(&[r#"{"authType": "none"}"#]) {
        let mut auth: Value = serde_json::from_str(auth).unwrap();
        auth["scheme"] = json!("x");
        refused(
            with_auth(auth),
            "invalid request: auth.scheme: unknown field (the app may be built with a newer SDK \
             than this platform runs)",
        )
        .await;
    }
    refused_with(with_auth(json!({"authType": "oauth-2"})), "invalid request: auth.authType: ")
        .await;
    refused_with(with_auth(json!({})), "invalid request: auth.authType: is missing").await;
    let basic = json!({"authType": "basic"});
    let both = "invalid request: auth.username: is missing; auth.password: is missing";
    refused(with_auth(basic), both).await;
}

// covers: AL-260, AL-262, AL-326
#[tokio::test]
async fn shapes_of_fields_are_checked() {
    let jwt = json!({"authType": "jwt", "secret": "s", "payload": "{}"});
    refused(with_auth(jwt), "invalid request: auth.payload: expected an object").await;
    let jwt = json!({"authType": "jwt", "secret": "s", "jwtHeaders": "{}"});
    refused(with_auth(jwt), "invalid request: auth.jwtHeaders: expected an object").await;
    let jwt =
        json!({"authType": "jwt", "secret": "s", "payload": {"a": 1}, "jwtHeaders": {"kid": "k"}});
    assert!(Scene::new().sends(&with_auth(jwt)).await.header("authorization").is_some());
    let key = json!({"authType": "api-key", "key": "k", "value": "v", "addTo": "COOKIES"});
    refused(with_auth(key), "invalid request: auth.addTo: expected one of HEADERS, QUERY_PARAMS")
        .await;
    let hawk = json!({"authType": "hawk", "authId": "i", "authKey": "k", "algorithm": "md5"});
    refused(with_auth(hawk), "invalid request: auth.algorithm: expected one of sha256, sha1").await;
}

// covers: AL-262, AL-275, AL-276, AL-277, AL-278, AL-279, AL-280
#[tokio::test]
async fn plain_auths_go_to_their_places() {
    let sent = Scene::new().sends(&with_auth(json!({"authType": "none"}))).await;
    assert_eq!(sent.header("authorization"), None);
    let basic = json!({"authType": "basic", "username": "acme", "password": "pw"});
    let sent = Scene::new().sends(&with_auth(basic)).await;
    assert_eq!(sent.header("authorization"), Some("Basic YWNtZTpwdw=="));
    let bearer = json!({"authType": "bearer", "token": "{{secret:apiKey:TAG}}"});
    let sent = Scene::new().sends(&with_auth(bearer)).await;
    assert_eq!(sent.header("authorization"), Some("Bearer key-12345678"));
    let key = json!({"authType": "api-key", "key": "X-Key", "value": "v"});
    assert_eq!(Scene::new().sends(&with_auth(key)).await.header("x-key"), Some("v"));
    let key = json!({"authType": "api-key", "key": "k", "value": "v", "addTo": "QUERY_PARAMS"});
    let sent = Scene::new().sends(&with_auth(key)).await;
    assert_eq!((sent.url.as_str(), sent.header("k")), ("https://api.vendor.example/v1?k=v", None));
    let colon = "basic auth: the username holds a colon";
    let basic = json!({"authType": "basic", "username": "a:b", "password": "pw"});
    refused(with_auth(basic), colon).await;
    let basic = json!({"authType": "basic", "username": "{{secret:colon:TAG}}", "password": ""});
    let given = Given { secrets: vec![("colon", "a:b")], ..Given::default() };
    let scene = Scene::given(given);
    assert_eq!(scene.ask(&with_auth(basic)).await, json!({"error": colon}));
    assert_eq!(scene.sent(), []);
}

// covers: AL-155, AL-159, AL-267, AL-268, AL-270
#[tokio::test]
async fn additions_never_replace() {
    let query = |url: &str, key: &str, value: &str| {
        let auth =
            json!({"authType": "api-key", "key": key, "value": value, "addTo": "QUERY_PARAMS"});
        json!({"url": url, "auth": auth})
    };
    for (url, expected) in [
        (
            "https://api.vendor.example/p?b=2&a=1",
            "https://api.vendor.example/p?b=2&a=1&k%20n=a%20b%26c",
        ),
        ("https://api.vendor.example/p", "https://api.vendor.example/p?k%20n=a%20b%26c"),
        ("https://api.vendor.example/p?", "https://api.vendor.example/p?k%20n=a%20b%26c"),
    ] {
        let sent = Scene::new().sends(&query(url, "k n", "a b&c")).await;
        assert_eq!(sent.url, expected);
    }
    for url in ["https://api.vendor.example/?k=1", "https://api.vendor.example/?%6B=1"] {
        let text = "query parameter k is set by both the URL and its auth";
        refused(query(url, "k", "v"), text).await;
    }
    let header = |key: &str| with_auth(json!({"authType": "api-key", "key": key, "value": "v"}));
    for key in ["Host", "content-length", "Transfer-Encoding", "connection", "expect", "upgrade"] {
        let text = format!("header {} is set by the host alone", key.to_lowercase());
        refused(header(key), &text).await;
    }
    refused(header("a b"), "\"a b\" is not a header name").await;
}

// A placeholder in every text field of every auth.
// covers: AL-261
#[tokio::test]
async fn every_text_of_an_auth_is_filled() {
    let filled = "{{secret:nope:TAG}}";
    for (auth, fields) in [
        (ALL[0], &["username", "password"][..]),
        (ALL[1], &["token"]),
        (ALL[2], &["key", "value"]),
        (ALL[3], &["username", "password"]),
        (ALL[4], &["accessKey", "secretKey", "region", "serviceName", "serviceToken"]),
        (ALL[5], &["authId", "authKey", "ext", "app", "dlg", "nonce"]),
        (ALL[6], &["secret", "privateKey", "headerPrefix", "paramName"]),
        (
            ALL[7],
            &[
                "accessToken",
                "clientToken",
                "clientSecret",
                "host",
                "headersToSign",
                "nonce",
                "timestamp",
            ],
        ),
    ] {
        for field in fields {
            let mut auth: Value = serde_json::from_str(auth).unwrap();
            auth[field] = json!(filled);
            // That it is read as a placeholder shows in the refusal of one that is not set.
            refused(with_auth(auth), "secret nope is not set for this install").await;
        }
    }
    for object in ["payload", "jwtHeaders"] {
        let claims = json!({"authType": "jwt", "secret": "s", object: {"k": filled}});
        refused(with_auth(claims), "secret nope is not set for this install").await;
    }
}

// The body's type and bytes are there when the auth is built, what the
// host adds at the end is not.
// covers: AL-266, AL-314, AL-316
#[tokio::test]
async fn auth_is_built_over_the_final_request() {
    let auth = json!({"authType": "aws-signature", "accessKey": "AKID", "secretKey": "{{secret:apiKey:TAG}}",
        "region": "eu-west-1", "serviceName": "s3"});
    let request = json!({"method": "PUT", "body": {"form": {"a": "1"}}, "auth": auth, "headers": {"x-a": "1"}});
    let sent = Scene::new().sends(&to_vendor(request)).await;
    // SHA-256 of `a=1`.
    let hash = hex::encode(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, b"a=1").as_ref());
    assert_eq!(sent.header("x-amz-content-sha256"), Some(hash.as_str()));
    assert_eq!(sent.header("x-amz-date"), Some("20260102T030405Z"));
    let authorization = sent.header("authorization").unwrap();
    let beginning = "AWS4-HMAC-SHA256 Credential=AKID/20260102/eu-west-1/s3/aws4_request, \
                     SignedHeaders=host;x-a;x-amz-content-sha256;x-amz-date, Signature=";
    assert!(authorization.starts_with(beginning), "{authorization}");
}

// A signature is made for each request.
// covers: AL-271, AL-337
#[tokio::test]
async fn nonces_are_drawn_for_each_request() {
    let scene = Scene::new();
    let hawk = with_auth(json!({"authType": "hawk", "authId": "i", "authKey": "k"}));
    let first = scene.sends(&hawk).await;
    let second = scene.sends(&hawk).await;
    assert!(first.header("authorization").unwrap().contains("nonce=\"nonce-1\""));
    assert!(second.header("authorization").unwrap().contains("nonce=\"nonce-2\""));
}

// covers: AL-193, AL-273, AL-335, AL-356, AL-376
#[tokio::test]
async fn auth_that_cannot_be_built_sends_nothing() {
    for (auth, beginning) in [
        (json!({"authType": "jwt", "algorithm": "RS256", "privateKey": "no key"}), "jwt auth: "),
        (json!({"authType": "jwt", "secret": "s", "jwtHeaders": {"alg": "none"}}), "jwt auth: "),
        (json!({"authType": "hawk", "authId": "i", "authKey": "k", "dlg": "d"}), "hawk auth: "),
        (
            json!({"authType": "akamai-eg", "accessToken": "a", "clientToken": "c", "clientSecret": "s",
                "host": "other.example"}),
            "akamai-eg auth: ",
        ),
    ] {
        refused_with(with_auth(auth), beginning).await;
    }
}

// An answer that does not verify is an error, although the vendor has the request.
// covers: AL-338, AL-340, AL-341, AL-342, AL-343, AL-344
#[tokio::test]
async fn hawk_answer_is_checked() {
    let hawk = with_auth(json!({"authType": "hawk", "authId": "i", "authKey": "k"}));
    let scene = Scene::new().answering([
        answer(200, &[], "no header"),
        answer(200, &[("server-authorization", "garbage")], ""),
        answer(200, &[("server-authorization", "Hawk mac=\"AAAA\"")], ""),
    ]);
    assert_eq!(scene.ask(&hawk).await["bodyText"], "no header");
    for text in ["cannot be read", "does not verify"] {
        let text = format!("hawk auth: the vendor's server-authorization {text}");
        assert_eq!(scene.ask(&hawk).await, json!({"error": text, "network": "unknown"}));
    }
    // A right one, made as a Hawk server makes it.
    use crate::auth::HawkAlgorithm::Sha256;
    use crate::auth::hawk::mac::{Kind, Parts, payload_hash};
    let hash = payload_hash(Sha256, Some("text/plain"), b"some reply");
    let parts = Parts {
        timestamp: "1767323045",
        nonce: "nonce-1",
        method: "GET",
        resource: "/v1",
        host: "api.vendor.example",
        port: 443,
        hash: Some(&hash),
        ext: None,
        app: None,
        dlg: None,
    };
    let mac = parts.mac(Kind::Response, "k", Sha256);
    let header = format!("Hawk mac=\"{mac}\", hash=\"{hash}\"");
    for (body, text) in [
        ("some reply", None),
        (
            "another",
            Some(
                "hawk auth: the vendor's answer does not match the hash in its server-authorization",
            ),
        ),
    ] {
        let headers = [("content-type", "text/plain"), ("server-authorization", header.as_str())];
        let scene = Scene::new().answering([answer(200, &headers, body)]);
        let answered = scene.ask(&hawk).await;
        match text {
            None => assert_eq!(answered["bodyText"], body),
            Some(text) => assert_eq!(answered, json!({"error": text, "network": "unknown"})),
        }
    }
}
