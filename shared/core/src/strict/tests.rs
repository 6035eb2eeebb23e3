use super::*;

#[derive(Debug, PartialEq, Eq)]
struct Request {
    name: String,
    count: Option<i64>,
    parts: Vec<String>,
}

fn request(fields: &mut Fields<'_>) -> Option<Request> {
    let name = fields.required("name", |it| it.text(1..=3));
    let count = fields.optional("count", |it| it.whole(1..=10));
    let parts = fields.optional("parts", |it| {
        it.elements(2, |it| it.object(|part| part.required("text", |it| it.any_text())))
    });
    Some(Request { name: name?, count: count?, parts: parts?.unwrap_or_default() })
}

#[track_caller]
fn check(text: &str, expected: Result<(&str, Option<i64>, &[&str]), &str>) {
    let read = read(text.as_bytes(), request).map_err(|fault| fault.to_string());
    let expected = expected.map(|(name, count, parts)| Request {
        name: name.into(),
        count,
        parts: parts.iter().map(|&part| part.into()).collect(),
    });
    assert_eq!(read, expected.map_err(str::to_owned), "{text}");
}

#[test]
fn fields_are_read_by_their_names() {
    check(r#" {"name":"a"} "#, Ok(("a", None, &[])));
    check(r#"{"count":10.0,"name":"\u0061bc"}"#, Ok(("abc", Some(10), &[])));
    check(r#"{"name":"a","parts":[{"text":""},{"text":"x"}]}"#, Ok(("a", None, &["", "x"])));
}

// covers: AL-029
#[test]
fn text_that_is_no_json_is_said_to_be_none() {
    for text in ["{", "", "nothing", "{\"name\":\"a\"} x", "{'name':1}"] {
        check(text, Err("request is not JSON"));
    }
    assert_eq!(read(b"{\"name\":\"\xff\"}", request), Err(RequestFault::NotJson));
}

// covers: AL-030, AL-031
#[test]
fn every_problem_is_named_by_its_path() {
    check(
        r#"{"name":7,"count":11}"#,
        Err("invalid request: name: expected a string; \
             count: expected a whole number from 1 to 10"),
    );
    check(r#"{"count":1}"#, Err("invalid request: name: is missing"));
    check("[]", Err("invalid request: request: expected an object"));
    check(r#"{"name":null}"#, Err("invalid request: name: expected a string"));
    check(
        r#"{"name":"a","parts":[{"text":"x"},{"text":1}]}"#,
        Err("invalid request: parts.1.text: expected a string"),
    );
    check(
        r#"{"name":"a","parts":[{},{},{}]}"#,
        Err("invalid request: parts: expected at most 2 elements"),
    );
    check(
        r#"{"name":"a","name":"b"}"#,
        Err(r#"invalid request: request: the key "name" stands twice"#),
    );
}

// covers: AL-032, AL-034
#[test]
fn unknown_field_is_refused_at_any_depth() {
    let unknown = "unknown field (the app may be built with a newer SDK than this platform runs)";
    check(r#"{"name":"a","more":1}"#, Err(&format!("invalid request: more: {unknown}")));
    check(
        r#"{"name":"a","parts":[{"text":"x","more":{}}]}"#,
        Err(&format!("invalid request: parts.0.more: {unknown}")),
    );
}

#[test]
fn what_a_refusal_shows_is_bounded() {
    let many: Vec<_> = (0..25).map(|n| format!("\"x{n}\":1")).collect();
    let refused = read(format!("{{\"name\":\"a\",{}}}", many.join(",")).as_bytes(), request);
    let text = refused.unwrap_err().to_string();
    assert_eq!(text.matches("unknown field").count(), PROBLEMS_SHOWN_MAX);
    assert!(text.ends_with("; and 5 more"), "{text}");
    let long = format!("{{\"name\":\"a\",\"{}\":1}}", "y".repeat(10_000));
    assert!(read(long.as_bytes(), request).unwrap_err().to_string().len() < 400);
}

#[test]
fn whole_numbers_are_read_however_they_are_spelled() {
    for (raw, expected) in [
        ("7", Some(7)),
        ("7.0", Some(7)),
        ("7e1", Some(70)),
        ("-0", Some(0)),
        ("7.5", None),
        ("1e400", None),
        ("9007199254740993.0", Some(9_007_199_254_740_992)),
        ("1e17", None),
        ("\"7\"", None),
        ("true", None),
    ] {
        assert_eq!(whole(raw), expected, "{raw}");
    }
}

#[test]
fn lengths_are_bounded_at_both_ends() {
    check(r#"{"name":"abc"}"#, Ok(("abc", None, &[])));
    check(r#"{"name":"abcd"}"#, Err("invalid request: name: expected 1 to 3 characters"));
    check(r#"{"name":""}"#, Err("invalid request: name: expected 1 to 3 characters"));
    check(
        r#"{"name":"a","count":0}"#,
        Err("invalid request: count: expected a whole number from 1 to 10"),
    );
}
