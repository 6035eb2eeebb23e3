//! The two JSON texts of a token: its header and its claims.

use std::borrow::Cow;
use std::collections::HashSet;

use annex_core::json::{self, Container, JsonFault, Object, Scanner, Token};

use super::JwtAlgorithm;

/// The claims that may be text relative to the signing time (AL-352).
const TIMES: [&str; 3] = ["iat", "nbf", "exp"];

/// The greatest number of seconds that every reader of JSON reads exactly: 2^53 - 1.
const SECONDS_MAX: u64 = 9_007_199_254_740_991;

/// The header: `alg`, then the members that the request gives, which may not set it (AL-355, AL-356).
pub(super) fn header(given: &str, algorithm: JwtAlgorithm) -> Result<String, String> {
    let problem = |problem: &dyn std::fmt::Display| format!("jwtHeaders: {problem}");
    let given = object(given).map_err(|fault| problem(&fault))?;
    if given.contains("alg") {
        return Err(problem(&"alg may not be set"));
    }
    check_extensions(&given).map_err(|text| problem(&text))?;
    let mut header = Object::new();
    header.insert_text("alg", algorithm.name());
    for (name, value) in given.iter() {
        header.insert(name, value).map_err(|fault| problem(&fault))?;
    }
    Ok(header.to_json())
}

/// Members that change what is signed, or that a reader must understand: the payload is always signed as base64url
/// (RFC 7797), and no other extension is carried out here.
fn check_extensions(header: &Object) -> Result<(), &'static str> {
    let b64 = header.get("b64");
    if b64.is_some_and(|raw| raw != "true") {
        return Err("b64 may only be true");
    }
    match header.get("crit") {
        None => Ok(()),
        Some("[\"b64\"]") if b64.is_some() => Ok(()),
        Some(_) => Err("crit may only name b64, and only where b64 is set"),
    }
}

/// The claims as they are given (AL-352), those of a time as seconds since 1970.
pub(super) fn payload(given: &str, now: i64) -> Result<String, String> {
    let mut claims = object(given).map_err(|fault| format!("payload: {fault}"))?;
    for name in TIMES {
        let Some(raw) = claims.get(name) else { continue };
        if raw.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
            continue;
        }
        let seconds = json::text(raw).and_then(|text| seconds(&text, now)).ok_or_else(|| {
            format!(
                "payload: {name}: expected a number, or text such as \"now\", \"5m\" or \"-30s\""
            )
        })?;
        claims
            .insert(name, &seconds.to_string())
            .map_err(|fault| format!("payload: {name}: {fault}"))?;
    }
    Ok(claims.to_json())
}

/// Seconds since 1970 of a text relative to `now`: `now`, or whole seconds, minutes, hours or days to add, or with a
/// minus sign to subtract (AL-353, AL-354). `None` for any other text, and for a time beyond [`SECONDS_MAX`].
fn seconds(text: &str, now: i64) -> Option<i64> {
    if text == "now" {
        return Some(now);
    }
    let (sign, length) = match text.strip_prefix('-') {
        Some(length) => (-1, length),
        None => (1, text),
    };
    let units = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)];
    let (digits, unit) = units
        .iter()
        .find_map(|(letter, unit)| length.strip_suffix(*letter).map(|digits| (digits, *unit)))?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let length: i64 = digits.parse().ok()?;
    let seconds = now.checked_add(length.checked_mul(sign * unit)?)?;
    (seconds.unsigned_abs() <= SECONDS_MAX).then_some(seconds)
}

/// An object as `JSON.stringify` writes it: no white space, and nothing escaped that need not be. Numbers keep their
/// spelling. No text at all stands for no members.
fn object(given: &str) -> Result<Object, String> {
    if given.is_empty() {
        return Ok(Object::new());
    }
    compact(given).and_then(|text| Object::parse(&text)).map_err(|fault| match fault {
        // A key can be a secret by now, of which a piece would not be known as one.
        JsonFault::DoubledKey { .. } => "a key stands twice".to_owned(),
        fault => fault.to_string(),
    })
}

