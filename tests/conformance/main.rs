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
    trials.extend(crash_trials());
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

/// Every scenario of `crashes.json`, with the process dying at each of its commits.
fn crash_trials() -> Vec<Trial> {
    let scenarios = match case::read(include_str!("crashes.json")) {
        Ok(scenarios) => scenarios,
        Err(error) => {
            let failed = move || Err(Failed::from(error));
            return vec![Trial::test("crashes.json can be read", failed)];
        }
    };
    let trial = |(scenario, backend): (case::Case, Backend)| {
        let name = format!("crash: {} [{}]", scenario.name, backend.name());
        Trial::test(name, move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
            let points = runtime.block_on(harness::crash::run(&scenario, backend))?;
            println!("{} [{}]: {points} crash points", scenario.name, backend.name());
            Ok(())
        })
    };
    let pairs = scenarios
        .into_iter()
        .flat_map(|scenario| Backend::ALL.iter().map(move |&backend| (scenario.clone(), backend)));
    pairs.map(trial).collect()
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
