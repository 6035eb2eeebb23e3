//! The repository itself: what a compiler does not check.

use std::collections::BTreeSet;
use std::process::Command;

use annex_tests::clauses::{self, CONTRACTS};
use annex_tests::repository::{File, files, root};

/// Lines of a file.
const LINES_MAX: usize = 400;

/// Crates that a package of ours may not reach, however indirectly, by what it is.
const CLOUD: &[&str] = &["aws-config", "aws-sdk-dynamodb", "aws-sdk-sqs", "lambda_runtime"];
const STORES: &[&str] = &["redb", "rusqlite", "fjall", "annex-embedded"];
const CLIENTS: &[&str] = &["hyper-rustls", "rustls", "reqwest", "annex-egress"];
const SERVERS: &[&str] = &["axum", "hyper", "tower"];
const ENGINES: &[&str] = &["wasmtime", "extism", "starlark"];
const FUNCTIONS: &[&str] = &["api", "dispatch", "resume", "meter", "daily", "local"];

/// Who may not reach what: the dependencies point inwards.
const FENCES: &[(&str, &[&[&str]])] = &[
    ("annex-core", &[CLOUD, STORES, CLIENTS, SERVERS, ENGINES, FUNCTIONS, &["tokio", "mio"]]),
    ("annex-entropy", &[CLOUD, STORES, CLIENTS, SERVERS, ENGINES, FUNCTIONS, &["tokio", "mio"]]),
    (
        "annex-vectors",
        &[CLOUD, STORES, CLIENTS, SERVERS, ENGINES, FUNCTIONS, &["annex-core", "tokio"]],
    ),
    ("annex-egress", &[CLOUD, STORES, ENGINES, FUNCTIONS, &["axum"]]),
    ("annex-aws", &[STORES, ENGINES, FUNCTIONS]),
    ("annex-embedded", &[CLOUD, CLIENTS, SERVERS, ENGINES, FUNCTIONS]),
    ("api", &[CLOUD, STORES, CLIENTS, ENGINES, &["dispatch", "resume", "meter", "daily", "local"]]),
    (
        "dispatch",
        &[CLOUD, STORES, CLIENTS, SERVERS, ENGINES, &["api", "resume", "meter", "daily", "local"]],
    ),
    (
        "resume",
        &[
            CLOUD,
            STORES,
            CLIENTS,
            SERVERS,
            ENGINES,
            &["api", "dispatch", "meter", "daily", "local"],
        ],
    ),
    (
        "meter",
        &[
            CLOUD,
            STORES,
            CLIENTS,
            SERVERS,
            ENGINES,
            &["api", "dispatch", "resume", "daily", "local"],
        ],
    ),
    (
        "daily",
        &[
            CLOUD,
            STORES,
            CLIENTS,
            SERVERS,
            ENGINES,
            &["api", "dispatch", "resume", "meter", "local"],
        ],
    ),
    ("local", &[CLOUD]),
];

/// Packages of which one version is enough, and packages that must not be there at all.
const SINGLE: &[&str] =
    &["hyper", "http", "rustls", "tokio", "axum", "redb", "serde_json", "aws-lc-rs"];
const BANNED: &[&str] = &["ring", "openssl", "native-tls"];

/// What the core may not name outside its test kit and its tests.
const CORE_MAY_NOT: &[&str] =
    &["std::env", "std::fs", "std::net", "std::process", "SystemTime", "Instant::now", "tokio::"];

/// The packages that a package is built with on this machine, with its default features: name and version.
fn tree(arguments: &[&str]) -> BTreeSet<(String, String)> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--prefix", "none", "--locked", "--offline"])
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("cargo can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("names of packages are text");
    let package = |line: &str| {
        let mut words = line.split(' ');
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    };
    text.lines().filter_map(package).collect()
}

/// Fails with all of them.
#[track_caller]
fn none(what: &str, found: Vec<String>) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

