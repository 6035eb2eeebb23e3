use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::*;
use crate::extensions::{self, DefinitionInput};
use crate::fault::{Code, Fault};
use crate::hive::{self, CLOUD_SENSOR, Change};
use crate::ids::{ExtensionName, Oid};
use crate::keys;
use crate::limits::TELEMETRY_RETENTION;
use crate::model::{Subscription, UserMetadata};
use crate::ports::{Commit, Outbound, SendFault, WebhookAnswer, WebhookRequest, When, Write};
use crate::stored;
use crate::testkit::{FixedKeyring, ManualClock, MemoryBlobs, MemoryStore, SeededIds};
use crate::time::Timestamp;
use installation_keys::InstallationKeyInput;

const SECRET: &str = "test-secret-0123456789abcdef0123";
const OID: &str = "8cbe27f4-0000-4000-8000-138cd51389cd";
const OTHER: &str = "8cbe27f4-0000-4000-8000-138cd51389ce";
const NAME: &str = "ext-demo";
/// From limacharlie-wire 5.
const WEBHOOK_SECRET: &str = "7d0b11e04f94747e46fa3085a411e76f0160c93ff6a25b3ae86ad7918362b0f7";
const START: Timestamp = Timestamp::from_secs(1_700_000_000);

struct NoWay;

#[async_trait]
impl Outbound for NoWay {
    fn check_url(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    async fn send(&self, _: WebhookRequest) -> Result<WebhookAnswer, SendFault> {
        Err(SendFault::NotSent("there is no network here".to_owned()))
    }
}

struct World {
    telemetry: Telemetry,
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
    extension: ExtensionName,
    oid: Oid,
}

impl World {
    async fn new() -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let ports = Ports {
            store: store.clone(),
            blobs: Arc::new(MemoryBlobs::new(clock.clone())),
            keyring: Arc::new(FixedKeyring::new()),
            clock: clock.clone(),
            ids: Arc::new(SeededIds::new(1)),
            outbound: Arc::new(NoWay),
        };
        let input = json!({ "name": NAME, "url": "https://e.example", "secret": SECRET });
        let input = DefinitionInput::parse(input.to_string().as_bytes()).unwrap();
        extensions::create(&ports, input).await.unwrap();
        let calls = Calls::new(
            ports.clone(),
            Arc::new(crate::testkit::Inline),
            crate::call::CallSettings::default(),
        );
        let world = Self {
            telemetry: Telemetry::new(ports, calls, TELEMETRY_RETENTION),
            clock,
            store,
            extension: ExtensionName::parse(NAME).unwrap(),
            oid: Oid::parse(OID).unwrap(),
        };
        world.subscribe(world.oid).await;
        world
    }

    fn ports(&self) -> &Ports {
        self.telemetry.ports()
    }

    async fn subscribe(&self, oid: Oid) {
        let install = Subscription {
            extension: self.extension.clone(),
            created_at: START,
            generation: 1,
            removed_at: None,
        };
        let write = Write::Put {
            key: keys::subscription(oid, &self.extension),
            data: stored::bytes(&install),
            expires_at: None,
            when: When::Always,
        };
        let commit = Commit { writes: vec![write], ..Commit::default() };
        self.ports().store.commit(commit).await.unwrap();
    }

    async fn provision(&self) -> adapter::Provisioned {
        self.telemetry.provision(self.oid, &self.extension, None, "a").await.unwrap()
    }

    async fn adapter(&self, name: &str, data: Value, user: UserMetadata) {
        let data = Some(Zeroizing::new(data.to_string()));
        let change = Change { data, user: Some(user), etag: None };
        hive::set(self.ports(), self.oid, CLOUD_SENSOR, name, change, "a").await.unwrap();
    }

    async fn rule(&self, name: &str, data: Value) {
        let data = data.to_string();
        hive::check(hive::RULES, &data).unwrap();
        let change = Change {
            data: Some(Zeroizing::new(data)),
            user: Some(UserMetadata::default()),
            etag: None,
        };
        hive::set(self.ports(), self.oid, hive::RULES, name, change, "a").await.unwrap();
    }

