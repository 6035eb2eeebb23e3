//! An extension, an install or a secret that goes away while its call is queued: the call ends as failed, the
//! organization learns why, and nothing is lost or left behind.

use std::sync::Arc;

use annex_core::limits::DELIVERIES_PER_EXTENSION_MAX;
use annex_tests::extension::{Extension, Reply};
use annex_tests::platform::{Tenant, World};
use annex_tests::wait::until;
use futures_util::future::join_all;
use tokio::sync::watch;

const REFERENCE: &str = r#"{"key":"hive://secret/vendor"}"#;

/// What goes away.
#[derive(Debug, Clone, Copy)]
enum Gone {
    Extension,
    Install,
    Secret,
}

impl Gone {
    const ALL: [Self; 3] = [Self::Extension, Self::Install, Self::Secret];

    async fn delete(self, world: &World, tenant: &Tenant) {
        let oid = &tenant.oid;
        let answer = match self {
            Self::Extension => {
                world.operator.form("DELETE", "/v1/extension/definition/ext", &[]).await
            }
            Self::Install => {
                let path = format!("/v1/orgs/{oid}/subscription/extension/ext");
                tenant.form("DELETE", &path, &[]).await
            }
            Self::Secret => {
                tenant.form("DELETE", &format!("/v1/hive/secret/{oid}/vendor"), &[]).await
            }
        };
        answer.ok();
    }

    /// What its calls fail with.
    fn text(self) -> &'static str {
        match self {
            Self::Extension => "unknown extension: ext",
            Self::Install => "organization is not subscribed to extension ext",
            Self::Secret => "secret not set or is not of type string: vendor",
        }
    }
}

/// The call that is queued ends as a failed record and an error of the organization.
async fn check_failed(world: &World, tenant: &Tenant, gone: Gone, id: &str, action: &str) {
    let record = tenant.ended(id).await;
    assert_eq!((&record["status"], &record["error"]), (&"failed".into(), &gone.text().into()));
    tenant.await_error(&format!("ext.{action}"), gone.text()).await;
    world.settled().await;
}

async fn check_queued(gone: Gone) {
    let (gate, closed) = watch::channel(true);
    let closed = Arc::new(closed);
    let extension = Extension::start(move |message| {
        let mut closed = closed.as_ref().clone();
        async move {
            if message.action() == "other" {
                closed.wait_for(|closed| !closed).await.unwrap();
            }
            Reply::data("{}")
        }
    });
    let extension = extension.await;
    let (world, tenant) = World::with_at_speed(&extension, 20).await;
    tenant.set_secret("vendor", "a-secret-value").await;
    // Its places are taken, so that what comes now stays in the queue.
    let blocking =
        (0..DELIVERIES_PER_EXTENSION_MAX).map(|_| tenant.call_async("ext", "other", "{}"));
    let blocking = join_all(blocking).await;
    extension.await_requests("other", DELIVERIES_PER_EXTENSION_MAX).await;
    let id = tenant.call_async("ext", "echo", REFERENCE).await;
    assert_eq!(tenant.record(&id).await["status"], "queued");
    gone.delete(&world, &tenant).await;
    gate.send(false).unwrap();
    check_failed(&world, &tenant, gone, &id, "echo").await;
    assert_eq!(extension.requests("echo").len(), 0);
    for id in blocking {
        assert_eq!(tenant.ended(&id).await["status"], "succeeded");
    }
}

#[tokio::test]
async fn a_queued_call_whose_extension_is_withdrawn_fails() {
    check_queued(Gone::Extension).await;
}

#[tokio::test]
async fn a_queued_call_whose_install_is_removed_fails() {
    check_queued(Gone::Install).await;
}

#[tokio::test]
async fn a_queued_call_whose_secret_is_deleted_fails() {
    check_queued(Gone::Secret).await;
}

