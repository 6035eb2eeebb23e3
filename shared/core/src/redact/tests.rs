use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::Value;

use super::finder::ANCHOR_BYTES;
use super::*;
use crate::json::quote;

fn redactor(secrets: &[(&str, &str)]) -> Redactor {
    Redactor::new(secrets.iter().map(|(name, value)| ((*name).into(), (*value).into())))
}

#[track_caller]
fn check_text(secrets: &[(&str, &str)], text: &str, expected: &str) {
    let redacted = redactor(secrets).redact(text).into_owned();
    assert_eq!(redacted, expected, "{text}");
}

#[track_caller]
fn check_json(secrets: &[(&str, &str)], text: &str, expected: &str) {
    let redacted = redactor(secrets).redact_json(text).into_owned();
    assert_eq!(redacted, expected, "{text}");
}

#[test]
fn a_value_is_replaced_by_the_name_of_its_secret() {
    let one = &[("a", "hunter22")][..];
    check_text(one, "", "");
    check_text(one, "hunter2", "hunter2");
    check_text(one, "x hunter22hunter22 é", "x [secret:a][secret:a] é");
    check_text(&[], "hunter22", "hunter22");
    let nested = &[("short", "pass"), ("long", "password1")][..];
    check_text(
        nested,
        "password1 password pass",
        "[secret:long] [secret:short]word [secret:short]",
    );
    check_text(&[("a", "same"), ("b", "same")], "same", "[secret:a]");
    check_text(&[("a\"\\\n]é", "same")], "same", "[secret:a____é]");
}

#[test]
fn short_values_are_not_hidden_and_shorter_ones_not_in_their_encodings() {
    check_text(&[("a", "abc")], "abc", "abc");
    check_text(&[("a", "abcd")], "abcd", "[secret:a]");
    check_text(&[("a", "äöü")], "äöü", "äöü");
    check_text(&[("a", "abcdefg")], "61626364656667", "61626364656667");
    check_text(&[("a", "abcdefgh")], "6162636465666768", "[secret:a]");
    check_text(&[("a", "")], "", "");
    assert!(redactor(&[("a", "abc")]).is_empty());
    assert!(!redactor(&[("a", "abcd")]).is_empty());
}

#[test]
fn common_encodings_of_a_value_are_hidden() {
    let secrets = &[("k", "p\"a/é<😀 ~z\n")][..];
    for form in [
        r#"p\"a/é<😀 ~z\n"#,
        r#"p\"a\/é<😀 ~z\n"#,
        r#"p\"a/é\u003c😀 ~z\n"#,
        r#"p\"a/\u00e9<\ud83d\ude00 ~z\n"#,
        r#"p\"a\/\u00E9<\uD83D\uDE00 ~z\n"#,
        r#"p\\\"a/é<😀 ~z\\n"#,
        "p%22a%2F%C3%A9%3C%F0%9F%98%80%20~z%0A",
        "p%22a%2f%c3%a9%3c%f0%9f%98%80%20~z%0a",
        "p%22a%2F%C3%A9%3C%F0%9F%98%80+%7Ez%0A",
        "p%22a/%C3%A9%3C%F0%9F%98%80%20~z%0A",
        "7022612fc3a93cf09f9880207e7a0a",
        "7022612FC3A93CF09F9880207E7A0A",
        "cCJhL8OpPPCfmIAgfnoK",
    ] {
        check_text(secrets, &format!("<{form}>"), "<[secret:k]>");
    }
    let padded = &[("k", "hunter22")][..];
    check_text(padded, "aHVudGVyMjI=", "[secret:k]");
    check_text(padded, "aHVudGVyMjI", "[secret:k]");
    // Basic credentials: `user:hunter22`.
    check_text(padded, "Basic dXNlcjpodW50ZXIyMg==", "Basic dXNlcjp[secret:k]g==");
}

#[test]
fn the_longer_strings_of_a_value_that_is_json_are_hidden_by_themselves() {
    let file = r#"{"type":"service_account","key":"\u0041BCDEFGHIJKLMNOPQRST","short":"ABCDEFGHIJKLMNOPQRS",
        "uri":"https://example.com/token","dsn":"pg://user:pass@host/base"}"#;
    let secrets = &[("f", file)][..];
    check_text(
        secrets,
        "ABCDEFGHIJKLMNOPQRST ABCDEFGHIJKLMNOPQRS",
        "[secret:f] ABCDEFGHIJKLMNOPQRS",
    );
    check_text(
        secrets,
        "https://example.com/token service_account",
        "https://example.com/token service_account",
    );
    check_text(secrets, "pg://user:pass@host/base", "[secret:f]");
    check_text(secrets, file, "[secret:f]");
}

#[test]
fn a_long_value_is_hidden_whole_and_cut() {
    let value: String = (0..200).map(|index| format!("{index:04}")).collect();
    let secrets = &[("a", &*value)][..];
    check_text(secrets, &format!("<{value}{value}>"), "<[secret:a][secret:a]>");
    check_text(secrets, &format!("<{}>", &value[..300]), "<[secret:a]>");
    check_text(secrets, &format!("{}x", &value[..ANCHOR_BYTES]), "[secret:a]x");
    let short = &value[..ANCHOR_BYTES - 1];
    check_text(secrets, short, short);
    let other = format!("{}tail", &value[..400]);
    let both = &[("a", &*value), ("b", &*other)][..];
    check_text(both, &format!("{other} {value}"), "[secret:b] [secret:a]");
}

