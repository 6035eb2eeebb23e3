use proptest::prelude::*;

use super::*;

const TAG: &str = "w3Kp9xV2mQ8rT1zL5nB7cA";

fn secrets() -> Secrets {
    let values = [("apiKey", "k-1"), ("odd", "a\"b\\c"), ("url", "x/y?z=1#f@h&i"), ("dots", "..")];
    Secrets::new(values.map(|(name, value)| (name.into(), value.into())), TAG)
}

fn tagged(text: &str) -> String {
    text.replace("TAG", TAG)
}

#[track_caller]
fn check(text: &str, expected: Result<&str, FillFault>) {
    let filled = secrets().fill(&tagged(text), Place::Body).map(Cow::into_owned);
    assert_eq!(filled, expected.map(tagged), "{text}");
}

#[track_caller]
fn check_text(text: &str, expected: Result<&str, FillFault>) {
    let filled = secrets().fill_json_text(&tagged(text)).map(Cow::into_owned);
    assert_eq!(filled, expected.map(tagged), "{text}");
}

#[track_caller]
fn check_json(value: &str, expected: Result<&str, FillFault>) {
    let filled = secrets().fill_json(&tagged(value), Place::Body);
    assert_eq!(filled, expected.map(tagged), "{value}");
}

const fn misplaced<T>(place: Place) -> Result<T, FillFault> {
    Err(FillFault::Misplaced(place))
}

fn not_set<T>(name: &str) -> Result<T, FillFault> {
    Err(FillFault::NotSet(name.into()))
}

// covers: AL-065, AL-087, AL-088, AL-089, AL-091
#[test]
fn only_the_tag_of_the_call_names_a_secret() {
    check("k={{secret:apiKey:TAG}}&o={{secret:odd:TAG}}.", Ok("k=k-1&o=a\"b\\c."));
    check("{{secret:apiKey}}", Ok("{{secret:apiKey}}"));
    check(
        "{{secret:apiKey:AAAAAAAAAAAAAAAAAAAAAA}}",
        Ok("{{secret:apiKey:AAAAAAAAAAAAAAAAAAAAAA}}"),
    );
    check("{{secret:missing}}", Ok("{{secret:missing}}"));
    check("{{secret:nope:TAG}}", not_set("nope"));
    check("{{secret:{{secret:apiKey:TAG}}", Ok("{{secret:k-1"));
    assert_eq!(
        not_set::<()>("nope").unwrap_err().to_string(),
        "secret nope is not set for this install"
    );
}

// covers: AL-101, AL-103
#[test]
fn tag_outside_a_placeholder_is_refused() {
    for text in [
        "x TAG",
        "{{secret:apiKey:TAG}",
        "{{secret::TAG}}",
        "{secret:apiKey:TAG}}",
        "{{secret:a{b:TAG}}",
        "{{secret:a:b:TAG}}",
        "{{secret:apiKey:TAG}} TAG",
        "{{SECRET:apiKey:TAG}}",
        "TAG{{secret:apiKey:TAG}}",
    ] {
        check(text, misplaced(Place::Body));
    }
    let refused = secrets().keep_out(TAG, Place::HeaderName).unwrap_err().to_string();
    assert_eq!(
        refused,
        "a secret placeholder stands where the host does not fill it: a header name"
    );
    assert_eq!(secrets().keep_out("{{secret:apiKey}}", Place::HeaderName), Ok(()));
}

#[test]
fn without_a_tag_nothing_is_filled() {
    let untagged = Secrets::new([("a".to_owned(), "v".to_owned())], "");
    assert_eq!(untagged.fill("{{secret:a:}}", Place::Body).unwrap(), "{{secret:a:}}");
    assert_eq!(untagged.keep_out("", Place::HeaderName), Ok(()));
}

