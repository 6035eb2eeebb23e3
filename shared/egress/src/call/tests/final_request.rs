//! Auths verified over the request that the vendor has: what they cover is what was sent (AL-263 to AL-266).

use super::*;
use crate::auth::hawk::mac::{Kind, Parts, payload_hash};
use crate::auth::{AwsAuth, EdgeGridAuth, HawkAlgorithm, aws, edgegrid};
use crate::draft::{Draft, Scheme, SentUrl};

/// A request with a secret in its path, its query, a header and a part of its body.
fn asked(auth: Value) -> Value {
    let odd = "{{secret:odd:TAG}}";
    let mut request = to_vendor(json!({
        "method": "POST",
        "headers": {"X-Custom": odd, "User-Agent": "module/1"},
        "body": {"multipart": [{"name": "n", "value": odd}]},
        "auth": auth,
    }));
    request["url"] = json!(format!("https://API.Vendor.Example/v1/{odd}?q={odd}"));
    request
}

/// Where the vendor got the request.
fn url(sent: &Sent) -> SentUrl {
    let (host, target) = ("api.vendor.example", "/v1/a%22b%5Cc%20d?q=a%22b%5Cc%20d");
    assert_eq!(sent.url, format!("https://{host}{target}"));
    SentUrl { scheme: Scheme::Https, host: host.into(), port: None, target: target.into() }
}

/// What an auth covers of a request that was sent: not what it added itself, nor what the host adds at the end.
#[track_caller]
fn check(sent: &Sent, build: impl FnOnce(&Draft<'_>) -> Vec<(String, String)>) {
    let url = url(sent);
    let added = ["authorization", "host", "user-agent", "content-length"];
    let is_added = |name: &str| added.contains(&name) || name.starts_with("x-amz-");
    let mut headers = sent.headers.clone();
    headers.retain(|(name, _)| !is_added(name));
    let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["x-custom", "content-type"]);
    let draft =
        Draft { method: &sent.method, url: &url, headers: &headers, body: Some(&sent.body) };
    for (name, value) in build(&draft) {
        assert_eq!(sent.header(&name), Some(value.as_str()), "{name}");
    }
}

fn at() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

// covers: AL-263, AL-264, AL-266, AL-312
#[tokio::test]
async fn aws_signature_covers_the_request_as_sent() {
    let auth = json!({"authType": "aws-signature", "accessKey": "AKID", "region": "eu-west-1",
        "secretKey": "{{secret:apiKey:TAG}}", "serviceName": "s3"});
    let sent = Scene::new().sends(&asked(auth)).await;
    let hash = hex::encode(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &sent.body));
    assert_eq!(sent.header("x-amz-content-sha256"), Some(hash.as_str()));
    let auth = AwsAuth {
        access_key: "AKID".into(),
        secret_key: "key-12345678".into(),
        region: "eu-west-1".into(),
        service_name: "s3".into(),
        ..AwsAuth::default()
    };
    check(&sent, |draft| aws::build(&auth, draft, at()).unwrap().headers);
    let signed = "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-custom,";
    assert!(sent.header("authorization").unwrap().contains(signed), "{sent:?}");
}

// covers: AL-263, AL-264, AL-266, AL-328, AL-329, AL-330, AL-333
#[tokio::test]
async fn hawk_mac_covers_the_request_as_sent() {
    let auth = json!({"authType": "hawk", "authId": "i", "authKey": "{{secret:apiKey:TAG}}",
        "ext": "e", "includePayloadHash": true});
    let sent = Scene::new().sends(&asked(auth)).await;
    let url = url(&sent);
    let hash = payload_hash(HawkAlgorithm::Sha256, sent.header("content-type"), &sent.body);
    let parts = Parts {
        timestamp: "1767323045",
        nonce: "nonce-1",
        method: "POST",
        resource: &url.target,
        host: &url.host,
        port: 443,
        hash: Some(&hash),
        ext: Some("e"),
        app: None,
        dlg: None,
    };
    let mac = parts.mac(Kind::Header, "key-12345678", HawkAlgorithm::Sha256);
    let expected = format!(
        "Hawk id=\"i\", ts=\"1767323045\", nonce=\"nonce-1\", hash=\"{hash}\", ext=\"e\", mac=\"{mac}\""
    );
    assert_eq!(sent.header("authorization"), Some(expected.as_str()));
}

// covers: AL-263, AL-264, AL-266, AL-368, AL-372
#[tokio::test]
async fn edgegrid_signature_covers_the_request_as_sent() {
    let auth = json!({"authType": "akamai-eg", "accessToken": "a", "clientToken": "c",
        "clientSecret": "{{secret:apiKey:TAG}}", "headersToSign": "X-Custom,content-type"});
    let sent = Scene::new().sends(&asked(auth)).await;
    let auth = EdgeGridAuth {
        access_token: "a".into(),
        client_token: "c".into(),
        client_secret: "key-12345678".into(),
        headers_to_sign: Some("x-custom,content-type".into()),
        ..EdgeGridAuth::default()
    };
    let nonces = GivenNonces::new(vec!["nonce-1".into()]);
    check(&sent, |draft| edgegrid::build(&auth, draft, None, at(), &nonces).unwrap().headers);
}
