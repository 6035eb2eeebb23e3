//! The pages for people: their examples run, their JSON is JSON, their links lead somewhere, their tables are whole.
//!
//! Blocks marked `sh` run, in their order and in one shell for each page, against a platform and the sample extension
//! that were just started. A page speaks of the addresses that both have unless told otherwise, and of the one of the
//! sample pair, which a page starts for itself.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use annex_core::auth::permission;
use annex_core::capability::refusal::Refusal;
use annex_core::fault::Code;
use annex_tests::markdown::{Block, anchors, blocks, links};
use annex_tests::process::Annex;
use annex_tests::repository;

const PLATFORM: &str = "http://127.0.0.1:8080";
const EXTENSION: &str = "http://127.0.0.1:9090";
const PAIR: &str = "127.0.0.1:9091";
const SHARED_SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef";

/// How long the examples of one page may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(180);

/// Programs that examples use, beside the shell and our own.
const TOOLS: &[&str] = &["bash", "curl", "gzip", "openssl"];

fn page(path: &str) -> String {
    std::fs::read_to_string(repository::root().join(path)).unwrap()
}

/// The vendor's command line, where `scripts/real-clients` has installed it.
fn vendor_tools() -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    let folder = repository::root().join(target).join("real-clients/cli/bin");
    folder.join("limacharlie").exists().then_some(folder)
}

fn is_there(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(tool).exists())
}

/// The script of a page: what can run of it, with a line before each block that says where it stands.
fn script(path: &str, found: &[Block], vendor: bool) -> String {
    // What a page starts in the background ends with it.
    let mut script =
        String::from("set -euo pipefail\ntrap 'kill $(jobs -p) 2>kill.log || true' EXIT\n");
    for block in found.iter().filter(|block| block.info == "sh") {
        if !vendor && block.text.contains("limacharlie ") {
            println!("{path}:{}: skipped, the vendor's command line is not installed", block.line);
            continue;
        }
        script.push_str(&format!("echo '== {path}:{}'\n{}", block.line, block.text));
    }
    script + "echo '== done'\n"
}

/// Runs the examples of a page.
fn run(path: &str) {
    if let Some(missing) = TOOLS.iter().find(|tool| !is_there(tool)) {
        println!("{path}: skipped, there is no {missing}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("shared-secret"), format!("{SHARED_SECRET}\n")).unwrap();
    std::fs::create_dir(at("bin")).unwrap();
    let program = env!("CARGO_BIN_EXE_annex-child");
    std::os::unix::fs::symlink(program, at("bin/annex")).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pair-child"), at("bin/pair")).unwrap();

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let extension = format!("http://{}", listener.local_addr().unwrap());
    runtime.spawn(scanner::serve(listener, SHARED_SECRET));
    let platform = Annex::start(program, &at("annex-data"));

    let vendor = vendor_tools();
    let script = script(path, &blocks(&page(path)), vendor.is_some())
        .replace(PLATFORM, &format!("http://{}", platform.address))
        .replace(EXTENSION, &extension)
        .replace(PAIR, &free_address());
    let mut folders = vec![at("bin")];
    folders.extend(vendor);
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let transcript = bash(folder.path(), &script, &folders);
    assert!(transcript.ends_with("== done\n"), "{transcript}\n-- log\n{}", platform.log());
    println!("{transcript}");
}

/// An address that nobody listens on.
fn free_address() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// What a script wrote in a shell that has nothing of this process's environment but `PATH`.
fn bash(folder: &Path, script: &str, path: &[PathBuf]) -> String {
    let log = folder.join("transcript");
    let file = File::create(&log).unwrap();
    let mut child = Command::new("bash")
        .args(["-c", script])
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::join_paths(path).unwrap())
        .env("HOME", folder)
        .stdin(Stdio::null())
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .spawn()
        .unwrap();
    let began = Instant::now();
    let ended = loop {
        match child.try_wait().unwrap() {
            Some(status) => break format!("{status}\n"),
            None if PAGE_TIMEOUT < began.elapsed() => {
                child.kill().unwrap();
                child.wait().unwrap();
                break format!("not done after {} s\n", PAGE_TIMEOUT.as_secs());
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let transcript = std::fs::read_to_string(&log).unwrap();
    if transcript.ends_with("== done\n") { transcript } else { transcript + &ended }
}

#[test]
fn examples_of_the_readme_run() {
    run("README.md");
}

#[test]
fn examples_of_the_http_api_run() {
    run("docs/api.md");
}

#[test]
fn examples_of_the_command_line_run() {
    run("docs/cli.md");
}

#[test]
fn examples_of_operations_run() {
    run("docs/operations.md");
}

#[test]
fn examples_of_webhook_extensions_run() {
    run("docs/webhook-extensions.md");
}

#[test]
fn examples_of_capability_extensions_run() {
    run("docs/capability-extensions.md");
}

#[test]
fn examples_of_requests_to_vendors_run() {
    run("docs/vendor-requests.md");
}

#[test]
fn blocks_say_what_they_hold_and_json_is_json() {
    for file in repository::files().iter().filter(|file| file.path.ends_with(".md")) {
        for block in blocks(&file.text) {
            let place = format!("{}:{}", file.path, block.line);
            assert_ne!(block.info, "", "{place}: a block says what it holds");
            if block.info == "json" {
                let read = serde_json::from_str::<serde_json::Value>(&block.text);
                assert!(read.is_ok(), "{place}: {read:?}");
            }
        }
    }
}

#[test]
fn links_lead_to_pages_and_headings_that_exist() {
    let root = repository::root();
    for file in repository::files().iter().filter(|file| file.path.ends_with(".md")) {
        for (line, link) in links(&file.text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (to, heading) = link.split_once('#').unwrap_or((&link, ""));
            let folder = Path::new(&file.path).parent().unwrap();
            let target = match to {
                "" => root.join(&file.path),
                to => root.join(folder).join(to),
            };
            let place = format!("{}:{line}: {link}", file.path);
            assert!(target.exists(), "{place}: there is no such file");
            if !heading.is_empty() {
                let known = anchors(&std::fs::read_to_string(&target).unwrap());
                assert!(known.iter().any(|name| name == heading), "{place}: no such heading");
            }
        }
    }
}

#[test]
fn the_page_of_errors_has_every_code_with_its_status_and_meaning() {
    let rows = |code: &Code| {
        let meaning = code.doc().trim();
        format!("| `{}` | {} | {meaning} |\n", code.word(), code.status())
    };
    let table: String = Code::ALL.iter().map(rows).collect();
    assert!(page("docs/errors.md").contains(&table), "docs/errors.md must hold:\n{table}");
}

#[test]
fn the_page_of_capability_extensions_has_every_refusal_with_its_status_and_meaning() {
    let rows = Refusal::TABLE.iter().map(|(status, code, meaning)| {
        let meaning = meaning.trim();
        format!("| `{code}` | {status} | {meaning} |\n")
    });
    let table: String = rows.collect();
    let path = "docs/capability-extensions.md";
    assert!(page(path).contains(&table), "{path} must hold:\n{table}");
}

#[test]
fn the_pages_of_the_api_name_every_permission_and_route() {
    let page = page("docs/api.md") + &page("docs/capability-routes.md");
    for word in permission::ALL {
        assert!(page.contains(&format!("`{word}`")), "no page names {word}");
    }
    let document: serde_json::Value = serde_json::from_str(api::document()).unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let route = format!("`{} {path}`", method.to_uppercase());
            assert!(page.contains(&route), "no page names {route}");
        }
    }
}
