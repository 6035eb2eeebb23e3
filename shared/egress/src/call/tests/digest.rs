//! The two or three requests of a digest auth (AL-175 to AL-177, AL-194, AL-196, AL-224, AL-281 to AL-311).

use super::*;

const FIRST: &str = "Digest realm=\"r\", nonce=\"n1\", qop=\"auth\", opaque=\"o\"";
const STALE: &str = "Digest realm=\"r\", nonce=\"n2\", qop=\"auth\", stale=true";

fn asked(fields: Value) -> Value {
    let mut request = to_vendor(json!({
        "auth": {"authType": "digest", "username": "Mufasa", "password": "Circle of Life"},
    }));
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    request
}

fn challenged(header: &str) -> Answer {
    answer(401, &[("www-authenticate", header)], "")
}

// covers: AL-175, AL-281, AL-282
#[tokio::test]
async fn answer_without_a_digest_challenge_stands() {
    let wrong_status = |status| answer(status, &[("www-authenticate", FIRST)], "");
    for first in [
        answer(200, &[], "ok"),
        challenged("Basic realm=\"r\""),
        answer(401, &[], ""),
        wrong_status(403),
        wrong_status(407),
    ] {
        let status = first.status;
        let scene = Scene::new().answering([first]);
        assert_eq!(scene.ask(&asked(json!({}))).await["status"], status);
        let sent = scene.sent();
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0].header("authorization"), None);
    }
}

// covers: AL-115, AL-176, AL-283, AL-292, AL-295, AL-296, AL-297, AL-302
#[tokio::test]
async fn challenge_is_answered_by_the_same_request() {
    let cookies = [
        ("set-cookie", "a=1"),
        ("www-authenticate", FIRST),
        ("set-cookie", "z=2"),
        ("set-cookie", "p=3; Path=/other"),
    ];
    let scene = Scene::new().answering([answer(401, &cookies, ""), answer(200, &[], "in")]);
    let request = json!({"method": "POST", "headers": {"cookie": "z=9", "x-a": "1"}, "body": {"json": {"a": 1}}});
    assert_eq!(scene.ask(&asked(request)).await["bodyText"], "in");
    let [first, second] = scene.sent().try_into().unwrap();
    assert_eq!(second.header("cookie"), Some("z=9; a=1"));
    let authorization = second.header("authorization").unwrap().to_owned();
    assert!(authorization.starts_with("Digest "), "{authorization}");
    for part in ["nc=00000001", "cnonce=\"nonce-1\"", "opaque=\"o\"", "uri=\"/v1\""] {
        assert!(authorization.contains(part), "{part} in {authorization}");
    }
    // All else is the same.
    let rest = |sent: &Sent| {
        let mut sent = sent.clone();
        sent.headers.retain(|(name, _)| name != "cookie" && name != "authorization");
        sent
    };
    assert_eq!(rest(&first), rest(&second));
    assert_eq!(hidden(&scene, &authorization), "[auth:digest]");
    let (_, response) = authorization.split_once("response=\"").unwrap();
    assert_eq!(hidden(&scene, response.split('"').next().unwrap()), "[auth:digest]");
}

// covers: AL-177, AL-303, AL-304, AL-305
#[tokio::test]
async fn stale_nonce_is_answered_once_more() {
    let with_cookie = |header: &str, cookie: &str| {
        answer(401, &[("www-authenticate", header), ("set-cookie", cookie)], "")
    };
    let third = answer(200, &[], "third");
    let scene =
        Scene::new().answering([with_cookie(FIRST, "a=1"), with_cookie(STALE, "b=2"), third]);
    assert_eq!(scene.ask(&asked(json!({}))).await["bodyText"], "third");
    let [_, second, third] = scene.sent().try_into().unwrap();
    assert!(second.header("authorization").unwrap().contains("cnonce=\"nonce-1\""));
    let authorization = third.header("authorization").unwrap();
    for part in ["nonce=\"n2\"", "cnonce=\"nonce-2\"", "nc=00000001"] {
        assert!(authorization.contains(part), "{part} in {authorization}");
    }
    assert_eq!(third.header("cookie"), Some("a=1; b=2"));
}

