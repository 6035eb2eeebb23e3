//! Adapters and installation keys.

use super::*;

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
