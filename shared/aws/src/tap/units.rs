//! What DynamoDB bills for a request.

use serde_json::Value;

use super::call::{Call, Service};
use super::shadow::Shadow;
use super::size::item_bytes;

/// Bytes of one write unit.
const WRITE_UNIT: usize = 1 << 10;

/// Bytes of one consistent read unit.
const READ_UNIT: usize = 4 << 10;

/// Most that one page of a scan reads, in bytes.
const PAGE_BYTES: usize = 1 << 20;

/// Write and read units of a request, by its body and its answer's; notes what it changed.
pub(super) fn bill(call: &Call, answer: &[u8], shadow: &mut Shadow) -> (u64, f64) {
    if call.service != Service::DynamoDb {
        return (0, 0.0);
    }
    let answer: Value = serde_json::from_slice(answer).unwrap_or(Value::Null);
    let fault = answer["__type"].as_str().map(|kind| kind.rsplit('#').next().unwrap_or(kind));
    let is_done = fault.is_none();
    let is_refused =
        matches!(fault, Some("ConditionalCheckFailedException" | "TransactionCanceledException"));
    if !is_done && !is_refused {
        return (0, 0.0);
    }
    let body = &call.body;
    match call.operation.as_str() {
        "PutItem" => (put(body, is_done, shadow), 0.0),
        "UpdateItem" => (update(body, is_done, shadow), 0.0),
        "DeleteItem" => (delete(body, is_done, shadow), 0.0),
        "TransactWriteItems" => {
            let writes = body["TransactItems"].as_array().into_iter().flatten();
            let units =
                writes.map(|write| match write.as_object().and_then(|it| it.iter().next()) {
                    Some((kind, write)) if kind == "Put" => put(write, is_done, shadow),
                    Some((kind, write)) if kind == "Update" => update(write, is_done, shadow),
                    Some((kind, write)) if kind == "Delete" => delete(write, is_done, shadow),
                    _ => 1,
                });
            (2 * units.sum::<u64>(), 0.0)
        }
        "GetItem" => {
            let bytes = answer["Item"].as_object().map_or(0, item_bytes);
            (0, reads(bytes, body))
        }
        // Each item for itself, and one that is not there as the smallest.
        "BatchGetItem" => {
            let tables = body["RequestItems"].as_object().into_iter().flatten();
            let units = tables.map(|(table, asked)| {
                let keys = asked["Keys"].as_array().map_or(0, Vec::len);
                let left = answer["UnprocessedKeys"][table]["Keys"].as_array().map_or(0, Vec::len);
                let found = answer["Responses"][table].as_array().into_iter().flatten();
                let sizes: Vec<usize> =
                    found.filter_map(Value::as_object).map(item_bytes).collect();
                let absent = keys.saturating_sub(left).saturating_sub(sizes.len());
                let all = sizes.into_iter().chain(std::iter::repeat_n(0, absent));
                all.map(|bytes| reads(bytes, asked)).sum::<f64>()
            });
            (0, units.sum())
        }
        "Query" => {
            let items = answer["Items"].as_array().into_iter().flatten();
            let bytes = items.filter_map(Value::as_object).map(item_bytes).sum();
            (0, reads(bytes, body))
        }
        // A filter hides what was read all the same.
        "Scan" => {
            let is_whole =
                body["ExclusiveStartKey"].is_null() && answer["LastEvaluatedKey"].is_null();
            let table = shadow.table_bytes(&body["TableName"]);
            (0, reads(if is_whole { table } else { table.min(PAGE_BYTES) }, body))
        }
        _ => (0, 0.0),
    }
}

fn writes(bytes: usize) -> u64 {
    bytes.div_ceil(WRITE_UNIT).max(1) as u64
}

#[allow(clippy::cast_precision_loss, reason = "a page has at most 256 units")]
fn reads(bytes: usize, body: &Value) -> f64 {
    let units = bytes.div_ceil(READ_UNIT).max(1) as f64;
    if body["ConsistentRead"].as_bool() == Some(true) { units } else { units / 2.0 }
}

/// A write is billed by the larger of what stood there and what stands there then; a refused one by what stands there.
fn put(write: &Value, is_done: bool, shadow: &mut Shadow) -> u64 {
    let (table, item) = (&write["TableName"], &write["Item"]);
    let old = shadow.bytes(table, item);
    if !is_done {
        return writes(old);
    }
    shadow.put(table, item);
    writes(old.max(shadow.bytes(table, item)))
}

fn update(write: &Value, is_done: bool, shadow: &mut Shadow) -> u64 {
    let (table, key) = (&write["TableName"], &write["Key"]);
    let old = shadow.bytes(table, key);
    if !is_done {
        return writes(old);
    }
    let item = Value::Object(shadow.updated(write));
    shadow.put(table, &item);
    writes(old.max(shadow.bytes(table, key)))
}

fn delete(write: &Value, is_done: bool, shadow: &mut Shadow) -> u64 {
    let (table, key) = (&write["TableName"], &write["Key"]);
    let old = shadow.bytes(table, key);
    if is_done {
        shadow.delete(table, key);
    }
    writes(old)
}
