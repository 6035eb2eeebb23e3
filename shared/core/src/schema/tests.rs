use super::*;
use crate::limits::{SCHEMA_TOKENS_MAX, YAML_BYTES_MAX};

fn schema(text: &str) -> ExtensionSchema {
    ExtensionSchema::parse(text.as_bytes()).unwrap()
}

/// A schema with one action `a`, which has these parameters.
fn parameters(fields: &str, requirements: &str) -> ActionSchema {
    let text = format!(
        "{{\"request_schema\":{{\"a\":{{\"parameters\":{{\"fields\":{fields},\"requirements\":{requirements}}}}}}}}}"
    );
    schema(&text).action("a").unwrap().clone()
}

fn object(text: &str) -> Object {
    Object::parse(text).unwrap()
}

#[track_caller]
fn check_prepared(action: &ActionSchema, data: &str, expected: Result<&str, &str>) {
    let prepared = action.prepare(object(data)).map(|object| object.to_json());
    assert_eq!(prepared.as_deref(), expected.map_err(String::from).as_deref(), "{data}");
}

/// One value for one field of a type; `None`: accepted.
#[track_caller]
fn check_value(data_type: &str, value: &str, fault: Option<&str>) {
    let (data_type, rest) = data_type.split_once('+').unwrap_or((data_type, ""));
    let is_list = data_type.ends_with("[]");
    let data_type = data_type.trim_end_matches("[]");
    let fields = format!("{{\"x\":{{\"data_type\":\"{data_type}\",\"is_list\":{is_list}{rest}}}}}");
    let action = parameters(&fields, "null");
    let data = format!("{{\"x\":{value}}}");
    check_prepared(&action, &data, fault.map_or(Ok(&data), Err));
    // The configuration pass checks types in the same way.
    let config = action.parameters.config(&object(&data)).map(|object| object.to_json());
    assert_eq!(config.as_deref(), fault.map_or(Ok(&*data), |it| Err(it.to_owned())).as_deref());
}

#[test]
fn null_lists_and_maps_unknown_members_and_missing_ones_are_read() {
    let empty = schema("{}");
    assert_eq!(empty.actions().len(), 0);
    assert_eq!(empty.config.fields().len(), 0);
    assert_eq!(empty.raw(), "{}");
    let nulls = schema(
        "{\"views\":null,\"config_schema\":null,\"request_schema\":{\"a\":null,\"b\":{\"parameters\":null,
          \"label\":null,\"is_user_facing\":null,\"messages\":{}},\"c\":{\"parameters\":{\"fields\":null,\"key\":{},
          \"requirements\":[null,[]]},\"is_user_facing\":false,\"is_impersonated\":true}},\"required_events\":null}",
    );
    let flags: Vec<_> =
        nulls.actions().map(|(name, it)| (name, it.is_user_facing, it.is_impersonated)).collect();
    assert_eq!(flags, [("a", true, false), ("b", true, false), ("c", false, true)]);
    check_prepared(nulls.action("c").unwrap(), "{}", Ok("{}"));
    assert_eq!(schema("{\"required_events\":[\"subscribe\"]}").required_events, ["subscribe"]);
}

#[test]
fn schemas_that_are_not_json_or_absurd_are_refused_with_a_text() {
    let fault = |text: &str| ExtensionSchema::parse(text.as_bytes()).map(|_| ()).unwrap_err();
    assert_eq!(fault("<html>"), "the schema is not valid JSON at byte 0");
    assert_eq!(
        fault("{\"required_events\":7}"),
        "the schema is not as agreed: invalid type: integer `7`, expected a sequence at line 1 column 20"
    );
    // The keys and values around the list are three.
    let events = |count| format!("{{\"x\":[{}]}}", vec!["1"; count].join(","));
    assert!(ExtensionSchema::parse(events(SCHEMA_TOKENS_MAX - 3).as_bytes()).is_ok());
    assert_eq!(
        fault(&events(SCHEMA_TOKENS_MAX - 2)),
        "the schema has more than 200000 keys and values"
    );
}

/// The answer of the real Python SDK (cut to what matters).
const SDK: &str = r#"{"views":[],"config_schema":{"fields":{
  "api_key":{"label":"","data_type":"secret","is_list":false,"display_index":null,"default_value":null,"object":null,"enum_values":null,"filter":{}},
  "limit":{"data_type":"integer","is_list":false,"default_value":5}},"list_element_name":null,"key":null,"requirements":[["api_key"]]},
 "request_schema":{"echo":{"is_default":false,"is_user_facing":true,"is_impersonated":false,"parameters":{"fields":{
   "msg":{"data_type":"string","default_value":null},"n":{"data_type":"integer","default_value":3},
   "key":{"data_type":"secret"},"tags":{"data_type":"tag","is_list":true},
   "cfg":{"data_type":"object","object":{"fields":{"a":{"data_type":"text"}}}}},"requirements":[["msg"]]},"response":null},
  "boom":{"parameters":{"fields":{},"requirements":[]}}},"required_events":["subscribe","unsubscribe","update"]}"#;

