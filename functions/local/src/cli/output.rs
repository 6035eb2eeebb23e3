//! What commands print: tables for people, or exactly what the platform answered.

use std::io::{self, Write};

use annex_core::time::Timestamp;
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::{Map, Value};

use super::error::Error;

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// Exactly what the API answered
    Json,
}

/// A column of a table: its title, and the member of a row that it shows.
pub type Column = (&'static str, &'static str);

/// Prints a line on standard output. A reader that has seen enough, such as `head`, is no error.
pub fn line(text: &str) -> Result<(), Error> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Prints bytes as they are, and a line end where they have none.
pub fn raw(bytes: &[u8]) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    let end: &[u8] = if bytes.ends_with(b"\n") { b"" } else { b"\n" };
    match out.write_all(bytes).and_then(|()| out.write_all(end)).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// The rows of a list, or of a map whose keys become the member `name` of each row.
pub fn rows(value: &Value) -> Vec<Map<String, Value>> {
    match value {
        Value::Array(list) => list.iter().map(row).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| {
                let mut row = row(value);
                row.insert("name".to_owned(), Value::String(name.clone()));
                row
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn row(value: &Value) -> Map<String, Value> {
    match value {
        Value::Object(row) => row.clone(),
        other => Map::from_iter([("value".to_owned(), other.clone())]),
    }
}

/// Copies members of the object `block` of a row to the row itself.
pub fn lift(row: &mut Map<String, Value>, block: &str, members: &[&str]) {
    for member in members {
        let found = row.get(block).and_then(|block| block.get(member)).cloned();
        row.insert((*member).to_owned(), found.unwrap_or_default());
    }
}

/// A table with one line for each row; `none` where there are no rows.
pub fn table(rows: &[Map<String, Value>], columns: &[Column], none: &str) -> String {
    if rows.is_empty() {
        return none.to_owned();
    }
    let mut table = plain();
    table.set_header(columns.iter().map(|(title, _)| *title));
    for row in rows {
        table.add_row(columns.iter().map(|(_, name)| cell(name, row.get(*name))));
    }
    trim(&table)
}

/// A table with one line for each member of an object.
pub fn record(value: &Value) -> String {
    let Value::Object(members) = value else { return cell("", Some(value)) };
    let mut table = plain();
    for (name, value) in members {
        table.add_row([name.clone(), cell(name, Some(value))]);
    }
    trim(&table)
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// The text of a table without the blanks around its lines.
fn trim(table: &Table) -> String {
    let lines: Vec<_> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    let indent = lines.iter().map(|l| l.len() - l.trim_start().len()).min().unwrap_or(0);
    lines.iter().map(|line| &line[indent.min(line.len())..]).collect::<Vec<_>>().join("\n")
}

/// What a cell shows. Members whose name says that they are times become readable.
fn cell(name: &str, value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::Number(number)) if is_time(name) => match number.as_i64() {
            Some(0) | None => number.to_string(),
            Some(at) => moment(at).to_string(),
        },
        Some(Value::String(text)) => printable(text),
        Some(Value::Array(list)) if list.iter().all(Value::is_string) => {
            let texts: Vec<_> = list.iter().filter_map(Value::as_str).map(printable).collect();
            texts.join(", ")
        }
        Some(other) => printable(&other.to_string()),
    }
}

fn is_time(name: &str) -> bool {
    matches!(name, "ts" | "from" | "to" | "created" | "expiry" | "last_mod")
        || name.ends_with("_at")
        || name.ends_with("_ts")
}

/// A point in time given in seconds or in milliseconds: before the year 5138 the size tells which.
fn moment(at: i64) -> Timestamp {
    const MILLIS_FROM: i64 = 100_000_000_000;
    if at < MILLIS_FROM { Timestamp::from_secs(at) } else { Timestamp::from_millis(at) }
}

/// `text` without characters that would steer the terminal: much of what is shown was written by others.
pub fn printable(text: &str) -> String {
    let safe = |c: char| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c };
    text.chars().map(safe).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const COLUMNS: &[Column] = &[("NAME", "name"), ("MADE", "created_at"), ("PERMS", "priv")];

    #[track_caller]
    fn check(value: &Value, expected: &str) {
        assert_eq!(table(&rows(value), COLUMNS, "nothing"), expected);
    }

    #[test]
    fn lists_and_maps_become_lines_below_titles() {
        let time = 1_700_000_000;
        check(
            &json!([{"name": "a", "created_at": time, "priv": ["x", "y"]}, {"name": "longer"}]),
            "NAME    MADE                      PERMS\na       2023-11-14T22:13:20.000Z  x, y\nlonger",
        );
        check(
            &json!({"k": {"created_at": time * 1000_i64}}),
            "NAME  MADE                      PERMS\nk     2023-11-14T22:13:20.000Z",
        );
    }

    #[test]
    fn nothing_is_said_in_words() {
        check(&json!([]), "nothing");
        check(&json!({}), "nothing");
    }

    #[test]
    fn records_show_a_member_a_line() {
        let value = json!({"id": "i", "status": "queued", "data": {"a": [1]}});
        assert_eq!(record(&value), "id      i\nstatus  queued\ndata    {\"a\":[1]}");
    }

    #[test]
    fn characters_that_steer_a_terminal_are_replaced() {
        assert_eq!(printable("a\u{1b}[2Jb\u{9b}c\td\né"), "a\u{fffd}[2Jb\u{fffd}c\td\né");
    }
}
