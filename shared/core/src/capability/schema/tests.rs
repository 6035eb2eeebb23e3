use std::fmt::Write as _;

use super::*;
use crate::limits::*;

fn compiled(schema: &str) -> Schema {
    Schema::compile(schema).unwrap_or_else(|what| panic!("{what}: {schema}"))
}

/// What fits a schema, and what does not.
#[track_caller]
fn check(schema: &str, fitting: &[&str], unfitting: &[&str]) {
    let compiled = compiled(schema);
    for input in fitting {
        assert!(compiled.accepts(input.as_bytes()), "{schema} takes {input:.200}");
    }
    for input in unfitting {
        assert!(!compiled.accepts(input.as_bytes()), "{schema} does not take {input:.200}");
    }
}

#[track_caller]
fn refused(schema: &str, what: &str) {
    let shown: String = schema.chars().take(200).collect();
    assert_eq!(Schema::compile(schema).map(|_| ()), Err(what.to_owned()), "{shown}");
}

/// `count` texts with commas between them.
fn joined(count: usize, text: impl Fn(usize) -> String) -> String {
    (0..count).map(text).collect::<Vec<_>>().join(",")
}

#[test]
fn what_does_not_fit_is_refused() {
    // CH-022, CH-023
    check("true", &["1", "{}", "null"], &["", "x", "{", "1 2"]);
    check("false", &[], &["1", "{}", "null"]);
    check(r#"{"type":"number"}"#, &["1", "1.5e3", "-0"], &["\"1\"", "null", "[1]"]);
    check(
        r#"{"type":"object","required":["n"],"properties":{"n":{"type":"integer","minimum":1}},
            "additionalProperties":false}"#,
        &[r#"{"n":1}"#, r#"{"n":2.0}"#],
        &["{}", r#"{"n":0}"#, r#"{"n":1,"m":1}"#, r#"{"n":"1"}"#],
    );
    check(r#"{"enum":[1,"a",{"b":[]}]}"#, &["1.0", "\"a\"", r#"{"b":[]}"#], &["2", "{}"]);
    check(r#"{"uniqueItems":true}"#, &["[1,2]", "[[],[[]]]"], &["[1,1.0]", "[{},{}]"]);
    check(r#"{"pattern":"^\\d{2}$"}"#, &["\"12\"", "7"], &["\"123\"", "\"a\""]);
}

#[test]
fn references_inside_a_schema_work() {
    check(
        r##"{"$defs":{"n":{"type":"integer"}},"items":{"$ref":"#/$defs/n"}}"##,
        &["[1]", "[]"],
        &["[\"1\"]"],
    );
    check(
        r##"{"$defs":{"a":{"$anchor":"n","type":"integer"}},"items":{"$ref":"#n"}}"##,
        &["[1]"],
        &["[\"1\"]"],
    );
    check(
        r##"{"$dynamicAnchor":"n","type":["array","integer"],"items":{"$dynamicRef":"#n"}}"##,
        &["[1,[2,[]]]"],
        &["[[\"1\"]]"],
    );
    check(
        r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.com/s",
            "type":"object","properties":{"inner":{"$ref":"#"}},"unevaluatedProperties":false}"##,
        &[r#"{"inner":{"inner":{}}}"#],
        &[r#"{"inner":{"other":{}}}"#, r#"{"inner":1}"#],
    );
}

#[test]
fn format_and_other_annotations_refuse_nothing() {
    check(r#"{"format":"email","title":"t","default":5,"x-more":{"$ref":"no"}}"#, &["\"x\""], &[]);
    check(r#"{"contentEncoding":"base64","contentMediaType":"application/json"}"#, &["\"?\""], &[]);
}

#[test]
fn sixty_four_levels_fit_and_one_more_does_not() {
    // CH-065, CH-066
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let objects = |levels: usize| {
        let levels = levels - 1;
        format!("{}{{}}{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
    };
    let most = CAPABILITY_JSON_DEPTH_MAX;
    check("true", &[&nested(most), &objects(most)], &[&nested(most + 1), &objects(most + 1)]);
    check("true", &[], &[&"[".repeat(CAPABILITY_INPUT_BYTES_MAX)]);
}

#[test]
fn an_input_has_a_size_and_no_key_twice() {
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    let most = CAPABILITY_INPUT_BYTES_MAX;
    check("true", &[&text(most)], &[&text(most + 1)]);
    // The receiver might read the one that was not validated.
    let schema = r#"{"properties":{"n":{"maximum":5}}}"#;
    check(schema, &[r#"{"n":5,"m":{"n":6}}"#], &[r#"{"n":6,"n":5}"#, r#"{"n":6,"\u006e":5}"#]);
    check("true", &[], &[r#"[{"a":{"b":1,"b":1}}]"#, "\"\\ud800\""]);
    assert!(!compiled("true").accepts(b"\"\xff\""));
}

#[test]
fn numbers_are_compared_as_64_bits_and_larger_ones_fit_nothing() {
    let most = format!("{{\"maximum\":{}}}", u64::MAX);
    check(&most, &["18446744073709551615", "-9223372036854775808", "1e2"], &["1e300"]);
    check(r#"{"const":9007199254740993}"#, &["9007199254740993"], &["9007199254740992"]);
    check("true", &["1e308", "-1e308", "1e-400"], &["1e309", "-1e999999999999"]);
    check(r#"{"multipleOf":0.01}"#, &["0.07", "19.99"], &["0.075"]);
}

#[test]
fn a_schema_that_is_none_is_refused_with_its_place() {
    refused("1", "is not a schema: neither an object nor true nor false");
    refused("null", "is not a schema: neither an object nor true nor false");
    refused(r#"{"items":[{}]}"#, "/items: is not a schema: neither an object nor true nor false");
    refused(r#"{"properties":[]}"#, "/properties: is not an object");
    refused(r#"{"allOf":{}}"#, "/allOf: is not a list");
    refused(r#"{"type":"string","type":"string"}"#, "holds a key twice in one object");
    refused(r#"{"maximum":1e999}"#, "holds a number that is too large");
    refused("{", "not valid JSON: the text ends early");
    for wrong in [
        r#"{"type":"text"}"#,
        r#"{"properties":{"a":{"minLength":-1}}}"#,
        r#"{"required":"a"}"#,
        r#"{"enum":1}"#,
        r#"{"$ref":1}"#,
        r#"{"$anchor":1}"#,
        r#"{"pattern":1}"#,
        r#"{"multipleOf":0}"#,
        r#"{"anyOf":[]}"#,
    ] {
        assert!(Schema::compile(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn other_drafts_and_other_schemas_are_refused() {
    let draft = "$schema: only the draft 2020-12 is known";
    refused(r#"{"$schema":"http://json-schema.org/draft-07/schema#"}"#, draft);
    refused(r#"{"$schema":"https://example.com/mine"}"#, draft);
    refused(r#"{"$schema":7}"#, draft);
    refused(r#"{"$id":7}"#, "$id: is not a string");
    for word in [
        "$id",
        "$schema",
        "$vocabulary",
        "$recursiveRef",
        "$recursiveAnchor",
        "additionalItems",
        "dependencies",
    ] {
        let what = format!("/not/{word}: is not supported here");
        refused(&format!(r#"{{"not":{{"{word}":"https://example.com/x"}}}}"#), &what);
    }
    for remote in [
        "http://127.0.0.1/x",
        "https://json-schema.org/draft/2020-12/schema",
        "file:///etc/passwd",
        "other.json#/a",
        "",
        "#/none",
        "#none",
        "#/properties",
        "#/title",
        "#/%24defs/a",
        "##",
    ] {
        for word in ["$ref", "$dynamicRef"] {
            let schema = format!(
                r#"{{"title":"t","$defs":{{"a":{{}}}},"properties":{{}},"{word}":"{remote}"}}"#
            );
            refused(
                &schema,
                &format!("/{word}: \"{}\" names no schema inside this one", place::cut(remote)),
            );
        }
    }
    refused(
        r#"{"$defs":{"a":{"$anchor":"x"},"b":{"$dynamicAnchor":"x"}}}"#,
        "/$defs/b/$dynamicAnchor: names two schemas",
    );
}

#[test]
fn a_reference_that_never_ends_is_refused() {
    let what = "a $ref leads back to itself without an end";
    refused(r##"{"$ref":"#"}"##, what);
    refused(r##"{"$dynamicAnchor":"a","$dynamicRef":"#a"}"##, what);
    refused(r##"{"anyOf":[{"not":{"if":{"$ref":"#"}}}]}"##, what);
    refused(
        r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"dependentSchemas":{"k":{"$ref":"#/$defs/a"}}}}}"##,
        what,
    );
    // With each step into the value, it ends with the value.
    check(r##"{"items":{"$ref":"#"},"type":"array"}"##, &["[[],[[]]]"], &["[[1]]"]);
    check(
        r##"{"propertyNames":{"maxLength":1},"additionalProperties":{"$ref":"#"}}"##,
        &[r#"{"a":{"b":1}}"#],
        &[r#"{"a":{"bb":1}}"#],
    );
}

/// A chain of `links` schemas, each made of references to the next.
fn chain(links: usize, link: impl Fn(&str) -> String) -> String {
    let links_text = joined(links, |index| {
        let next = format!(r##"{{"$ref":"#/$defs/d{}"}}"##, index + 1);
        format!(r#""d{index}":{}"#, link(&next))
    });
    format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{links_text},"d{links}":{{"type":"integer"}}}}}}"##)
}

#[test]
fn a_schema_that_doubles_with_each_step_on_one_value_is_refused() {
    let any_of = |next: &str| format!(r#"{{"anyOf":[{next},{next}]}}"#);
    check(&chain(5, any_of), &["1"], &["\"1\""]);
    let what = format!("applies more than {SCHEMA_VISITS_MAX} schemas to one value");
    refused(&chain(20, any_of), &what);
    refused(&chain(9, |next| format!(r#"{{"if":{next},"then":{next},"else":{next}}}"#)), &what);
    let flat = |count: usize| format!(r#"{{"allOf":[{}]}}"#, joined(count, |_| "{}".to_owned()));
    check(&flat(SCHEMA_VISITS_MAX as usize - 1), &["1"], &[]);
    refused(&flat(SCHEMA_VISITS_MAX as usize), &what);
}

#[test]
fn a_long_chain_of_references_is_refused_on_one_value_and_bounded_else() {
    let not = |links: usize| chain(links, |next| format!(r#"{{"allOf":[{next}]}}"#));
    let what = format!("applies more than {SCHEMA_CHAIN_MAX} schemas inside one another");
    check(&not(20), &["1"], &["\"\""]);
    refused(&not(30), &what);
    let nested = |links: usize| chain(links, |next| format!(r#"{{"properties":{{"a":{next}}}}}"#));
    check(&nested(SCHEMA_REFERENCES_MAX - 1), &["1", r#"{"a":{"a":1}}"#], &[]);
    let schema = nested(SCHEMA_REFERENCES_MAX);
    let what = format!(
        "/$defs/d{}/properties/a/$ref: is one more than the {SCHEMA_REFERENCES_MAX} schemas that are referred to",
        SCHEMA_REFERENCES_MAX - 1
    );
    refused(&schema, &what);
}

#[test]
fn what_doubles_with_each_level_of_the_value_takes_shallow_values_only() {
    let doubling = compiled(r##"{"items":{"$ref":"#"},"contains":{"$ref":"#"},"minContains":0}"##);
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(doubling.accepts(nested(10).as_bytes()));
    assert!(!doubling.accepts(nested(64).as_bytes()));
    // One of several that are applied to different members does not double.
    let tree = compiled(
        r##"{"properties":{"l":{"$ref":"#"},"r":{"$ref":"#"}},"additionalProperties":false}"##,
    );
    let text = (0..60).fold("{}".to_owned(), |inner, _| format!(r#"{{"l":{{}},"r":{inner}}}"#));
    assert!(tree.accepts(text.as_bytes()));
}

#[test]
fn any_json_is_a_schema_that_takes_the_deepest_and_the_widest_value() {
    let json = r##"{"$ref":"#/$defs/json","$defs":{"json":{"anyOf":[
        {"type":["string","number","boolean","null"]},
        {"type":"array","items":{"$ref":"#/$defs/json"}},
        {"type":"object","additionalProperties":{"$ref":"#/$defs/json"}}]}}}"##;
    let deep = format!("{}{}", "[".repeat(64), "]".repeat(64));
    let wide = format!("[{}]", joined(30_000, |_| "0".to_owned()));
    let keys = format!("{{{}}}", joined(4_000, |index| format!(r#""k{index}":"v""#)));
    check(json, &[&deep, &wide, &keys], &[]);
}

#[test]
fn patterns_that_backtrack_or_are_large_are_refused() {
    let of = |pattern: &str| format!(r#"{{"pattern":{}}}"#, json::quote(pattern));
    for pattern in [
        "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
        r"^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}$",
        r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$",
        r"^\p{L}[\p{L} '-]*$",
        "^.{1,200}$",
        "^(?<year>[0-9]+)$",
        // Exponential where it backtracks.
        "^(([a-z]+)+)+$",
    ] {
        compiled(&of(pattern));
    }
    let none = "/pattern: is no regular expression, or one that takes too much to match";
    let deep = "(".repeat(PATTERN_CHARS_MAX);
    let classes = "[".repeat(PATTERN_CHARS_MAX);
    for pattern in
        ["(", "((a{100}){100}){100}", r"(\p{L}{50}){50}", r"(a)\1", &deep, &classes, "a{9999999}"]
    {
        refused(&of(pattern), none);
    }
    for pattern in ["^(?=.*[A-Z]).+$", "a(?!b)", "(?<=a)b", "(?<!a)b"] {
        refused(&of(pattern), "/pattern: is a pattern that looks ahead or behind");
    }
    let longest = "a".repeat(PATTERN_CHARS_MAX);
    compiled(&of(&longest));
    let long = format!("/pattern: is a pattern of more than {PATTERN_CHARS_MAX} characters");
    refused(&of(&format!("{longest}a")), &long);
    refused(
        &format!(r#"{{"patternProperties":{{"(":{{}}}}}}"#),
        "/patternProperties/(: is no regular expression, or one that takes too much to match",
    );
    let many = |count: usize| {
        format!(
            r#"{{"patternProperties":{{{}}}}}"#,
            joined(count, |index| format!(r#""^p{index}":{{}}"#))
        )
    };
    compiled(&many(SCHEMA_PATTERNS_MAX));
    refused(
        &many(SCHEMA_PATTERNS_MAX + 1),
        &format!(
            "/patternProperties/^p{SCHEMA_PATTERNS_MAX}: is one more than the {SCHEMA_PATTERNS_MAX} patterns of a schema"
        ),
    );
}

#[test]
fn a_schema_has_limits() {
    let parts =
        |count: usize| format!(r#"{{"prefixItems":[{}]}}"#, joined(count - 1, |_| "{}".to_owned()));
    assert_eq!(compiled(&parts(SCHEMA_PARTS_MAX)).size().parts, SCHEMA_PARTS_MAX);
    refused(
        &parts(SCHEMA_PARTS_MAX + 1),
        &format!(
            "/prefixItems/{}: is one more than the {SCHEMA_PARTS_MAX} schemas inside one",
            SCHEMA_PARTS_MAX - 1
        ),
    );
    let unevaluated = |count: usize| {
        let each = |index: usize| format!(r#""p{index}":{{"unevaluatedProperties":false}}"#);
        format!(r#"{{"properties":{{{}}}}}"#, joined(count, each))
    };
    compiled(&unevaluated(SCHEMA_UNEVALUATED_MAX));
    refused(
        &unevaluated(SCHEMA_UNEVALUATED_MAX + 1),
        &format!(
            "/properties/p{SCHEMA_UNEVALUATED_MAX}/unevaluatedProperties: is one more than the {SCHEMA_UNEVALUATED_MAX} such keywords of a schema"
        ),
    );
    let bytes = |count: usize| format!(r#"{{"const":"{}"}}"#, "x".repeat(count - 12));
    compiled(&bytes(CAPABILITY_SCHEMA_BYTES_MAX));
    refused(
        &bytes(CAPABILITY_SCHEMA_BYTES_MAX + 1),
        &format!("takes more than {CAPABILITY_SCHEMA_BYTES_MAX} bytes"),
    );
    let deep = |levels: usize| {
        format!("{}{{}}{}", r#"{"not":"#.repeat(levels - 1), "}".repeat(levels - 1))
    };
    compiled(&deep(60));
    assert!(Schema::compile(&deep(65)).is_err());
}

#[test]
fn what_would_take_too_many_steps_does_not_fit() {
    // Many comparisons, each with many values.
    let large_enum =
        format!(r#"{{"items":{{"enum":[{}]}}}}"#, joined(8_000, |index| index.to_string()));
    let list = |count: usize| format!("[{}]", joined(count, |index| index.to_string()));
    check(&large_enum, &[&list(1_000)], &[&list(8_000)]);
    // All of these hash alike, in what compares elements; these do not.
    let alike = |count: u32| {
        let bits = |index: u32| {
            joined(12, |bit| if index >> bit & 1 == 1 { "[]" } else { "[[]]" }.to_owned())
        };
        format!("[{}]", joined(count as usize, |index| format!("[{}]", bits(index as u32))))
    };
    check(r#"{"uniqueItems":true}"#, &[&alike(500), &list(12_000)], &[&alike(1_500)]);
    // A pattern whose states are all alive, on a long text, once and many times.
    let slow = r#"{"pattern":"[ab]*a[ab]{300}c"}"#;
    let text = |bytes: usize| format!("\"{}\"", "ab".repeat(bytes / 2));
    let slow_often = format!(r#"{{"allOf":[{}]}}"#, joined(40, |_| slow.to_owned()));
    check(&slow_often, &[], &[&text(CAPABILITY_INPUT_BYTES_MAX - 2)]);
    let keys = format!(
        r#"{{"patternProperties":{{{}}}}}"#,
        joined(40, |index| { format!(r#""[ab]*a[ab]{{{}}}c":true"#, 200 + index) })
    );
    let key = format!("{{{}:1}}", text(CAPABILITY_INPUT_BYTES_MAX - 10));
    check(&keys, &[r#"{"ab":1}"#], &[&key]);
    let names =
        keys.replace("patternProperties", "properties").replace(":true", ":{\"pattern\":\"x\"}");
    check(&names, &[&key], &[]);
}

#[test]
fn a_nest_of_unevaluated_properties_is_bounded() {
    let nest = |levels: usize| {
        (0..levels).fold("{}".to_owned(), |inner, level| {
            format!(
                r#"{{"anyOf":[{inner},{{"properties":{{"p{level}":true}}}}],"unevaluatedProperties":false}}"#
            )
        })
    };
    check(&nest(3), &["{}", r#"{"p2":1}"#], &[]);
    let object =
        |members: usize| format!("{{{}}}", joined(members, |index| format!(r#""q{index}":1"#)));
    check(&nest(SCHEMA_UNEVALUATED_MAX), &[], &[&object(5_000)]);
}

/// The steps that the most expensive part takes are counted, so what is accepted ends soon: the sum over the whole text
/// is not larger than the limit, however the schema is made.
#[test]
fn the_count_of_steps_grows_with_schema_and_value() {
    let steps = |schema: &str, input: &str| {
        Measure::of(input).unwrap().steps(&compiled(schema).bounds).unwrap()
    };
    assert_eq!(steps("true", "1"), 1);
    assert_eq!(steps("{}", "[1,2]"), 3);
    assert!(
        steps(r#"{"items":{"enum":[1,2,3]}}"#, "[1,2]")
            > steps(r#"{"items":{"enum":[1]}}"#, "[1,2]")
    );
    let mut text = String::new();
    let _ = write!(text, "\"{}\"", "x".repeat(1_000));
    assert!(steps(r#"{"pattern":"x"}"#, &text) >= 1_000);
    assert!(steps(r#"{"minLength":1}"#, &text) >= 1_000);
}

#[test]
fn a_measure_counts_values_bytes_and_pairs_by_depth() {
    use measure::Level;
    let level = |values: u64, bytes: u64, pairs: u64| Level { values, bytes, pairs };
    let check = |text: &str, levels: &[Level], keys: usize| {
        let expected = Measure { levels: levels.to_vec(), keys };
        assert_eq!(Measure::of(text), Ok(expected), "{text}");
    };
    check("1", &[level(1, 0, 0)], 0);
    check("\"abc\"", &[level(1, 3, 0)], 0);
    check(r#"{"ab":"c"}"#, &[level(1, 0, 17), level(1, 3, 0)], 1);
    check("[[],[]]", &[level(1, 0, 4), level(2, 0, 0)], 0);
    check("[9007199254740993,1]", &[level(1, 0, 4), level(2, 0, 0)], 0);
    assert!(Measure::of("[").is_err());
}