#[test]
fn a_request_gets_its_defaults_and_keeps_its_bytes() {
    let schema = schema(SDK);
    let echo = schema.action("echo").unwrap();
    // LC-006
    check_prepared(echo, r#"{"msg":"a"}"#, Ok(r#"{"msg":"a","n":3}"#));
    check_prepared(echo, r#"{"n":1e2,"msg":"\u0061"}"#, Ok(r#"{"n":1e2,"msg":"\u0061"}"#));
    check_prepared(
        echo,
        r#"{"tags":["x","y"],"cfg":{"a":7,"z":null},"msg":"","n":null,"key":null}"#,
        Ok(r#"{"tags":["x","y"],"cfg":{"a":7,"z":null},"msg":"","n":3}"#),
    );
    // LC-143, LC-142, LC-145
    check_prepared(echo, "{}", Err("missing one of msg"));
    check_prepared(echo, r#"{"msg":null}"#, Err("missing one of msg"));
    check_prepared(echo, r#"{"msg":"a","foo":1}"#, Err("unknown parameter name: foo"));
    check_prepared(echo, r#"{"msg":"a","foo":null}"#, Err("unknown parameter name: foo"));
    check_prepared(echo, r#"{"msg":4}"#, Err("invalid value for msg: not a string, a float64"));
    check_prepared(
        echo,
        r#"{"msg":"a","tags":["x",{}]}"#,
        Err("invalid value for tags: not a string, a map[string]interface {}"),
    );
    check_prepared(schema.action("boom").unwrap(), "{}", Ok("{}"));
    // LC-146
    assert_eq!(schema.advertised("nope").unwrap_err(), "unknown request action: nope");
    assert!(schema.advertised("boom").is_ok());
}

#[test]
fn falsy_defaults_are_defaults_and_meet_requirements() {
    let fields = r#"{"c":{"data_type":"bool","default_value":false},"b":{"data_type":"integer","default_value":0},
        "a":{"data_type":"string","default_value":""},"l":{"data_type":"string","is_list":true,"default_value":[]}}"#;
    let action = parameters(fields, r#"[["a"],["x","b"],["c"]]"#);
    check_prepared(&action, "{}", Ok(r#"{"a":"","b":0,"c":false,"l":[]}"#));
    check_prepared(&action, r#"{"c":true}"#, Ok(r#"{"c":true,"a":"","b":0,"l":[]}"#));
}

#[test]
fn requirements_are_met_by_any_member_of_each_set() {
    // LC-143
    let fields =
        r#"{"a":{"data_type":"string"},"b":{"data_type":"string"},"c":{"data_type":"string"}}"#;
    let action = parameters(fields, r#"[["a","b"],[],["c"]]"#);
    check_prepared(&action, "{}", Err("missing one of a, b"));
    check_prepared(&action, r#"{"c":""}"#, Err("missing one of a, b"));
    check_prepared(&action, r#"{"b":""}"#, Err("missing one of c"));
    check_prepared(&action, r#"{"b":"","c":""}"#, Ok(r#"{"b":"","c":""}"#));
    check_prepared(&action, r#"{"a":"","b":"","c":""}"#, Ok(r#"{"a":"","b":"","c":""}"#));
    check_prepared(&parameters(fields, "[[]]"), "{}", Ok("{}"));
}

#[test]
fn the_first_fault_by_step_and_then_by_name_is_reported() {
    let fields =
        r#"{"a":{"data_type":"string"},"b":{"data_type":"integer"},"r":{"data_type":"string"}}"#;
    let action = parameters(fields, r#"[["r"]]"#);
    check_prepared(&action, r#"{"z":1,"y":1,"b":"","a":1}"#, Err("missing one of r"));
    check_prepared(&action, r#"{"r":"","z":1,"y":1,"a":1}"#, Err("unknown parameter name: y"));
    check_prepared(
        &action,
        r#"{"r":"","b":"","a":1}"#,
        Err("invalid value for a: not a string, a float64"),
    );
}

#[test]
fn string_types_take_strings_only() {
    for data_type in [
        "string",
        "code",
        "yara_rule",
        "domain",
        "tag",
        "platform",
        "architecture",
        "sensor_selector",
        "yara_rule_name",
        "secret",
        "enum",
        "complex_enum",
    ] {
        check_value(data_type, "\"\"", None);
        check_value(data_type, "1e400", Some("invalid value for x: not a string, a float64"));
        check_value(data_type, "true", Some("invalid value for x: not a string, a bool"));
        check_value(data_type, "[]", Some("invalid value for x: not a string, a []interface {}"));
    }
}

#[test]
fn integer_types_take_integral_numbers_only() {
    for data_type in ["integer", "duration", "time"] {
        for value in ["3", "-3.0", "1e2", "1152921506151679042000000"] {
            check_value(data_type, value, None);
        }
        check_value(data_type, "3.5", Some("invalid value for x: not an integer, a float64"));
        check_value(data_type, "\"3\"", Some("invalid value for x: not an integer, a string"));
        check_value(data_type, "true", Some("invalid value for x: not an integer, a bool"));
    }
    check_value("bool", "true", None);
    check_value("bool", "false", None);
    check_value("bool", "0", Some("invalid value for x: not a bool, a float64"));
}

#[test]
fn an_enum_takes_its_members_only() {
    let colors = "enum+,\"enum_values\":[\"red\",\"blue\"]";
    check_value(colors, "\"blue\"", None);
    check_value(colors, "\"\\u0062lue\"", None);
    check_value(colors, "\"Blue\"", Some("invalid value for x: not one of red, blue"));
    check_value(colors, "7", Some("invalid value for x: not a string, a float64"));
    let lists = "enum[]+,\"enum_values\":[\"red\",\"blue\"]";
    check_value(lists, "[\"red\",\"red\"]", None);
    check_value(lists, "[\"red\",\"\"]", Some("invalid value for x: not one of red, blue"));
    let mixed = "enum+,\"enum_values\":[\"red\",2]";
    check_value(mixed, "2", None);
    check_value(mixed, "3", Some("invalid value for x: not one of red, 2"));
    let complex = "complex_enum+,\"complex_enum_values\":[{\"label\":\"A\",\"value\":\"a\"},null,{\"value\":\"b\"}]";
    check_value(complex, "\"b\"", None);
    check_value(complex, "\"A\"", Some("invalid value for x: not one of a, b"));
    check_value("enum+,\"enum_values\":null", "\"anything\"", None);
}

#[test]
fn ids_and_urls_are_recognized_by_their_form() {
    for data_type in ["sid", "oid"] {
        check_value(data_type, "\"8cbe27f4-0000-4000-8000-138cd51389cd\"", None);
        check_value(data_type, "\"8cbe27f4\"", Some("invalid value for x: not a UUID, a string"));
        check_value(data_type, "1", Some("invalid value for x: not a UUID, a float64"));
    }
    check_value("url", "\"https:\\/\\/example.com\"", None);
    check_value("url", "\"example.com\"", Some("invalid value for x: not a URL, a string"));
    check_value("url", "{}", Some("invalid value for x: not a URL, a map[string]interface {}"));
}

#[test]
fn json_and_yaml_are_texts_of_it_or_structured_already() {
    for data_type in ["json", "yaml"] {
        for value in ["\"{\\\"a\\\":[1]}\"", "{\"a\":1}", "[1]", "\"7\"", "\"null\""] {
            check_value(data_type, value, None);
        }
    }
    check_value("json", "\"{\"", Some("invalid value for x: not valid JSON, a string"));
    check_value("json", "\"\"", Some("invalid value for x: not valid JSON, a string"));
    check_value("json", "7", Some("invalid value for x: not valid JSON, a float64"));
    check_value("yaml", "\"a: 1\\nb:\\n  - c\\n\"", None);
    check_value("yaml", "\"\"", None);
    check_value("yaml", "\"a: [1\"", Some("invalid value for x: not valid YAML, a string"));
    check_value("yaml", "true", Some("invalid value for x: not valid YAML, a bool"));
    // Aliases of aliases are never expanded.
    let bomb: String = (1..40).map(|i| format!("- &a{i} [*a{}, *a{}]\\n", i - 1, i - 1)).collect();
    check_value("yaml", &format!("\"- &a0 x\\n{bomb}\""), None);
    let long = |count: usize| format!("\"{}\"", "a".repeat(count));
    check_value("yaml", &long(YAML_BYTES_MAX), None);
    let fault = Some("invalid value for x: not valid YAML, a string");
    check_value("yaml", &long(YAML_BYTES_MAX + 1), fault);
    check_value("yaml", &format!("\"{}\"", "[".repeat(1000)), fault);
    check_value("yaml", &format!("\"{}\"", "- ".repeat(100_000)), None);
}

#[test]
fn objects_records_and_lists_have_their_shape() {
    check_value("object", "{\"any\":{\"thing\":null}}", None);
    check_value("object", "[]", Some("invalid value for x: not an object, a []interface {}"));
    check_value("object[]", "[{},{\"a\":1}]", None);
    check_value(
        "object[]",
        "{}",
        Some("invalid value for x: not a list, a map[string]interface {}"),
    );
    check_value("object[]", "[{},1]", Some("invalid value for x: not an object, a float64"));
    check_value("record", "{\"k\":{}}", None);
    check_value("record", "[{}]", Some("invalid value for x: not an object, a []interface {}"));
    check_value("record[]", "{\"k\":{}}", None);
    check_value("record[]", "[{\"k\":{}}]", None);
    check_value("record[]", "[7]", Some("invalid value for x: not an object, a float64"));
    check_value("record[]", "7", Some("invalid value for x: not an object, a float64"));
    check_value("string[]", "[]", None);
    check_value("string[]", "\"a\"", Some("invalid value for x: not a list, a string"));
    check_value("string[]", "[null]", Some("invalid value for x: not a string, a <nil>"));
    check_value(
        "string[]",
        "[[\"a\"]]",
        Some("invalid value for x: not a string, a []interface {}"),
    );
}

#[test]
fn a_type_that_is_not_validated_is_refused_once_a_value_is_given() {
    // LC-144
    check_value("blob7", "1", Some("unknown datatype: blob7"));
    check_value("text", "\"a\"", Some("unknown datatype: text"));
    check_value("event_name[]", "[]", Some("unknown datatype: event_name"));
    let action = parameters(r#"{"x":{"data_type":"text"}}"#, "[]");
    check_prepared(&action, "{}", Ok("{}"));
    check_prepared(&action, r#"{"x":null}"#, Ok("{}"));
    let action = parameters(r#"{"x":{"data_type":"text","default_value":"a"}}"#, "[]");
    check_prepared(&action, "{}", Err("unknown datatype: text"));
}

#[test]
fn long_names_are_cut_in_texts() {
    let action = parameters("{}", "[]");
    for (length, shown) in [(1_024, 1_024), (1_025, 1_024)] {
        let text = format!("unknown parameter name: {}", "n".repeat(shown));
        check_prepared(&action, &format!("{{\"{}\":1}}", "n".repeat(length)), Err(&text));
    }
}

#[test]
fn a_configuration_loses_what_is_not_declared_and_gets_no_defaults() {
    let config = |text| schema(SDK).config.config(&object(text)).map(|object| object.to_json());
    assert_eq!(config("{}").as_deref(), Ok("{}"));
    assert_eq!(
        config(r#"{"old":1,"limit":2.0,"api_key":null}"#).as_deref(),
        Ok(r#"{"limit":2.0}"#)
    );
    assert_eq!(
        config(r#"{"old":1,"limit":"x"}"#).unwrap_err(),
        "invalid value for limit: not an integer, a string"
    );
}

const FIELDS: &str = r#"{"k":{"data_type":"secret"},"l":{"data_type":"secret","is_list":true},"s":{"data_type":"string"}}"#;

#[track_caller]
fn check_secrets(data: &str, names: &[&str], filled: Result<&str, &str>) {
    let schema = parameters(FIELDS, "[]").parameters;
    let mut data = object(data);
    assert_eq!(secret_references(&schema, &data), names);
    let before = data.to_json();
    let lookup = |name: &str| (name != "gone").then(|| format!("<{name}\">"));
    let result = fill_secrets(&schema, &mut data, &lookup);
    assert_eq!(result, filled.map(|_| ()).map_err(str::to_owned));
    assert_eq!(data.to_json(), filled.unwrap_or(&before));
}

#[test]
fn references_are_filled_in_fields_of_type_secret_only() {
    // LC-007
    check_secrets(r#"{"k":"hive://secret/a"}"#, &["a"], Ok(r#"{"k":"<a\">"}"#));
    check_secrets(
        r#"{"s":"hive://secret/a","k":"\u0068ive:\/\/secret/b"}"#,
        &["b"],
        Ok(r#"{"s":"hive://secret/a","k":"<b\">"}"#),
    );
    check_secrets(
        r#"{"l":["x","hive://secret/a","hive://secret/c","hive://secret/a"]}"#,
        &["a", "c"],
        Ok(r#"{"l":["x","<a\">","<c\">","<a\">"]}"#),
    );
    let plain = r#"{"k":"secret/a","l":["\u0061", " hive://secret/a"]}"#;
    check_secrets(plain, &[], Ok(plain));
    check_secrets("{}", &[], Ok("{}"));
}

#[test]
fn the_first_missing_secret_is_named_and_nothing_is_filled() {
    check_secrets(r#"{"l":["hive://secret/a","hive://secret/gone"]}"#, &["a", "gone"], Err("gone"));
    check_secrets(
        r#"{"l":["hive://secret/gone"],"k":"hive://secret/a"}"#,
        &["a", "gone"],
        Err("gone"),
    );
    check_secrets(r#"{"k":"hive://secret/"}"#, &[], Err(""));
    check_secrets(r#"{"k":"hive://secret/a/b"}"#, &[], Err("a/b"));
    check_secrets(r#"{"k":"hive://secret/a#b"}"#, &[], Err("a#b"));
}
