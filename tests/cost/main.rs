//! The cost of a call as a number: runs each scenario of the table on the real adapters, over the emulator that
//! `scripts/aws/with-emulator` starts, and counts every request on the wire.

mod bill;
mod capabilities;
mod process;
mod receiver;
mod report;
mod rows;
mod stack;

use std::path::PathBuf;
use std::process::ExitCode;

use annex_tests::repository;
use anyhow::Context as _;

const USAGE: &str = "\
usage: annex-cost [--json | --accept]
  without an option  the table for people
  --json             one line of JSON
  --accept           writes the figures into tests/cost/figures.json and docs/cost.md";

/// Where the table of the page begins and ends.
const MARKS: [&str; 2] = ["<!-- figures: scripts/cost --accept -->\n", "<!-- end of figures -->\n"];

fn figures_path() -> PathBuf {
    repository::root().join("tests/cost/figures.json")
}

fn page_path() -> PathBuf {
    repository::root().join("docs/cost.md")
}

/// The page with this table.
fn page_with(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(MARKS[0])?;
    let (_, after) = rest.split_once(MARKS[1])?;
    Some(format!("{before}{}{table}{}{after}", MARKS[0], MARKS[1]))
}

async fn run(option: Option<&str>) -> anyhow::Result<()> {
    let bills = rows::table().await?;
    let figures = report::figures(&bills);
    match option {
        Some("--json") => println!("{}", serde_json::Value::from(figures)),
        Some(_) => {
            std::fs::write(figures_path(), report::committed(&figures))?;
            let page = std::fs::read_to_string(page_path())?;
            let page = page_with(&page, &report::markdown(&figures));
            std::fs::write(page_path(), page.context("docs/cost.md has no marks")?)?;
        }
        None => println!("{}", report::text(&bills, &rows::extras().await?)),
    }
    Ok(())
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = match arguments.as_slice() {
        [] => None,
        [one] if one == "--json" || one == "--accept" => Some(one.as_str()),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(option).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn committed() -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(figures_path()).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_each_scenario_costs_is_what_was_committed() {
        if !annex_aws::testing::is_available() {
            return;
        }
        let found = report::committed(&report::figures(&rows::table().await.unwrap()));
        let expected = report::committed(&committed());
        assert!(
            found == expected,
            "the cost of a call has changed; if it should have: scripts/cost --accept\n\
             committed:\n{expected}found:\n{found}"
        );
    }

    #[test]
    fn the_page_has_the_committed_figures() {
        let page = std::fs::read_to_string(page_path()).unwrap();
        let expected = page_with(&page, &report::markdown(&committed()));
        assert!(expected == Some(page), "docs/cost.md has other figures: scripts/cost --accept");
    }
}
