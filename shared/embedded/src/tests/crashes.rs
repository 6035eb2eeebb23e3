//! The process is killed at any moment: everything that was answered as done is there afterwards.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use super::*;
use crate::SystemClock;

/// Names the folder of the store to the process that is going to be killed.
const DIR: &str = "ANNEX_CRASH_TEST_DIR";

/// What the killed process runs. In an ordinary run of the tests it has nothing to do.
#[test]
fn commits_until_it_is_killed_where_a_folder_is_named() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let clock = Arc::new(SystemClock::start());
        let store = Embedded::open(Path::new(&dir), clock, &Options::default()).unwrap();
        let tasks: Vec<_> = (0..8)
            .map(|task| {
                let store = store.clone();
                tokio::spawn(async move {
                    for n in 0_u64.. {
                        let name = format!("{}-{task}-{n}", store.epoch());
                        let both = Commit { ..put(&name, &[b'x'; 500]) };
                        commit(&store, Commit { sends: message(&name).sends, ..both }).await;
                        println!("acknowledged {name}");
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

fn start_child(dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "--test-threads=1"])
        .arg("tests::crashes::commits_until_it_is_killed_where_a_folder_is_named")
        .env(DIR, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Kills a process once it has acknowledged `count` commits, and gives all that it has acknowledged.
fn kill_after(mut child: Child, count: usize) -> Vec<String> {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut acknowledged = Vec::new();
    // The harness may print before the first name, on the same line.
    let mut take = |line: String| {
        let name = line.split_once("acknowledged ").map(|(_, name)| name.to_owned());
        acknowledged.extend(name);
        acknowledged.len()
    };
    while take(lines.next().unwrap().unwrap()) < count {}
    child.kill().unwrap();
    child.wait().unwrap();
    // A line is written to the pipe in one piece, so none is cut short.
    lines.map_while(Result::ok).for_each(|line| {
        take(line);
    });
    acknowledged
}

#[tokio::test]
async fn every_acknowledged_commit_and_message_survives_kill_9_and_the_epoch_grows() {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for round in 1..=3 {
        let child = start_child(dir.path());
        let new = kill_after(child, 100 * round);
        acknowledged.extend(new);
        let store = open(dir.path(), &clock());
        assert_eq!(store.epoch(), 2 * round as u64);
        for name in &acknowledged {
            assert!(has(&store, name).await, "{name} is lost in round {round}");
        }
        let sent = store.depth(QueueName::Resume).await.unwrap();
        assert!(acknowledged.len() as u64 <= sent.ready + sent.delayed, "messages are lost");
        drop(store);
    }
}
