//! Secrets in each place, the tag in each wrong one, and what is hidden (AL-064 to AL-137).

use super::*;

const MISPLACED: &str = "a secret placeholder stands where the host does not fill it: ";

// Each place has its form.
// covers: AL-065, AL-066, AL-067, AL-069, AL-070, AL-071, AL-072, AL-073, AL-074, AL-075, AL-076, AL-077, AL-092
// covers: AL-242
#[tokio::test]
async fn secret_is_filled_in_the_form_its_place_needs() {
    let odd = "{{secret:odd:TAG}}";
    let post = |body: Value| to_vendor(json!({"method": "POST", "body": body}));
    let sent = Scene::new()
        .sends(&json!({
            "url": format!("https://api.vendor.example/{odd}/x?q={odd}"),
            "headers": {"x-key": format!("<{odd}>")},
            "auth": {"authType": "basic", "username": "acme", "password": odd},
        }))
        .await;
    assert_eq!(sent.url, "https://api.vendor.example/a%22b%5Cc%20d/x?q=a%22b%5Cc%20d");
    assert_eq!(sent.header("x-key"), Some("<a\"b\\c d>"));
    assert_eq!(sent.header("authorization"), Some("Basic YWNtZTphImJcYyBk"));
    // What would be structure of a URL is text in it.
    let url = "https://api.vendor.example/a/{{secret:url:TAG}}/b?q={{secret:url:TAG}}&r=1";
    let encoded = "x%2Fy%3Fz%3D1%23f%40h%26i";
    let expected = format!("https://api.vendor.example/a/{encoded}/b?q={encoded}&r=1");
    assert_eq!(Scene::new().sends(&json!({"url": url})).await.url, expected);
    for (body, expected) in [
        (json!(format!("k={odd}")), "k=a\"b\\c d"),
        (json!({"json": {odd: [odd, 1]}}), r#"{"a\"b\\c d":["a\"b\\c d",1]}"#),
        (
            json!({"jsonText": format!("{{ \"{odd}\" :\"{odd}\"}}")}),
            r#"{ "a\"b\\c d" :"a\"b\\c d"}"#,
        ),
        (json!({"form": {odd: odd}}), "a%22b%5Cc+d=a%22b%5Cc+d"),
        (json!({"form": [["n", odd], [odd, "2"]]}), "n=a%22b%5Cc+d&a%22b%5Cc+d=2"),
        // Base64 of a placeholder without the tag goes out as it is.
        (json!({"base64": "e3tzZWNyZXQ6YXBpS2V5fX0="}), "{{secret:apiKey}}"),
    ] {
        let sent = Scene::new().sends(&post(body)).await;
        assert_eq!(sent.text(), expected);
    }
    let multipart = json!({"multipart": [{"name": "n", "value": odd}]});
    let sent = Scene::new().sends(&post(multipart)).await;
    assert!(sent.text().contains("\r\n\r\na\"b\\c d\r\n"), "{}", sent.text());
}

// covers: AL-087, AL-088, AL-089, AL-090, AL-106, AL-135
#[tokio::test]
async fn text_without_the_tag_is_text() {
    for text in [
        "{{secret:apiKey}}",
        "{{secret:apiKey:AAAAAAAAAAAAAAAAAAAAAA}}",
        "{{secret:apiKey:[tag]}}",
        "{{secret:missing}}",
        "[secret:apiKey] [auth:basic] [cache:token] [tag]",
    ] {
        let request = to_vendor(json!({"method": "POST", "body": text, "headers": {"x-a": text}}));
        let sent = Scene::new().sends(&request).await;
        assert_eq!((sent.text(), sent.header("x-a")), (text, Some(text)));
    }
}

// covers: AL-079, AL-091
#[tokio::test]
async fn secret_that_the_call_does_not_carry_fails_the_request() {
    for place in [
        json!({"url": "https://api.vendor.example/{{secret:nope:TAG}}"}),
        json!({"body": "{{secret:nope:TAG}}"}),
        json!({"body": {"multipart": [{"name": "n", "value": "{{secret:nope:TAG}}"}]}}),
        json!({"headers": {"a": "{{secret:nope:TAG}}"}}),
        json!({"auth": {"authType": "bearer", "token": "{{secret:nope:TAG}}"}}),
        json!({"sign": {"header": "x", "algorithm": "sha1", "key": {"secret": "nope"}}}),
        json!({"sign": {"header": "x", "algorithm": "sha1", "key": {"text": "k"},
            "prefix": "{{secret:nope:TAG}}"}}),
    ] {
        refused(to_vendor(place), "secret nope is not set for this install").await;
    }
}

// covers: AL-092, AL-093, AL-094, AL-095, AL-096, AL-097, AL-098, AL-099, AL-100, AL-101, AL-102, AL-103
#[tokio::test]
async fn tag_where_nothing_is_filled_is_refused() {
    let part = |part: Value| json!({"body": {"multipart": [part]}});
    for (fields, place) in [
        (json!({"headers": {"x-TAG": "1"}}), "a header name"),
        (json!({"headers": {"{{secret:apiKey:TAG}}": "1"}}), "a header name"),
        (json!({"headers": {"x": "TAG"}}), "a header value"),
        // The base64 of the tag.
        (json!({"body": {"base64": "dzNLcDl4VjJtUThyVDF6TDVuQjdjQQ=="}}), "a base64 body"),
        (part(json!({"name": "TAG", "value": "v"})), "the name of a multipart part"),
        (part(json!({"name": "n", "value": "TAG"})), "the value of a multipart part"),
        (
            part(json!({"name": "n", "value": "v", "contentType": "text/TAG"})),
            "the content type of a multipart part",
        ),
        (
            part(json!({"name": "n", "document": "d", "filename": "TAG"})),
            "the file name of a multipart part",
        ),
        (json!({"body": {"document": "TAG"}}), "a document's id"),
        (
            json!({"body": {"jsonText": "{\"a\":{{secret:apiKey:TAG}}}"}}),
            "a jsonText body outside a string",
        ),
        (json!({"body": {"jsonText": "[\"TAG\"]"}}), "the body"),
        (json!({"body": "x TAG"}), "the body"),
        (json!({"body": {"json": ["TAG"]}}), "the body"),
        (json!({"body": {"form": {"TAG": ""}}}), "the body"),
        (json!({"auth": {"authType": "bearer", "token": "TAG"}}), "the auth"),
        (json!({"auth": {"authType": "jwt", "secret": "s", "payload": {"a": "TAG"}}}), "the auth"),
        (
            json!({"sign": {"header": "x", "algorithm": "sha1", "key": {"text": "TAG"}}}),
            "the key of the signature",
        ),
        (
            json!({"sign": {"header": "x-TAG", "algorithm": "sha1", "key": {"text": "k"}}}),
            "the header of the signature",
        ),
    ] {
        refused(to_vendor(fields), &format!("{MISPLACED}{place}")).await;
    }
    let url = json!({"url": "https://api.vendor.example/?t=TAG"});
    refused(url, &format!("{MISPLACED}the URL")).await;
}

// A signature's prefix and suffix are hashed and never sent.
// covers: AL-104
#[tokio::test]
async fn bare_tag_may_be_hashed() {
    let sign = json!({"header": "x-s", "algorithm": "sha256", "key": {"text": "k"},
        "prefix": "TAG", "suffix": "|TAG"});
    let sent = Scene::new().sends(&to_vendor(json!({"sign": sign}))).await;
    let expected = crate::hmac::sign(
        crate::hmac::HmacAlgorithm::Sha256,
        b"k",
        format!("{TAG}|{TAG}").as_bytes(),
        crate::hmac::SignatureEncoding::Hex,
    );
    assert_eq!(sent.header("x-s"), Some(expected.as_str()));
}

// covers: AL-105, AL-106, AL-111, AL-114, AL-118, AL-125, AL-131, AL-132, AL-134
#[tokio::test]
async fn what_leaves_the_call_shows_no_secret() {
    let scene = Scene::new();
    let auth = json!({"authType": "basic", "username": "acme", "password": "plain-password"});
    scene.ask(&to_vendor(json!({"auth": auth}))).await;
    let token = json!({"authType": "bearer", "token": "plain-token-123"});
    scene.ask(&to_vendor(json!({"auth": token}))).await;
    let hidden = |text: &str| hidden(&scene, text);
    for (text, expected) in [
        ("key-12345678", "[secret:apiKey]"),
        (TAG, "[tag]"),
        (&format!("{{{{secret:apiKey:{TAG}}}}}"), "{{secret:apiKey:[tag]}}"),
        ("YWNtZTpwbGFpbi1wYXNzd29yZA==", "[auth:basic]"),
        ("Basic YWNtZTpwbGFpbi1wYXNzd29yZA==", "[auth:basic]"),
        ("plain-password", "[auth:basic]"),
        ("Bearer plain-token-123", "[auth:bearer]"),
        ("plain-token-123", "[auth:bearer]"),
    ] {
        assert_eq!(hidden(text), expected, "{text}");
    }
    // A credential that is a secret keeps the secret's marker (AL-134).
    let token = json!({"authType": "bearer", "token": "{{secret:apiKey:TAG}}"});
    scene.ask(&to_vendor(json!({"auth": token}))).await;
    assert_eq!(hidden("key-12345678"), "[secret:apiKey]");
    assert_eq!(hidden("Bearer key-12345678"), "[auth:bearer]");
    // The error of a host function.
    let header = json!({"headers": {"x key-12345678": "1"}});
    let answered = scene.ask(&to_vendor(header)).await;
    assert_eq!(answered, json!({"error": "\"x [secret:apiKey]\" is not a header name"}));
}

// AL-125: no error shows a piece of a secret, or a secret in another spelling.
#[tokio::test]
async fn error_shows_no_secret_that_was_cut_or_rewritten_al_125() {
    let long = concat!(
        "A long passphrase, which is shown cut to its first hundred characters: ",
        "the rest of it is what it would take to know it for what it is, and to hide it"
    );
    let api_key = |value: &str, add_to: &str| json!({"authType": "api-key", "key": "{{secret:s:TAG}}", "value": value, "addTo": add_to});
    let name = to_vendor(json!({"auth": api_key("v", "HEADERS")}));
    let value = to_vendor(json!({"auth": api_key("\u{1}", "HEADERS")}));
    let query = json!({
        "url": "https://api.vendor.example/?{{secret:s:TAG}}=1",
        "auth": api_key("v", "QUERY_PARAMS"),
    });
    let claims = json!({"n": {"{{secret:s:TAG}}": 1, "{{secret:t:TAG}}": 2}});
    let claims = to_vendor(json!({"auth": {"authType": "jwt", "secret": "k", "payload": claims}}));
    let url = |url: &str| json!({"url": url});
    let approved = "is not in the hosts the install approved";
    for (secret, request, expected) in [
        (long, &name, "\"[secret:s]\" is not a header name"),
        ("AbC/DeF+GhI==", &name, "\"[secret:s]\" is not a header name"),
        ("pass\u{200b}word\u{1}", &name, "\"[secret:s]\" is not a header name"),
        ("AbC#DeF%GhI", &value, "header [secret:s] has a value that HTTP cannot carry"),
        (long, &query, "query parameter [secret:s] is set by both the URL and its auth"),
        (long, &claims, "jwt auth: payload: a key stands twice"),
        (
            "12345678",
            &url("https://{{secret:s:TAG}}/"),
            "host [secret:s] is an IP address, which is not permitted",
        ),
        (
            "p\u{e4}sswort-1",
            &url("https://a{{secret:s:TAG}}.x.example/"),
            &format!("host [secret:s] {approved}"),
        ),
        (
            "AbCd-1234",
            &url("https://{{secret:s:TAG}}.x.example/"),
            &format!("host [secret:s].x.example {approved}"),
        ),
    ] {
        let secrets = vec![("s", secret), ("t", secret)];
        let scene = Scene::given(Given { secrets, ..Given::default() });
        assert_eq!(scene.ask(request).await, json!({"error": expected}), "{secret:?}");
        assert_eq!(scene.sent(), []);
    }
}

// AL-102: what a URL's parser drops does not hide the tag from the host and show it to the vendor.
#[tokio::test]
async fn tag_that_a_url_spells_with_dropped_characters_is_refused_al_102() {
    for dropped in ["\t", "\n", "\r", "\r\n\t"] {
        let (front, back) = TAG.split_at(5);
        let url = format!("https://api.vendor.example/?t={front}{dropped}{back}");
        refused(json!({"url": url}), &format!("{MISPLACED}the URL")).await;
    }
    // Elsewhere in the URL they do no harm.
    let url = "https://api.vendor.example/\t{{secret:apiKey:TAG}}\n";
    let sent = Scene::new().sends(&json!({"url": url})).await;
    assert_eq!(sent.url, "https://api.vendor.example/key-12345678");
}

// AL-073: a name is read as the string says it.
#[tokio::test]
async fn name_that_is_spelled_with_escapes_is_filled_al_073() {
    let text = r#"["{{secret:api\u004bey:TAG}}"]"#;
    let sent = Scene::new().sends(&to_vendor(json!({"body": {"jsonText": text}}))).await;
    assert_eq!(sent.text(), r#"["key-12345678"]"#);
}
