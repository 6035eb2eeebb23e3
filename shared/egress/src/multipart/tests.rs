use std::sync::Mutex;

use super::*;

/// Boundaries in order, the last again and again.
struct Boundaries(Mutex<Vec<&'static str>>);

impl Boundaries {
    fn new(mut boundaries: Vec<&'static str>) -> Self {
        boundaries.reverse();
        Self(Mutex::new(boundaries))
    }
}

impl Nonces for Boundaries {
    fn hawk(&self) -> String {
        unreachable!("a form has no such nonce")
    }

    fn cnonce(&self) -> String {
        unreachable!("a form has no such nonce")
    }

    fn uuid(&self) -> String {
        unreachable!("a form has no such nonce")
    }

    fn boundary(&self) -> String {
        let mut left = self.0.lock().unwrap();
        let next = if left.len() > 1 { left.pop() } else { left.last().copied() };
        next.unwrap().to_owned()
    }
}

fn text<'a>(name: &'a str, value: &'a str) -> Part<'a> {
    Part::Text { name, value, content_type: None }
}

fn document<'a>(filename: &'a str, content_type: &'a str, index: usize) -> Part<'a> {
    Part::Document { name: "d", filename, content_type, index }
}

/// The body, with the number of a document in braces in place of its bytes.
#[track_caller]
fn check(parts: &[Part<'_>], expected: &str) {
    let encoded = encode(parts, &Boundaries::new(vec!["B"]));
    let mut body = String::new();
    for segment in &encoded.segments {
        match segment {
            Segment::Bytes(bytes) => body.push_str(std::str::from_utf8(bytes).unwrap()),
            Segment::Document(index) => body.push_str(&format!("{{{index}}}")),
        }
    }
    assert_eq!(body, expected.replace('\n', "\r\n"));
    assert_eq!(encoded.content_type(), "multipart/form-data; boundary=B");
}

// covers: AL-251, AL-252
#[test]
fn parts_follow_each_other() {
    check(&[], "--B--\n");
    check(
        &[text("a", "1"), Part::Text { name: "b", value: "{}", content_type: Some("text/x;a=b") }],
        "--B\nContent-Disposition: form-data; name=\"a\"\n\n1\n\
         --B\nContent-Disposition: form-data; name=\"b\"\nContent-Type: text/x;a=b\n\n{}\n--B--\n",
    );
    check(
        &[document("p.png", "image/png", 7), text("a", ""), document("", "text/plain", 8)],
        "--B\nContent-Disposition: form-data; name=\"d\"; filename=\"p.png\"\nContent-Type: image/png\n\n{7}\n\
         --B\nContent-Disposition: form-data; name=\"a\"\n\n\n\
         --B\nContent-Disposition: form-data; name=\"d\"; filename=\"\"\nContent-Type: text/plain\n\n{8}\n--B--\n",
    );
}

#[test]
fn no_name_or_type_adds_a_header() {
    check(
        &[text("a\"b\n\rc%22", "x")],
        "--B\nContent-Disposition: form-data; name=\"a%22b%0D%0A%0D%0Ac%22\"\n\nx\n--B--\n",
    );
    check(
        &[document("f\"\r\nX-Injected: 1", "text/plain\r\nX-Injected: 1", 0)],
        "--B\nContent-Disposition: form-data; name=\"d\"; filename=\"f%22%0D%0AX-Injected: 1\"\n\
         Content-Type: application/octet-stream\n\n{0}\n--B--\n",
    );
    check(
        &[document("b\n\rc", "text/plain", 0)],
        "--B\nContent-Disposition: form-data; name=\"d\"; filename=\"b%0A%0Dc\"\n\
         Content-Type: text/plain\n\n{0}\n--B--\n",
    );
}

#[test]
fn line_ends_of_a_value_are_those_of_a_form() {
    let body = |part| match &encode(&[part], &Boundaries::new(vec!["B"])).segments[..] {
        [Segment::Bytes(bytes)] => String::from_utf8(bytes.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    };
    assert!(
        body(text("a", "1\n2\r3\r\n4\n\r5")).contains("\r\n\r\n1\r\n2\r\n3\r\n4\r\n\r\n5\r\n--B--")
    );
    let typed = Part::Text { name: "a", value: "1\n2\r3", content_type: Some("text/plain") };
    assert!(body(typed).contains("\r\n\r\n1\n2\r3\r\n--B--"));
}

#[test]
fn a_boundary_occurs_in_no_part() {
    let draw = |boundaries: Vec<&'static str>, value: &str| {
        encode(&[text("a", value)], &Boundaries::new(boundaries)).boundary
    };
    assert_eq!(draw(vec!["one", "two"], "xx"), "one");
    assert_eq!(draw(vec!["one", "two"], "x--one--"), "two");
    assert_eq!(draw(vec!["one"], "x--one--"), "one0");
    assert_eq!(draw(vec!["one"], "x--one0 one1"), "one2");
    assert_eq!(draw(vec!["one", "two", "six", "ten", "end"], "one two six ten end"), "end0");
    let named = encode(&[text("one", "")], &Boundaries::new(vec!["one", "two"]));
    assert_eq!(named.boundary, "two");
    let quoted = encode(&[], &Boundaries::new(vec!["a:b"]));
    assert_eq!(quoted.content_type(), "multipart/form-data; boundary=\"a:b\"");
}

// covers: AL-254, AL-255
#[test]
fn a_media_type_has_a_type_a_subtype_and_parameters() {
    for accepted in [
        "text/plain",
        "text/plain; charset=utf-8",
        "application/vnd.api+json",
        "text/plain;charset=utf-8;format=flowed",
        "text/plain ; charset=\"utf-8\"",
        "text/plain; name=\"a;b\\\" é\" ; x=y",
        "text/plain;",
        "*/*",
    ] {
        assert!(is_media_type(accepted), "{accepted}");
    }
    for refused in [
        "",
        "text",
        "text/",
        "/plain",
        "text/plain/x",
        "text plain",
        "text /plain",
        " text/plain",
        "text/plain\r\nX-Evil: 1",
        "text/plain\0",
        "text/plain;\tcharset=utf-8",
        "text/plain; charset",
        "text/plain; charset=",
        "text/plain; =utf-8",
        "text/plain; charset=a b",
        "text/plain; charset=\"a",
        "text/plain; charset=\"a\"b",
        "text/plain; charset=\"a\\\"",
        "text/plain, text/html",
        "tëxt/plain",
        "text/plain; a=\"\u{85}\"",
    ] {
        assert!(!is_media_type(refused), "{refused:?}");
    }
}
