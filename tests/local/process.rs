//! The `annex serve` process: how it starts, refuses to start, and stops.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use annex_tests::client::Client;
use annex_tests::extension::{Extension, Reply};
use annex_tests::platform::{Operator, ROOT_KEY, Tenant};
use annex_tests::process::{Annex, Ended, run, serve};
use tokio::sync::watch;

use crate::PROGRAM;

/// A process on a new folder below `dir`, and an organization that is subscribed to `ext`.
pub(crate) async fn started(data: &Path, extension: &Extension) -> (Annex, Operator, Tenant) {
    let annex = Annex::start(PROGRAM, data);
    let operator = annex.operator(data).await;
    operator.register("ext", extension).await;
    let tenant = operator.tenant("demo").await;
    tenant.subscribe("ext").await;
    (annex, operator, tenant)
}

/// An extension whose action `echo` answers once the gate is open.
pub(crate) async fn gated() -> (Extension, watch::Sender<bool>) {
    let (gate, closed) = watch::channel(true);
    let closed = Arc::new(closed);
    let extension = Extension::start(move |message| {
        let mut closed = closed.as_ref().clone();
        async move {
            if message.action() == "echo" && closed.wait_for(|closed| !closed).await.is_err() {
                return Reply::dropped();
            }
            Reply::data("7")
        }
    });
    (extension.await, gate)
}

#[tokio::test]
async fn a_signal_ends_it_cleanly_once_the_work_under_way_is_done() {
    for signal in ["TERM", "INT"] {
        let dir = tempfile::tempdir().unwrap();
        let (extension, gate) = gated().await;
        let (annex, _, tenant) = started(&dir.path().join("data"), &extension).await;
        let waiting = tokio::spawn({
            let tenant = tenant.clone();
            async move { tenant.call("ext", "echo", "{}").await }
        });
        let id = tenant.call_async("ext", "echo", "{}").await;
        extension.await_requests("echo", 2).await;
        annex.signal(signal);
        // It takes nothing new any more.
        annex_tests::wait::until("the end of listening", || async {
            tenant.try_send("GET", "/healthz", &[], "").await.is_err().then_some(())
        })
        .await;
        gate.send(false).unwrap();
        assert_eq!(waiting.await.unwrap().text(), r#"{"data":7}"#);
        let data = dir.path().join("data");
        let log = data.with_extension("log");
        assert!(annex.ended().await.success(), "{}", std::fs::read_to_string(log).unwrap());
        let annex = Annex::start(PROGRAM, &data);
        let tenant = tenant.at(annex.address);
        assert_eq!(tenant.record(&id).await["status"], "succeeded");
        assert_eq!(extension.requests("echo").len(), 2);
    }
}

#[tokio::test]
async fn work_that_does_not_end_in_time_is_taken_up_by_the_next_process() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let (extension, gate) = gated().await;
    let (annex, _, tenant) = started(&data, &extension).await;
    let waiting = tenant.call_with("ext", "echo", "{}", &[("prefer", "wait=1")]).await;
    let queued = tenant.call_async("ext", "echo", "{}").await;
    let before = extension.await_requests("echo", 2).await;
    assert!(annex.stop("TERM").await.success());
    gate.send(false).unwrap();
    let annex = Annex::start(PROGRAM, &data);
    let tenant = tenant.at(annex.address);
    for id in [waiting.json()["id"].as_str().unwrap(), &queued] {
        let record = tenant.ended(id).await;
        assert_eq!((&record["status"], &record["data"]), (&"succeeded".into(), &7.into()));
    }
    // Again, under the same keys.
    let after = extension.requests("echo").split_off(2);
    let keys = |messages: &[annex_tests::extension::Message]| {
        let mut keys: Vec<_> = messages.iter().map(|m| m.key().to_owned()).collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(&after), keys(&before));
}