#[test]
fn json_stays_json_and_only_strings_with_a_hit_change() {
    let one = &[("a", "hunter22")][..];
    let text = r#"{ "x" : "\u0068unter22\n\u00e9", "hunter22" : [1e400, "\u00e9"] }"#;
    let expected = r#"{ "x" : "[secret:a]\né", "[secret:a]" : [1e400, "\u00e9"] }"#;
    check_json(one, text, expected);
    check_json(one, r#"{"a":"\u00e9","b":1}"#, r#"{"a":"\u00e9","b":1}"#);
    // A value can begin inside an escape of the text, or hold what is escaped.
    check_json(&[("a", "n1234")], r#"["\n1234","\\n1234"]"#, r#"["\n1234","\\[secret:a]"]"#);
    check_json(&[("a", "\\\"q\\")], r#"["x\\\"q\\y"]"#, r#"["x[secret:a]y"]"#);
    check_json(
        &[("a", "12345678")],
        "[12345678,-123456789,true]",
        r#"["[secret:a]","-[secret:a]9",true]"#,
    );
    check_json(&[("a", "true")], r#"[true,"true"]"#, r#"[true,"[secret:a]"]"#);
    // JSON in a string in JSON.
    check_json(
        &[("a", "tab\there\"")],
        r#""{\"k\":\"tab\\there\\\"\"}""#,
        r#""{\"k\":\"[secret:a]\"}""#,
    );
    check_json(one, "<html>hunter22", "<html>[secret:a]");
    check_json(&[], "<html>", "<html>");
}

#[test]
fn nothing_is_copied_where_nothing_is_hidden() {
    let redactor = redactor(&[("a", "hunter22")]);
    assert!(matches!(redactor.redact("text"), Cow::Borrowed(_)));
    assert!(matches!(redactor.redact_json(r#"{"a":"\n"}"#), Cow::Borrowed(_)));
}

#[test]
fn debug_shows_names_only() {
    let debug = format!("{:?}", redactor(&[("a", "hunter22")]));
    assert_eq!(debug, "Redactor([\"[secret:a]\"])");
}

/// Escapes some of the characters of a JSON string's contents, as `choices` say.
fn spelled(text: &str, choices: &[bool]) -> String {
    let mut out = String::from("\"");
    for (character, is_escaped) in text.chars().zip(choices.iter().cycle()) {
        if *is_escaped {
            for unit in character.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            let quoted = quote(&character.to_string());
            out.push_str(&quoted[1..quoted.len() - 1]);
        }
    }
    out + "\""
}

fn secret() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9]{8,40}",
        "[ -~]{8,40}",
        "[\\PC\n\t\\\\\"/]{8,20}",
        "[A-Za-z0-9+/\n ]{100,400}"
    ]
}

proptest! {
    #[test]
    fn no_form_of_a_secret_survives_in_any_place(
        value in secret(), before in "[a-z é=%+]{0,9}", after in "[a-z é=%+]{0,9}",
    ) {
        let redactor = redactor(&[("n", &value)]);
        let whole = format!("{before}{value}{after}");
        let percent: String = value.bytes().map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        }).collect();
        let form: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
        for text in [
            whole.clone(),
            serde_json::to_string(&whole).unwrap(),
            hex::encode(&whole),
            hex::encode_upper(&whole),
            format!("{before}{percent}{after}"),
            format!("{before}{form}{after}"),
            STANDARD.encode(&whole),
            STANDARD_NO_PAD.encode(&whole),
            URL_SAFE.encode(&whole),
            URL_SAFE_NO_PAD.encode(&whole),
        ] {
            let redacted = redactor.redact(&text);
            prop_assert!(redacted.contains("[secret:n]"), "{:?} of {:?}", redacted, value);
            for form in forms::of(&value) {
                prop_assert!(!redacted.contains(&form), "{:?} in {:?}", form, redacted);
            }
        }
    }

    #[test]
    fn redacted_json_is_json_without_the_secret(
        value in "[a-zé\n\\\\\"/n1u0]{4,12}", before in "[a-z\\\\\"\n]{0,5}", after in "[0-9a-z\\\\\"]{0,5}",
        choices in prop::collection::vec(any::<bool>(), 1..9), key in any::<bool>(),
    ) {
        let string = spelled(&format!("{before}{value}{after}"), &choices);
        let text = if key { format!("{{{string}:1e400}}") } else { format!("[0.10, {string} ,{{}}]") };
        let redacted = redactor(&[("N", &value)]).redact_json(&text).into_owned();
        prop_assert!(crate::json::check(redacted.as_bytes()).is_ok(), "{}", redacted);
        prop_assert!(redacted.contains("[secret:N]"));
        let mut scanner = Scanner::new(&redacted);
        while let Some(token) = scanner.token().unwrap() {
            if let Token::Key(inner) | Token::Text(inner) = token {
                prop_assert!(!decode(inner).contains(&value));
            }
        }
    }

    #[test]
    fn json_without_the_secret_stays_as_it_is(text in any::<String>()) {
        let value = Value::from(text);
        let text = format!("[ {value} ]");
        prop_assert_eq!(redactor(&[("n", "hunter22")]).redact_json(&text), &*text);
    }
}