// covers: AL-066, AL-067
#[test]
fn value_in_a_url_is_one_piece_of_text() {
    let url = tagged("https://h.example/{{secret:url:TAG}}/b?q={{secret:odd:TAG}}");
    assert_eq!(
        secrets().fill_url(&url).unwrap(),
        "https://h.example/x%2Fy%3Fz%3D1%23f%40h%26i/b?q=a%22b%5Cc"
    );
}

// covers: AL-071, AL-072, AL-101
#[test]
fn json_body_is_filled_before_it_is_written() {
    check_json(
        r#"{ "{{secret:apiKey:TAG}}" : ["{{secret:odd:TAG}}", 1.0, {"b" : null}, "\u00e9\/"], "z": {} }"#,
        Ok(r#"{"k-1":["a\"b\\c",1.0,{"b":null},"é/"],"z":{}}"#),
    );
    check_json("12345678901234567890.10", Ok("12345678901234567890.10"));
    check_json(r#""\u007b{secret:apiKey:TAG}}""#, Ok(r#""k-1""#));
    check_json(r#"["TAG"]"#, misplaced(Place::Body));
    check_json(r#"{"TAG":1}"#, misplaced(Place::Body));
    check_json(r#"["{{secret:nope:TAG}}"]"#, not_set("nope"));
}

// covers: AL-073, AL-098, AL-235, AL-237, AL-238
#[test]
fn json_text_keeps_its_bytes() {
    for same in
        ["{\"n\":12345678901234567890.10 }", " [1 , 2]", "\"\\u00e9\"", "[\"{{secret:apiKey}}\"]"]
    {
        check_text(same, Ok(same));
    }
    check_text(
        r#"{"{{secret:apiKey:TAG}}" : "\u00e9 {{secret:odd:TAG}} \/", "n": 1.0}"#,
        Ok(r#"{"k-1" : "\u00e9 a\"b\\c \/", "n": 1.0}"#),
    );
    // An escape inside the placeholder: the string is written anew, the rest keeps its bytes.
    check_text(r#"[ "\u007b{secret:odd:TAG}} \/" ,1.0]"#, Ok(r#"[ "a\"b\\c /" ,1.0]"#));
    check_text("{\"a\":{{secret:apiKey:TAG}}}", misplaced(Place::JsonOutsideString));
    check_text("TAG", misplaced(Place::JsonOutsideString));
    check_text("[\"a\", TAG]", misplaced(Place::JsonOutsideString));
    check_text("[\"a TAG\"]", misplaced(Place::Body));
    check_text("[\"\\\" {{secret:apiKey:TAG}}\"]", Ok("[\"\\\" k-1\"]"));
    for text in ["{", "", "{'a':1}", "[1]]", "[\"{{secret:apiKey:TAG}}\""] {
        check_text(text, Err(FillFault::NotJson));
    }
    assert_eq!(FillFault::NotJson.to_string(), "body: jsonText is not JSON");
}

proptest! {
    // Whatever surrounds placeholders, a filled text never holds the tag, and a text without it is never changed.
    // covers: AL-092
    #[test]
    fn tag_never_leaves(pieces in proptest::collection::vec(0usize..6, 0..8), name in "[a-z:{}]{0,6}") {
        let text: String = pieces
            .iter()
            .map(|piece| match piece {
                0 => TAG.to_owned(),
                1 => "{{secret:".to_owned(),
                2 => "}}".to_owned(),
                3 => format!("{{{{secret:{name}:{TAG}}}}}"),
                4 => tagged("{{secret:apiKey:TAG}}"),
                _ => name.clone(),
            })
            .collect();
        if let Ok(filled) = secrets().fill(&text, Place::Body) {
            prop_assert!(!filled.contains(TAG));
        }
        let quoted = annex_core::json::quote(&text);
        if let Ok(filled) = secrets().fill_json_text(&quoted) {
            prop_assert!(!filled.contains(TAG));
            prop_assert!(annex_core::json::check(filled.as_bytes()).is_ok());
        }
    }
}
