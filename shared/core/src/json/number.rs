//! Numbers as text.

use std::borrow::Cow;

/// The same JSON text, with a point in every number that has an exponent: `1e16` becomes `1.0e16`.
///
/// Go extensions read a number without a point as an integer and refuse the whole message over an exponent. All else
/// stays byte for byte, integers beyond 64 bits too: they have no other spelling of the same value.
pub fn go_safe(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b'-' | b'0'..=b'9' => {
                let start = at;
                while let Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E') = bytes.get(at) {
                    at += 1;
                }
                if let Some(point) = missing_point(&bytes[start..at]) {
                    out.push_str(&text[copied..start + point]);
                    out.push_str(".0");
                    copied = start + point;
                }
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Where a point is missing: before an exponent that follows no point.
fn missing_point(number: &[u8]) -> Option<usize> {
    let first = number.iter().position(|byte| matches!(byte, b'.' | b'e' | b'E'))?;
    (number[first] != b'.' && first > 0).then_some(first)
}

/// Behind the closing quote of the string that opens at `at`.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    at += 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}

/// Whether a checked JSON number has an integral value: `3`, `3.0`, `1e2` and `12.50e1` have, `3.5` and `1e-1` have not.
pub fn is_integral(number: &str) -> bool {
    let (mantissa, exponent) = match number.find(['e', 'E']) {
        Some(at) => (&number[..at], &number[at + 1..]),
        None => (number, "0"),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes()).filter(u8::is_ascii_digit);
    if digits().all(|digit| digit == b'0') {
        return true;
    }
    let zeros = digits().rev().take_while(|&digit| digit == b'0').count();
    // An exponent of more digits than fit is far beyond any mantissa that a text can hold, either way.
    let exponent: i64 = exponent
        .trim_start_matches('+')
        .parse()
        .unwrap_or(if exponent.starts_with('-') { i64::MIN } else { i64::MAX });
    let behind_point = fraction.len() as i64 - zeros as i64;
    behind_point <= exponent
}
