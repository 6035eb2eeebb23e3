//! The tap's units against those that the emulator reports, and what our own commits cost.

use annex_aws::tap::Tap;
use annex_aws::testing::is_available;
use annex_core::ports::{Key, Query, Scan, Store as _, When};
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, ConsumedCapacity, ReturnConsumedCapacity};

use crate::bench::{Bench, put, tally};

const TOTAL: ReturnConsumedCapacity = ReturnConsumedCapacity::Total;

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn units(consumed: Option<ConsumedCapacity>) -> f64 {
    consumed.and_then(|consumed| consumed.capacity_units).expect("the emulator reports units")
}

/// Units of the only request since the last call.
fn billed(tap: &Tap) -> f64 {
    let seen = tap.take_seen();
    assert_eq!(seen.len(), 1);
    f64::from(u32::try_from(seen[0].tally.write_units).unwrap()) + seen[0].tally.read_units
}

#[tokio::test]
async fn units_are_those_that_the_emulator_reports() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let (client, table) = (&bench.clients.dynamodb, &bench.sandbox.table);
    // Beside the data an item has 2 names of 2 bytes, one of 4, and keys of 1 byte each.
    for size in [0, 1_014, 1_015, 3_000, 4_086, 4_087, 100_000] {
        let sort = format!("{}", size % 10);
        let data = AttributeValue::B(Blob::new(vec![7; size]));
        let request = client.put_item().table_name(table).item("pk", text("p"));
        let request = request.item("sk", text(&sort)).item("data", data);
        let answer = request.return_consumed_capacity(TOTAL).send().await.unwrap();
        assert_eq!(billed(&bench.tap), units(answer.consumed_capacity), "put of {size}");
        // The emulator reports one unit of a read, however large; AWS counts each 4 KB that is begun.
        let pages = (size + 10).div_ceil(4_096).max(1);
        let pages = f64::from(u32::try_from(pages).unwrap());
        for consistent in [true, false] {
            let request = client.get_item().table_name(table).consistent_read(consistent);
            let request = request.key("pk", text("p")).key("sk", text(&sort));
            let answer = request.return_consumed_capacity(TOTAL).send().await.unwrap();
            let expected = units(answer.consumed_capacity) * pages;
            assert_eq!(billed(&bench.tap), expected, "get of {size}");
        }
        let request = client.query().table_name(table).consistent_read(true);
        let request = request.key_condition_expression("#p = :p");
        let request = request.expression_attribute_names("#p", "pk");
        let request = request.expression_attribute_values(":p", text("p"));
        let answer = request.return_consumed_capacity(TOTAL).send().await.unwrap();
        let expected = units(answer.consumed_capacity) * pages;
        assert_eq!(billed(&bench.tap), expected, "query with {size}");
        let data = AttributeValue::B(Blob::new(vec![7; size / 2]));
        let request = client.update_item().table_name(table);
        let request = request.key("pk", text("p")).key("sk", text(&sort));
        let request = request.update_expression("SET #d = :d ADD #n :n");
        let request = request.expression_attribute_names("#d", "data");
        let request = request.expression_attribute_names("#n", "c_n");
        let request = request.expression_attribute_values(":d", data);
        let request = request.expression_attribute_values(":n", AttributeValue::N("1".to_owned()));
        let answer = request.return_consumed_capacity(TOTAL).send().await.unwrap();
        assert_eq!(billed(&bench.tap), units(answer.consumed_capacity), "update of {size}");
        let request = client.delete_item().table_name(table);
        let request = request.key("pk", text("p")).key("sk", text(&sort));
        let answer = request.return_consumed_capacity(TOTAL).send().await.unwrap();
        assert_eq!(billed(&bench.tap), units(answer.consumed_capacity), "delete of {size}");
    }
}

#[tokio::test]
async fn our_commits_cost_what_the_design_says() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let key = |n: usize| Key::new("p", n.to_string());
    let data = [7; 950];
    let large = vec![7; 10_000];
    let one = |write| vec![write];
    for (case, writes, expected) in [
        ("a claim", one(put(&key(1), &data, When::Absent)), 1),
        ("a repeat", one(put(&key(1), &data, When::Absent)), 1),
        ("a settlement", one(put(&key(1), &data, When::Revision(1))), 1),
        ("a settlement of a longer text", one(put(&key(1), &large, When::Revision(2))), 10),
        ("a short text in place of a longer one", one(put(&key(1), b"", When::Revision(3))), 10),
        ("a count", one(tally(&key(2), &[("n", 1)])), 1),
        ("a transaction of two", vec![put(&key(3), b"", When::Absent), tally(&key(4), &[])], 4),
        ("a lost one", vec![put(&key(3), b"", When::Absent), tally(&key(4), &[])], 4),
    ] {
        bench.write(writes).await.unwrap();
        let seen = bench.tap.take_seen();
        assert_eq!((seen.len(), seen[0].tally.write_units), (1, expected), "{case}");
    }
    bench.store.get(&key(1)).await.unwrap();
    bench.store.query(Query::prefix("p", "")).await.unwrap();
    bench.store.scan(Scan::prefix("p")).await.unwrap();
    let reads: Vec<f64> = bench.tap.take_seen().iter().map(|seen| seen.tally.read_units).collect();
    assert_eq!(reads, [1.0, 1.0, 1.0]);
}
