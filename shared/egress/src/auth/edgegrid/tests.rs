//! Akamai's published example, what the signature covers, and what is refused.

use super::*;
use crate::draft::{Scheme, SentUrl};

struct Fixed;

impl Nonces for Fixed {
    fn hawk(&self) -> String {
        unreachable!("EdgeGrid has no Hawk nonce")
    }

    fn cnonce(&self) -> String {
        unreachable!("EdgeGrid has no client nonce")
    }

    fn uuid(&self) -> String {
        "ec9d20ee-1e9b-4c1f-925a-f0017754f86c".to_owned()
    }

    fn boundary(&self) -> String {
        unreachable!("EdgeGrid has no boundary")
    }
}

const HOST: &str = "akaa-baseurl-xxxxxxxxxxx-xxxxxxxxxxxxx.luna.akamaiapis.net";

/// The credentials and values of Akamai's published tests.
fn published() -> EdgeGridAuth {
    EdgeGridAuth {
        access_token: "akab-access-token-xxx-xxxxxxxxxxxxxxxx".to_owned(),
        client_token: "akab-client-token-xxx-xxxxxxxxxxxxxxxx".to_owned(),
        client_secret: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx=".to_owned(),
        nonce: Some("nonce-xx-xxxx-xxxx-xxxx-xxxxxxxxxxxx".to_owned()),
        timestamp: Some("20140321T19:34:21+0000".to_owned()),
        ..EdgeGridAuth::default()
    }
}

