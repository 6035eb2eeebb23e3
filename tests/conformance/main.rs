//! Conformance: the clauses of the contracts, as data files, on every backend.
//!
//! A trial is named `<clauses> <case> [<backend>]`, so that `cargo test --test conformance LC-074` runs one clause.

mod harness;

use std::path::Path;

use harness::{Backend, case};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for (file, text) in case_files() {
        match case::read(&text) {
            Ok(cases) => trials.extend(cases.into_iter().flat_map(trials_of)),
            Err(error) => trials
                .push(Trial::test(format!("{file} can be read"), move || Err(Failed::from(error)))),
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn trials_of(case: case::Case) -> Vec<Trial> {
    let trial = |&backend: &Backend| {
        let name = format!("{} {} [{}]", case.clauses.join(" "), case.name, backend.name());
        let case = case.clone();
        Trial::test(name, move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
            runtime.block_on(harness::run(&case, backend)).map_err(Failed::from)
        })
    };
    Backend::ALL.iter().map(trial).collect()
}

/// Names and texts of the case files, in order.
fn case_files() -> Vec<(String, String)> {
    let mut files = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/cases");
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).expect("the folder of the cases can be read");
        for entry in entries.filter_map(Result::ok) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "json") {
                let text = std::fs::read_to_string(&path).expect("a case file can be read");
                files.push((path.file_name().unwrap_or_default().to_string_lossy().into(), text));
            }
        }
    }
    files.sort();
    files
}
