//! Encodings of forms.

use annex_egress::form;
use annex_egress::multipart::{self, Part, Segment};
use serde_json::Value;

use crate::set::{Fixed, cases, pairs, text};

/// The header lines and the value of the one part.
fn encode(part: Part<'_>) -> (String, String) {
    let form = multipart::encode(&[part], &Fixed("boundary-of-the-vectors".to_owned()));
    let mut body = String::new();
    for segment in &form.segments {
        match segment {
            Segment::Bytes(bytes) => body.push_str(std::str::from_utf8(bytes).expect("it is text")),
            Segment::Document(_) => {}
        }
    }
    let body = body
        .strip_prefix(&format!("--{}\r\n", form.boundary))
        .expect("the part is between two boundaries");
    let body = body
        .strip_suffix(&format!("\r\n--{}--\r\n", form.boundary))
        .expect("the part is between two boundaries");
    let (headers, value) = body.split_once("\r\n\r\n").expect("a part has a header");
    (headers.to_owned(), value.to_owned())
}

fn check_multipart(case: &Value) {
    let (input, expected) = (&case["input"], &case["expect"]);
    let name = text(input, "name");
    let (headers, value) = match input["filename"].as_str() {
        None => encode(Part::Text { name, value: text(input, "value"), content_type: None }),
        Some(filename) => {
            let content_type = text(input, "contentType");
            let (headers, value) =
                encode(Part::Document { name, filename, content_type, index: 0 });
            (headers, value + text(input, "content"))
        }
    };
    let disposition = headers.split_once("\r\n").map_or(&*headers, |(first, _)| first);
    assert_eq!(disposition, text(expected, "disposition"), "{case}");
    let values = [expected["value"].as_str(), expected["alternativeValue"].as_str()];
    assert!(values.contains(&Some(&*value)), "{value:?}: {case}");
}

#[test]
fn every_form_is_encoded_as_listed() {
    for case in cases("forms") {
        let (input, expected) = (&case["input"], &case["expect"]);
        match text(&case, "kind") {
            "urlencoded-parse" => {
                // Only receivers read forms; this is how theirs read ours.
                let read: Vec<(String, String)> =
                    form_urlencoded::parse(text(input, "text").as_bytes()).into_owned().collect();
                assert_eq!(read, pairs(&expected["pairs"]), "{case}");
                let again = form::encode(&read);
                let again: Vec<_> = form_urlencoded::parse(again.as_bytes()).into_owned().collect();
                assert_eq!(again, read, "{case}");
            }
            "urlencoded-serialize" => {
                assert_eq!(form::encode(&pairs(&input["pairs"])), text(expected, "text"), "{case}");
            }
            "multipart" => check_multipart(&case),
            "multipart-part-type" => {
                let accepted = multipart::is_media_type(text(input, "contentType"));
                assert_eq!(Some(accepted), expected["accepted"].as_bool(), "{case}");
            }
            other => panic!("unknown kind {other}"),
        }
    }
}