#[test]
fn dependencies_point_inwards() {
    let mut found = Vec::new();
    for (package, fences) in FENCES {
        // Without the Lambda function itself, which is there by default and is fenced below.
        let reached = tree(&["--package", package, "--edges", "normal", "--no-default-features"]);
        let strays = reached.iter().filter(|(name, _)| {
            name != package && fences.iter().any(|fence| fence.contains(&name.as_str()))
        });
        found.extend(strays.map(|(name, _)| format!("{package} reaches {name}")));
    }
    none("a package reaches what it must not", found);
}

#[test]
fn a_lambda_function_reaches_no_other_and_nothing_of_one_machine() {
    let lambdas = FUNCTIONS.iter().filter(|name| **name != "local");
    let mut found = Vec::new();
    for package in lambdas {
        let reached = tree(&["--package", package, "--edges", "normal"]);
        let others = FUNCTIONS.iter().filter(|name| name != &package);
        let fence: Vec<&str> = others.chain(STORES).chain(ENGINES).copied().collect();
        let strays = reached.iter().filter(|(name, _)| fence.contains(&name.as_str()));
        found.extend(strays.map(|(name, _)| format!("{package} reaches {name}")));
    }
    none("a Lambda function reaches what it must not", found);
}

#[test]
fn the_main_file_of_a_lambda_function_is_short() {
    let main = |file: &File| {
        let name = file.path.strip_prefix("functions/")?.strip_suffix("/src/main.rs")?.to_owned();
        let lines = file.text.lines().count();
        (name != "local" && 40 < lines).then(|| format!("{name}: {lines} lines"))
    };
    none("more than 40 lines", files().iter().filter_map(main).collect());
}

#[test]
fn every_package_of_the_workspace_but_the_outermost_has_its_fences() {
    let outermost = ["annex-tests", "scanner", "minimal", "pair"];
    let fenced: BTreeSet<&str> =
        FENCES.iter().map(|(package, _)| *package).chain(outermost).collect();
    let members = members().into_iter().map(|(name, _)| name);
    none("no fences", members.filter(|name| !fenced.contains(name.as_str())).collect());
}

#[test]
fn there_is_one_http_stack_and_one_tls_provider() {
    let all = tree(&["--workspace", "--edges", "normal,build,dev", "--target", "all"]);
    let banned = BANNED.iter().filter(|name| all.iter().any(|(found, _)| found == *name));
    none("a banned package", banned.map(|name| (*name).to_owned()).collect());
    let versions = |name: &str| all.iter().filter(|(found, _)| found == name).count();
    let doubled = SINGLE.iter().filter(|name| versions(name) > 1);
    none("more than one version", doubled.map(|name| (*name).to_owned()).collect());
}

#[test]
fn the_core_names_no_clock_environment_socket_or_file() {
    let mut found = Vec::new();
    for file in files() {
        let is_core = file.path.starts_with("shared/core/src/");
        let is_test =
            ["/testkit/", "/tests", "/properties.rs"].iter().any(|part| file.path.contains(part));
        if !is_core || is_test || !file.path.ends_with(".rs") {
            continue;
        }
        let code = file.text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            if CORE_MAY_NOT.iter().any(|word| line.contains(word)) {
                found.push(format!("{}: {}", file.path, line.trim()));
            }
        }
    }
    none("the core reaches the outside", found);
}

#[test]
fn no_file_is_longer_than_it_may_be() {
    let counts = |file: &File| {
        let script = file.path.starts_with("scripts/");
        let text = file.path.ends_with(".md") && file.path != "CHANGELOG.md";
        file.path.ends_with(".rs") || script || text
    };
    let long = files().into_iter().filter(counts).filter_map(|file| {
        let lines = file.text.lines().count();
        (lines > LINES_MAX).then(|| format!("{}: {lines} lines", file.path))
    });
    none("more than 400 lines", long.collect());
}

#[test]
fn nothing_names_the_machine_it_was_made_on() {
    // Put together, so that this file does not hold them.
    let words = [concat!("/wor", "k/"), concat!("/roo", "t/"), concat!("/home", "/")];
    let mut found = Vec::new();
    for file in files() {
        for line in file.text.lines().filter(|line| words.iter().any(|word| line.contains(word))) {
            let line = &line[..line.floor_char_boundary(120)];
            found.push(format!("{}: {line}", file.path));
        }
    }
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).expect("it is committed");
    let source = r#"source = "registry+https://github.com/rust-lang/crates.io-index""#;
    let others = lock.lines().filter(|line| line.starts_with("source = ") && *line != source);
    found.extend(others.map(|line| format!("Cargo.lock: {line}")));
    none("a path or a host of one machine", found);
}

