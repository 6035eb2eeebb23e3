use proptest::prelude::*;
use serde_json::Value;

use super::*;

#[track_caller]
fn check_text(text: &str, expected: Result<(), JsonFault>) {
    assert_eq!(check(text.as_bytes()), expected.map(|()| text), "{text}");
}

fn nested(levels: usize) -> String {
    format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
}

#[test]
fn only_one_complete_value_of_the_grammar_is_json() {
    for text in [
        "0",
        "-0",
        "1e400",
        "0.1000",
        "1E+5",
        "\"\"",
        " [ ] ",
        "{}",
        "[1,{\"a\":[]},null]",
        "true",
        "{\"a\":1,\"a\":2}",
        "\"\\ud83d\\ude00\"",
        "\"\\u0000\u{7f}\"",
        "\t1\r\n",
        "{\"a\":{\"b\":\"}\"}}",
    ] {
        check_text(text, Ok(()));
    }
    for (text, at) in [
        ("NaN", 0),
        ("Infinity", 0),
        ("-Infinity", 1),
        ("01", 1),
        ("1.e5", 2),
        ("+1", 0),
        (".5", 0),
        ("[1,]", 3),
        ("{\"a\":1,}", 7),
        ("{\"a\" 1}", 5),
        ("{1:2}", 1),
        ("[1 2]", 3),
        ("1 2", 2),
        ("'a'", 0),
        ("\"\t\"", 1),
        ("\"\\x\"", 2),
        ("\"\\u12g4\"", 5),
        ("\u{feff}{}", 0),
        ("[}", 1),
        ("{]", 1),
        ("[1}", 2),
        ("{\"a\":1]", 6),
        ("nulL", 3),
        ("//", 0),
        ("[,1]", 1),
        ("]", 0),
    ] {
        check_text(text, Err(JsonFault::Syntax { at }));
    }
    for text in
        ["", " ", "[", "{\"a\"", "{\"a\":", "[1,", "\"a", "\"\\", "\"\\u00", "-", "1e", "1.", "tru"]
    {
        check_text(text, Err(JsonFault::Early));
    }
}

#[test]
fn half_of_a_surrogate_pair_is_refused() {
    for (text, at) in [
        ("\"\\ud800\"", 1),
        ("\"a\\udc00\"", 2),
        ("\"\\ud800\\ud800\"", 1),
        ("\"\\ud800\\n\"", 1),
        ("[\"\\uDBFFx\"]", 2),
    ] {
        check_text(text, Err(JsonFault::LoneSurrogate { at }));
    }
}

#[test]
fn sixty_four_levels_pass_and_one_more_is_refused() {
    check_text(&nested(64), Ok(()));
    check_text(&nested(65), Err(JsonFault::Deep { at: 64 }));
    check_text(&"{\"a\":".repeat(1_000_000), Err(JsonFault::Deep { at: 64 * 5 }));
    assert_eq!(Object::new().insert("a", &nested(63)), Ok(()));
    assert_eq!(Object::new().insert("a", &nested(64)), Err(JsonFault::Deep { at: 63 }));
}

#[test]
fn bytes_that_are_not_text_are_refused_where_they_stand() {
    assert_eq!(check(b"[\"\xff\"]"), Err(JsonFault::NotUtf8 { at: 2 }));
}

#[test]
fn fault_texts_are_stable() {
    let texts = [
        (JsonFault::NotUtf8 { at: 2 }, "not valid UTF-8 at byte 2"),
        (JsonFault::Syntax { at: 2 }, "not valid JSON at byte 2"),
        (JsonFault::Early, "not valid JSON: the text ends early"),
        (JsonFault::Deep { at: 2 }, "nested deeper than 64 levels at byte 2"),
        (JsonFault::LoneSurrogate { at: 2 }, "a lone surrogate escape at byte 2"),
        (JsonFault::NotObject, "not a JSON object"),
        (JsonFault::DoubledKey { key: "a".into() }, "the key \"a\" stands twice"),
        (JsonFault::Members, "more than 65536 members in an object"),
    ];
    for (fault, text) in texts {
        assert_eq!(fault.to_string(), text);
    }
}

#[track_caller]
fn check_object(text: &str, expected: Result<&str, JsonFault>) {
    assert_eq!(
        Object::parse(text).map(|it| it.to_json()).as_deref(),
        expected.as_deref(),
        "{text}"
    );
}

#[test]
fn members_keep_their_order_and_every_spelling() {
    let digits = "9".repeat(400);
    let text = format!(
        "{{\"zebra\":1e400,\"alpha\":-0,\"\\u0061b\":0.1000,\"n\":{digits},\"s\":\"\\u00e9\\/é\",\"o\":{{ \"x\" : [ ] }}}}"
    );
    check_object(&text, Ok(&text));
    check_object(" { \"a\" : 1 , \"b\" : [ 1 ] } ", Ok("{\"a\":1,\"b\":[ 1 ]}"));
    check_object("{\"a\":{\"b\":1,\"b\":2}}", Ok("{\"a\":{\"b\":1,\"b\":2}}"));
    check_object("{}", Ok("{}"));
}

