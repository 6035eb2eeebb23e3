//! Schemas and values that are made to cost much.

use super::*;

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
    refused(&not(40), &what);
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
        r#"{"patternProperties":{"(":{}}}"#,
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
    let text = format!("\"{}\"", "x".repeat(1_000));
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

#[test]
fn what_is_brought_together_is_limited() {
    let many = |refs: usize, names: usize, more: &str| {
        let names = joined(names, |index| format!(r#""p{index}":true"#));
        let refs = joined(refs, |_| r##"{"$ref":"#/$defs/many"}"##.to_owned());
        format!(r#"{{"$defs":{{"many":{{"properties":{{{names}}}}}}},{more}:[{refs}]}}"#)
    };
    let what = format!(
        "has keywords allOf and unevaluated… that bring together more than {SCHEMA_MERGED_MAX} keywords and names"
    );
    check(&many(9, 1_900, "\"allOf\""), &["{}", r#"{"p1":1}"#], &[]);
    refused(&many(11, 1_900, "\"allOf\""), &what);
    check(&many(400, 10, "\"unevaluatedProperties\":false,\"anyOf\""), &[r#"{"p1":1}"#], &[]);
    refused(&many(11, 1_900, "\"unevaluatedProperties\":false,\"anyOf\""), &what);
    check(&many(90, 1_900, "\"anyOf\""), &["{}"], &[]);
}

#[test]
fn branches_that_fix_a_property_to_many_values_are_compiled_soon() {
    let values = joined(4_000, |index| format!("\"{index}\""));
    let branches = joined(440, |index| {
        let property = if index < 2 {
            format!(r#"{{"enum":["{index}"]}}"#)
        } else {
            r##"{"not":{"$ref":"#/$defs/e"}}"##.to_owned()
        };
        format!(r#"{{"properties":{{"k":{property}}}}}"#)
    });
    let schema = format!(r#"{{"$defs":{{"e":{{"enum":[{values}]}}}},"anyOf":[{branches}]}}"#);
    check(&schema, &[r#"{"k":"1"}"#, r#"{"k":"x"}"#], &[r#"{"k":"2"}"#]);
    check(r#"{"const":{"a":1}}"#, &[r#"{"a":1.0}"#], &[r#"{"a":2}"#, "{}"]);
    check(r#"{"const":null}"#, &["null"], &["0"]);
    check(r#"{"const":1,"enum":[1,2],"allOf":[{"type":"integer"}]}"#, &["1", "1.0"], &["2", "3"]);
    check(r#"{"items":{"enum":[1],"const":2}}"#, &["[]"], &["[1]", "[2]"]);
    refused(r#"{"const":1,"enum":[1],"allOf":{}}"#, "/allOf: is not a list");
}

/// Runs on a stack of this many KiB, a quarter of what a thread of the runtime has.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(512 << 10).spawn(run);
    thread.unwrap().join().unwrap();
}

#[test]
fn the_deepest_schemas_and_values_fit_a_small_stack() {
    let lists = format!("{}{}", "[".repeat(64), "]".repeat(64));
    let objects = format!("{}{{}}{}", r#"{"a":"#.repeat(63), "}".repeat(63));
    let around = |count: usize, inner: &str| {
        format!("{}{inner}{}", r#"{"allOf":["#.repeat(count), "]}".repeat(count))
    };
    // As long a chain as a value of 64 levels may have.
    let each_level = around(6, r##"{"items":{"$ref":"#"}}"##);
    let members =
        around(5, r##"{"additionalProperties":{"$ref":"#"},"unevaluatedProperties":{}}"##);
    let (deep_lists, deep_objects) = (lists.clone(), objects.clone());
    on_a_small_stack(move || {
        check(&each_level, &[&deep_lists], &["[[[]"]);
        check(&members, &[&deep_objects], &[]);
    });
    let not = format!("{}{{}}{}", r#"{"not":"#.repeat(60), "}".repeat(60));
    let nested = chain(SCHEMA_REFERENCES_MAX - 1, |next| {
        format!(r#"{{"properties":{{"a":{{"items":{next}}}}}}}"#)
    });
    let mutual = chain(SCHEMA_REFERENCES_MAX - 2, |next| {
        format!(r##"{{"items":{next},"additionalProperties":{{"$ref":"#"}}}}"##)
    });
    on_a_small_stack(move || {
        check(&not, &["1"], &[]);
        check(&nested, &["1"], &[]);
        check(&mutual, &[&lists, &objects], &[]);
    });
}