#[test]
fn every_clause_that_a_case_or_a_marker_names_exists() {
    let (named, mut faults) = clauses::named(&files());
    faults.extend(clauses::unknown(&named));
    none("a clause that is named wrongly", faults);
}

#[test]
fn every_clause_of_the_runtime_contract_has_a_case() {
    let (named, _) = clauses::named(&files());
    let coverage = clauses::coverage(&named);
    let found = coverage.iter().find(|found| found.prefix == "LC").expect("it is one of them");
    assert_ne!(found.total, 0, "the table of the clauses is there");
    none("no test", found.missing.clone());
}

#[test]
fn copies_of_the_clauses_are_those_of_the_contracts() {
    for (_, contract) in CONTRACTS {
        let path = root().join(clauses::copy_path(contract));
        let copy = std::fs::read_to_string(path).expect("the copy is committed");
        let Some(source) = clauses::source_table(contract) else { continue };
        assert_eq!(clauses::read_table(&copy), clauses::read_table(&source), "{contract}");
    }
}

/// Names and folders of the packages of the workspace.
fn members() -> Vec<(String, String)> {
    let root = root();
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).expect("it is committed");
    let (_, rest) = manifest.split_once("members = [").expect("the workspace lists its members");
    let (list, _) = rest.split_once(']').expect("the list ends");
    let folders = list.split(',').map(|folder| folder.trim().trim_matches('"').to_owned());
    let name = |folder: &String| {
        let path = root.join(folder).join("Cargo.toml");
        let manifest = std::fs::read_to_string(path).expect("a member has a manifest");
        let line = manifest.lines().find(|line| line.starts_with("name = "));
        line.expect("a package has a name").split('"').nth(1).unwrap_or_default().to_owned()
    };
    folders.filter(|folder| !folder.is_empty()).map(|folder| (name(&folder), folder)).collect()
}

#[test]
fn the_architecture_page_names_every_crate_and_none_that_is_gone() {
    let page = root().join("docs/ARCHITECTURE.md");
    let page = std::fs::read_to_string(page).expect("the page is committed");
    let quoted: BTreeSet<&str> = page.split('`').skip(1).step_by(2).collect();
    let folders: BTreeSet<String> = members().into_iter().map(|(_, folder)| folder).collect();
    let absent = folders.iter().filter(|folder| !quoted.contains(folder.as_str()));
    none("a crate that the page does not name", absent.cloned().collect());
    let is_crate = |word: &&&str| {
        let mut parts = word.split('/');
        let group = parts.next().is_some_and(|p| matches!(p, "shared" | "functions" | "examples"));
        let plain = |p: &str| !p.is_empty() && p.bytes().all(|b| b.is_ascii_alphanumeric());
        group && parts.next().is_some_and(plain) && parts.next().is_none()
    };
    let gone = quoted.iter().filter(is_crate).filter(|word| !folders.contains(**word));
    none("a crate that is gone", gone.map(|word| (*word).to_owned()).collect());
}

#[test]
fn every_dependency_has_a_row_in_the_decisions() {
    let page = std::fs::read_to_string(root().join("docs/decisions.md")).expect("it is committed");
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let names: BTreeSet<&str> = rows
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|cell| cell.split([',', ' ']))
        .filter(|word| !word.is_empty())
        .collect();
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("it is committed");
    let (_, rest) = manifest.split_once("[workspace.dependencies]").expect("it has dependencies");
    let (table, _) = rest.split_once("\n[").expect("another table follows");
    let unexplained = table
        .lines()
        .filter(|line| !line.contains("path = "))
        .filter_map(|line| line.split_once(" = ").map(|(name, _)| name))
        .filter(|name| !names.contains(name));
    none("a dependency without a row", unexplained.map(str::to_owned).collect());
}
