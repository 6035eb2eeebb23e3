//! The size of an item, as DynamoDB counts it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// An item as DynamoDB's JSON spells it: `{"pk": {"S": "a"}}`.
pub(super) type Item = Map<String, Value>;

/// Names and values, in bytes.
pub(super) fn item_bytes(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + value_bytes(value)).sum()
}

fn value_bytes(value: &Value) -> usize {
    let Some((kind, value)) = value.as_object().and_then(|value| value.iter().next()) else {
        return 0;
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let each = |of: &dyn Fn(&Value) -> usize| {
        value.as_array().into_iter().flatten().map(of).sum::<usize>()
    };
    match kind.as_str() {
        "S" => text(value).len(),
        "N" => number_bytes(&text(value)),
        "B" => binary_bytes(value),
        "BOOL" | "NULL" => 1,
        "SS" => each(&|value| text(value).len()),
        "NS" => each(&|value| number_bytes(&text(value))),
        "BS" => each(&binary_bytes),
        "L" => 3 + each(&|value| 1 + value_bytes(value)),
        "M" => {
            let members = value.as_object().into_iter().flatten();
            3 + members.map(|(name, value)| 1 + name.len() + value_bytes(value)).sum::<usize>()
        }
        _ => 0,
    }
}

fn binary_bytes(value: &Value) -> usize {
    STANDARD.decode(value.as_str().unwrap_or_default()).map_or(0, |bytes| bytes.len())
}

/// A byte for two significant digits, and one; another one where it is negative.
fn number_bytes(number: &str) -> usize {
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_start_matches('0').trim_end_matches('0').len();
    digits.div_ceil(2) + 1 + usize::from(number.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_item_is_as_large_as_its_names_and_values() {
        for (item, bytes) in [
            (json!({}), 0),
            (json!({"pk": {"S": "é"}}), 4),
            (json!({"n": {"N": "0"}}), 2),
            (json!({"n": {"N": "1700000000000"}}), 3),
            (json!({"n": {"N": "-123"}}), 5),
            (json!({"b": {"B": "AAEC"}}), 4),
            (json!({"t": {"BOOL": true}}), 2),
            (json!({"l": {"L": [{"S": "ab"}, {"NULL": true}]}}), 9),
            (json!({"m": {"M": {"a": {"S": "b"}}}}), 7),
        ] {
            assert_eq!(item_bytes(item.as_object().unwrap()), bytes, "{item}");
        }
    }
}
