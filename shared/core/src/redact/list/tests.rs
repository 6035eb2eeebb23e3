use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;
use crate::json;
use crate::redact::forms;

const TAG_OF_CALL: &str = "w3Kp9xV2mQ8rT1zL5nB7cA";

fn list(secrets: &[(&str, &str)]) -> RedactionList {
    let secrets = secrets.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    RedactionList::new(secrets, TAG_OF_CALL)
}

#[track_caller]
fn check(list: &RedactionList, text: &str, expected: &str) {
    assert_eq!(list.hide(text), expected, "{text}");
}

#[track_caller]
fn check_parsed(list: &RedactionList, text: &str, expected: &str) {
    assert_eq!(list.hide_parsed(text), expected, "{text}");
}

// covers: AL-105, AL-111, AL-119, AL-131
#[test]
fn list_begins_with_the_secrets_and_the_tag() {
    let list = list(&[("apiKey", "hunter2hunter2"), ("other", "correct horse")]);
    check(&list, "a hunter2hunter2, correct horse", "a [secret:apiKey], [secret:other]");
    check(&list, "{{secret:apiKey:w3Kp9xV2mQ8rT1zL5nB7cA}}", "{{secret:apiKey:[tag]}}");
    check(&list, "nothing to hide", "nothing to hide");
    check(&RedactionList::new([], ""), "nothing to hide", "nothing to hide");
}

// covers: AL-132, AL-133
#[test]
fn added_values_are_hidden_from_then_on() {
    let list = list(&[("password", "hunter2hunter2")]);
    let credential = STANDARD.encode("acme:hunter2hunter2");
    list.add("[auth:basic]", &format!("Basic {credential}"));
    list.add("[auth:basic]", &credential);
    check(&list, &format!("Basic {credential}|{credential}"), "[auth:basic]|[auth:basic]");
    list.add("[cache:token]", "cached-token-1");
    list.add("[a\"b\\\n]", "odd-marker-1");
    check(&list, "cached-token-1 odd-marker-1", "[cache:token] [a_b__]");
}

// covers: AL-134
#[test]
fn first_marker_of_a_value_stays() {
    let list = list(&[("a", "same-value"), ("b", "same-value")]);
    list.add("[cache:c]", "same-value");
    check(&list, "same-value", "[secret:a]");
    // Also where the forms of two values are equal.
    list.add("[cache:d]", &STANDARD.encode("same-value"));
    check(&list, &STANDARD.encode("same-value"), "[secret:a]");
}

// covers: AL-124
#[test]
fn longest_form_is_hidden_and_no_marker_again() {
    let list = list(&[("short", "abcd"), ("secret", "secret")]);
    list.add("[auth:jwt]", "abcdefgh");
    check(&list, "abcdefgh abcd secret", "[auth:jwt] [secret:short] [secret:secret]");
    let once = list.hide("abcdefgh abcd secret").into_owned();
    check(&list, &once, &once);
    check_parsed(
        &list,
        "[\"secret\",\"[secret:short]\"]",
        "[\"[secret:secret]\",\"[secret:short]\"]",
    );
}

// covers: AL-136, AL-137
#[test]
fn short_values_are_left() {
    let list = list(&[("a", "abc"), ("b", "abcd"), ("c", "1234567"), ("d", "12345678")]);
    list.add("[cache:e]", "xyz");
    check(&list, "abc xyz", "abc xyz");
    check(&list, "abcd", "[secret:b]");
    let encoded = |value: &str| format!("<{}>", STANDARD.encode(value));
    check(&list, &encoded("1234567"), &encoded("1234567"));
    check(&list, &encoded("12345678"), "<[secret:d]>");
}

// covers: AL-120, AL-121, AL-122, AL-123
#[test]
fn forms_that_a_value_travels_in_are_hidden() {
    let list = list(&[("k", "p\"a&b c/é~>>?")]);
    for form in [
        "p\\\"a&b c/é~>>?",
        "p%22a%26b%20c%2F%C3%A9~%3E%3E%3F",
        "p%22a%26b%20c%2f%c3%a9~%3e%3e%3f",
        "p%22a&b%20c/%C3%A9~%3E%3E?",
        "p%22a%26b+c%2F%C3%A9%7E%3E%3E%3F",
        "p%22a&b%20c/%C3%A9~%3E%3E%3F",
        "cCJhJmIgYy/DqX4+Pj8=",
        "cCJhJmIgYy\\/DqX4+Pj8=",
        "cCJhJmIgYy_DqX4-Pj8",
    ] {
        check(&list, &format!("<{form}>"), "<[secret:k]>");
    }
}

