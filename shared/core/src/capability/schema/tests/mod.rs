mod hostile;
mod published;
mod references;

use super::*;
use crate::limits::*;

fn compiled(schema: &str) -> Schema {
    Schema::compile(schema).unwrap_or_else(|what| panic!("{what}: {schema:.300}"))
}

/// What fits a schema, and what does not.
#[track_caller]
fn check(schema: &str, fitting: &[&str], unfitting: &[&str]) {
    let compiled = compiled(schema);
    for input in fitting {
        assert!(compiled.accepts(input.as_bytes()), "{schema:.300} takes {input:.200}");
    }
    for input in unfitting {
        assert!(!compiled.accepts(input.as_bytes()), "{schema:.300} does not take {input:.200}");
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
    for word in [
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
        "#/none",
        "#none",
        "#/properties",
        "#/title",
        "#/%2524defs/a",
        "#%ff",
        "##",
    ] {
        for word in ["$ref", "$dynamicRef"] {
            let schema = format!(
                r#"{{"title":"t","$defs":{{"a":{{}}}},"properties":{{}},"{word}":"{remote}"}}"#
            );
            // A path is looked up once it is known to be a reference.
            let word = if remote.starts_with("#/") { "$ref" } else { word };
            refused(
                &schema,
                &format!("/{word}: \"{}\" names no schema inside this one", place::cut(remote)),
            );
        }
    }
}
