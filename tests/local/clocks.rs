//! A wall clock that is set forward or back by an hour: delays, leases, tokens and the daily update.

use std::sync::Arc;

use annex_core::ids::Oid;
use annex_core::keys;
use annex_core::ports::{Clock as _, QueueName};
use annex_tests::clock::TestClock;
use annex_tests::extension::{Extension, Reply};
use annex_tests::platform::{Tenant, World};
use annex_tests::wait::until;
use daily::Daily;
use tokio::sync::watch;

const HOUR: i64 = 3_600;

/// An extension that asks for a continuation after so many seconds.
async fn continuing(delay: u32) -> Extension {
    Extension::start(move |message| async move {
        match message.action() {
            "echo" => Reply::ok(&format!(
                r#""data":{{}},"continuations":[{{"in_delay_sec":{delay},"action":"more","state":{{"n":1}}}}]"#
            )),
            _ => Reply::data("{}"),
        }
    })
    .await
}

/// Delayed messages of the resume queue.
async fn delayed(world: &World) -> u64 {
    world.store().depth(QueueName::Resume).await.unwrap().delayed
}

// covers: LC-073
#[tokio::test]
async fn a_delay_lasts_as_long_as_it_lasts_whichever_way_the_clock_is_set() {
    for jump in [HOUR, -HOUR] {
        let extension = continuing(60).await;
        let (world, tenant) = World::with_at_speed(&extension, 20).await;
        let before = world.clock.steady();
        tenant.call("ext", "echo", "{}").await.ok();
        world.clock.jump(jump);
        let requests = extension.await_requests("more", 1).await;
        let passed = world.clock.steady().since(before).as_secs();
        // Later than the delay by what a busy machine takes, not by an hour.
        assert!((60..600).contains(&passed), "{jump}: {passed} s");
        assert_eq!(requests[0].data(), r#"{"n":1}"#);
        world.settled().await;
        assert_eq!(extension.requests("more").len(), 1);
    }
}

#[tokio::test]
async fn a_delay_survives_a_restart_on_a_clock_that_was_set() {
    for jump in [HOUR, -HOUR] {
        let extension = continuing(300).await;
        let (world, tenant) = World::with(&extension).await;
        tenant.call("ext", "echo", "{}").await.ok();
        assert_eq!(delayed(&world).await, 1);
        let world = world.restart_on(Arc::new(TestClock::start_off(100, jump))).await;
        // At most as long as any delay may be: 900 s are 9.
        extension.await_requests("more", 1).await;
        world.settled().await;
        assert_eq!(extension.requests("more").len(), 1);
    }
}

#[tokio::test]
async fn a_call_under_way_is_not_taken_for_abandoned_when_the_clock_is_set() {
    for jump in [HOUR, -HOUR] {
        let (gate, closed) = watch::channel(true);
        let closed = Arc::new(closed);
        let extension = Extension::start(move |message| {
            let mut closed = closed.as_ref().clone();
            async move {
                if message.action() == "echo" {
                    closed.wait_for(|closed| !closed).await.unwrap();
                }
                Reply::data("7")
            }
        });
        let extension = extension.await;
        let (world, tenant) = World::with(&extension).await;
        let key = [("idempotency-key", "k"), ("prefer", "wait=0")];
        let waiting = tenant.call_with("ext", "echo", "{}", &[("prefer", "wait=1")]).await;
        let queued = tenant.call_with("ext", "echo", "{}", &key).await;
        assert_eq!((waiting.status, queued.status), (202, 202));
        extension.await_requests("echo", 2).await;
        world.clock.jump(jump);
        let tenant = world.operator.tenant_of(&tenant.oid).await;
        // A repeat finds it running.
        assert_eq!(tenant.call_with("ext", "echo", "{}", &key).await.status, 202);
        gate.send(false).unwrap();
        for answer in [waiting, queued] {
            let record = tenant.ended(answer.json()["id"].as_str().unwrap()).await;
            assert_eq!((&record["status"], &record["data"]), (&"succeeded".into(), &7.into()));
        }
        world.settled().await;
        assert_eq!(extension.requests("echo").len(), 2);
    }
}

#[tokio::test]
async fn a_token_ends_when_the_clock_says_so_and_a_clock_set_back_ends_none() {
    let extension = Extension::echo().await;
    let (world, tenant) = World::with(&extension).await;
    world.clock.jump(-HOUR);
    tenant.call("ext", "echo", "{}").await.ok();
    world.clock.jump(2 * HOUR + 5);
    let (status, code, text) = tenant.call("ext", "echo", "{}").await.fault();
    assert_eq!(
        (status, code.as_str(), text.as_str()),
        (401, "unauthenticated", "the token has expired")
    );
    let tenant = world.operator.tenant_of(&tenant.oid).await;
    tenant.call("ext", "echo", "{}").await.ok();
}

#[tokio::test]
async fn one_idempotency_key_stays_one_call_whichever_way_the_clock_is_set() {
    let extension = Extension::start(|_| async {
        Reply::ok(r#""data":{},"metrics":{"metrics":[{"sku":"s","value":1}]}"#)
    });
    let extension = extension.await;
    let (world, tenant) = World::with(&extension).await;
    world.settled().await;
    let metered = tenant.usage().await[0].1;
    let mut tenant = tenant;
    let key = [("idempotency-key", "k")];
    for jump in [0, HOUR, -2 * HOUR, HOUR] {
        world.clock.jump(jump);
        tenant = world.operator.tenant_of(&tenant.oid).await;
        tenant.call_with("ext", "echo", "{}", &key).await.ok();
    }
    world.settled().await;
    assert_eq!(extension.requests("echo").len(), 1);
    assert_eq!(tenant.usage().await, [("ext:s".to_owned(), metered + 1)]);
}

fn updates(extension: &Extension) -> usize {
    extension.seen().iter().filter(|message| message.event() == "update").count()
}

/// Seconds until the middle of the hour in which an organization's update is due next.
fn until_due(world: &World, tenant: &Tenant) -> i64 {
    let slot = i64::from(keys::slot(Oid::parse(&tenant.oid).unwrap())) * 60;
    (slot - world.clock.now().secs()).rem_euclid(86_400)
}

// covers: LC-106
#[tokio::test]
async fn the_daily_update_goes_out_once_a_day_whichever_way_the_clock_is_set() {
    let extension = Extension::echo().await;
    let (world, tenant) = World::with(&extension).await;
    let daily = Daily::new(world.platform().calls().clone());
    daily.tick().await.unwrap();
    assert_eq!(updates(&extension), 0);
    // An hour in which it was due is over at once.
    let due = until_due(&world, &tenant);
    world.clock.jump(due + 1_800);
    daily.tick().await.unwrap();
    until("the update", || async { (updates(&extension) == 1).then_some(()) }).await;
    for jump in [-HOUR, HOUR, -HOUR, 2 * HOUR] {
        world.clock.jump(jump);
        daily.tick().await.unwrap();
        world.settled().await;
        assert_eq!(updates(&extension), 1, "{jump}");
    }
    // The next day has its own.
    world.clock.jump(86_400 - HOUR);
    daily.tick().await.unwrap();
    until("the next update", || async { (updates(&extension) == 2).then_some(()) }).await;
    world.settled().await;
    assert_eq!(updates(&extension), 2);
}