    async fn post(&self, body: &str) -> Result<usize, Fault> {
        self.receive(Delivery { body: body.as_bytes(), ..delivery() }).await
    }

    async fn receive(&self, delivery: Delivery<'_>) -> Result<usize, Fault> {
        self.telemetry.receive(delivery).await.map(|received| received.events)
    }

    async fn search(&self, query: EventQuery) -> EventPage {
        self.telemetry.events(self.oid, &query).await.unwrap()
    }

    /// The events that came, oldest first, without their envelopes.
    async fn events(&self) -> Vec<String> {
        let query = EventQuery { oldest_first: true, limit: Some(1000), ..EventQuery::default() };
        self.search(query).await.events.iter().map(|text| bare(text)).collect()
    }
}

fn delivery() -> Delivery<'static> {
    Delivery {
        oid: OID,
        adapter: NAME,
        secret: WEBHOOK_SECRET,
        encoding: None,
        body: b"{}",
        idempotency_key: None,
    }
}

fn bare(envelope: &str) -> String {
    let start = "{\"event\":";
    let end = envelope.rfind(",\"routing\":").expect("an envelope");
    envelope[start.len()..end].to_owned()
}

fn no_adapter() -> Result<usize, Fault> {
    Err(Fault::new(Code::NotFound, "there is no such adapter"))
}

fn webhook(secret: &str, mapping: Value) -> Value {
    json!({"sensor_type": "webhook", "webhook": {"secret": secret, "client_options": {
        "hostname": "h", "identity": {"oid": OID, "installation_key": "x"},
        "platform": "json", "sensor_seed_key": "s", "mapping": mapping}}})
}

#[test]
fn the_webhook_secret_is_the_hash_of_shared_secret_and_oid() {
    assert_eq!(*adapter::webhook_secret(SECRET, Oid::parse(OID).unwrap()), WEBHOOK_SECRET);
}

// LC-115 to LC-118, LC-120, LC-121.
#[tokio::test]
async fn an_adapter_is_provisioned_once_and_removed_whole() {
    let world = World::new().await;
    let tags = vec!["lc:system".to_owned(), "ext:ext-demo".to_owned()];
    let made = world.provision().await;
    assert_eq!(made.path, format!("/hook/{OID}/{NAME}/{WEBHOOK_SECRET}"));
    assert_eq!(made.tags, tags);
    assert_eq!(world.provision().await, made);

    let keys = installation_keys::list(world.ports(), world.oid).await.unwrap();
    assert_eq!(keys.len(), 1);
    assert_eq!(keys[0].iid, made.installation_key);
    assert_eq!(keys[0].desc, "ext ext-demo webhook adapter");
    assert_eq!(keys[0].tags, tags);
    let record = hive::get(world.ports(), world.oid, CLOUD_SENSOR, NAME).await.unwrap().unwrap();
    assert_eq!(record.user.tags, tags);
    assert!(record.user.enabled);
    assert_eq!(
        serde_json::from_str::<Value>(&record.data).unwrap(),
        json!({"sensor_type": "webhook", "webhook": {"secret": WEBHOOK_SECRET, "client_options": {
            "hostname": NAME, "identity": {"oid": OID, "installation_key": made.installation_key},
            "platform": "json", "sensor_seed_key": NAME, "mapping": {}}}})
    );

    assert_eq!(world.post("{}").await, Ok(1));
    let other = Delivery { oid: OTHER, ..delivery() };
    assert_eq!(world.receive(other).await, no_adapter());
    for _ in 0..2 {
        world.telemetry.unprovision(world.oid, &world.extension).await.unwrap();
        assert_eq!(world.post("{}").await, no_adapter());
        assert_eq!(installation_keys::list(world.ports(), world.oid).await, Ok(vec![]));
    }
    assert_eq!(world.events().await, ["{}"]);
}