/// A JSON text in its compact form. A doubled key is refused at any depth: readers would differ on what was signed.
fn compact(given: &str) -> Result<String, JsonFault> {
    let mut out = String::with_capacity(given.len());
    let mut keys: Vec<HashSet<Cow<'_, str>>> = Vec::new();
    let mut scanner = Scanner::new(given);
    while let Some(token) = scanner.token()? {
        let is_first = out.is_empty() || out.ends_with(['{', '[', ':']);
        if !is_first && !matches!(token, Token::Close(_)) {
            out.push(',');
        }
        match token {
            Token::Open(container) => {
                out.push(if container == Container::Object { '{' } else { '[' });
                keys.push(HashSet::new());
            }
            Token::Close(container) => {
                out.push(if container == Container::Object { '}' } else { ']' });
                keys.pop();
            }
            Token::Key(inner) => {
                let key = json::decode(inner);
                push_string(&mut out, &key);
                out.push(':');
                if let Some(known) = keys.last_mut()
                    && !known.insert(key.clone())
                {
                    return Err(JsonFault::DoubledKey { key: String::new() });
                }
            }
            Token::Text(inner) => push_string(&mut out, &json::decode(inner)),
            Token::Number(raw) | Token::Word(raw) => out.push_str(raw),
        }
    }
    Ok(out)
}

