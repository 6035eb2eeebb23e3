//! A full disk: writes are refused with 503, reading goes on, and all is well again once there is space.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use annex_tests::extension::{Extension, Reply};
use annex_tests::platform::Tenant;
use annex_tests::process::Annex;
use annex_tests::wait::until;
use futures_util::future::join_all;

use crate::PROGRAM;
use crate::process::{gated, started};

/// Sets the size that a file of the process may grow to. Where it cannot be set, the test has nothing to do.
fn limit_files(annex: &Annex, bytes: &str) -> bool {
    let limited = Command::new("prlimit")
        .args(["--pid", &annex.id().to_string(), &format!("--fsize={bytes}:unlimited")])
        .status();
    let is_limited = limited.is_ok_and(|status| status.success());
    if !is_limited {
        println!("skipped: prlimit is needed to make a disk look full");
    }
    is_limited
}

/// No file of the process may grow from here on, and none be rewritten.
fn fill(annex: &Annex) -> bool {
    limit_files(annex, "0")
}

fn free(annex: &Annex) {
    assert!(limit_files(annex, "unlimited"));
}

async fn check_refused(tenant: &Tenant, key: &str) {
    for prefer in ["wait=25", "respond-async"] {
        let headers = [("idempotency-key", key), ("prefer", prefer)];
        let fault = tenant.call_with("ext", "echo", "{}", &headers).await.fault();
        let text = "the platform cannot write at the moment";
        assert_eq!(fault, (503, "unavailable".to_owned(), text.to_owned()));
    }
}

#[tokio::test]
async fn a_full_disk_refuses_writes_goes_on_reading_and_recovers_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let extension = Extension::echo().await;
    let (annex, operator, tenant) = started(&data, &extension).await;
    let before = tenant.call("ext", "echo", r#"{"text":"before"}"#).await;
    let id = before.header("annex-invocation-id").unwrap().to_owned();
    until("the events' end", || async { (extension.seen().len() == 2).then_some(()) }).await;
    if !fill(&annex) {
        return;
    }
    for round in 0..3 {
        check_refused(&tenant, &format!("key-{round}")).await;
        assert_eq!(tenant.record(&id).await["status"], "succeeded");
        assert_eq!(tenant.errors().await, []);
        operator.tenant_of(&tenant.oid).await.get("/v1/who").await.ok();
    }
    for (method, path) in [
        ("POST", "/v1/orgs/new".to_owned()),
        ("POST", format!("/v1/orgs/{}/keys", tenant.oid)),
        ("POST", format!("/v1/hive/secret/{}/x/data", tenant.oid)),
        ("DELETE", format!("/v1/orgs/{}/subscription/extension/ext", tenant.oid)),
    ] {
        let fields = [("name", "x"), ("perms", "*"), ("data", r#"{"secret":"x"}"#)];
        let client = if path.ends_with("new") { &*operator } else { &*tenant };
        let (status, code, _) = client.form(method, &path, &fields).await.fault();
        assert_eq!((status, code.as_str()), (503, "unavailable"), "{method} {path}");
    }
    // What was refused was not accepted, so nothing was delivered.
    assert_eq!(extension.requests("echo").len(), 1);
    free(&annex);
    until("writing", || async {
        let answer = tenant.call_with("ext", "echo", "{}", &[("idempotency-key", "key-0")]).await;
        (answer.status == 200).then_some(())
    })
    .await;
    assert_eq!(extension.requests("echo").len(), 2);
    tenant.set_secret("x", "a-value").await;
    assert!(annex.stop("TERM").await.success());
    let annex = Annex::start(PROGRAM, &data);
    let tenant = tenant.at(annex.address);
    assert_eq!(tenant.record(&id).await["data"]["text"], "before");
}

#[tokio::test]
async fn a_disk_that_fills_while_calls_are_under_way_loses_none_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let (extension, gate) = gated().await;
    let (annex, _, tenant) = started(&data, &extension).await;
    let ids = join_all((0..8).map(|_| tenant.call_async("ext", "echo", "{}"))).await;
    let waiting = tokio::spawn({
        let tenant = tenant.clone();
        async move { tenant.call_with("ext", "echo", "{}", &[("idempotency-key", "k")]).await }
    });
    extension.await_requests("echo", 9).await;
    if !fill(&annex) {
        return;
    }
    gate.send(false).unwrap();
    // Its end cannot be written: the caller learns that, and that the call was accepted it knows by its key.
    assert_eq!(waiting.await.unwrap().fault().0, 503);
    let again = tenant.call_with("ext", "echo", "{}", &[("idempotency-key", "k")]).await;
    assert!(matches!(again.status, 202 | 503), "{}", again.text());
    for id in &ids {
        assert_eq!(tenant.record(id).await["status"], "running");
    }
    free(&annex);
    // A lease lasts minutes. The next process need not wait for it.
    annex.kill();
    let annex = Annex::start(PROGRAM, &data);
    let tenant = tenant.at(annex.address);
    for id in &ids {
        let record = tenant.ended(id).await;
        assert_eq!((&record["status"], &record["data"]), (&"succeeded".into(), &7.into()));
    }
    until("the end of the call that was waited for", || async {
        let headers = [("idempotency-key", "k")];
        let answer = tenant.call_with("ext", "echo", "{}", &headers).await;
        (answer.status == 200).then(|| assert_eq!(answer.json()["data"], 7))
    })
    .await;
    let mut keys: Vec<_> = extension.requests("echo").iter().map(|m| m.key().to_owned()).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 9, "a call was delivered under another key");
}

