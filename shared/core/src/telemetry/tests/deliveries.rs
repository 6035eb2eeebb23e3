//! What is posted to an adapter.

use super::*;

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
