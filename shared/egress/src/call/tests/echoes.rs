//! What a vendor that echoes a request lets a module know of its credentials (AL-112 to AL-118, AL-382, AL-383).

use super::*;

/// What the vendor's echo of a request with this auth reads as, without what every request holds; and the value of its
/// `authorization` as it was sent, behind `before` and up to a quote.
async fn echo(auth: &Value, before: &str) -> (Scene, String, String) {
    let scene = Scene::new();
    scene.vendor.echoes.store(true, Ordering::Release);
    let answered = scene.ask(&to_vendor(json!({"auth": auth}))).await;
    assert_eq!(answered["network"], "unknown", "{auth}");
    let echo = answered["error"].as_str().unwrap();
    let (start, end) = ("host: api.vendor.example", "user-agent: Aletheia-Apps/1");
    let own = |line: &&str| ![start, end].contains(line);
    let echo: Vec<&str> = echo.lines().filter(own).collect();
    let echo = echo.join("\n").replace("https://api.vendor.example", "");
    let sent = scene.sent().remove(0);
    let derived = sent.header("authorization").and_then(|value| value.split_once(before));
    let derived = derived.map_or("", |(_, value)| value.trim_end_matches('"')).to_owned();
    (scene, echo, derived)
}

/// The auth's type is all that a module gets of what was added; and neither the credentials nor what was derived from them
/// can be read alone.
async fn check(auth: Value, before: &str, credentials: &[&str], expected: &str) {
    let marker = format!("[auth:{}]", auth["authType"].as_str().unwrap());
    let (scene, echo, derived) = echo(&auth, before).await;
    assert_eq!(echo, expected.replace("[auth]", &marker), "{auth}");
    for credential in credentials {
        let text = auth[credential].as_str().unwrap();
        assert_eq!(hidden(&scene, &format!("<{text}>")), format!("<{marker}>"), "{credential}");
    }
    if !derived.is_empty() {
        assert_eq!(hidden(&scene, &format!("<{derived}>")), format!("<{marker}>"), "{auth}");
    }
}

// covers: AL-112, AL-113, AL-114, AL-116, AL-117, AL-118, AL-132, AL-258, AL-259, AL-382, AL-383
#[tokio::test]
async fn echoed_credential_is_hidden_although_the_module_wrote_it() {
    let header = "/v1\nauthorization: [auth]";
    let basic = json!({"authType": "basic", "username": "acme", "password": "plain-password"});
    check(basic, "Basic ", &["password"], header).await;
    let bearer = json!({"authType": "bearer", "token": "plain-token-123"});
    check(bearer, "Bearer ", &["token"], header).await;
    let key = json!({"authType": "api-key", "key": "x-key", "value": "plain-key"});
    check(key, "", &["value"], "/v1\nx-key: [auth]").await;
    let key =
        json!({"authType": "api-key", "key": "k", "value": "plain key", "addTo": "QUERY_PARAMS"});
    check(key, "", &["value"], "/v1?k=[auth]").await;
    let aws = json!({"authType": "aws-signature", "accessKey": "AKIDPLAIN", "secretKey": "plain-secret",
        "region": "r", "serviceName": "x", "serviceToken": "plain-session"});
    let also = "\nx-amz-date: 20260102T030405Z\nx-amz-security-token: [auth]";
    let credentials = ["accessKey", "secretKey", "serviceToken"];
    check(aws, "Signature=", &credentials, &format!("{header}{also}")).await;
    let hawk = json!({"authType": "hawk", "authId": "i", "authKey": "plain-hawk-key"});
    check(hawk, "mac=\"", &["authKey"], header).await;
    let jwt = json!({"authType": "jwt", "secret": "plain-jwt-secret", "payload": {"sub": "a"}});
    check(jwt, "Bearer ", &["secret"], header).await;
    let edgegrid = json!({"authType": "akamai-eg", "accessToken": "plain-access", "clientToken": "plain-client",
        "clientSecret": "plain-secret"});
    let credentials = ["accessToken", "clientToken", "clientSecret"];
    check(edgegrid, ";signature=", &credentials, header).await;
}

// covers: AL-111, AL-113, AL-131, AL-382
#[tokio::test]
async fn echoed_secret_keeps_its_name() {
    let key = "{{secret:apiKey:TAG}}";
    for (auth, expected) in [
        (json!({"authType": "bearer", "token": key}), "/v1\nauthorization: [auth:bearer]"),
        (json!({"authType": "api-key", "key": "x", "value": key}), "/v1\nx: [secret:apiKey]"),
        (
            json!({"authType": "akamai-eg", "accessToken": key, "clientToken": key, "clientSecret": key}),
            "/v1\nauthorization: [auth:akamai-eg]",
        ),
    ] {
        let (scene, echo, _) = echo(&auth, "").await;
        assert_eq!(echo, expected, "{auth}");
        assert_eq!(hidden(&scene, "key-12345678"), "[secret:apiKey]");
    }
}
