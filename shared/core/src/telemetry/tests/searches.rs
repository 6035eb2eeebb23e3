//! Listing and searching events.

use super::*;

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