// covers: AL-306, AL-307, AL-308
#[tokio::test]
async fn second_401_stands_unless_its_nonce_is_stale_and_new() {
    let same = FIRST.replace("opaque=\"o\"", "stale=true");
    for (second, requests) in [(FIRST, 2), (same.as_str(), 2), ("Basic realm=\"r\"", 2), (STALE, 3)]
    {
        let newer = STALE.replace("n2", "n3");
        let scene =
            Scene::new().answering([challenged(FIRST), challenged(second), challenged(&newer)]);
        let answered = scene.ask(&asked(json!({}))).await;
        assert_eq!(answered["status"], 401);
        let last = if requests == 2 { second } else { &newer };
        assert_eq!(answered["headers"]["www-authenticate"], last);
        assert_eq!(scene.sent().len(), requests, "{second}");
    }
}

// covers: AL-194, AL-309
#[tokio::test]
async fn challenge_that_cannot_be_answered_is_an_error() {
    let scene =
        Scene::new().answering([challenged("Digest realm=\"r\", nonce=\"n\", algorithm=FOO")]);
    let answered = scene.ask(&asked(json!({}))).await;
    let text = answered["error"].as_str().unwrap();
    assert!(text.starts_with("digest auth: the vendor's challenge cannot be answered: "), "{text}");
    assert_eq!(answered.get("network"), None);
    assert_eq!(scene.sent().len(), 1);
}

// covers: AL-196
#[tokio::test]
async fn network_is_that_of_the_request_that_failed() {
    let scene = Scene::new().answering([challenged(FIRST)]);
    let failed = Err(fault("connect ECONNREFUSED", Some(Network::NotSent)));
    scene.vendor.answers.lock().unwrap().push_back(failed);
    let expected = json!({"error": "connect ECONNREFUSED", "network": "not_sent"});
    assert_eq!(scene.ask(&asked(json!({}))).await, expected);
}

// 12 calls of two requests, then one whose second request is the 26th.
// covers: AL-224
#[tokio::test]
async fn every_request_of_a_digest_auth_counts() {
    let answers = (0..13).flat_map(|_| [challenged(FIRST), answer(200, &[], "")]);
    let scene = Scene::new().answering(answers);
    for _ in 0..12 {
        assert_eq!(scene.ask(&asked(json!({}))).await["status"], 200);
    }
    let over = json!({"error": "HTTP request limit of 25 per call reached"});
    assert_eq!(scene.ask(&asked(json!({}))).await, over);
    assert_eq!(scene.sent().len(), 25);
}

// The body is hashed as it was sent, its boundary included.
// covers: AL-287, AL-291
#[tokio::test]
async fn auth_int_covers_the_body_as_sent() {
    let challenge = "Digest realm=\"r\", nonce=\"n\", qop=\"auth-int\"";
    let scene = Scene::new().answering([challenged(challenge)]);
    let parts = json!({"multipart": [{"name": "a", "value": "{{secret:odd:TAG}}"}]});
    scene.ask(&asked(json!({"method": "POST", "body": parts}))).await;
    let [first, second] = scene.sent().try_into().unwrap();
    assert_eq!(first.body, second.body);
    use md5::Digest as _;
    let md5 = |bytes: &[u8]| hex::encode(md5::Md5::digest(bytes));
    let user = md5(b"Mufasa:r:Circle of Life");
    let request = md5(format!("POST:/v1:{}", md5(&second.body)).as_bytes());
    let response = md5(format!("{user}:n:00000001:nonce-1:auth-int:{request}").as_bytes());
    let authorization = second.header("authorization").unwrap();
    assert!(authorization.contains(&format!("response=\"{response}\"")), "{authorization}");
    assert!(authorization.contains("qop=auth-int,"), "{authorization}");
}

// A realm in UTF-8 goes back with the bytes it came with, and is hashed as them.
#[tokio::test]
async fn realm_beyond_ascii_keeps_its_bytes() {
    // `é` in UTF-8, a character for each byte.
    let scene =
        Scene::new().answering([challenged("Digest realm=\"caf\u{c3}\u{a9}\", nonce=\"n\"")]);
    scene.ask(&asked(json!({}))).await;
    let sent = scene.sent();
    let authorization = sent[1].header("authorization").unwrap();
    assert!(authorization.contains("realm=\"caf\u{c3}\u{a9}\""), "{authorization}");
    // MD5 of MD5("Mufasa:café:Circle of Life"):n:MD5("GET:/v1"), over UTF-8.
    assert!(
        authorization.contains("response=\"24aab456f17fe19c75065d7e1d9aa764\""),
        "{authorization}"
    );
}
