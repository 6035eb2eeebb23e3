//! Rules that call extensions.

use super::*;

fn respond(data: &Value) -> Value {
    json!({"detect": {"event": "LOGIN", "op": "is", "path": "event/user", "value": "root"},
        "respond": [{"action": "report", "name": "seen"},
            {"action": "extension request", "extension name": NAME, "extension action": "scan",
             "extension request": data}]})
}

/// The messages sent since the last look: each a call.
fn sent(world: &World) -> Vec<Value> {
    let sent = world.store.take_sent();
    let read = |sent: crate::ports::Outgoing| {
        assert_eq!((sent.queue, sent.delay), (QueueName::Dispatch, Duration::ZERO));
        serde_json::from_str(&sent.body).expect("a message is JSON")
    };
    sent.into_iter().map(read).collect()
}

/// The value of the first member of this name anywhere in a message.
fn part<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    match value {
        Value::Object(members) => {
            members.get(name).or_else(|| members.values().find_map(|value| part(value, name)))
        }
        _ => None,
    }
}

// LC-127, LC-129 to LC-131, LC-140: a match leads to an ordinary call without a user.
#[tokio::test]
async fn a_matched_event_calls_the_extension() {
    let world = World::new().await;
    world.provision().await;
    world
        .rule("r", respond(&json!({"user": "event.user", "host": "{{ .routing.hostname }}"})))
        .await;
    world.post(r#"{"event_type":"LOGIN","user":"guest"}"#).await.unwrap();
    world.post(r#"{"event_type":"LOGOUT","user":"root"}"#).await.unwrap();
    assert_eq!(sent(&world), Vec::<Value>::new());
    world.post(r#"[{"event_type":"LOGIN","user":"root"},{"event_type":"LOGIN"}]"#).await.unwrap();
    let calls = sent(&world);
    assert_eq!(calls.len(), 1);
    assert_eq!(part(&calls[0], "action"), Some(&json!("scan")));
    assert_eq!(part(&calls[0], "extension"), Some(&json!(NAME)));
    assert_eq!(part(&calls[0], "oid"), Some(&json!(OID)));
    assert_eq!(part(&calls[0], "ident"), Some(&json!("DR:dr-general.r")));
    let data = part(&calls[0], "data").expect("data").to_string();
    assert!(data.contains(r#"{"user":"root","host":"ext-demo"}"#), "{data}");
}

#[tokio::test]
async fn a_change_of_a_rule_holds_for_the_next_event() {
    let world = World::new().await;
    world.provision().await;
    let event = r#"{"event_type":"LOGIN","user":"root"}"#;
    let calls = async || {
        world.post(event).await.unwrap();
        sent(&world).iter().map(|call| part(call, "data").unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(calls().await.len(), 0);
    world.rule("r", respond(&json!({"n": 1}))).await;
    assert!(calls().await[0].contains(r#"{"n":1}"#));
    world.rule("r", respond(&json!({"n": 2}))).await;
    assert!(calls().await[0].contains(r#"{"n":2}"#));
    let off = UserMetadata { enabled: false, ..UserMetadata::default() };
    let change = Change { user: Some(off), ..Change::default() };
    hive::set(world.ports(), world.oid, hive::RULES, "r", change, "a").await.unwrap();
    assert_eq!(calls().await.len(), 0);
}

#[tokio::test]
async fn a_repeated_delivery_names_its_calls_alike() {
    let world = World::new().await;
    world.provision().await;
    world.rule("r", respond(&json!({}))).await;
    let keyed = Delivery {
        body: br#"{"event_type":"LOGIN","user":"root"}"#,
        idempotency_key: Some("k"),
        ..delivery()
    };
    world.receive(keyed).await.unwrap();
    assert_eq!(sent(&world).len(), 1);
    world.receive(keyed).await.unwrap();
    assert_eq!(sent(&world), Vec::<Value>::new());
}

#[tokio::test]
async fn requests_that_a_rule_cannot_make_become_one_error_of_the_organization() {
    let world = World::new().await;
    world.provision().await;
    world.rule("r", respond(&json!({"all": "event"}))).await;
    // An event whose request has just so many bytes of data: `{"all":` and `}` stand around the event.
    let event = |data: usize| {
        let bare = r#"{"event_type":"LOGIN","user":"root","pad":""}"#;
        bare.replace(r#""""#, &format!("\"{}\"", "x".repeat(data - 8 - bare.len())))
    };
    world.post(&event(RULE_DATA_BYTES_MAX)).await.unwrap();
    assert_eq!(sent(&world).len(), 1);
    for _ in 0..2 {
        world.post(&event(RULE_DATA_BYTES_MAX + 1)).await.unwrap();
        assert_eq!(sent(&world).len(), 0);
    }
    let errors = crate::org_errors::list(world.ports(), world.oid).await.unwrap();
    let errors: Vec<_> = errors.iter().map(|e| (e.component.as_str(), e.error.as_str())).collect();
    assert_eq!(
        errors,
        [("dr-general", "a request that a rule makes is too large; it was not made")]
    );
}
