//! The table: for people, for programs, and for the page.

use serde_json::{Value, json};

use crate::bill::{Bill, PRICES, PRICES_OF};
use crate::rows::ROWS;

/// One line of JSON for each row, as `scripts/cost --json` prints them and as they are committed.
pub(crate) fn figures(bills: &[Bill]) -> Vec<Value> {
    let figure = |(row, bill): (&crate::rows::Row, &Bill)| {
        json!({
            "scenario": row.scenario,
            "requests": bill.requests(),
            "sends": bill.sends(),
            "write_units": bill.write_units(),
            "read_units": number(bill.read_units()),
            "bytes": bill.bytes(),
            "dollars_per_million": number(bill.data_dollars()),
        })
    };
    ROWS.iter().zip(bills).map(figure).collect()
}

/// A number, whole where it is whole.
fn number(number: f64) -> Value {
    if number.fract() == 0.0 { json!(number as u64) } else { json!(number) }
}

/// The committed form: an array with a line for each row.
pub(crate) fn committed(figures: &[Value]) -> String {
    let lines: Vec<String> = figures.iter().map(|figure| format!("  {figure}")).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

/// The table of the page, from figures.
pub(crate) fn markdown(figures: &[Value]) -> String {
    let mut table = String::from(
        "| scenario | target: requests, write units | requests | of them sends | write units | read units | bytes | dollars per million |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (row, figure) in ROWS.iter().zip(figures) {
        let cell = |name: &str| thousands(&figure[name].to_string());
        table.push_str(&format!(
            "| {} | {}; {} | {} | {} | {} | {} | {} | {} |\n",
            row.scenario,
            row.requests,
            row.write_units,
            cell("requests"),
            cell("sends"),
            cell("write_units"),
            cell("read_units"),
            cell("bytes"),
            cell("dollars_per_million"),
        ));
    }
    table
}

/// A number with commas: `1,234.5`.
fn thousands(number: &str) -> String {
    let (whole, part) = number.split_once('.').map_or((number, None), |(w, p)| (w, Some(p)));
    let mut out = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if 0 < index && (whole.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    part.map_or(out.clone(), |part| format!("{out}.{part}"))
}

/// The table for people, with the requests by operation and the prices.
pub(crate) fn text(bills: &[Bill], extras: &[(&str, Bill)]) -> String {
    let mut text = line(
        "scenario",
        &["requests", "sends", "WU", "RU", "bytes", "data $", "entry $", "time $"],
    );
    let rows = ROWS.iter().zip(bills).map(|(row, bill)| (row.scenario, bill));
    rows.for_each(|(scenario, bill)| text.push_str(&entry(scenario, bill)));
    text.push_str("\nbeside the table\n");
    extras.iter().for_each(|(scenario, bill)| text.push_str(&entry(scenario, bill)));
    text.push_str(
        "\nWU, RU: billed write and read units. Dollars are for a million times the scenario: data is what tables, queues,\n\
         secrets and blobs bill (the figure of --json); entry is HTTP requests and invocations; time is assumed.\n",
    );
    text.push_str(&format!("\nprices in dollars per million, {PRICES_OF}\n"));
    for price in PRICES {
        text.push_str(&format!("{:>8.3}  {}\n", price.dollars_per_million, price.what));
    }
    text
}

fn entry(scenario: &str, bill: &Bill) -> String {
    let dollars = |dollars: f64| thousands(&format!("{dollars:.3}"));
    let mut text = line(
        scenario,
        &[
            &thousands(&bill.requests().to_string()),
            &thousands(&bill.sends().to_string()),
            &thousands(&bill.write_units().to_string()),
            &thousands(&bill.read_units().to_string()),
            &thousands(&bill.bytes().to_string()),
            &dollars(bill.data_dollars()),
            &dollars(bill.entry_dollars()),
            &dollars(bill.duration_dollars()),
        ],
    );
    for (name, tally) in &bill.operations {
        text.push_str(&format!("    {:>6} {name}", thousands(&tally.requests.to_string())));
        if 0 < tally.messages {
            text.push_str(&format!(", {} messages", thousands(&tally.messages.to_string())));
        }
        text.push('\n');
    }
    if 0 < bill.sqs_taken {
        text.push_str(&format!(
            "    {:>6} SQS requests billed for sends, {} for receives and deletes\n",
            bill.sqs_sent, bill.sqs_taken
        ));
    }
    text
}

fn line(first: &str, cells: &[&str]) -> String {
    let mut line = format!("{first:<56}");
    for cell in cells {
        line.push_str(&format!("{cell:>10}"));
    }
    line + "\n"
}