#[test]
fn only_an_object_with_distinct_keys_is_taken_apart() {
    let doubled = |key: &str| Err(JsonFault::DoubledKey { key: key.into() });
    check_object("{\"a\":1,\"b\":2,\"a\":3}", doubled("a"));
    check_object("{\"a\":1,\"\\u0061\":3}", doubled("a"));
    check_object("[]", Err(JsonFault::NotObject));
    check_object("null", Err(JsonFault::NotObject));
    check_object("[}", Err(JsonFault::Syntax { at: 1 }));
    check_object("{} x", Err(JsonFault::Syntax { at: 3 }));
    check_object("{\"a\"}", Err(JsonFault::Syntax { at: 4 }));
    check_object("{\"a\":}", Err(JsonFault::Syntax { at: 5 }));
    check_object("{\"a\":1", Err(JsonFault::Early));
}

#[test]
fn members_are_counted() {
    let object = |count: usize| {
        let members: Vec<_> = (0..count).map(|index| format!("\"{index}\":0")).collect();
        Object::parse(&format!("{{{}}}", members.join(","))).map(|object| object.len())
    };
    assert_eq!(object(65_536), Ok(65_536));
    assert_eq!(object(65_537), Err(JsonFault::Members));
}

#[test]
fn inserting_replaces_in_place_or_appends() {
    let mut object = Object::parse("{\"\\u0061\":1,\"b\":2,\"c\":3}").unwrap();
    object.insert("a", " [1e5] ").unwrap();
    object.insert("d\"", "null").unwrap();
    object.insert_text("e", "\n\u{1}");
    assert_eq!(object.remove("b").as_deref(), Some("2"));
    assert_eq!(object.remove("b"), None);
    assert_eq!(object.get("a"), Some("[1e5]"));
    assert_eq!(object.insert("x", "1,"), Err(JsonFault::Syntax { at: 1 }));
    assert_eq!(object.insert("x", ""), Err(JsonFault::Early));
    assert_eq!(object.to_json(), "{\"\\u0061\":[1e5],\"c\":3,\"d\\\"\":null,\"e\":\"\\n\\u0001\"}");
    let names: Vec<_> = object.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "c", "d\"", "e"]);
}

#[test]
fn elements_of_an_array_are_raw_texts() {
    let of = |raw| elements(raw).collect::<Vec<_>>();
    assert_eq!(of("[1 , [2,3],\"a,]\",{\"b\":4}]"), ["1", "[2,3]", "\"a,]\"", "{\"b\":4}"]);
    assert_eq!(of("[ ]"), [""; 0]);
    assert_eq!(of("{\"a\":1}"), [""; 0]);
    assert_eq!(of("7"), [""; 0]);
}

#[track_caller]
fn check_go(text: &str, expected: &str) {
    assert_eq!(go_safe(text), expected);
    assert_eq!(go_safe(expected), expected, "twice is once");
}

#[test]
fn an_exponent_gets_a_point_and_nothing_else_changes() {
    check_go("1e16", "1.0e16");
    check_go("-1E+5", "-1.0E+5");
    check_go("[1e5,2E-7,3.0e1]", "[1.0e5,2.0E-7,3.0e1]");
    for text in [
        "1152921506151679042000000",
        "-0",
        "0.1000",
        "\"1e16\"",
        "\"a\\\"1e5\"",
        "{\"1e5\":\"\\\\\"}",
        "true",
        "1.5e3",
        "",
        "\"1e5",
        "\"1e5\\",
    ] {
        check_go(text, text);
    }
    check_go("{\"1e5\\\\\":1e5}", "{\"1e5\\\\\":1.0e5}");
}

#[test]
fn integral_values_are_known_without_computing_them() {
    for number in [
        "3",
        "-0",
        "3.0",
        "1e2",
        "12.50e1",
        "0.0",
        "0e-5",
        "1e400",
        "100e-2",
        "1E+2",
        "0.001e3",
        "1e99999999999999999999",
        "0e-99999999999999999999",
        "0.000e1",
    ] {
        assert!(is_integral(number), "{number}");
    }
    for number in ["3.5", "1e-1", "12.55e1", "100e-3", "0.001e2", "1e-99999999999999999999"] {
        assert!(!is_integral(number), "{number}");
    }
}

#[track_caller]
fn check_canonical(text: &str, expected: &str) {
    assert_eq!(canonical(text).as_deref(), Some(expected), "{text}");
    assert_eq!(canonical(expected).as_deref(), Some(expected), "twice is once");
}

