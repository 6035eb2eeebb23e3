//! Prints how many clauses of each contract a test checks, and which ones none does. See `support/clauses.rs`.

use std::process::ExitCode;

use annex_tests::{clauses, repository};
use serde_json::{Map, Value};

fn main() -> ExitCode {
    let (named, mut faults) = clauses::named(&repository::files());
    faults.extend(clauses::unknown(&named));
    let mut summary = Map::new();
    for found in clauses::coverage(&named) {
        let covered = found.total - found.missing.len();
        println!("{}: {covered} of {} clauses have a case", found.prefix, found.total);
        // Of a contract that nothing speaks yet, the number says enough.
        if covered > 0 {
            found.missing.iter().for_each(|id| println!("  {id} has none"));
        }
        summary.insert(found.prefix.to_owned(), found.json());
    }
    for fault in &faults {
        eprintln!("error: {fault}");
    }
    println!("{}", Value::Object(summary));
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
