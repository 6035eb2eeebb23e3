//! What the data of a record must be.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Hive, RULES, SECRET, check_size};
use crate::fault::{Code, Fault, Outcome};
use crate::limits::JSON_DEPTH_MAX;

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

/// A JSON object of bounded depth.
fn check_object(data: &str) -> Outcome<()> {
    if JSON_DEPTH_MAX < depth(data) {
        return Err(invalid(format!("is deeper than {JSON_DEPTH_MAX} levels")));
    }
    serde_json::from_str::<IgnoredAny>(data)
        .map_err(|error| invalid(format!("is no JSON: {error}")))?;
    if data.trim_ascii_start().starts_with('{') {
        return Ok(());
    }
    Err(Fault::new(Code::BadRequest, "the data of a record is not an object"))
}

fn invalid(what: String) -> Fault {
    Fault::new(Code::InvalidJson, format!("the data of a record {what}"))
}

/// How deep the containers of a JSON text are nested.
fn depth(json: &str) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                now += 1;
                most = most.max(now);
            }
            b'}' | b']' => now = now.saturating_sub(1),
            _ => {}
        }
    }
    most
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

fn check_rule(_data: &str) -> Outcome<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hive::EXTENSION_CONFIG;
    use crate::limits::HIVE_DATA_BYTES_MAX;

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
        ] {
            assert_eq!(refused(EXTENSION_CONFIG, &data), code, "{data:.60}");
        }
    }

    #[test]
    fn a_secret_is_a_text_and_a_refusal_does_not_quote_it() {
        assert_eq!(refused(SECRET, r#"{"secret":"s"}"#), None);
        for bad in [r#"{"secret":7731}"#, "{}", r#"{"secret":null}"#, r#"{"secret":"\ud800"}"#] {
            assert_eq!(refused(SECRET, bad), Some(Code::BadRequest), "{bad}");
        }
        assert!(!check(SECRET, r#"{"secret":7731}"#).unwrap_err().message.contains("7731"));
    }
}
