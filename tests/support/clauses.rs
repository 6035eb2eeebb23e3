//! The clauses of the contracts, and which of them a test checks.
//!
//! A clause is covered by a conformance case that names it, or by a Rust test below a marker comment `// covers: LC-012`.
//! A marker stands directly above the attribute that makes a function a test. A case is an object of a JSON file, or, in
//! a source file of the conformance tests, a call whose first argument names the clauses, if any: `case("CH-041", ..)`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::repository::{File, root};

/// A contract: the start of its clauses' ids, and the name of its table.
pub const CONTRACTS: [(&str, &str); 4] =
    [("LC", "limacharlie"), ("CH", "chaster"), ("AL", "aletheia"), ("SB", "switchboard")];

/// A clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// Its id: `LC-001`.
    pub id: String,
    /// What it is about.
    pub area: String,
    /// Who keeps it: `platform` and `api` are ours.
    pub actor: String,
}

impl Clause {
    /// Whether the platform has to keep it.
    pub fn is_ours(&self) -> bool {
        matches!(self.actor.as_str(), "platform" | "api")
    }
}

/// Where the copy of a contract's clauses lies.
pub fn copy_path(contract: &str) -> String {
    format!("tests/conformance/clauses/{contract}.tsv")
}

/// The table of a contract as its author keeps it, where that is at hand.
pub fn source_table(contract: &str) -> Option<String> {
    let path = root().join("../shared/contracts").join(format!("{contract}.tsv"));
    std::fs::read_to_string(path).ok()
}

/// The clauses of a table: id, area and actor are its first columns; the first line names them.
pub fn read_table(table: &str) -> Vec<Clause> {
    let clause = |line: &str| {
        let mut cells = line.split('\t').map(str::trim);
        let (id, area, actor) = (cells.next()?, cells.next()?, cells.next()?);
        Some(Clause { id: id.to_owned(), area: area.to_owned(), actor: actor.to_owned() })
    };
    table.lines().skip(1).filter_map(clause).collect()
}

/// The clauses of a contract: from its author's table where present, else from the copy.
pub fn clauses(contract: &str) -> Vec<Clause> {
    let table = source_table(contract)
        .or_else(|| std::fs::read_to_string(root().join(copy_path(contract))).ok());
    read_table(&table.unwrap_or_default())
}

/// Ids, each with the places that name it.
pub type Named = BTreeMap<String, BTreeSet<String>>;

/// The ids that conformance cases and markers name, and what is wrong with how they do.
pub fn named(files: &[File]) -> (Named, Vec<String>) {
    let (mut named, mut faults) = (Named::new(), Vec::new());
    for file in files {
        if file.path.starts_with("tests/conformance/cases/") && file.path.ends_with(".json") {
            match serde_json::from_str::<Vec<Value>>(&file.text) {
                Ok(cases) => cases.iter().for_each(|case| of_case(case, &file.path, &mut named)),
                Err(error) => faults.push(format!("{}: {error}", file.path)),
            }
        } else if file.path.ends_with(".rs") {
            of_source(file, &mut named, &mut faults);
            if file.path.starts_with("tests/conformance/") {
                of_rust_cases(file, &mut named, &mut faults);
            }
        }
    }
    (named, faults)
}

fn of_case(case: &Value, path: &str, named: &mut Named) {
    let place = format!("{path}: {}", case["name"].as_str().unwrap_or_default());
    for id in case["clauses"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        named.entry(id.to_owned()).or_default().insert(place.clone());
    }
}

