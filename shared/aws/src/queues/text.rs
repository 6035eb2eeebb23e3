//! The characters that SQS takes.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether SQS takes this character: #x9, #xA, #xD, #x20 to #xD7FF, #xE000 to #xFFFD, #x10000 to #x10FFFF.
const fn is_taken(char: char) -> bool {
    matches!(char, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// The same JSON text without a character that SQS refuses: it is escaped as JSON escapes it. Such a character can only
/// stand inside a string of the text, so the text's value stays the same.
pub(crate) fn sendable(json: String) -> String {
    match escaped(&json) {
        Cow::Borrowed(_) => json,
        Cow::Owned(text) => text,
    }
}

fn escaped(json: &str) -> Cow<'_, str> {
    let Some(first) = json.find(|char| !is_taken(char)) else { return Cow::Borrowed(json) };
    let mut out = String::with_capacity(json.len() + 16);
    out.push_str(&json[..first]);
    for char in json[first..].chars() {
        if is_taken(char) {
            out.push(char);
        } else {
            write!(out, "\\u{:04x}", u32::from(char)).expect("a String takes any text");
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sqs_refuses_is_escaped_and_the_rest_stays() {
        for (text, expected) in [
            ("\"plain \t\n\r ~\"", "\"plain \t\n\r ~\""),
            (
                "\"\u{7f}\u{80}\u{9f}\u{fffd}\u{e000}\u{d7ff}\"",
                "\"\u{7f}\u{80}\u{9f}\u{fffd}\u{e000}\u{d7ff}\"",
            ),
            ("\"\u{10000}\u{1fffe}\u{10ffff}\"", "\"\u{10000}\u{1fffe}\u{10ffff}\""),
            ("\"a\u{fffe}b\u{ffff}\"", "\"a\\ufffeb\\uffff\""),
            ("\u{0}\u{1f}\u{b}", "\\u0000\\u001f\\u000b"),
        ] {
            assert_eq!(sendable(text.to_owned()), expected);
        }
    }

    #[test]
    fn an_escaped_text_has_the_same_value() {
        let text = "{\"k\u{ffff}\":[\"\u{fffe}\",\"\\\\\u{fffe}\"]}";
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&sendable(text.to_owned())), value(text));
    }
}