#[tokio::test]
async fn a_call_put_off_by_429_fails_when_what_it_needs_is_gone_by_then() {
    for gone in Gone::ALL {
        let extension = Extension::start(|message| async move {
            match message.action() {
                "echo" => Reply::status(429, ""),
                _ => Reply::data("{}"),
            }
        });
        let extension = extension.await;
        let (world, tenant) = World::with_at_speed(&extension, 20).await;
        tenant.set_secret("vendor", "a-secret-value").await;
        let id = tenant.call_async("ext", "echo", REFERENCE).await;
        until("a 429", || async {
            (tenant.record(&id).await["status"] == "waiting").then_some(())
        })
        .await;
        gone.delete(&world, &tenant).await;
        check_failed(&world, &tenant, gone, &id, "echo").await;
        assert_eq!(extension.requests("echo").len(), 1);
    }
}

#[tokio::test]
async fn a_continuation_whose_extension_install_or_secret_is_gone_is_filed_and_not_lost() {
    for gone in Gone::ALL {
        let extension = Extension::start(|message| async move {
            match message.action() {
                "echo" => {
                    Reply::ok(r#""data":{},"continuations":[{"in_delay_sec":20,"action":"more"}]"#)
                }
                _ => Reply::data("{}"),
            }
        });
        let extension = extension.await;
        let (world, tenant) = World::with_at_speed(&extension, 20).await;
        // The secret is one of the configuration, which each message carries.
        tenant.set_secret("vendor", "a-secret-value").await;
        let path = format!("/v1/hive/extension_config/{}/ext/data", tenant.oid);
        let config = r#"{"api_key":"hive://secret/vendor"}"#;
        tenant.form("POST", &path, &[("data", config)]).await.ok();
        tenant.call("ext", "echo", "{}").await.ok();
        gone.delete(&world, &tenant).await;
        tenant.await_error("ext.more", gone.text()).await;
        world.settled().await;
        assert_eq!(extension.requests("more").len(), 0);
    }
}

#[tokio::test]
async fn a_secret_that_is_no_text_or_disabled_is_refused_like_a_missing_one() {
    let extension = Extension::echo().await;
    let (_world, tenant) = World::with(&extension).await;
    let path = format!("/v1/hive/secret/{}/vendor/data", tenant.oid);
    let text = "secret not set or is not of type string: vendor";
    let call = async || tenant.call("ext", "echo", REFERENCE).await;
    let refused = (400, "secret-missing".to_owned(), text.to_owned());
    assert_eq!(call().await.fault(), refused);
    let disabled = [("data", r#"{"secret":"a-value"}"#), ("usr_mtd", r#"{"enabled":false}"#)];
    tenant.form("POST", &path, &disabled).await.ok();
    assert_eq!(call().await.fault(), refused);
    let enabled = [("data", r#"{"secret":"a-value"}"#), ("usr_mtd", r#"{"enabled":true}"#)];
    tenant.form("POST", &path, &enabled).await.ok();
    call().await.ok();
    assert_eq!(extension.requests("echo").len(), 1);
}

#[tokio::test]
async fn an_install_that_comes_back_works_again() {
    let extension = Extension::echo().await;
    let (world, tenant) = World::with(&extension).await;
    Gone::Install.delete(&world, &tenant).await;
    let (status, code, _) = tenant.call("ext", "echo", "{}").await.fault();
    assert_eq!((status, code.as_str()), (403, "not-subscribed"));
    tenant.subscribe("ext").await;
    tenant.call("ext", "echo", "{}").await.ok();
    until("both subscribe events and the one between", || async {
        let events: Vec<_> = extension.seen().iter().map(|m| m.event().to_owned()).collect();
        let count = |name: &str| events.iter().filter(|event| *event == name).count();
        ((count("subscribe"), count("unsubscribe")) == (2, 1)).then_some(())
    })
    .await;
    Gone::Extension.delete(&world, &tenant).await;
    assert_eq!(tenant.call("ext", "echo", "{}").await.fault().0, 404);
    world.operator.register("ext", &extension).await;
    tenant.call("ext", "echo", "{}").await.ok();
}
