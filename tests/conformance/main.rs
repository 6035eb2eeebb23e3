//! Conformance: the clauses of the contracts, as data files, on every backend.
//!
//! A trial is named `<clauses> <case> [<backend>]`, so that `cargo test --test conformance LC-074` runs one clause.

mod capability;
mod harness;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{LazyLock, Mutex};

use harness::crash::Subject;
use harness::{Backend, case};
use libtest_mimic::{Arguments, Failed, Trial};

/// Points that were tried, by subject and backend.
static POINTS: Mutex<BTreeMap<(&str, &str), usize>> = Mutex::new(BTreeMap::new());

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for (file, text) in case_files() {
        match case::read(&text) {
            Ok(cases) => trials.extend(cases.into_iter().flat_map(|case| trials_of(&file, case))),
            Err(error) => trials
                .push(Trial::test(format!("{file} can be read"), move || Err(Failed::from(error)))),
        }
    }
    trials.extend(capability_trials());
    trials.extend(crash_trials());
    let conclusion = libtest_mimic::run(&arguments, trials);
    for ((what, backend), points) in POINTS.lock().expect("no holder of the lock panics").iter() {
        println!("{points} {what} points [{backend}]");
    }
    conclusion.exit();
}

/// Files whose cases run on an emulator too: those that touch the store in ways of their own. The others are about what a
/// message says and how an answer is read, and an emulator does some hundred operations a second.
const ON_DYNAMO: &[&str] = &[
    "changes.json",
    "continuations.json",
    "errors.json",
    "idempotency.json",
    "lifecycle.json",
    "metrics.json",
    "telemetry.json",
];

/// Cases and scenarios that are too long for an emulator. What they ask of the store, shorter ones do too, and the tests
/// in `shared/aws`; and what one machine has of its own, as a disk that fills up, is nothing of DynamoDB's.
const LONG: &[&str] = &[
    "a large call that nobody waits for and that continues twelve times",
    "an update of the day",
    "an organization that is deleted",
    "a full disk refuses a call before it is delivered, and loses none that was accepted",
];

fn trials_of(file: &str, case: case::Case) -> Vec<Trial> {
    let trial = |&backend: &Backend| {
        let name = format!("{} {} [{}]", case.clauses.join(" "), case.name, backend.name());
        let case = case.clone();
        Trial::test(name, move || {
            if !can_run(backend) {
                return Ok(());
            }
            runtime()?.block_on(harness::run(&case, backend)).map_err(Failed::from)
        })
    };
    let short = ON_DYNAMO.contains(&file) && !LONG.contains(&case.name.as_str());
    let runs = |backend: &&Backend| **backend != Backend::Dynamo || short;
    Backend::ALL.iter().filter(runs).map(trial).collect()
}

/// The cases of capability extensions, each on every backend that it is for.
fn capability_trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for case in capability::cases() {
        for &backend in Backend::ALL {
            if backend == Backend::Dynamo && !case.on_dynamo {
                continue;
            }
            let clauses = if case.clauses.is_empty() { "profile" } else { case.clauses };
            let name = format!("{clauses} {} [{}]", case.name, backend.name());
            let run = case.run.clone();
            trials.push(Trial::test(name, move || {
                if can_run(backend) {
                    runtime()?.block_on(run(backend));
                }
                Ok(())
            }));
        }
    }
    trials
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Whether a backend is there. Says in one line where it is not; with `CI=true` that is a failure.
fn can_run(backend: Backend) -> bool {
    backend != Backend::Dynamo || *EMULATOR
}

/// Whether there is an emulator of AWS.
static EMULATOR: LazyLock<bool> = LazyLock::new(annex_aws::testing::is_available);

/// Every scenario of `crashes.json`, with everything that may go wrong in it.
fn crash_trials() -> Vec<Trial> {
    let scenarios = match case::read(include_str!("crashes.json")) {
        Ok(scenarios) => scenarios,
        Err(error) => {
            let failed = move || Err(Failed::from(error));
            return vec![Trial::test("crashes.json can be read", failed)];
        }
    };
    let mut trials = Vec::new();
    for scenario in &scenarios {
        let is_long = LONG.contains(&scenario.name.as_str());
        let tried = |backend: &&Backend| !(is_long && **backend == Backend::Dynamo);
        for &backend in Backend::ALL.iter().filter(tried) {
            trials
                .extend(subjects(backend).iter().map(|&subject| trial(scenario, backend, subject)));
        }
    }
    trials
}

/// What is tried on a backend: on one machine, a call of it cannot get lost.
fn subjects(backend: Backend) -> &'static [Subject] {
    use Subject::{Crash, Disorder, Expiry, Fault};
    if backend.is_atomic() { &[Crash, Disorder, Expiry] } else { &[Crash, Fault, Disorder, Expiry] }
}

fn trial(scenario: &case::Case, backend: Backend, subject: Subject) -> Trial {
    let (what, scenario) = (subject.name(), scenario.clone());
    let name = format!("{what}: {} [{}]", scenario.name, backend.name());
    Trial::test(name, move || {
        if !can_run(backend) {
            return Ok(());
        }
        let points = runtime()?.block_on(harness::crash::run(&scenario, backend, subject))?;
        println!("{} [{}]: {points} {what} points", scenario.name, backend.name());
        let mut all = POINTS.lock().expect("no holder of the lock panics");
        *all.entry((what, backend.name())).or_default() += points;
        Ok(())
    })
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