struct Request {
    method: &'static str,
    url: SentUrl,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

fn get(target: &str) -> Request {
    let url = SentUrl {
        scheme: Scheme::Https,
        host: HOST.to_owned(),
        port: None,
        target: target.to_owned(),
    };
    Request { method: "GET", url, headers: Vec::new(), body: None }
}

fn built(auth: &EdgeGridAuth, request: &Request, sign: Option<&str>) -> Result<Additions, String> {
    let draft = Draft {
        method: request.method,
        url: &request.url,
        headers: &request.headers,
        body: request.body.as_deref(),
    };
    let at = "2026-01-02T03:04:05.678Z".parse().unwrap();
    build(auth, &draft, sign, at, &Fixed).map_err(|fault| fault.to_string())
}

fn signature(auth: &EdgeGridAuth, request: &Request) -> String {
    built(auth, request, None).unwrap().derived.remove(1)
}

// covers: AL-363, AL-365, AL-366, AL-375
#[test]
fn the_header_is_that_of_akamais_published_test() {
    // AL-363, AL-365, AL-366.
    let added = built(&published(), &get("/"), None).unwrap();
    let signature = "tL+y4hxyHxgWVD30X3pWnGKHcPzmrIF+LThiAOhMxYU=";
    let value = format!(
        "EG1-HMAC-SHA256 client_token=akab-client-token-xxx-xxxxxxxxxxxxxxxx;\
         access_token=akab-access-token-xxx-xxxxxxxxxxxxxxxx;timestamp=20140321T19:34:21+0000;\
         nonce=nonce-xx-xxxx-xxxx-xxxx-xxxxxxxxxxxx;signature={signature}"
    );
    assert_eq!(added.headers, [("authorization".to_owned(), value)]);
    assert!(added.query.is_empty());
    // AL-383: the key and the signature are hidden.
    let key = signing_key(&published().client_secret, "20140321T19:34:21+0000");
    assert_eq!(added.derived, [key, signature.to_owned()]);
}

// covers: AL-367, AL-380
#[test]
fn the_clock_and_a_fresh_uuid_are_taken_where_none_is_given() {
    let auth = EdgeGridAuth { nonce: None, timestamp: Some(String::new()), ..published() };
    let value = built(&auth, &get("/"), None).unwrap().headers.remove(0).1;
    let expected = "timestamp=20260102T03:04:05+0000;nonce=ec9d20ee-1e9b-4c1f-925a-f0017754f86c;";
    assert!(value.contains(expected), "{value}");
}

// covers: AL-368
#[test]
fn the_signature_covers_each_part_of_the_request() {
    let plain = signature(&published(), &get("/p?a=1"));
    let mut other = get("/p?a=1");
    other.method = "PUT";
    assert_ne!(signature(&published(), &other), plain);
    other = get("/p?a=1");
    other.url.scheme = Scheme::Http;
    assert_ne!(signature(&published(), &other), plain);
    other = get("/p?a=1");
    other.url.port = Some(8443);
    assert_ne!(signature(&published(), &other), plain);
    other = get("/p?a=1");
    other.url.host = "other.luna.akamaiapis.net".to_owned();
    assert_ne!(signature(&published(), &other), plain);
    assert_ne!(signature(&published(), &get("/q?a=1")), plain);
    assert_ne!(signature(&published(), &get("/p?a=2")), plain);
}

// covers: AL-369, AL-370, AL-371
#[test]
fn named_headers_are_covered_in_the_order_of_their_names() {
    let mut request = get("/testapi/v1/t4");
    let add = |request: &mut Request, name: &str, value: &str| {
        request.headers.push((name.to_owned(), value.to_owned()));
    };
    add(&mut request, "x-a", " a \t  b ");
    add(&mut request, "x-b", "B: c");
    add(&mut request, "x-other", "no");
    let data = |list: &str| {
        let auth = EdgeGridAuth { headers_to_sign: Some(list.to_owned()), ..published() };
        let names = headers_to_sign(&auth, None).unwrap();
        let draft =
            Draft { method: "GET", url: &request.url, headers: &request.headers, body: None };
        data_to_sign(&draft, &names, BODY_BYTES_MAX)
    };
    let text = |headers: &str| format!("GET\thttps\t{HOST}\t/testapi/v1/t4\t{headers}\t\t");
    assert_eq!(data("X-B,x-missing, X-A ,"), text("x-b:B: c\tx-a:a b"));
    assert_eq!(data("x-a,x-b"), text("x-a:a b\tx-b:B: c"));
    assert_eq!(data(""), text(""));
}

// covers: AL-372, AL-373, AL-374
#[test]
fn the_first_bytes_of_a_post_are_hashed() {
    let hash = |bytes: &[u8]| STANDARD.encode(digest::digest(&digest::SHA256, bytes));
    // AL-372, AL-373.
    assert_eq!(content_hash("POST", b"abc", 3), hash(b"abc"));
    assert_eq!(content_hash("POST", b"abc", 2), hash(b"ab"));
    assert_eq!(content_hash("POST", b"abc", u64::MAX), hash(b"abc"));
    assert_eq!(content_hash("POST", b"abc", 0), "");
    assert_eq!(content_hash("POST", b"", 3), "");
    for method in ["GET", "PUT", "PATCH", "DELETE", "HEAD"] {
        assert_eq!(content_hash(method, b"abc", 3), "");
    }
    // AL-374: one byte over the default size is not covered any more.
    let post = |bytes: usize, last: u8| {
        let mut body = vec![b'x'; bytes];
        body[bytes - 1] = last;
        signature(&published(), &Request { method: "POST", body: Some(body), ..get("/") })
    };
    assert_ne!(post(131_072, b'a'), post(131_072, b'b'));
    assert_eq!(post(131_073, b'a'), post(131_073, b'b'));
}

// covers: AL-376, AL-377, AL-378, AL-379, AL-381, AL-384
#[test]
fn what_cannot_be_signed_is_refused() {
    #[track_caller]
    fn check(change: impl Fn(&mut EdgeGridAuth), expected: Option<&str>) {
        let mut auth = published();
        change(&mut auth);
        let text = built(&auth, &get("/"), Some("x-s")).err();
        // AL-384.
        assert_eq!(text, expected.map(|text| format!("akamai-eg auth: {text}")));
    }
    // AL-381.
    let printable = "must be printable ASCII without a space and without a semicolon";
    for bad in ["a b", "a;b", "é", "a\nb", "\u{7f}"] {
        let access = format!("accessToken {printable}");
        check(|auth| auth.access_token = bad.to_owned(), Some(&access));
        let client = format!("clientToken {printable}");
        check(|auth| auth.client_token = bad.to_owned(), Some(&client));
        let nonce = format!("nonce {printable}");
        check(|auth| auth.nonce = Some(bad.to_owned()), Some(&nonce));
    }
    check(|auth| auth.access_token.clear(), Some("accessToken is empty"));
    check(|auth| auth.client_token.clear(), Some("clientToken is empty"));
    check(|auth| auth.client_secret.clear(), Some("clientSecret is empty"));
    // AL-375, AL-376.
    check(|auth| auth.host = Some(String::new()), None);
    check(|auth| auth.host = Some(HOST.to_uppercase()), None);
    check(|auth| auth.host = Some(format!("{HOST}:443")), None);
    let host = Some("host is not the host of the request's URL");
    check(|auth| auth.host = Some("other.example".to_owned()), host);
    check(|auth| auth.host = Some(format!("{HOST}:8443")), host);
    // AL-377, AL-378, AL-379.
    let headers = |list: &str, expected: Option<&str>| {
        check(|auth| auth.headers_to_sign = Some(list.to_owned()), expected);
    };
    for name in [
        "authorization",
        "user-agent",
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "expect",
        "upgrade",
    ] {
        let expected = format!("headersToSign cannot name {name}");
        headers(&format!("x-a, {}", name.to_uppercase()), Some(&expected));
    }
    headers("X-S", Some("headersToSign cannot name the header of the request's sign"));
    headers("x a", Some("headersToSign holds text that is no header name"));
    headers("x-a, X-A", Some("headersToSign names a header twice"));
    headers("x-t,content-type", None);
    // AL-367.
    let time = |text: &str, expected: Option<&str>| {
        check(|auth| auth.timestamp = Some(text.to_owned()), expected);
    };
    time("20260102T03:04:05+0000", None);
    let form = Some("timestamp must have the form yyyyMMddTHH:mm:ss+0000");
    for text in ["20260102T03:04:05Z", "20260102T03:04:05+00000", "2026010;T03:04:05+0000"] {
        time(text, form);
    }
}
