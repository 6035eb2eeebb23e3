//! References inside a schema: by path, by anchor and by name.

use super::*;

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
fn names_inside_a_schema_are_resolved_against_their_bases() {
    // What a generator makes of a type that holds itself.
    check(
        r##"{"$ref":"Tree","$defs":{"t":{"$id":"Tree","type":"array","items":{"$ref":"Tree"}}}}"##,
        &["[[],[[]]]"],
        &["[1]", "[[1]]"],
    );
    // One anchor in two schemas, each read where it stands.
    check(
        r##"{"$id":"https://example.com/a/","properties":{
            "x":{"$id":"x","$ref":"#n","$defs":{"n":{"$anchor":"n","type":"string"}}},
            "y":{"$id":"y","$ref":"#n","$defs":{"n":{"$anchor":"n","type":"integer"}}},
            "z":{"$ref":"/a/x#n"}}}"##,
        &[r#"{"x":"","y":1,"z":""}"#],
        &[r#"{"x":1}"#, r#"{"y":""}"#, r#"{"z":1}"#],
    );
    check(
        r##"{"$id":"urn:example:s","properties":{"a":{"$ref":"urn:example:s"}},"type":"object"}"##,
        &[r#"{"a":{}}"#],
        &[r#"{"a":1}"#],
    );
    check(
        r##"{"$id":"https://example.com/s","$schema":"https://json-schema.org/draft/2020-12/schema",
            "items":{"$id":"t","$schema":"https://json-schema.org/draft/2020-12/schema#","type":"null"}}"##,
        &["[null]"],
        &["[1]"],
    );
    check(r#"{"type":"object","properties":{"a":{"$ref":""}}}"#, &[r#"{"a":{}}"#], &[r#"{"a":1}"#]);
}

#[test]
fn what_a_fragment_encodes_is_decoded_once() {
    check(
        r##"{"$defs":{"a%25 \"é/~":{"type":"null"},"a% \"é/~":{"type":"integer"}},
            "properties":{"x":{"$ref":"#/$defs/a%25%20%22%C3%A9~1~0"},"y":{"$ref":"#/%24defs/a%2525 \"é~1~0"}}}"##,
        &[r#"{"x":1,"y":null}"#],
        &[r#"{"x":null}"#, r#"{"y":1}"#],
    );
    check(
        r##"{"$defs":{"é":{"$anchor":"a.b","type":"null"}},"items":{"$ref":"#a%2Eb"}}"##,
        &["[null]"],
        &["[1]"],
    );
}

#[test]
fn a_dynamic_reference_to_what_is_not_dynamic_is_a_reference() {
    for to in ["#n", "#/$defs/a", "s#n"] {
        let schema = format!(
            r##"{{"$id":"s","$defs":{{"a":{{"$anchor":"n","type":"null"}}}},"items":{{"$dynamicRef":"{to}"}}}}"##
        );
        check(&schema, &["[null]"], &["[1]"]);
    }
    refused(
        r##"{"$ref":"#/$defs/a","$dynamicRef":"#/$defs/a","$defs":{"a":{}}}"##,
        "/$dynamicRef: is not supported beside $ref",
    );
    refused(
        r##"{"$dynamicAnchor":"n","items":{"$id":"t"},"$dynamicRef":"#n"}"##,
        "/$dynamicRef: is not supported beside schemas with an $id of their own",
    );
}

#[test]
fn a_name_that_is_none_or_two_is_refused() {
    let twice = "names two schemas";
    refused(r#"{"$id":7}"#, "/$id: is not a string");
    refused(r#"{"items":{"$id":"http://["}}"#, "/items/$id: is no URI, or too long");
    refused(r#"{"items":{"$id":"a#b"}}"#, "/items/$id: has a fragment");
    refused(r#"{"items":{"$id":"a"},"not":{"$id":"a"}}"#, &format!("/not/$id: {twice}"));
    refused(r#"{"$id":"a","not":{"$id":"a"}}"#, &format!("/not/$id: {twice}"));
    refused(
        r#"{"$defs":{"a":{"$anchor":"x"},"b":{"$dynamicAnchor":"x"}}}"#,
        &format!("/$defs/b/$dynamicAnchor: {twice}"),
    );
    check(r#"{"$anchor":"x","$dynamicAnchor":"x"}"#, &["1"], &[]);
}

#[test]
fn the_last_accepted_and_the_first_refused_name() {
    let named = |bytes: usize| {
        let base = "https://schema.invalid/".len();
        format!(r#"{{"items":{{"$id":"{}"}}}}"#, "x".repeat(bytes - base))
    };
    compiled(&named(2_048));
    refused(&named(2_049), "/items/$id: is no URI, or too long");
    let many = |count: usize| {
        let inner: Vec<_> = (0..count).map(|n| format!(r#""d{n}":{{"$id":"n{n}"}}"#)).collect();
        format!(r#"{{"$defs":{{{}}}}}"#, inner.join(","))
    };
    compiled(&many(SCHEMA_REFERENCES_MAX));
    let what = format!("/$defs/d256/$id: is one more than {SCHEMA_REFERENCES_MAX} names");
    refused(&many(SCHEMA_REFERENCES_MAX + 1), &what);
}

#[test]
fn paths_that_would_grow_are_bounded() {
    let long = "k".repeat(20_000);
    let schema = |count: usize| {
        let items = vec![r#"{"$ref":"a"}"#; count].join(",");
        format!(r#"{{"$defs":{{"{long}":{{"$id":"a"}}}},"prefixItems":[{items}]}}"#)
    };
    compiled(&schema(12));
    refused(&schema(13), "/prefixItems/12/$ref: makes the paths of all references too long");
}
