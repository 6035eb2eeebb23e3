//! A picture of the table, drawn from the requests that change it: only with it the size of what an update leaves, or
//! a put replaces, is known.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::size::{Item, item_bytes};

/// What stands in each table, by partition and sort key.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    items: HashMap<(String, String, String), Item>,
}

impl Shadow {
    /// The bytes of what stands at a key.
    pub(super) fn bytes(&self, table: &Value, key: &Value) -> usize {
        self.items.get(&place(table, key)).map_or(0, item_bytes)
    }

    /// The bytes of a whole table.
    pub(super) fn table_bytes(&self, table: &Value) -> usize {
        let table = table.as_str().unwrap_or_default();
        let inside = self.items.iter().filter(|((name, ..), _)| name == table);
        inside.map(|(_, item)| item_bytes(item)).sum()
    }

    pub(super) fn put(&mut self, table: &Value, item: &Value) {
        let Some(whole) = item.as_object() else { return };
        self.items.insert(place(table, item), whole.clone());
    }

    pub(super) fn delete(&mut self, table: &Value, key: &Value) {
        self.items.remove(&place(table, key));
    }

    /// What an update makes of what stands there; `write` is the request or the part of a transaction.
    pub(super) fn updated(&self, write: &Value) -> Item {
        let found = self.items.get(&place(&write["TableName"], &write["Key"]));
        let mut item = found.or(write["Key"].as_object()).cloned().unwrap_or_default();
        let old = item.clone();
        let expression = write["UpdateExpression"].as_str().unwrap_or_default();
        let operands = Operands { write, old: &old };
        for (clause, parts) in clauses(expression) {
            for part in parts {
                operands.apply(&clause, &part, &mut item);
            }
        }
        item
    }
}

fn place(table: &Value, key: &Value) -> (String, String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(table), text(&key["pk"]["S"]), text(&key["sk"]["S"]))
}

/// The clauses of an update expression with their parts, cut at the commas that stand in no function.
fn clauses(expression: &str) -> Vec<(String, Vec<String>)> {
    let mut clauses: Vec<(String, Vec<String>)> = Vec::new();
    let mut depth = 0;
    for word in expression.replace(',', " , ").replace('(', " ( ").replace(')', " ) ").split(' ') {
        match (word, clauses.last_mut()) {
            ("", _) => {}
            ("SET" | "REMOVE" | "ADD" | "DELETE", _) => {
                clauses.push((word.to_owned(), vec![String::new()]));
            }
            (",", Some((_, parts))) if depth == 0 => parts.push(String::new()),
            (word, Some((_, parts))) => {
                depth += i32::from(word == "(") - i32::from(word == ")");
                let part = parts.last_mut().expect("a clause begins with a part");
                part.push_str(word);
                part.push(' ');
            }
            (_, None) => {}
        }
    }
    clauses
}

struct Operands<'a> {
    write: &'a Value,
    old: &'a Item,
}

impl Operands<'_> {
    fn name(&self, word: &str) -> String {
        let name = self.write["ExpressionAttributeNames"][word].as_str();
        name.unwrap_or(word).to_owned()
    }

    /// The value of `:v`, `#n`, `if_not_exists ( #n , :v )`, or of a sum of two of them.
    fn value(&self, text: &str) -> Option<Value> {
        if let Some((left, right)) = text.split_once(" + ") {
            return Some(sum(&self.value(left)?, &self.value(right)?));
        }
        let text = text.trim();
        if let Some(inner) = text.strip_prefix("if_not_exists ( ") {
            let (name, other) = inner.trim_end_matches(')').split_once(',')?;
            return self.value(name).or_else(|| self.value(other));
        }
        if text.starts_with(':') {
            return Some(self.write["ExpressionAttributeValues"][text].clone());
        }
        self.old.get(&self.name(text)).cloned()
    }

    fn apply(&self, clause: &str, part: &str, item: &mut Item) {
        match clause {
            "SET" => {
                let Some((name, value)) = part.split_once(" = ") else { return };
                if let Some(value) = self.value(value) {
                    item.insert(self.name(name.trim()), value);
                }
            }
            "REMOVE" => {
                item.remove(&self.name(part.trim()));
            }
            "ADD" => {
                let Some((name, value)) = part.trim().split_once(' ') else { return };
                let (name, zero) = (self.name(name), json!({"N": "0"}));
                if let Some(value) = self.value(value) {
                    let sum = sum(self.old.get(&name).unwrap_or(&zero), &value);
                    item.insert(name, sum);
                }
            }
            _ => {}
        }
    }
}

fn sum(left: &Value, right: &Value) -> Value {
    let number = |value: &Value| -> i128 {
        value["N"].as_str().and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    json!({"N": number(left).saturating_add(number(right)).to_string()})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_is_drawn_as_dynamodb_does_it() {
        let mut shadow = Shadow::default();
        let table = json!("t");
        shadow.put(
            &table,
            &json!({"pk": {"S": "p"}, "sk": {"S": "s"}, "r": {"N": "4"}, "old": {"S": "x"}}),
        );
        let update = json!({
            "TableName": "t",
            "Key": {"pk": {"S": "p"}, "sk": {"S": "s"}},
            "UpdateExpression":
                "SET #d = if_not_exists(#d, :d), #r = if_not_exists(#r, :z) + :o REMOVE #x ADD #c0 :c0, #c1 :c1",
            "ExpressionAttributeNames":
                {"#d": "data", "#r": "r", "#x": "old", "#c0": "c_a, b", "#c1": "c_"},
            "ExpressionAttributeValues": {
                ":d": {"B": "AA=="}, ":z": {"N": "0"}, ":o": {"N": "1"}, ":c0": {"N": "7"}, ":c1": {"N": "-7"},
            },
        });
        let expected = json!({
            "pk": {"S": "p"}, "sk": {"S": "s"}, "r": {"N": "5"}, "data": {"B": "AA=="},
            "c_a, b": {"N": "7"}, "c_": {"N": "-7"},
        });
        assert_eq!(Value::Object(shadow.updated(&update)), expected);
        shadow.delete(&table, &update["Key"]);
        assert_eq!(shadow.updated(&update)["r"], json!({"N": "1"}));
        assert_eq!(shadow.table_bytes(&table), 0);
    }
}
