//! References of configurations, the tag, and the envelope of a call.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;

use super::*;
use crate::placeholder::Place;

const TAG: &str = "w3Kp9xV2mQ8rT1zL5nB7cA";

fn secrets() -> Secrets {
    Secrets::new([("apiKey".into(), "k-1".into())], TAG)
}

/// The names that a configuration refers to, and how it reads for the module, where `TAG` is the call's tag.
#[track_caller]
fn check(config: &str, names: &[&str], expected: &str) {
    let found = references(config).map(|found| found.into_iter().collect::<Vec<_>>());
    assert_eq!(found, Ok(names.iter().map(|&name| name.to_owned()).collect()), "{config}");
    let tagged = secrets().in_config(config).map(Cow::into_owned);
    assert_eq!(tagged, Ok(expected.replace("TAG", TAG)), "{config}");
}

/// A configuration without a reference, which stays as it is.
#[track_caller]
fn check_none(config: &str) {
    check(config, &[], config);
}

// covers: AL-107, AL-108
#[test]
fn reference_in_a_string_is_the_calls_placeholder() {
    check(r#"{"key":"{{secret:apiKey}}"}"#, &["apiKey"], r#"{"key":"{{secret:apiKey:TAG}}"}"#);
    check(
        "[ {\"z\" : 1.0, \"a\": [\"Bearer {{secret:b}}{{secret:a_1}}\\n\"]}, 1e400, \"\\u00e9\" ]\n",
        &["a_1", "b"],
        "[ {\"z\" : 1.0, \"a\": [\"Bearer {{secret:b:TAG}}{{secret:a_1:TAG}}\\n\"]}, 1e400, \"\\u00e9\" ]\n",
    );
    check("\"{{secret:a}} {{secret:a}}\"", &["a"], "\"{{secret:a:TAG}} {{secret:a:TAG}}\"");
    check("\"{{{secret:a}}}\"", &["a"], "\"{{{secret:a:TAG}}}\"");
    check("\"{{secret:{{secret:a}}\"", &["a"], "\"{{secret:{{secret:a:TAG}}\"");
    check("\"{{secret:a:old}}{{secret:b}}\"", &["b"], "\"{{secret:a:old}}{{secret:b:TAG}}\"");
    // Spelled with escapes: the string is written anew, the rest keeps its bytes.
    check(
        r#"[1.0 ,"\u007b{secret:a}}\/\"", "\/"]"#,
        &["a"],
        r#"[1.0 ,"{{secret:a:TAG}}/\"", "\/"]"#,
    );
    // What was written is what the host fills.
    let tagged = secrets().in_config("\"{{secret:apiKey}}\"").map(Cow::into_owned).unwrap();
    assert_eq!(secrets().fill(&tagged, Place::Body).unwrap(), "\"k-1\"");
}

// covers: AL-109
#[test]
fn key_of_a_configuration_stays_as_it_is() {
    check_none(r#"{"{{secret:apiKey}}":1}"#);
    check(
        r#"{"{{secret:apiKey}}":{"{{secret:b}}":"{{secret:c}}"}}"#,
        &["c"],
        r#"{"{{secret:apiKey}}":{"{{secret:b}}":"{{secret:c:TAG}}"}}"#,
    );
}

#[test]
fn other_text_is_no_reference() {
    for text in [
        "{{secret:}}",
        "{{secret:1a}}",
        "{{secret:_a}}",
        "{{secret:a-b}}",
        "{{secret: a}}",
        "{{secret:é}}",
        "{{secret:a}",
        "{{secret:a",
        "{{SECRET:a}}",
        "{secret:a}}",
        "{{secret:apiKey:AAAAAAAAAAAAAAAAAAAAAA}}",
    ] {
        check_none(&format!("[\"{text}\",{{}}]"));
    }
    let named = |chars: usize| format!("\"{{{{secret:{}}}}}\"", "n".repeat(chars));
    assert_eq!(references(&named(64)).unwrap(), BTreeSet::from(["n".repeat(64)]));
    check_none(&named(65));
    for text in ["", "{", "{{secret:a}}", "[\"{{secret:a}}\""] {
        assert!(references(text).is_err() && secrets().in_config(text).is_err(), "{text}");
    }
}

// covers: AL-079, AL-080
#[test]
fn call_carries_what_its_install_requires_or_does_not_start() {
    let stored = |name: &str| match name {
        "a" | "b" | "c" => Some(format!("value of {name}")),
        "empty" => Some(String::new()),
        _ => None,
    };
    let config = references("[\"{{secret:c}}\",\"{{secret:a}}\"]").unwrap();
    let required = |declared: &[&'static str]| {
        let names: Vec<&str> = config.iter().map(String::as_str).chain(declared.to_vec()).collect();
        Secrets::of_call(names, stored)
    };
    let secrets = required(&["a", "empty"]).unwrap();
    let carried: Vec<_> = secrets.iter().collect();
    assert_eq!(carried, [("a", "value of a"), ("c", "value of c"), ("empty", "")]);
    // The tenant has it, the install does not require it.
    let other = format!("{{{{secret:b:{}}}}}", secrets.tag());
    assert_eq!(secrets.fill(&other, Place::Body), Err(FillFault::NotSet("b".into())));
    let fault = required(&["z", "bb", "y"]).unwrap_err();
    assert_eq!(fault.to_string(), "secret bb is not set for this install");
}

// covers: AL-082, AL-083, AL-084
#[test]
fn tag_of_16_random_bytes_is_drawn_for_each_attempt() {
    let attempt = || Secrets::of_call([], |_name| None).unwrap();
    let tags: BTreeSet<String> = (0..100).map(|_| attempt().tag().to_owned()).collect();
    assert_eq!(tags.len(), 100);
    for tag in tags.into_iter().chain([draw_tag()]) {
        assert_eq!(tag.len(), 22, "{tag}");
        assert_eq!(URL_SAFE_NO_PAD.decode(&tag).map(|bytes| bytes.len()), Ok(16), "{tag}");
    }
}

#[track_caller]
fn check_envelope(envelope: &str, expected: &str) {
    assert_eq!(secrets().in_envelope(envelope), Ok(expected.replace("TAG", TAG)), "{envelope}");
}

// covers: AL-085, AL-086
#[test]
fn envelope_carries_the_tag_over_whatever_the_caller_sent() {
    check_envelope("{}", r#"{"call":{"secretTag":"TAG"}}"#);
    check_envelope(
        r#"{"call":{"id":"c-1"},"input":1.0}"#,
        r#"{"call":{"id":"c-1","secretTag":"TAG"},"input":1.0}"#,
    );
    check_envelope(
        r#"{"call":{"secretTag":"AAAAAAAAAAAAAAAAAAAAAA","id":1.0}}"#,
        r#"{"call":{"secretTag":"TAG","id":1.0}}"#,
    );
    for call in ["null", "\"w3Kp\"", "[{\"secretTag\":\"x\"}]"] {
        check_envelope(&format!("{{\"call\":{call}}}"), r#"{"call":{"secretTag":"TAG"}}"#);
    }
    // However the caller spelled it, there is one of each key.
    let spelled = secrets().in_envelope(r#"{"c\u0061ll":{"secretT\u0061g":"x"}}"#).unwrap();
    let read: serde_json::Value = serde_json::from_str(&spelled).unwrap();
    assert_eq!(read, serde_json::json!({"call": {"secretTag": TAG}}));
    for twice in [
        r#"{"call":{},"call":{"secretTag":"x"}}"#,
        r#"{"call":{},"\u0063all":{"secretTag":"x"}}"#,
        r#"{"call":{"secretTag":"x","secretTag":"y"}}"#,
        r#"{"config":1,"config":2}"#,
    ] {
        let fault = secrets().in_envelope(twice);
        assert!(matches!(fault, Err(JsonFault::DoubledKey { .. })), "{twice}: {fault:?}");
    }
    assert_eq!(secrets().in_envelope("[]"), Err(JsonFault::NotObject));
}

// covers: AL-090, AL-108, AL-109, AL-110
#[test]
fn configuration_alone_is_rewritten_in_an_envelope() {
    let others = r#""input":{"n":12345678901234567890.10 ,"t":"{{secret:apiKey}}"},"run":["{{secret:apiKey}}"]"#;
    check_envelope(
        &format!(
            r#"{{{others},"config":{{"{{{{secret:k}}}}" : "{{{{secret:apiKey}}}}"}} , "call":{{"config":"{{{{secret:a}}}}"}}}}"#
        ),
        &format!(
            r#"{{{others},"config":{{"{{{{secret:k}}}}" : "{{{{secret:apiKey:TAG}}}}"}},"call":{{"config":"{{{{secret:a}}}}","secretTag":"TAG"}}}}"#
        ),
    );
    check_envelope(
        r#"{"config":{"a":1.0 },"call":{}}"#,
        r#"{"config":{"a":1.0 },"call":{"secretTag":"TAG"}}"#,
    );
}

proptest! {
    // Whatever a configuration holds, what is written is JSON that reads as before but for the tags, and every name in it
    // is one that the call requires.
    #[test]
    fn tagged_configuration_reads_as_before_but_for_the_tags(
        pieces in proptest::collection::vec(0usize..8, 0..10), other in "\\PC{0,6}", escaped in any::<bool>(),
    ) {
        let text: String = pieces
            .iter()
            .map(|piece| ["{{secret:", "a", "}}", "{{secret:b}}", "{", "\"", "\\", &other][*piece])
            .collect();
        let mut config = annex_core::json::quote(&text);
        if escaped {
            config = config.replace('{', "\\u007b");
        }
        let tagged = secrets().in_config(&config).unwrap().into_owned();
        let read: String = serde_json::from_str(&tagged).unwrap();
        prop_assert_eq!(read.replace(&format!(":{TAG}}}}}"), "}}"), text);
        let carried = references(&config).unwrap();
        let secrets = Secrets::new(carried.into_iter().map(|name| (name, "v".into())), TAG);
        prop_assert!(secrets.fill(&read, Place::Body).is_ok());
    }
}