fn of_source(file: &File, named: &mut Named, faults: &mut Vec<String>) {
    let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
    for (number, line) in lines.iter().enumerate() {
        let Some(ids) = line.strip_prefix("// covers:") else { continue };
        let place = format!("{}:{}", file.path, number + 1);
        let below = lines[number + 1..].iter().find(|line| !line.starts_with("//"));
        if !below
            .is_some_and(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
        {
            faults.push(format!("{place}: a marker stands directly above a test"));
        }
        for id in ids.split(',').map(str::trim) {
            named.entry(id.to_owned()).or_default().insert(place.clone());
        }
    }
}

/// What a Rust case is made with: its clauses are the first argument, its name the second.
const MAKERS: [&str; 4] = ["case(", "bare(", "storm(", "at_each("];

/// The cases that are written in Rust, as `case("CH-041 CH-033", "the 121st call of a minute is refused", ..)`.
fn of_rust_cases(file: &File, named: &mut Named, faults: &mut Vec<String>) {
    for maker in MAKERS {
        for (start, _) in file.text.match_indices(maker) {
            let before = file.text[..start].chars().next_back();
            if before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_') {
                continue;
            }
            let mut texts = Texts(&file.text[start + maker.len()..]);
            // What is no text in its place is a call of something else, or the function itself.
            let Some(ids) = texts.next() else { continue };
            let line = file.text[..start].matches('\n').count() + 1;
            let Some(name) = texts.next() else {
                faults.push(format!("{}:{line}: a case has a name", file.path));
                continue;
            };
            for id in ids.split_whitespace() {
                named.entry(id.to_owned()).or_default().insert(format!("{}: {name}", file.path));
            }
        }
    }
}

/// The texts at the start of a list of arguments, without escapes.
struct Texts<'a>(&'a str);

impl<'a> Iterator for Texts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let (text, rest) = self.0.trim_start().strip_prefix('"')?.split_once('"')?;
        self.0 = rest.trim_start().strip_prefix(',').unwrap_or_default();
        Some(text)
    }
}

/// How much of a contract is covered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    /// The start of its ids.
    pub prefix: &'static str,
    /// Our clauses.
    pub total: usize,
    /// Ids of ours that nothing names.
    pub missing: Vec<String>,
}

impl Coverage {
    /// `{"covered", "total", "missing"}`.
    pub fn json(&self) -> Value {
        let covered = self.total - self.missing.len();
        json!({ "covered": covered, "total": self.total, "missing": self.missing })
    }
}

/// The coverage of every contract.
pub fn coverage(named: &Named) -> Vec<Coverage> {
    let of = |(prefix, contract): (&'static str, &str)| {
        let ours: Vec<Clause> = clauses(contract).into_iter().filter(Clause::is_ours).collect();
        let missing = ours.iter().filter(|clause| !named.contains_key(&clause.id));
        let missing = missing.map(|clause| clause.id.clone()).collect();
        Coverage { prefix, total: ours.len(), missing }
    };
    CONTRACTS.into_iter().map(of).collect()
}

/// Ids that are named and that no contract has.
pub fn unknown(named: &Named) -> Vec<String> {
    let known: BTreeSet<String> = CONTRACTS
        .iter()
        .flat_map(|(_, contract)| clauses(contract))
        .map(|clause| clause.id)
        .collect();
    let unknown = named.iter().filter(|(id, _)| !known.contains(*id));
    unknown.map(|(id, places)| format!("{id} in {places:?}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, ids: &[&str], faults: &[&str]) {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        let (named, found) = named(&[file]);
        assert_eq!(named.keys().collect::<Vec<_>>(), ids);
        assert_eq!(found, faults);
    }

    #[test]
    fn a_case_in_rust_names_its_clauses_first() {
        let path = "tests/conformance/capability/rates.rs";
        let text = r#"vec![case("CH-041 CH-033", "the 121st", run), bare( "CH-001",
            "another", run)]"#;
        check(path, text, &["CH-001", "CH-033", "CH-041"], &[]);
        check("shared/core/src/rates.rs", text, &[], &[]);
        check(path, r#"fn case(clauses: &str) {} showcase("CH-001", "x"); case(x)"#, &[], &[]);
        let nameless = "tests/conformance/capability/rates.rs:1: a case has a name";
        check(path, r#"case("CH-001", name, run)"#, &[], &[nameless]);
        check(path, r#"case("", "what the contract leaves open", run)"#, &[], &[]);
    }

    #[test]
    fn a_case_is_named_with_its_place() {
        let path = "tests/conformance/capability/rates.rs".to_owned();
        let text = r#"case("CH-041", "the 121st", run)"#.to_owned();
        let (named, _) = named(&[File { path: path.clone(), text }]);
        assert_eq!(named["CH-041"], BTreeSet::from([format!("{path}: the 121st")]));
    }
}