#[test]
fn value_in_a_host_is_hidden_in_lower_case() {
    let list = list(&[("k", "AbCd123-eFGh"), ("l", "Ab/CdEfGh")]);
    check(&list, "host abcd123-efgh.example is", "host [secret:k].example is");
    check(&list, "ab/cdefgh", "[secret:l]");
}

// covers: AL-127, AL-128
#[test]
fn parsed_answer_is_hidden_string_by_string() {
    let list = list(&[("a", "hunter22")]);
    check_parsed(
        &list,
        r#"{"x":"\u0068unter22","hunter22":[1,"hunter22\n"]}"#,
        r#"{"x":"[secret:a]","[secret:a]":[1,"[secret:a]\n"]}"#,
    );
    check_parsed(&list, "not JSON: hunter22", "not JSON: [secret:a]");
    check_parsed(&list, "{\"a\":1e400}", "{\"a\":1e400}");
}

#[test]
fn value_in_the_spelling_of_a_string_is_hidden_with_the_escape() {
    check_parsed(&list(&[("a", "n1234")]), r#"["x\n1234"]"#, r#"["x[secret:a]"]"#);
    check_parsed(&list(&[("a", "12\\u0")]), r#"["x12\u0041y"]"#, r#"["x[secret:a]y"]"#);
    check_parsed(&list(&[("a", "de00")]), r#"["\ud83d\ude00y"]"#, r#"["[secret:a]y"]"#);
    check_parsed(&list(&[("a", "abc\\")]), r#"["abc\"d"]"#, r#"["[secret:a]d"]"#);
}

#[test]
fn value_that_is_json_itself_is_hidden_as_one_value() {
    let key_file = r#"{"id":"x1","key":"y2"}"#;
    let one = list(&[("file", key_file)]);
    check_parsed(&one, &format!("[1,{key_file},2]"), "[1,\"[secret:file]\",2]");
    check_parsed(&one, &format!(" {key_file} "), " \"[secret:file]\" ");
    check_parsed(&one, &format!("{{\"a\":{key_file}}}"), "{\"a\":\"[secret:file]\"}");
    let piece = list(&[("a", "1, 2, [3"), ("b", "\"quoted\""), ("c", "c\":5")]);
    check_parsed(&piece, "{\"x\":[1, 2, [3]],\"y\":[4]}", "{\"x\":\"[secret:a]\",\"y\":[4]}");
    check_parsed(&piece, "{\"quoted\":\"quoted\"}", "{\"[secret:b]\":\"[secret:b]\"}");
    check_parsed(&piece, "[{\"abc\":5},6]", "[\"[secret:c]\",6]");
    // White space and words of JSON tell nothing.
    let plain = list(&[("a", "    "), ("b", "true"), ("c", "\n 1 ")]);
    check_parsed(&plain, "[\n    true]", "[\n    true]");
    check_parsed(&plain, "\n 1 ", "\"[secret:c]\"");
}

#[test]
fn debug_shows_markers_only() {
    let debug = format!("{:?}", list(&[("a", "hunter22")]));
    assert_eq!(debug, "RedactionList([\"[secret:a]\", \"[tag]\"])");
}

fn percent(text: &str, stay: &[u8]) -> String {
    let byte = |byte: &u8| match byte {
        byte if byte.is_ascii_alphanumeric() || stay.contains(byte) => {
            char::from(*byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    text.as_bytes().iter().map(byte).collect()
}

/// A value in one of the forms it travels in.
fn encoded(value: &str, form: usize) -> String {
    match form {
        0 => json::quote(value),
        1 => percent(value, b"-_.!~*'()"),
        2 => percent(value, b"-_.!~*'();/?:@&=+$,#"),
        3 => percent(value, b"-._~").replace("%20", "+"),
        4 => STANDARD.encode(value),
        5 => STANDARD.encode(format!("x{value}y")),
        6 => STANDARD.encode(format!("xy{value}z")).replace('+', "-").replace('/', "_"),
        7 => hex::encode(value),
        _ => value.to_owned(),
    }
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9]{4,40}",
        "[ -~]{4,40}",
        "[\\PC\n\\\\\"/]{4,20}",
        "[A-Za-z0-9+/]{100,300}"
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_form_of_a_value_survives_wherever_it_stands(
        values in prop::collection::vec(value(), 1..6),
        places in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..9, "[ |,é]{0,9}"), 1..20),
    ) {
        let list = RedactionList::new([], TAG_OF_CALL);
        for value in &values {
            list.add("[m]", value);
        }
        let mut text = String::new();
        for (index, form, filler) in &places {
            text.push_str(&encoded(&values[index.index(values.len())], *form));
            text.push_str(filler);
        }
        let hidden = list.hide(&text);
        for value in &values {
            for form in forms::of(value) {
                // What is not a marker's own.
                prop_assume!(!"[m]".contains(&form));
                prop_assert!(!hidden.contains(&form), "{:?} of {:?} in {:?}", form, values, hidden);
            }
        }
        let quoted = json::quote(&text);
        let parsed = list.hide_parsed(&format!("{{{quoted}:[{quoted}]}}"));
        prop_assert!(json::check(parsed.as_bytes()).is_ok(), "{}", parsed);
        for value in &values {
            prop_assert!(!parsed.contains(value), "{:?} in {:?}", value, parsed);
        }
    }

    #[test]
    fn parsed_json_stays_json_whatever_the_value(
        value in "[a-c\\[\\]{}:,\"\\\\n1u0 ]{4,8}",
        keys in prop::collection::vec("[a-c\"\\\\\n1]{0,6}", 1..6),
    ) {
        let list = list(&[("a", &value)]);
        let object = keys.iter().fold("[1,1]".to_owned(), |inner, key| {
            format!("{{{}:[{inner}, {}]}}", json::quote(key), json::quote(key))
        });
        let hidden = list.hide_parsed(&object);
        prop_assert!(json::check(hidden.as_bytes()).is_ok(), "{} of {} without {:?}", hidden, object, value);
    }
}

// Each would take minutes if a value were looked at again for each other one.
#[test]
fn values_in_great_number_are_hidden_in_time_that_grows_with_the_text() {
    let count = 100_000;
    // From one string to the next.
    let list = list(&[("k", "\"],[\"")]);
    let text = format!("[{}[\"\"]]", "[\"\"],".repeat(count));
    check_parsed(&list, &text, "\"[secret:k]\"");
    // In the spelling of a string.
    let list = self::list(&[("k", "n1234")]);
    let hidden = format!("[\"{}\"]", "[secret:k]-".repeat(count));
    check_parsed(&list, &format!("[\"{}\"]", "\\n1234-".repeat(count)), &hidden);
}

// What is sent is not always the value as it was stored.
#[test]
fn value_is_hidden_as_it_is_sent_al_119() {
    let list =
        list(&[("k", " key-12345678\n"), ("p", "BEGIN 1234\nabcd 5678"), ("u", "p\u{e4}ss-123")]);
    check(&list, "Bearer key-12345678", "Bearer [secret:k]");
    check(&list, "<BEGIN 1234\r\nabcd 5678>", "<[secret:p]>");
    check(&list, "x-a: p\u{c3}\u{a4}ss-123", "x-a: [secret:u]");
}

// A value that no host has can be the name of a header, or be meant to be one.
#[test]
fn value_in_a_name_of_a_header_is_hidden_in_lower_case() {
    let list = list(&[("a", "AbC#DeF%GhI"), ("b", "AbC/DeF+GhI==")]);
    check(&list, "header abc#def%ghi is", "header [secret:a] is");
    check(&list, "\"abc/def+ghi==\" is", "\"[secret:b]\" is");
}

#[test]
fn list_has_room_for_what_a_call_needs_and_no_more() {
    let list = list(&[("k", &"x".repeat(ADDED_BYTES_MAX))]);
    assert!(list.has_room(&"y".repeat(ADDED_BYTES_MAX)));
    assert!(!list.has_room(&"y".repeat(ADDED_BYTES_MAX + 1)));
    for number in 0..ADDED_MAX {
        let value = format!("value {number}");
        assert!(list.has_room(&value), "{value}");
        list.add("[m]", &value);
    }
    assert!(!list.has_room("one more"));
    assert!(list.has_room("value 0"));
}