#[tokio::test]
async fn a_store_that_reaches_the_end_of_the_disk_under_load_keeps_what_it_answered() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let text = "x".repeat(40_000);
    let answer = format!(r#"{{"text":"{text}"}}"#);
    let extension = Extension::start(move |message| {
        let answer = answer.clone();
        async move {
            match message.action() {
                "echo" => Reply::data(&answer),
                _ => Reply::data("{}"),
            }
        }
    });
    let extension = extension.await;
    let (annex, _, tenant) = started(&data, &extension).await;
    let size = std::fs::metadata(data.join("annex.redb")).unwrap().len();
    if !limit_files(&annex, &(size + (4 << 20)).to_string()) {
        return;
    }
    let accepted = fill_by_load(&tenant).await;
    assert!(!accepted.is_empty());
    free(&annex);
    until("writing", || async {
        (tenant.call("ext", "other", "{}").await.status == 200).then_some(())
    })
    .await;
    // In the same process, and after the next start.
    check_kept(&tenant, &accepted).await;
    annex.kill();
    let annex = Annex::start(PROGRAM, Path::new(&data));
    check_kept(&tenant.at(annex.address), &accepted).await;
}

/// A small file system of its own; gone when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None`, with a line that says so, where this process may not mount one.
    fn mount(megabytes: u32) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let disk = Self(dir);
        if disk.run("mount", &["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "tmpfs"]) {
            return Some(disk);
        }
        println!("skipped: a small file system can be mounted by root only");
        None
    }

    fn grow(&self, megabytes: u32) {
        assert!(self.run("mount", &["-o", &format!("remount,size={megabytes}m")]));
    }

    fn run(&self, program: &str, args: &[&str]) -> bool {
        let mut command = Command::new(program);
        let ran = command.args(args).arg(self.0.path()).stderr(Stdio::null()).status();
        ran.is_ok_and(|status| status.success())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Where it was never mounted, there is nothing to undo.
        self.run("umount", &[]);
    }
}

#[tokio::test]
async fn a_small_file_system_that_fills_up_loses_nothing_and_recovers_when_it_grows() {
    let Some(disk) = SmallDisk::mount(6) else { return };
    let data = disk.0.path().join("data");
    let text = "x".repeat(40_000);
    let extension = Extension::start(move |message| {
        let answer = format!(r#"{{"text":"{text}"}}"#);
        async move {
            match message.action() {
                "echo" => Reply::data(&answer),
                _ => Reply::data("{}"),
            }
        }
    });
    let extension = extension.await;
    let (annex, _, tenant) = started(&data, &extension).await;
    let accepted = fill_by_load(&tenant).await;
    assert!(!accepted.is_empty());
    check_kept(&tenant, &accepted).await;
    disk.grow(64);
    until("writing", || async {
        (tenant.call("ext", "other", "{}").await.status == 200).then_some(())
    })
    .await;
    check_kept(&tenant, &accepted).await;
    annex.kill();
    let annex = Annex::start(PROGRAM, &data);
    check_kept(&tenant.at(annex.address), &accepted).await;
}

/// Calls until the platform cannot write; the ids of those that were answered.
async fn fill_by_load(tenant: &Tenant) -> Vec<String> {
    let ids = Arc::new(std::sync::Mutex::new(Vec::new()));
    let callers = (0..8).map(|_| async {
        for _ in 0..500 {
            let answer = tenant.call("ext", "echo", "{}").await;
            match answer.status {
                200 => {
                    let id = answer.header("annex-invocation-id").unwrap().to_owned();
                    ids.lock().unwrap().push(id);
                }
                503 => return,
                other => panic!("{other}: {}", answer.text()),
            }
        }
        panic!("the disk is never full");
    });
    let all = tokio::time::timeout(Duration::from_secs(60), join_all(callers)).await;
    all.unwrap();
    ids.lock().unwrap().clone()
}

async fn check_kept(tenant: &Tenant, ids: &[String]) {
    for id in ids {
        let record = tenant.record(id).await;
        assert_eq!(record["status"], "succeeded");
        assert_eq!(record["data"]["text"].as_str().map(str::len), Some(40_000));
    }
}
