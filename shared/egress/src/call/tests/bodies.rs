//! The seven bodies (AL-158 to AL-161, AL-234 to AL-257).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;

fn post(body: Value) -> Value {
    to_vendor(json!({"method": "POST", "body": body}))
}

#[track_caller]
fn sends(
    body: Value,
    content_type: Option<&'static str>,
    expected: &'static [u8],
) -> impl Future<Output = ()> {
    let at = std::panic::Location::caller();
    async move {
        let sent = Scene::new().sends(&post(body)).await;
        let length = expected.len().to_string();
        assert_eq!(sent.body, expected, "{at}");
        assert_eq!(sent.header("content-type"), content_type, "{at}");
        assert_eq!(sent.header("content-length"), Some(length.as_str()), "{at} (AL-156)");
    }
}

// covers: AL-156, AL-158, AL-161, AL-234, AL-235, AL-236, AL-239, AL-241, AL-243
#[tokio::test]
async fn each_body_has_its_bytes_and_its_type() {
    let json = Some("application/json");
    let form = Some("application/x-www-form-urlencoded");
    sends(json!("text"), None, b"text").await;
    sends(json!(""), None, b"").await;
    sends(
        json!({"json": {"b": 1.0, "a": [null, "\u{e9}"]}}),
        json,
        "{\"b\":1.0,\"a\":[null,\"\u{e9}\"]}".as_bytes(),
    )
    .await;
    sends(json!({"json": null}), json, b"null").await;
    sends(
        json!({"jsonText": "{\"n\":12345678901234567890.10 }"}),
        json,
        b"{\"n\":12345678901234567890.10 }",
    )
    .await;
    sends(json!({"jsonText": "[1]"}), json, b"[1]").await;
    sends(json!({"form": {"a": "1 2"}}), form, b"a=1+2").await;
    sends(json!({"form": [["a", "1"], ["b", "2"], ["a", "2"]]}), form, b"a=1&b=2&a=2").await;
    sends(json!({"base64": "AAH/"}), None, b"\x00\x01\xff").await;
    let bytes: Vec<u8> = (0..=255).collect();
    let body = json!({"base64": STANDARD.encode(&bytes)});
    assert_eq!(Scene::new().sends(&post(body)).await.body, bytes);
    let own = json!({"headers": {"Content-Type": "own/type"}, "body": {"json": 1}});
    assert_eq!(Scene::new().sends(&to_vendor(own)).await.header("content-type"), Some("own/type"));
}

// covers: AL-161, AL-238
#[tokio::test]
async fn body_is_exactly_one_kind() {
    let text = "invalid request: body: expected a string, or an object with exactly one of json, \
                jsonText, form, base64, document, multipart";
    refused(post(json!({"json": 1, "form": {}})), text).await;
    refused(post(json!({})), text).await;
    refused(post(json!(1)), "invalid request: body: expected an object").await;
    refused(post(json!({"base64": "*"})), "invalid request: body.base64: expected base64").await;
    refused(post(json!({"jsonText": "{"})), "body: jsonText is not JSON").await;
}

// covers: AL-240, AL-242
#[tokio::test]
async fn form_has_100_fields() {
    let named = |count: usize| -> Value {
        (0..count).map(|n| (format!("n{n}"), json!("v"))).collect::<serde_json::Map<_, _>>().into()
    };
    let pairs = |count: usize| json!(vec![["n", "v"]; count]);
    for form in [named(100), pairs(100)] {
        let sent = Scene::new().sends(&post(json!({"form": form}))).await;
        assert_eq!(sent.text().split('&').count(), 100);
    }
    refused(
        post(json!({"form": named(101)})),
        "invalid request: body.form: expected at most 100 fields",
    )
    .await;
    refused(
        post(json!({"form": pairs(101)})),
        "invalid request: body.form: expected at most 100 elements",
    )
    .await;
    for pair in [json!(["n"]), json!(["n", "v", "w"]), json!("n"), json!(["n", 1])] {
        refused_with(post(json!({"form": [pair]})), "invalid request: body.form.0").await;
    }
}

// covers: AL-161, AL-250, AL-251, AL-254, AL-255, AL-256, AL-257
#[tokio::test]
async fn multipart_has_20_parts_and_media_types() {
    let parts = |count: usize| vec![json!({"name": "n", "value": "v"}); count];
    let sent = Scene::new().sends(&post(json!({"multipart": parts(20)}))).await;
    let content_type = sent.header("content-type").unwrap();
    let boundary = content_type.strip_prefix("multipart/form-data; boundary=").unwrap();
    assert_eq!(sent.text().matches(&format!("--{boundary}\r\n")).count(), 20);
    assert!(sent.text().ends_with(&format!("--{boundary}--\r\n")));
    refused(
        post(json!({"multipart": parts(21)})),
        "invalid request: body.multipart: expected at most 20 elements",
    )
    .await;
    let typed = |content_type: &str| {
        let part = json!({"name": "n", "value": "v", "contentType": content_type});
        post(json!({"multipart": [part]}))
    };
    let sent = Scene::new().sends(&typed("text/plain; charset=utf-8")).await;
    assert!(
        sent.text().contains("\r\nContent-Type: text/plain; charset=utf-8\r\n"),
        "{}",
        sent.text()
    );
    for wrong in ["text/plain\r\nX-Evil: 1", "text", ""] {
        refused(
            typed(wrong),
            "invalid request: body.multipart.0.contentType: expected a media type like \
             text/plain, without control characters",
        )
        .await;
    }
    let own = json!({"headers": {"content-type": "x/y"}, "body": {"multipart": parts(1)}});
    assert_eq!(Scene::new().sends(&to_vendor(own)).await.header("content-type"), Some("x/y"));
}
