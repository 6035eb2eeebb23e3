//! Requests as an HTTP API and a function URL hand them over (payload format 2.0).

use std::borrow::Cow;
use std::collections::BTreeMap;

use annex_core::fault::{Code, Fault, Outcome};
use annex_core::stored;
use axum::body::Body;
use axum::http::header::{CONTENT_ENCODING, COOKIE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Error;

/// What is read of an event.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HttpEvent<'a> {
    #[serde(borrow)]
    raw_path: Cow<'a, str>,
    #[serde(borrow, default)]
    raw_query_string: Cow<'a, str>,
    #[serde(borrow, default)]
    cookies: Vec<Cow<'a, str>>,
    #[serde(borrow, default)]
    headers: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    #[serde(borrow)]
    request_context: Context<'a>,
    #[serde(borrow, default)]
    body: Option<Cow<'a, str>>,
    #[serde(default)]
    is_base64_encoded: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Context<'a> {
    #[serde(borrow, default)]
    domain_name: Cow<'a, str>,
    #[serde(borrow)]
    http: Http<'a>,
}

#[derive(Deserialize)]
struct Http<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
}

impl<'a> HttpEvent<'a> {
    /// Reads an event.
    pub(crate) fn read(event: &'a RawValue) -> Result<Self, Error> {
        serde_json::from_str(event.get())
            .map_err(|error| format!("the event is no request: {}", stored::fault(&error)).into())
    }

    /// The URL of the name that the request came to. It is the gateway's word, not a header of the client.
    pub(crate) fn public_url(&self) -> String {
        format!("https://{}", self.request_context.domain_name)
    }

    /// The request. It is refused where its body did not come through whole.
    pub(crate) fn into_request(self) -> Outcome<Request<Body>> {
        let headers = self.headers();
        let body = self.body(&headers)?;
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = Method::from_bytes(self.request_context.http.method.as_bytes())
            .map_err(|_| bad("the method of the request is not one"))?;
        *request.uri_mut() = self.uri()?;
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// Headers that are none to HTTP are left out; the gateway passes no such.
    fn headers(&self) -> HeaderMap {
        let header = |(name, value): (&Cow<'_, str>, &Cow<'_, str>)| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_str(value).ok()?))
        };
        let mut headers: HeaderMap = self.headers.iter().filter_map(header).collect();
        if !self.cookies.is_empty()
            && let Ok(cookies) = HeaderValue::from_str(&self.cookies.join("; "))
        {
            headers.insert(COOKIE, cookies);
        }
        headers
    }

    fn uri(&self) -> Outcome<Uri> {
        let refused = || bad("the path of the request is not one");
        if !self.raw_path.starts_with('/') {
            // It would be read as a host.
            return Err(refused());
        }
        let mut text = String::with_capacity(self.raw_path.len() + self.raw_query_string.len() + 8);
        escape(&self.raw_path, b"?#", &mut text);
        if !self.raw_query_string.is_empty() {
            text.push('?');
            escape(&self.raw_query_string, b"#", &mut text);
        }
        text.parse().map_err(|_| refused())
    }

    /// The body as it was sent. The gateway hands over some content types as text, whatever encoding the body has; bytes
    /// that are not text are lost then, so that a compressed body cannot be read, and its signature would not fit.
    fn body(&self, headers: &HeaderMap) -> Outcome<Vec<u8>> {
        let Some(body) = &self.body else { return Ok(Vec::new()) };
        if self.is_base64_encoded {
            return STANDARD.decode(body.as_bytes()).map_err(|_| bad("the body is not base64"));
        }
        let is_encoded = headers.get_all(CONTENT_ENCODING).iter().any(|value| {
            let codings = value.to_str().unwrap_or("?").split(',').map(str::trim);
            codings.filter(|coding| !coding.is_empty()).any(|coding| !is_identity(coding))
        });
        if is_encoded && !body.is_empty() {
            return Err(Fault::new(
                Code::BodyDamaged,
                "the compressed body was damaged on its way, because its Content-Type says that it is text; send it as \
                 application/octet-stream, or uncompressed",
            ));
        }
        Ok(body.as_bytes().to_vec())
    }
}

fn is_identity(coding: &str) -> bool {
    coding.eq_ignore_ascii_case("identity")
}

