//! Whichever step a process dies before, nothing that was accepted is lost.

use std::collections::BTreeSet;

use serde_json::json;

use crate::capability::id::LockId;
use crate::capability::sessions::{self, Patch};

use super::world::World;

/// Makes a session, changes it and delivers, in a process that dies after so many steps, and then in others. What was
/// stored is told, in the end.
async fn check(is_atomic: bool, steps: usize) -> bool {
    let mut world = World::new(is_atomic).await;
    world.register("dice", true).await;
    world.receivers.says.lock().unwrap().extend([("dice", 200), ("dice", 500)]);
    *world.store.fuse.lock().unwrap() = Some(steps);
    let lock = LockId::parse("l-1").unwrap();
    let new = World::new_session("dice");
    let made = sessions::create(&world.ports, world.oid, &lock, new).await;
    if let Ok(made) = &made {
        for n in 0..3 {
            let data = serde_json::value::to_raw_value(&json!({"n": n})).ok();
            let patch = Patch { data, ..Patch::default() };
            let _ = sessions::patch(&world.ports, &made.extension, &made.id, patch).await;
        }
    }
    let survived = world.store.fuse.lock().unwrap().is_some_and(|left| 0 < left);
    if !survived {
        *world.store.fuse.lock().unwrap() = None;
    }
    world.run().await;
    let all = world.store.fuse.lock().unwrap().is_some();
    *world.store.fuse.lock().unwrap() = None;
    // What is stored now was told: the session as it is, and all that was answered for before.
    let stored = sessions::list(&world.ports, world.oid, &lock).await.unwrap();
    let told: BTreeSet<String> = {
        let got = world.receivers.got.lock().unwrap();
        got.iter().map(|got| got.body["data"]["session"]["data"].to_string()).collect()
    };
    for session in &stored {
        assert!(told.contains(session.data.get()), "{is_atomic} {steps}: {told:?}");
    }
    if made.is_ok() {
        assert!(told.contains("{}"), "{is_atomic} {steps}: {told:?}");
        assert_eq!(stored.len(), 1);
    }
    assert_eq!(world.left(), 0, "{is_atomic} {steps}");
    all
}

#[tokio::test]
async fn a_crash_before_any_step_delivers_again_and_loses_nothing() {
    for is_atomic in [true, false] {
        let mut steps = 0;
        while !check(is_atomic, steps).await {
            steps += 1;
        }
        assert!(10 < steps, "{steps}");
    }
}