#[test]
fn texts_of_one_structure_have_one_canonical_form() {
    check_canonical(" { \"b\" : [ 1 , 2 ] , \"a\" : null } ", "{\"a\":null,\"b\":[1,2]}");
    check_canonical("{\"\\u0061\":\"\\/\\u00e9\",\"A\":1e5}", "{\"A\":1e5,\"a\":\"/é\"}");
    check_canonical("{\"a\":2,\"b\":0,\"a\":1}", "{\"a\":2,\"a\":1,\"b\":0}");
    check_canonical(
        "{\"b\":{\"d\":1,\"c\":[{},[],\"[\"]},\"a\":\":\"}",
        "{\"a\":\":\",\"b\":{\"c\":[{},[],\"[\"],\"d\":1}}",
    );
    check_canonical("[[1,[2]],[3],\"x\",true,false]", "[[1,[2]],[3],\"x\",true,false]");
    check_canonical("7", "7");
    assert_eq!(canonical("{\"a\":1"), None);
    assert_eq!(canonical(&nested(65)), None);
    assert_ne!(canonical("1"), canonical("1.0"));
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn what_serde_json_writes_is_accepted_and_kept(value in value()) {
        let text = value.to_string();
        prop_assert_eq!(check(text.as_bytes()), Ok(&*text));
        if value.is_object() {
            prop_assert_eq!(Object::parse(&text).unwrap().to_json(), text);
        }
    }

    #[test]
    fn any_text_is_judged_as_serde_json_judges_it(text in "[\\[\\]{}:,\"\\\\ue0-9ax.+ -]{0,24}|[\\PC\\x00-\\x1f]{0,12}") {
        let judged = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
        let fault = check(text.as_bytes()).err();
        // Raw values are not looked into for surrogates.
        prop_assert!(judged == fault.is_none() || matches!(fault, Some(JsonFault::LoneSurrogate { .. })), "{:?}", fault);
        go_safe(&text);
        canonical(&text);
        decode(&text);
    }

    #[test]
    fn a_go_safe_text_has_the_same_values_and_stays_as_it_is(value in value()) {
        let text = value.to_string();
        let safe = go_safe(&text);
        prop_assert_eq!(go_safe(&safe), &*safe);
        let again: Value = serde_json::from_str(&safe).unwrap();
        prop_assert_eq!(again, serde_json::from_str::<Value>(&text).unwrap());
    }

    #[test]
    fn a_canonical_text_has_the_same_values(value in value()) {
        let text = value.to_string();
        let canonical_text = canonical(&text).unwrap();
        prop_assert_eq!(canonical(&canonical_text), Some(canonical_text.clone()));
        let spaced = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(canonical(&spaced), Some(canonical_text.clone()));
        prop_assert_eq!(serde_json::from_str::<Value>(&canonical_text).unwrap(), value_of(&text));
    }

    #[test]
    fn a_quoted_text_is_read_back(text in any::<String>()) {
        let quoted = quote(&text);
        prop_assert_eq!(&quoted, &serde_json::to_string(&text).unwrap());
        prop_assert_eq!(super::text(&quoted), Some(text.into()));
    }
}

fn value_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The public vectors, where they are at hand.
#[test]
fn the_public_vectors_are_judged_as_they_say() {
    for case in annex_vectors::cases("json-edge") {
        let bytes = input(&case["input"]);
        let accepted = check(&bytes).is_ok();
        let expected = match case["kind"].as_str().unwrap() {
            "must-accept" => true,
            "must-reject" => false,
            "depth" => case["expect"]["allowedAt64"] == true,
            // A lone surrogate is not JSON that we pass on.
            "json-text" => !case["expect"]["sent"].is_null() && case["id"] != "json-text/form-10",
            "either" => case["expect"]["node"] == "accept" && !is_lone(&bytes),
            "transform" => !is_lone(&bytes) && std::str::from_utf8(&bytes).is_ok(),
            other => panic!("an unknown kind {other}"),
        };
        assert_eq!(accepted, expected, "{}", case["id"]);
    }
}

fn is_lone(bytes: &[u8]) -> bool {
    matches!(check(bytes), Err(JsonFault::LoneSurrogate { .. }))
}

fn input(input: &Value) -> Vec<u8> {
    use base64::Engine as _;
    if let Some(text) = input["text"].as_str() {
        return text.into();
    }
    if let Some(bytes) = input["bytes_b64"].as_str() {
        return base64::engine::general_purpose::STANDARD.decode(bytes).unwrap();
    }
    let parts = input["generate"].as_array().unwrap().iter();
    parts
        .map(|part| {
            let count = usize::try_from(part["count"].as_u64().unwrap()).unwrap();
            part["text"].as_str().unwrap().repeat(count)
        })
        .collect::<String>()
        .into()
}