#[tokio::test]
async fn keys_that_the_extension_made_itself_are_kept_and_made_one() {
    let world = World::new().await;
    let mut made = Vec::new();
    for _ in 0..3 {
        let input = InstallationKeyInput {
            desc: "ext ext-demo webhook adapter".to_owned(),
            tags: vec!["lc:system".to_owned(), "ext:ext-demo".to_owned()],
            ..InstallationKeyInput::default()
        };
        made.push(installation_keys::create(world.ports(), world.oid, input).await.unwrap());
    }
    let other = InstallationKeyInput { desc: "mine".to_owned(), ..InstallationKeyInput::default() };
    let other = installation_keys::create(world.ports(), world.oid, other).await.unwrap();
    let kept = world.provision().await.installation_key;
    assert!(made.contains(&kept));
    let left = installation_keys::list(world.ports(), world.oid).await.unwrap();
    let mut left: Vec<_> = left.into_iter().map(|key| key.iid).collect();
    left.sort();
    let mut expected = vec![kept, other];
    expected.sort();
    assert_eq!(left, expected);
}

#[tokio::test]
async fn an_adapter_needs_a_definition_and_a_subscription() {
    let world = World::new().await;
    let other = Oid::parse(OTHER).unwrap();
    let refused = world.telemetry.provision(other, &world.extension, None, "a").await;
    assert_eq!(refused.map_err(|fault| fault.code), Err(Code::NotSubscribed));
    let nobody = ExtensionName::parse("nobody").unwrap();
    let refused = world.telemetry.provision(world.oid, &nobody, None, "a").await;
    assert_eq!(refused.map_err(|fault| fault.code), Err(Code::NotFound));
    let refused = world.telemetry.provision(world.oid, &world.extension, Some("["), "a").await;
    assert_eq!(refused.map_err(|fault| fault.code), Err(Code::BadRequest));
}

#[tokio::test]
async fn installation_keys_are_read_as_real_clients_want_them() {
    let world = World::new().await;
    let input = InstallationKeyInput {
        desc: "d".to_owned(),
        // limacharlie 5 sends one list, limacharlie 4 sends fields.
        tags: vec!["a, b".to_owned(), "c".to_owned(), "a".to_owned(), String::new()],
        use_public_root_ca: true,
        iid: None,
    };
    let iid = installation_keys::create(world.ports(), world.oid, input.clone()).await.unwrap();
    let keys = installation_keys::list(world.ports(), world.oid).await.unwrap();
    let view = installation_keys::view_all(world.oid, &keys);
    let text = view[OID][&iid]["key"].clone();
    assert_eq!(
        view,
        json!({OID: {&iid: {"iid": iid, "desc": "d", "tags": "a,b,c", "key": text,
            "json_key": text, "created": 1_700_000_000, "use_public_root_ca": true}}})
    );
    let changed = InstallationKeyInput { iid: Some(iid.clone()), desc: "e".to_owned(), ..input };
    assert_eq!(
        installation_keys::create(world.ports(), world.oid, changed.clone()).await,
        Ok(iid.clone())
    );
    let key = installation_keys::get(world.ports(), world.oid, &iid).await.unwrap();
    assert_eq!(key.desc, "e");
    assert_eq!(installation_keys::delete(world.ports(), world.oid, &iid).await, Ok(()));
    let missing = Some(Code::RecordNotFound);
    let gone = installation_keys::delete(world.ports(), world.oid, &iid).await;
    assert_eq!(gone.err().map(|fault| fault.code), missing);
    let gone = installation_keys::create(world.ports(), world.oid, changed).await;
    assert_eq!(gone.err().map(|fault| fault.code), missing);
    let none = installation_keys::get(world.ports(), world.oid, "no uuid").await;
    assert_eq!(none.err().map(|fault| fault.code), missing);
    let empty = installation_keys::view_all(world.oid, &[]);
    assert_eq!(empty, json!({OID: {}}));
}

