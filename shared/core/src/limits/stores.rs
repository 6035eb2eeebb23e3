//! Limits of stores and queues: those of AWS, which every adapter keeps.

use std::time::Duration;

/// What a store may keep in an item, or ask for in an update of it, beside what is counted: names, revision, expiry, in
/// bytes.
pub const ITEM_OVERHEAD_BYTES: usize = 1 << 10;

/// Largest item of the store, keys included, in bytes (DynamoDB holds 400 KiB).
pub const ITEM_BYTES_MAX: usize = (400 << 10) - ITEM_OVERHEAD_BYTES;

/// Writes of one commit (DynamoDB transactions).
pub const COMMIT_WRITES_MAX: usize = 100;

/// Everything that one commit writes, keys included, in bytes (DynamoDB transactions hold 4 MiB).
pub const COMMIT_BYTES_MAX: usize = (4 << 20) - COMMIT_WRITES_MAX * ITEM_OVERHEAD_BYTES;

/// Largest partition key, in bytes (DynamoDB).
pub const PARTITION_KEY_BYTES_MAX: usize = 2048;

/// Largest sort key, in bytes (DynamoDB).
pub const SORT_KEY_BYTES_MAX: usize = 1024;

/// Longest name of a counter of an item, in bytes.
pub const COUNTER_NAME_BYTES_MAX: usize = 1024;

/// Counters that one count adds to, and that it looks at.
pub const COUNT_COUNTERS_MAX: usize = 20;

/// Items of one page of a query.
pub const PAGE_ITEMS_MAX: usize = 1_000;

/// A page of a query ends early once its items hold this many bytes (DynamoDB). It holds at least one item.
pub const PAGE_BYTES_MAX: usize = 1 << 20;

/// Largest value of a counter, either way: 38 decimal digits (DynamoDB). Adding more stops there.
pub const COUNTER_MAX: i128 = 10_i128.pow(38) - 1;

// --- Queues ---

/// Longest delay of a queue message (SQS).
pub const QUEUE_DELAY_MAX: Duration = Duration::from_secs(900);

/// Largest queue message, in bytes (SQS).
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Messages handed over at a time.
pub const QUEUE_BATCH_MAX: usize = 10;

/// Largest reply that one function hands to another, in bytes; a larger one is read from the record. A Lambda function
/// answers with at most 6 MB.
pub const RETURNED_BYTES_MAX: usize = 4 << 20;

/// Receives after which a message is a dead letter.
pub const QUEUE_RECEIVES_MAX: u32 = 8;

/// How long a message is hidden from others after it was received. Also the lease of a running call: it outlasts
/// three attempts of two minutes and the delays between them.
pub const LEASE: Duration = Duration::from_secs(390);

/// Queue-driven deliveries under way at a time for one extension in one process.
pub const DELIVERIES_PER_EXTENSION_MAX: usize = 64;

/// Calls with a waiting caller under way at a time for one extension in one process; more are refused as busy.
pub const CALLS_PER_EXTENSION_MAX: usize = 1_024;
