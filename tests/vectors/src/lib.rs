//! Published test vectors, made by others. They lie beside the repository and are read where they are: a set that is not
//! there has no cases, and says so.

use std::fs::File;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;

/// A file of a set, where there is one.
///
/// # Panics
///
/// Where the file is there and does not hold JSON.
pub fn read(set: &str, file: &str) -> Option<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors");
    let Ok(file) = File::open(folder.join(set).join(file)) else {
        eprintln!("skipped: the published vectors {set} are not beside the repository");
        return None;
    };
    Some(serde_json::from_reader(GzDecoder::new(file)).expect("it is JSON"))
}

/// The cases of a set; none where the set is not there.
///
/// # Panics
///
/// Where the set is there and has no cases.
pub fn cases(set: &str) -> Vec<Value> {
    let Some(mut set) = read(set, "open.json.gz") else { return Vec::new() };
    let Value::Array(cases) = set["cases"].take() else { panic!("a set has cases") };
    assert!(!cases.is_empty(), "a set has cases");
    cases
}

/// Runs every case of a set by a judge, which says what is wrong.
///
/// # Panics
///
/// With all that is wrong.
#[track_caller]
pub fn run(set: &str, judge: impl Fn(&Value) -> Result<(), String>) {
    let wrong: Vec<String> = cases(set)
        .iter()
        .filter_map(|case| Some(format!("{}: {}", case["id"], judge(case).err()?)))
        .collect();
    assert!(wrong.is_empty(), "{} cases of {set}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Compares what was made with what a case expects.
///
/// # Errors
///
/// Says how they differ.
pub fn same(what: &str, found: impl Into<Value>, expected: &Value) -> Result<(), String> {
    let found = found.into();
    if found == *expected { Ok(()) } else { Err(format!("{what} is {found}, not {expected}")) }
}