#[tokio::test]
async fn events_are_stored_byte_for_byte_in_their_order() {
    let world = World::new().await;
    world.provision().await;
    let odd = r#"{"b" : 1.0E+5,"a":123456789012345678901234567890, "b":"é"}"#;
    assert_eq!(world.post(odd).await, Ok(1));
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(world.post(r#"[{"n":1}, {"n":2}]"#).await, Ok(2));
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(world.post("{\"n\":3}\n{\"n\":4}\n").await, Ok(2));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"{\"n\":5}").unwrap();
    let gzip = gzip.finish().unwrap();
    world.clock.advance(Duration::from_millis(1));
    let posted = Delivery { body: &gzip, encoding: Some("gzip"), ..delivery() };
    assert_eq!(world.receive(posted).await, Ok(1));
    let expected = [odd, r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#, r#"{"n":4}"#, r#"{"n":5}"#];
    assert_eq!(world.events().await, expected);
}

#[tokio::test]
async fn the_envelope_says_where_an_event_comes_from() {
    let world = World::new().await;
    let iid = world.provision().await.installation_key;
    world.post(r#"{"event_type":"LOGIN"}"#).await.unwrap();
    let page = world.search(EventQuery::default()).await;
    let mut event: Value = serde_json::from_str(&page.events[0]).unwrap();
    let routing = event["routing"].as_object_mut().unwrap();
    assert!(routing.remove("event_id").is_some_and(|id| id.is_string()));
    assert!(routing.remove("sid").is_some_and(|id| id.is_string()));
    assert_eq!(
        event,
        json!({"event": {"event_type": "LOGIN"}, "routing": {"oid": OID, "iid": iid,
            "hostname": NAME, "event_type": "LOGIN", "event_time": START.millis(),
            "tags": ["lc:system", "ext:ext-demo"]}, "ts": "2023-11-14T22:13:20.000Z"})
    );
}

#[tokio::test]
async fn a_mapping_says_what_an_event_is() {
    let world = World::new().await;
    let mapping = json!({"event_type_path": "meta/kind", "event_time_path": "meta.at",
        "sensor_hostname_path": "host"});
    world.adapter("m", webhook("s", mapping), UserMetadata::default()).await;
    let checks = [
        (r#"{"meta":{"kind":"A","at":1600000000},"host":"x"}"#, "A", 1_600_000_000_000, "x"),
        (r#"{"meta":{"kind":"A","at":1600000000.5}}"#, "A", 1_600_000_000_500, "h"),
        (r#"{"meta":{"kind":"B","at":1600000000123}}"#, "B", 1_600_000_000_123, "h"),
        (r#"{"meta":{"at":"2020-09-13T12:26:40Z"},"event_type":"C"}"#, "C", 1_600_000_000_000, "h"),
        (r#"{"meta":{"kind":"","at":-1}}"#, "json", START.millis(), "h"),
        (r#"{"meta":{"kind":7,"at":1e300},"host":{}}"#, "json", START.millis(), "h"),
        (r#"{}"#, "json", START.millis(), "h"),
    ];
    for (event, kind, at, host) in checks {
        let posted = Delivery { adapter: "m", secret: "s", body: event.as_bytes(), ..delivery() };
        assert_eq!(world.receive(posted).await, Ok(1));
        world.clock.advance(Duration::from_millis(1));
        let page = world.search(EventQuery { limit: Some(1), ..EventQuery::default() }).await;
        let found: Value = serde_json::from_str(&page.events[0]).unwrap();
        let routing = &found["routing"];
        assert_eq!(routing["event_type"], kind, "{event}");
        assert_eq!(routing["hostname"], host, "{event}");
        let expected =
            if at == START.millis() { found["routing"]["event_time"].clone() } else { json!(at) };
        assert_eq!(routing["event_time"], expected, "{event}");
    }
}

#[tokio::test]
async fn whoever_does_not_know_the_secret_learns_nothing() {
    let world = World::new().await;
    world.provision().await;
    let refused = [
        Delivery { secret: "wrong", ..delivery() },
        Delivery { secret: "", ..delivery() },
        Delivery { adapter: "absent", ..delivery() },
        Delivery { adapter: "bad\0name", ..delivery() },
        Delivery { oid: "no uuid", ..delivery() },
        Delivery { oid: OTHER, ..delivery() },
        // Also with a body that would be refused.
        Delivery { secret: "wrong", body: b"x", encoding: Some("br"), ..delivery() },
    ];
    for delivery in refused {
        assert_eq!(world.receive(delivery).await, no_adapter());
    }
    let off = UserMetadata { enabled: false, ..UserMetadata::default() };
    world.adapter("off", webhook("s", json!({})), off).await;
    let expiry = START.plus(Duration::from_secs(10)).millis();
    let expiring = UserMetadata { expiry, ..UserMetadata::default() };
    world.adapter("expiring", webhook("s", json!({})), expiring).await;
    world.adapter("empty", webhook("", json!({})), UserMetadata::default()).await;
    let other = json!({"sensor_type": "s3", "s3": {"secret": "s"}});
    world.adapter("s3", other, UserMetadata::default()).await;
    let post = |adapter, secret| world.receive(Delivery { adapter, secret, ..delivery() });
    assert_eq!(post("off", "s").await, no_adapter());
    assert_eq!(post("empty", "").await, no_adapter());
    assert_eq!(post("s3", "s").await, no_adapter());
    assert_eq!(post("expiring", "s").await, Ok(1));
    world.clock.advance(Duration::from_secs(10));
    assert_eq!(post("expiring", "s").await, no_adapter());
}

#[tokio::test]
async fn a_bad_delivery_stores_nothing() {
    let world = World::new().await;
    world.provision().await;
    for body in ["", "[{},7]", "{}x", "[{}", r#"{"a":"\ud800"}"#] {
        assert!(world.post(body).await.is_err(), "{body}");
    }
    let long = "k".repeat(257);
    let keyed = |key| Delivery { idempotency_key: Some(key), ..delivery() };
    for key in ["", long.as_str()] {
        let refused = world.receive(keyed(key)).await;
        assert_eq!(refused.err().map(|fault| fault.code), Some(Code::BadRequest));
    }
    assert_eq!(world.receive(keyed(&long[..256])).await, Ok(1));
    assert_eq!(world.events().await.len(), 1);
}

#[tokio::test]
async fn a_delivery_of_the_last_accepted_size_is_stored_in_bounded_commits() {
    let world = World::new().await;
    world.provision().await;
    let many = format!("[{}]", vec!["{}"; 1000].join(","));
    assert_eq!(world.post(&many).await, Ok(1000));
    assert_eq!(world.events().await.len(), 1000);
    world.clock.advance(Duration::from_secs(1));
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(crate::limits::EVENT_BYTES_MAX - 8));
    let bodies = [large.as_str(); 40].join("\n");
    assert_eq!(world.post(&bodies).await, Ok(40));
}

#[tokio::test]
async fn a_repeated_delivery_with_a_key_stores_nothing_twice() {
    let world = World::new().await;
    world.provision().await;
    let body = format!("[{}]", vec![r#"{"n":1}"#; 120].join(","));
    let keyed = |body: &'static str, key| Delivery {
        body: body.as_bytes(),
        idempotency_key: Some(key),
        ..delivery()
    };
    let body: &'static str = body.leak();
    assert_eq!(world.receive(keyed(body, "k")).await, Ok(120));
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(world.receive(keyed(body, "k")).await, Ok(120));
    assert_eq!(world.events().await.len(), 120);
    let conflict = world.receive(keyed("{}", "k")).await;
    assert_eq!(conflict.err().map(|fault| fault.code), Some(Code::IdempotencyKeyConflict));
    assert_eq!(world.receive(keyed("{}", "l")).await, Ok(1));
    world.clock.advance(Duration::from_secs(86_400));
    assert_eq!(world.receive(keyed("{}", "k")).await, Ok(1));
    assert_eq!(world.events().await.len(), 122);
}

#[tokio::test]
async fn a_delivery_that_broke_off_is_completed_by_its_repeat() {
    let world = World::new().await;
    world.provision().await;
    world.store.refuse_writes(true);
    let keyed = Delivery { idempotency_key: Some("k"), ..delivery() };
    let refused = world.receive(keyed).await;
    assert_eq!(refused.err().map(|fault| fault.code), Some(Code::Unavailable));
    world.store.refuse_writes(false);
    assert_eq!(world.receive(keyed).await, Ok(1));
    assert_eq!(world.events().await.len(), 1);
}

#[tokio::test]
async fn events_are_searched_by_time_and_type_page_by_page() {
    let world = World::new().await;
    world.provision().await;
    // Over three days, from just before midnight.
    world.clock.set_now(Timestamp::from_secs(1_700_006_390));
    for n in 0..6 {
        let kind = if n % 2 == 0 { "EVEN" } else { "ODD" };
        world.post(&format!(r#"{{"event_type":"{kind}","n":{n}}}"#)).await.unwrap();
        world.clock.advance(Duration::from_secs(36_000));
    }
    let at = |n: i64| Some(Timestamp::from_secs(1_700_006_390 + 36_000 * n));
    let check = async |query: EventQuery, expected: &[i64]| {
        for limit in 1..=7 {
            let mut query = EventQuery { limit: Some(limit), ..query.clone() };
            let mut found = Vec::new();
            loop {
                let page = world.search(query.clone()).await;
                assert!(page.events.len() <= limit);
                found.extend(page.events.iter().map(|text| {
                    serde_json::from_str::<Value>(text).unwrap()["event"]["n"].as_i64().unwrap()
                }));
                match page.next {
                    Some(next) => query.cursor = Some(next),
                    None => break,
                }
            }
            assert_eq!(found, expected, "{query:?}");
        }
    };
    let all = EventQuery::default();
    check(all.clone(), &[5, 4, 3, 2, 1, 0]).await;
    check(EventQuery { oldest_first: true, ..all.clone() }, &[0, 1, 2, 3, 4, 5]).await;
    let between = EventQuery { from: at(1), to: at(4), ..all.clone() };
    check(between.clone(), &[3, 2, 1]).await;
    check(EventQuery { oldest_first: true, ..between.clone() }, &[1, 2, 3]).await;
    let odd = EventQuery { event_type: Some("ODD".to_owned()), ..all.clone() };
    check(odd.clone(), &[5, 3, 1]).await;
    check(EventQuery { oldest_first: true, from: at(2), ..odd }, &[3, 5]).await;
    check(EventQuery { event_type: Some("NONE".to_owned()), ..all.clone() }, &[]).await;
    check(EventQuery { from: at(4), to: at(1), ..all.clone() }, &[]).await;
    check(
        EventQuery { from: Some(Timestamp::from_millis(i64::MIN)), ..all.clone() },
        &[5, 4, 3, 2, 1, 0],
    )
    .await;
    check(EventQuery { to: Some(Timestamp::from_millis(i64::MAX)), ..all }, &[5, 4, 3, 2, 1, 0])
        .await;
}

#[tokio::test]
async fn bad_searches_are_refused() {
    let world = World::new().await;
    let refused = async |query: EventQuery| {
        world.telemetry.events(world.oid, &query).await.err().map(|fault| fault.code)
    };
    let bad = Some(Code::BadRequest);
    assert_eq!(refused(EventQuery { limit: Some(0), ..EventQuery::default() }).await, bad);
    assert_eq!(refused(EventQuery { limit: Some(1001), ..EventQuery::default() }).await, bad);
    assert_eq!(refused(EventQuery { limit: Some(1000), ..EventQuery::default() }).await, None);
    for cursor in ["", "!", "YQ", "MDAw"] {
        let query = EventQuery { cursor: Some(cursor.to_owned()), ..EventQuery::default() };
        assert_eq!(refused(query).await, bad, "{cursor}");
    }
}

#[tokio::test]
async fn events_are_gone_after_their_retention_and_never_seen_by_another_organization() {
    let world = World::new().await;
    world.provision().await;
    world.post("{}").await.unwrap();
    let other = world.telemetry.events(Oid::parse(OTHER).unwrap(), &EventQuery::default()).await;
    assert_eq!(other, Ok(EventPage::default()));
    world.clock.advance(TELEMETRY_RETENTION - Duration::from_millis(1));
    assert_eq!(world.events().await, ["{}"]);
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(world.events().await, Vec::<String>::new());
}

#[test]
fn a_page_is_one_json_text() {
    let page = EventPage { events: vec!["{\"n\":1.0}".to_owned(), "{}".to_owned()], next: None };
    assert_eq!(page.json(), r#"{"events":[{"n":1.0},{}],"next_cursor":null}"#);
    let page = EventPage { events: Vec::new(), next: Some("x".to_owned()) };
    assert_eq!(page.json(), r#"{"events":[],"next_cursor":"x"}"#);
}