/// The start is refused with this text on standard error, and an exit code that says so.
#[track_caller]
fn check_refused(ended: &Ended, text: &str) {
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains(text), "{}", ended.stderr);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_second_process_on_the_same_folder_is_refused_and_harms_the_first_one_not() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let extension = Extension::echo().await;
    let (_annex, _, tenant) = started(&data, &extension).await;
    check_refused(&run(serve(PROGRAM, &data)), "is in use by another process");
    tenant.call("ext", "echo", "{}").await.ok();
}

#[tokio::test]
async fn an_address_that_is_taken_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut command = std::process::Command::new(PROGRAM);
    command.args(["serve", "--listen", &address, "--data"]).arg(dir.path().join("data"));
    check_refused(&run(command), &format!("cannot listen on {address}"));
}

#[tokio::test]
async fn the_root_key_is_made_once_and_for_its_owner_only() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let extension = Extension::echo().await;
    let (annex, _, tenant) = started(&data, &extension).await;
    let path = data.join("root-key");
    let key = std::fs::read_to_string(&path).unwrap();
    assert_eq!(key.trim().len(), 64);
    assert!(key.trim().bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    assert!(annex.stop("TERM").await.success());
    // The next start uses it: what was sealed and signed with it is still good.
    let annex = Annex::start(PROGRAM, &data);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), key);
    tenant.at(annex.address).call("ext", "echo", "{}").await.ok();
    assert!(annex.stop("TERM").await.success());

    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    check_refused(&run(serve(PROGRAM, &data)), "can be read by others: set its mode to 0600");
    for text in ["", "abc", &"g".repeat(64), &"0".repeat(63), &"0".repeat(65)] {
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let ended = run(serve(PROGRAM, &data));
        check_refused(&ended, "is no root key: it must hold 64 hexadecimal characters");
    }
}

#[tokio::test]
async fn a_root_key_of_the_environment_is_checked_and_kept_in_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let with = |key: &str| {
        let mut command = serve(PROGRAM, &data);
        command.env("ANNEX_ROOT_KEY", key);
        command
    };
    let bad =
        ["", "abc", &ROOT_KEY[..63], &format!("{ROOT_KEY}0"), &ROOT_KEY.replace('a', "g"), "é"];
    for key in bad {
        let ended = run(with(key));
        check_refused(&ended, "ANNEX_ROOT_KEY: a root key has 64 hexadecimal characters");
        assert!(key.len() < 60 || !ended.stderr.contains(key), "it shows the key");
    }
    let annex = Annex::start_as(with(&ROOT_KEY.to_uppercase()), &data);
    assert!(!data.join("root-key").exists());
    // The key signs in as it was given, to everything.
    let client = Client::new(annex.address);
    let operator = Operator::sign_in(&client, &ROOT_KEY.to_uppercase()).await;
    operator.tenant("demo").await;
    let fields = [("secret", "0".repeat(64)), ("oid", "-".to_owned())];
    let fields = [(fields[0].0, fields[0].1.as_str()), (fields[1].0, fields[1].1.as_str())];
    assert_eq!(client.form("POST", "/jwt", &fields).await.fault().0, 401);
    // What was sealed under it does not open under another one: better said now than at the first secret.
    assert!(annex.stop("TERM").await.success());
    let text = "the root key is not the one that the data in";
    check_refused(&run(with(&"0".repeat(64))), text);
    let annex = Annex::start_as(with(ROOT_KEY), &data);
    assert!(annex.stop("TERM").await.success());
}

#[test]
fn a_folder_that_cannot_be_had_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    for data in [file.as_path(), &file.join("below"), Path::new("/proc/no-such-folder")] {
        check_refused(&run(serve(PROGRAM, data)), data.to_str().unwrap());
    }
}

#[test]
fn a_store_that_is_none_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("annex.redb");
    std::fs::write(&store, vec![b'x'; 10_000]).unwrap();
    check_refused(&run(serve(PROGRAM, dir.path())), "the store cannot be opened");
    assert_eq!(std::fs::read(&store).unwrap(), vec![b'x'; 10_000]);
}
