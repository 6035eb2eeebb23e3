//! What the data of a record must be.

use serde::Deserialize;

use super::{Hive, RULES, SECRET, check_size};
use crate::fault::{Code, Fault, Outcome};
use crate::json;
use crate::rules::Rule;

/// Checks the data of a record: a JSON object, not too large nor too deep, and what its hive asks for.
///
/// Whether an extension takes a configuration is asked beside this, by [`crate::call::Calls::validate_config`].
pub fn check(hive: &Hive, data: &str) -> Outcome<()> {
    check_size(data)?;
    check_object(data)?;
    if *hive == *SECRET {
        check_secret(data)?;
    } else if *hive == *RULES {
        check_rule(data)?;
    }
    Ok(())
}

/// A JSON object of bounded depth; what is in it travels unchanged, doubled keys too.
fn check_object(data: &str) -> Outcome<()> {
    json::check(data.as_bytes()).map_err(|fault| {
        Fault::new(Code::InvalidJson, format!("the data of a record is refused: {fault}"))
    })?;
    if data.trim_ascii_start().starts_with('{') {
        return Ok(());
    }
    Err(Fault::new(Code::BadRequest, "the data of a record is not an object"))
}

fn check_secret(data: &str) -> Outcome<()> {
    #[derive(Deserialize)]
    struct Secret {
        #[serde(rename = "secret")]
        _secret: String,
    }
    serde_json::from_str::<Secret>(data).map(|_| ()).map_err(|_| {
        // The parser's text could quote the value.
        Fault::new(Code::BadRequest, r#"a secret is {"secret": "<text>"}"#)
    })
}

fn check_rule(data: &str) -> Outcome<()> {
    Rule::parse(data)
        .map(|_| ())
        .map_err(|why| Fault::new(Code::BadRequest, format!("the rule is refused: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hive::EXTENSION_CONFIG;
    use crate::limits::{HIVE_DATA_BYTES_MAX, JSON_DEPTH_MAX};

    fn refused(hive: &Hive, data: &str) -> Option<Code> {
        check(hive, data).err().map(|fault| fault.code)
    }

    #[test]
    fn data_is_an_object_of_bounded_depth_and_size() {
        let nested = |levels: usize| {
            format!("{{\"a\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1))
        };
        let sized = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
        for (data, code) in [
            ("{}".to_owned(), None),
            (r#"{"a":[1e999,123456789012345678901234567890],"a":"]}"}"#.to_owned(), None),
            (" \n{\"a\":\"\\\"{[\"}".to_owned(), None),
            (nested(JSON_DEPTH_MAX), None),
            (nested(JSON_DEPTH_MAX + 1), Some(Code::InvalidJson)),
            (sized(HIVE_DATA_BYTES_MAX), None),
            (sized(HIVE_DATA_BYTES_MAX + 1), Some(Code::TooLarge)),
            ("[]".to_owned(), Some(Code::BadRequest)),
            ("null".to_owned(), Some(Code::BadRequest)),
            (String::new(), Some(Code::InvalidJson)),
            ("{".to_owned(), Some(Code::InvalidJson)),
            ("{}{}".to_owned(), Some(Code::InvalidJson)),
            ("{\"a\":\"\u{1}\"}".to_owned(), Some(Code::InvalidJson)),
            (r#"{"a":"\ud800"}"#.to_owned(), Some(Code::InvalidJson)),
            (r#"{"a":NaN}"#.to_owned(), Some(Code::InvalidJson)),
        ] {
            assert_eq!(refused(EXTENSION_CONFIG, &data), code, "{data:.60}");
        }
    }

    #[test]
    fn a_secret_is_a_text_and_a_refusal_does_not_quote_it() {
        assert_eq!(refused(SECRET, r#"{"secret":"s"}"#), None);
        for bad in [r#"{"secret":7731}"#, "{}", r#"{"secret":null}"#, r#"{"secret":["s"]}"#] {
            assert_eq!(refused(SECRET, bad), Some(Code::BadRequest), "{bad}");
        }
        assert!(!check(SECRET, r#"{"secret":7731}"#).unwrap_err().message.contains("7731"));
    }

    #[test]
    fn a_rule_is_parsed_when_it_is_written() {
        // LC-127
        let rule = r#"{"detect":{"op":"exists","path":"event/A"},"respond":[{"action":"extension request",
            "extension name":"e","extension action":"a","extension request":{}}]}"#;
        assert_eq!(refused(RULES, rule), None);
        let fault = check(RULES, r#"{"detect":{"op":"nope"},"respond":[]}"#).unwrap_err();
        assert_eq!(fault.code, Code::BadRequest);
        assert!(fault.message.starts_with("the rule is refused: "), "{}", fault.message);
    }
}
