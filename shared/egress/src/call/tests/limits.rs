//! What one call may use up (AL-164 to AL-166, AL-192, AL-195, AL-223 to AL-225).

use super::*;

// covers: AL-164, AL-165
#[tokio::test]
async fn time_of_a_request_is_bounded() {
    for (asked, milliseconds) in [
        (json!({}), 10_000),
        (json!({"timeoutMs": 100}), 100),
        (json!({"timeoutMs": 30_000}), 30_000),
    ] {
        let sent = Scene::new().sends(&to_vendor(asked)).await;
        assert_eq!(sent.timeout, Duration::from_millis(milliseconds));
    }
    for asked in [json!(99), json!(30_001), json!("100"), json!(100.5), json!(null)] {
        let text = "invalid request: timeoutMs: expected a whole number from 100 to 30000";
        refused(to_vendor(json!({"timeoutMs": asked})), text).await;
    }
}

// covers: AL-166, AL-195
#[tokio::test]
async fn no_request_outlives_its_call() {
    let with = |time_left| Scene::given(Given { time_left, ..Given::default() });
    let timeout = with(Duration::from_secs(2)).sends(&to_vendor(json!({}))).await.timeout;
    assert!(timeout <= Duration::from_secs(2), "{timeout:?}");
    let ended = json!({"error": "the call has ended"});
    let scene = with(Duration::ZERO);
    assert_eq!(scene.ask(&to_vendor(json!({}))).await, ended);
    assert_eq!(scene.sent(), []);
    let scene = Scene::new();
    scene.call.end();
    assert_eq!(scene.ask(&to_vendor(json!({}))).await, ended);
    let hmac = json!({"algorithm": "sha1", "key": {"text": "k"}, "data": {"text": ""}});
    assert_eq!(scene.call.hmac(hmac.to_string().as_bytes()), ended.to_string());
}

// 25 pass, the 26th does not.
// covers: AL-192, AL-223, AL-233
#[tokio::test]
async fn call_sends_25_requests() {
    let scene = Scene::new();
    for _ in 0..25 {
        assert_eq!(scene.ask(&to_vendor(json!({}))).await["status"], 204);
    }
    let over = json!({"error": "HTTP request limit of 25 per call reached"});
    assert_eq!(scene.ask(&to_vendor(json!({}))).await, over);
    assert_eq!(scene.sent().len(), 25);
    // Each call has its own count.
    assert_eq!(Scene::new().ask(&to_vendor(json!({}))).await["status"], 204);
}

// covers: AL-192, AL-225
#[tokio::test]
async fn answer_is_8_mib_at_most() {
    let body = |bytes: usize| Answer {
        status: 200,
        headers: vec![],
        body: bytes::Bytes::from(vec![b'a'; bytes]),
    };
    let scene = Scene::new().answering([body(8_388_608), body(8_388_609)]);
    let answered = scene.ask(&to_vendor(json!({}))).await;
    assert_eq!(answered["bodyText"].as_str().unwrap().len(), 8_388_608);
    let over = json!({"error": "response is larger than 8388608 bytes"});
    assert_eq!(scene.ask(&to_vendor(json!({}))).await, over);
}

// AL-118: a credential is hidden in each of its forms, which is not done for what no vendor takes.
#[tokio::test]
async fn credentials_without_end_are_refused_al_118() {
    let text = "the call has more credentials than can be hidden";
    let bearer = |token: String| to_vendor(json!({"auth": {"authType": "bearer", "token": token}}));
    refused(bearer("!".repeat(3 << 20)), text).await;
}

// A value that is longer than its placeholder does not make a request grow without end.
#[tokio::test]
async fn what_is_filled_in_is_bounded() {
    let value = "v".repeat(1 << 20);
    let secrets = vec![("long", &*value.leak())];
    let scene = || Scene::given(Given { secrets: secrets.clone(), ..Given::default() });
    let fields = |body: String| to_vendor(json!({"method": "POST", "body": {"json": {"a": body}}}));
    let long = "{{secret:long:TAG}}";
    let sent = scene().sends(&fields(long.repeat(32))).await;
    assert_eq!(sent.body.len(), (32 << 20) + 8);
    let error = json!({"error": "more than 33554432 bytes of secrets are filled in"});
    let over = scene();
    assert_eq!(over.ask(&fields(long.repeat(33))).await, error);
    assert_eq!(over.sent(), []);

    let sign = |part: &str, times| {
        let sign = json!({"header": "x", "algorithm": "sha1", "key": {"text": "k"},
            "prefix": part.repeat(times)});
        to_vendor(json!({"sign": sign}))
    };
    let error = "sign: prefix and suffix are longer than 33554432 bytes once they are filled";
    scene().sends(&sign(long, 32)).await;
    assert_eq!(scene().ask(&sign(long, 33)).await, json!({"error": error}));
    let target = format!("https://api.vendor.example/{}", "p".repeat(4_000));
    let mut request = sign("{{request:target}}", 8_500);
    request["url"] = json!(target);
    assert_eq!(scene().ask(&request).await, json!({"error": error}));
}