/// Adds `text` to a URI, with everything escaped that may not stand there. What is escaped already stays so; an HTTP API
/// hands over paths decoded, a function URL as they came.
fn escape(text: &str, also: &[u8], uri: &mut String) {
    let bytes = text.as_bytes();
    for (index, &byte) in bytes.iter().enumerate() {
        let stays = match byte {
            b'%' => {
                let digits = bytes.get(index + 1..index + 3);
                digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            }
            b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => false,
            _ => byte.is_ascii_graphic() && !also.contains(&byte),
        };
        if stays {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
}

fn bad(text: &str) -> Fault {
    Fault::new(Code::BadRequest, text)
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use serde_json::{Value, json};

    use super::*;

    fn event(changes: &Value) -> Value {
        let mut event = json!({
            "version": "2.0", "rawPath": "/v1/orgs", "rawQueryString": "",
            "headers": {"content-type": "application/json"},
            "requestContext": {"domainName": "id.example.com", "http": {"method": "POST", "path": "/v1/orgs"}},
            "isBase64Encoded": false,
        });
        for (name, value) in changes.as_object().unwrap() {
            event[name] = value.clone();
        }
        event
    }

    fn read(changes: &Value) -> Outcome<Request<Body>> {
        let raw = RawValue::from_string(event(changes).to_string()).unwrap();
        HttpEvent::read(&raw).unwrap().into_request()
    }

    async fn check_body(changes: Value, expected: Result<&[u8], Code>) {
        let body = match read(&changes) {
            Ok(request) => Ok(request.into_body().collect().await.unwrap().to_bytes().to_vec()),
            Err(fault) => Err(fault.code),
        };
        assert_eq!(body, expected.map(<[u8]>::to_vec), "{changes}");
    }

    fn check_uri(path: &str, query: &str, expected: &str) {
        let request = read(&json!({"rawPath": path, "rawQueryString": query})).unwrap();
        assert_eq!(request.uri().to_string(), expected);
    }

    #[tokio::test]
    async fn bodies_come_as_text_or_as_base64() {
        check_body(json!({}), Ok(b"")).await;
        check_body(json!({"body": null}), Ok(b"")).await;
        check_body(json!({"body": "{\"a\":\"\u{e9}\"}"}), Ok("{\"a\":\"\u{e9}\"}".as_bytes()))
            .await;
        check_body(json!({"body": "H4sI/w==", "isBase64Encoded": true}), Ok(b"\x1f\x8b\x08\xff"))
            .await;
        check_body(json!({"body": "H4s", "isBase64Encoded": true}), Err(Code::BadRequest)).await;
        let gzip = json!({"content-encoding": "gzip"});
        let packed = json!({"body": "H4sI/w==", "isBase64Encoded": true, "headers": gzip});
        check_body(packed, Ok(b"\x1f\x8b\x08\xff")).await;
    }

    #[tokio::test]
    async fn a_compressed_body_that_came_as_text_is_refused() {
        for coding in ["gzip", "GZIP", "identity, gzip", "br", "\u{e9}"] {
            let headers = json!({"Content-Encoding": coding});
            let body = json!({"body": "\u{1f}\u{fffd}\u{8}", "headers": headers});
            check_body(body, Err(Code::BodyDamaged)).await;
        }
        for coding in ["", "identity", "Identity"] {
            let headers = json!({"content-encoding": coding});
            check_body(json!({"body": "x", "headers": headers}), Ok(b"x")).await;
        }
        let empty = json!({"body": "", "headers": {"content-encoding": "gzip"}});
        check_body(empty, Ok(b"")).await;
    }

    #[test]
    fn paths_are_escaped_once() {
        check_uri("/v1/orgs", "", "/v1/orgs");
        check_uri("/a b/\u{e9}", "x=1&y=%20+", "/a%20b/%C3%A9?x=1&y=%20+");
        check_uri("/a%2Fb/50%/%zz/%", "", "/a%2Fb/50%25/%25zz/%25");
        check_uri("/a?b#c\"{}", "a#b", "/a%3Fb%23c%22%7B%7D?a%23b");
        check_uri("//double", "", "//double");
        assert_eq!(read(&json!({"rawPath": "no/slash"})).unwrap_err().code, Code::BadRequest);
    }

    #[test]
    fn what_no_gateway_sends_is_refused_or_left_out() {
        for (changes, code) in [
            (json!({"rawPath": ""}), Code::BadRequest),
            (json!({"rawPath": "*"}), Code::BadRequest),
            (json!({"rawPath": "host:80"}), Code::BadRequest),
            (json!({"rawPath": "http://host/v1/orgs"}), Code::BadRequest),
            (json!({"rawPath": format!("/{}", "x".repeat(70_000))}), Code::BadRequest),
            (json!({"requestContext": {"http": {"method": "GET\r\n"}}}), Code::BadRequest),
            (json!({"requestContext": {"http": {"method": ""}}}), Code::BadRequest),
        ] {
            let refused = read(&changes).map(|request| request.uri().to_string());
            assert_eq!(refused.map_err(|fault| fault.code), Err(code), "{changes:.100}");
        }
        let left_out = json!({"headers": {"x": "a\u{0}b", "": "x", "y\n": "x", "z": "\r\n"}, "cookies": ["a\nb"]});
        assert!(read(&left_out).unwrap().headers().is_empty());
        let path =
            read(&json!({"rawPath": "/%00/\u{0}/../%2e%2e", "rawQueryString": "\u{0}#&&=%"}));
        assert_eq!(path.unwrap().uri(), "/%00/%00/../%2e%2e?%00%23&&=%25");
    }

    #[test]
    fn headers_and_cookies_are_those_of_the_client() {
        let request = read(&json!({
            "headers": {"X-A": "1,2", "bad name": "x", "x-b": "a\nb"}, "cookies": ["a=1", "b=2"]}));
        let expected = HeaderMap::from_iter([
            (HeaderName::from_static("x-a"), HeaderValue::from_static("1,2")),
            (COOKIE, HeaderValue::from_static("a=1; b=2")),
        ]);
        assert_eq!(request.unwrap().headers(), &expected);
    }

    #[test]
    fn the_public_url_is_the_name_that_the_gateway_gives() {
        let raw = RawValue::from_string(event(&json!({})).to_string()).unwrap();
        assert_eq!(HttpEvent::read(&raw).unwrap().public_url(), "https://id.example.com");
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for text in ["{}", "[]", r#"{"rawPath":"/"}"#, r#"{"Records":[]}"#] {
            let raw = RawValue::from_string(text.into()).unwrap();
            assert!(HttpEvent::read(&raw).is_err(), "{text}");
        }
    }
}