fn push_string(out: &mut String, text: &str) {
    out.push('"');
    json::escape_into(out, text);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: i64 = 1_767_225_600;

    #[track_caller]
    fn check_payload(given: &str, expected: &str) {
        assert_eq!(payload(given, NOW).as_deref(), Ok(expected), "{given}");
    }

    // covers: AL-352
    #[test]
    fn claims_keep_their_order_and_the_spelling_of_their_numbers() {
        check_payload(
            r#"{"zebra":1,"alpha":2,"2":3,"1":4}"#,
            r#"{"zebra":1,"alpha":2,"2":3,"1":4}"#,
        );
        let numbers = r#"{"a":1152921506151679042,"b":1e400,"c":-0,"d":0.1000,"e":1E+2}"#;
        check_payload(numbers, numbers);
        check_payload("{}", "{}");
        check_payload("", "{}");
    }

    #[test]
    fn claims_are_written_without_white_space_and_needless_escapes() {
        check_payload(
            " { \"a\" : [ 1 , { } , [ ] ,\n\"x y\" ] ,\t\"b\":{\"c\":null,\"d\":true} }\r\n",
            r#"{"a":[1,{},[],"x y"],"b":{"c":null,"d":true}}"#,
        );
        check_payload(
            r#"{"\u0061":"\u00e9\/\ud83d\ude00\u0022\\\n\u0001\u2028"}"#,
            "{\"a\":\"é/😀\\\"\\\\\\n\\u0001\u{2028}\"}",
        );
        check_payload(r#"{"a":"[","b":":","c":"{"}"#, r#"{"a":"[","b":":","c":"{"}"#);
    }

    // covers: AL-352
    #[test]
    fn times_are_relative_in_three_claims_alone() {
        check_payload(
            r#"{"iat":"now","custom":"5m","nbf":"-30s","sub":"now","exp":"5m","deep":{"exp":"5m"}}"#,
            r#"{"iat":1767225600,"custom":"5m","nbf":1767225570,"sub":"now","exp":1767225900,"deep":{"exp":"5m"}}"#,
        );
        check_payload(r#"{"e\u0078p":"\u0031s"}"#, r#"{"exp":1767225601}"#);
        let numbers = r#"{"iat":1.50,"nbf":-1,"exp":99999999999999999999}"#;
        check_payload(numbers, numbers);
    }

    // covers: AL-353, AL-354
    #[test]
    fn a_time_is_now_or_seconds_minutes_hours_or_days_from_it() {
        for (text, from_now) in [
            ("now", 0),
            ("0s", 0),
            ("-0d", 0),
            ("90s", 90),
            ("5m", 300),
            ("05m", 300),
            ("1h", 3_600),
            ("2d", 172_800),
            ("-30s", -30),
            ("-1d", -86_400),
            ("-40000d", -3_456_000_000),
        ] {
            assert_eq!(seconds(text, NOW), Some(NOW + from_now), "{text}");
        }
    }

    // covers: AL-354
    #[test]
    fn any_other_time_is_refused() {
        for text in [
            "", "s", "-", "-m", "5", "-5", "tomorrow", "Now", "-now", "now+5m", "5M", "5w", "5ms",
            "1.5h", "1e3s", "+5m", "--5m", "- 5m", "5 m", " 5m", "5m ", "５m", "0x5s", "1h30m",
            "é",
        ] {
            assert_eq!(seconds(text, NOW), None, "{text}");
        }
        for raw in ["null", "true", "[]", "{}", "\"\""] {
            let fault = payload(&format!("{{\"nbf\":{raw}}}"), NOW).unwrap_err();
            let text =
                "payload: nbf: expected a number, or text such as \"now\", \"5m\" or \"-30s\"";
            assert_eq!(fault, text, "{raw}");
        }
    }

    #[test]
    fn a_time_beyond_what_every_reader_reads_exactly_is_refused() {
        assert_eq!(seconds("9007199254740991s", 0), Some(9_007_199_254_740_991));
        assert_eq!(seconds("9007199254740992s", 0), None);
        assert_eq!(seconds("-9007199254740991s", 0), Some(-9_007_199_254_740_991));
        for text in ["9223372036854775807d", "-9223372036854775807s", "99999999999999999999s"] {
            assert_eq!(seconds(text, NOW), None, "{text}");
        }
    }

    #[test]
    fn a_payload_that_is_no_object_or_has_a_doubled_key_is_refused() {
        for (given, problem) in [
            ("[]", "payload: not a JSON object"),
            ("\"x\"", "payload: not a JSON object"),
            ("{", "payload: not valid JSON: the text ends early"),
            ("{}{", "payload: not valid JSON at byte 2"),
            (" ", "payload: not valid JSON: the text ends early"),
            (r#"{"a":1,"\u0061":2}"#, "payload: a key stands twice"),
            (r#"{"a":[{"b":1,"b":1}]}"#, "payload: a key stands twice"),
            (r#"{"a":"\ud800"}"#, "payload: a lone surrogate escape at byte 6"),
        ] {
            assert_eq!(payload(given, NOW), Err(problem.to_owned()), "{given}");
        }
        check_payload(
            r#"{"a":{"b":1},"c":{"b":[{"b":1},{"b":1}]}}"#,
            r#"{"a":{"b":1},"c":{"b":[{"b":1},{"b":1}]}}"#,
        );
    }

    #[track_caller]
    fn check_header(given: &str, expected: Result<&str, &str>) {
        let header = header(given, JwtAlgorithm::Es512);
        assert_eq!(header.as_deref().map_err(String::as_str), expected, "{given}");
    }

    // covers: AL-355
    #[test]
    fn given_members_follow_alg_in_their_order() {
        check_header("", Ok(r#"{"alg":"ES512"}"#));
        check_header("{}", Ok(r#"{"alg":"ES512"}"#));
        check_header(
            r#"{ "typ":"JWT", "kid":"key-1", "n": 1.0, "\u0061":[ ] }"#,
            Ok(r#"{"alg":"ES512","typ":"JWT","kid":"key-1","n":1.0,"a":[]}"#),
        );
    }

    // covers: AL-356
    #[test]
    fn given_members_may_not_set_alg() {
        for given in [r#"{"alg":"none"}"#, r#"{"alg":"ES512"}"#, r#"{"kid":"k","\u0061lg":null}"#] {
            check_header(given, Err("jwtHeaders: alg may not be set"));
        }
        check_header(r#"{"Alg":"none"}"#, Ok(r#"{"alg":"ES512","Alg":"none"}"#));
        check_header("[]", Err("jwtHeaders: not a JSON object"));
        check_header(r#"{"a":1,"a":2}"#, Err("jwtHeaders: a key stands twice"));
    }

    #[test]
    fn extensions_that_would_change_what_is_signed_are_refused() {
        for given in [r#"{"b64":false}"#, r#"{"b64":"true"}"#, r#"{"b64":false,"crit":["b64"]}"#] {
            check_header(given, Err("jwtHeaders: b64 may only be true"));
        }
        for given in [
            r#"{"crit":["b64"]}"#,
            r#"{"crit":[],"b64":true}"#,
            r#"{"crit":"b64","b64":true}"#,
            r#"{"crit":["exp"],"exp":1}"#,
            r#"{"crit":["b64","exp"],"b64":true,"exp":1}"#,
        ] {
            check_header(
                given,
                Err("jwtHeaders: crit may only name b64, and only where b64 is set"),
            );
        }
        check_header(
            r#"{"crit":[ "b64" ],"b64":true}"#,
            Ok(r#"{"alg":"ES512","crit":["b64"],"b64":true}"#),
        );
    }
    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(now|-?[0-9]{0,20}[smhd]?|.{0,8})", now in any::<i64>()) {
            let seconds = seconds(&text, now);
            prop_assert!(text == "now" || seconds.is_none_or(|at| at.unsigned_abs() <= SECONDS_MAX));
            let _ = payload(&text, now);
        }

        // What was written once is written the same again: readers and writers of tokens agree on it.
        #[test]
        fn a_compact_text_stays_as_it_is(key in ".{0,6}", value in ".{0,12}", number in any::<i64>()) {
            let claims = serde_json::json!({ "x": number, "y": [{ key: value }, null, {}, []] });
            let spaced = serde_json::to_string_pretty(&claims).expect("it is JSON");
            let compact = compact(&spaced);
            prop_assert_eq!(compact.as_ref(), Ok(&claims.to_string()));
        }
    }
}
