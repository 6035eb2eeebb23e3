//! Documented webhooks of capability extensions, over restarts of the process.

use std::sync::Mutex;

use annex_core::call::{CallSettings, Calls};
use annex_core::capability::extensions::{self, ExtensionInput};
use annex_core::capability::id::{LockId, Slug};
use annex_core::capability::sessions::{self, NewSession};
use annex_core::ports::{
    Handler, Message, Outbound, Ports, SendFault, Undone, WebhookAnswer, WebhookRequest,
};
use annex_core::testkit::{FixedKeyring, Inline, MemoryBlobs, SeededIds};
use annex_core::{org_errors, orgs};
use async_trait::async_trait;
use tokio::sync::{Notify, watch};

use super::*;
use crate::ConsumerOptions;

/// An endpoint that fails, and keeps when it was asked.
struct Failing {
    clock: Arc<ManualClock>,
    asked: Mutex<Vec<u64>>,
    came: Notify,
}

#[async_trait]
impl Outbound for Failing {
    fn check_url(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    async fn send(&self, _: WebhookRequest) -> Result<WebhookAnswer, SendFault> {
        let at = self.clock.now().since(Timestamp::from_secs(1_700_000_000));
        self.asked.lock().unwrap().push(at.as_secs() / 60);
        self.came.notify_one();
        Ok(WebhookAnswer { status: 500, retry_after: None, body: Default::default() })
    }
}

struct Work(Calls);

#[async_trait]
impl Handler for Work {
    async fn handle(&self, batch: Vec<Message>) -> Vec<Undone> {
        self.0.work_batch(batch).await
    }
}

fn ports(store: &Arc<Embedded>, clock: &Arc<ManualClock>, outbound: &Arc<Failing>) -> Ports {
    Ports {
        store: store.clone(),
        dead_letters: store.clone(),
        blobs: Arc::new(MemoryBlobs::new(clock.clone())),
        keyring: Arc::new(FixedKeyring::new()),
        clock: clock.clone(),
        ids: Arc::new(SeededIds::new(3)),
        outbound: outbound.clone(),
    }
}

#[tokio::test]
async fn a_webhook_is_tried_five_times_though_the_process_starts_anew_after_each() {
    let (clock, medium) = (clock(), FaultyMedium::default());
    let outbound =
        Arc::new(Failing { clock: clock.clone(), asked: Mutex::default(), came: Notify::new() });
    let oid = {
        let ports = ports(&open_on(&medium, &clock), &clock, &outbound);
        let oid = orgs::create(&ports, "o", "", None).await.unwrap().oid;
        let input = br#"{"contract":"chaster","name":"dice","url":"https://dice.example"}"#;
        extensions::create(&ports, ExtensionInput::parse(input).unwrap()).await.map(drop).unwrap();
        let extension = Slug::parse("dice").unwrap();
        let new = NewSession { extension, has_keyholder: None, config: None };
        sessions::create(&ports, oid, &LockId::parse("l-1").unwrap(), new).await.unwrap();
        oid
    };
    for minutes in [1, 2, 4, 8, 0] {
        let store = open_on(&medium, &clock);
        let ports = ports(&store, &clock, &outbound);
        let calls = Calls::new(ports, Arc::new(Inline), CallSettings::default());
        let (shutdown, stop) = watch::channel(false);
        let consumers = [QueueName::Dispatch, QueueName::Resume].map(|queue| {
            let handler = Arc::new(Work(calls.clone()));
            let options = ConsumerOptions { batch_size: 1, ..ConsumerOptions::default() };
            tokio::spawn(store.clone().consume(queue, handler, options, stop.clone()))
        });
        outbound.came.notified().await;
        shutdown.send(true).unwrap();
        for consumer in consumers {
            consumer.await.unwrap();
        }
        clock.advance(Duration::from_secs(minutes * 60));
    }
    assert_eq!(*outbound.asked.lock().unwrap(), [0, 1, 3, 7, 15]);
    let ports = ports(&open_on(&medium, &clock), &clock, &outbound);
    let errors = org_errors::list(&ports, oid).await.unwrap();
    assert_eq!((errors.len(), errors[0].component.as_str()), (1, "dice:webhook"));
}
