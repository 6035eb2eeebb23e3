//! The promises of [`Blobs`], one async function for each; [`crate::blobs_contract!`] makes a test of each.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use uuid::Uuid;

use super::ManualClock;
use crate::ports::{Blobs, Clock};
use crate::time::Timestamp;

/// Blobs to check, and the clock they go by.
pub struct Bench {
    /// The blobs.
    pub blobs: Arc<dyn Blobs>,
    /// Their clock.
    pub clock: Arc<ManualClock>,
    /// What must live as long as they do.
    pub guard: Box<dyn Any + Send>,
}

impl Bench {
    fn later(&self) -> Timestamp {
        self.clock.now().plus(Duration::from_secs(60))
    }

    async fn put(&self, key: &str, bytes: &[u8], expires_at: Timestamp) {
        let bytes = Bytes::copy_from_slice(bytes);
        self.blobs.put(key, bytes, expires_at).await.expect("blobs can be written");
    }

    async fn get(&self, key: &str) -> Option<Bytes> {
        self.blobs.get(key).await.expect("blobs can be read")
    }
}

fn key() -> String {
    format!("contract/{}", Uuid::new_v4())
}

/// Byte for byte, from none to some megabytes.
pub async fn a_blob_is_read_as_it_was_put(bench: &Bench) {
    let large: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    for bytes in [&b""[..], b"x", &large] {
        let key = key();
        bench.put(&key, bytes, bench.later()).await;
        assert_eq!(bench.get(&key).await.as_deref(), Some(bytes));
    }
}

/// A key is any text: none of it leads out of the place where blobs lie.
pub async fn keys_of_any_text_are_different_keys(bench: &Bench) {
    let base = key();
    let keys = ["", "/", "/../../x", "\0", " ", "/é", "/E\u{301}", "/X", "/x"]
        .map(|end| format!("{base}{end}"));
    for key in &keys {
        bench.put(key, key.as_bytes(), bench.later()).await;
    }
    for key in &keys {
        assert_eq!(bench.get(key).await.as_deref(), Some(key.as_bytes()), "{key:?}");
    }
}

/// What was not put is not there.
pub async fn a_missing_blob_is_none(bench: &Bench) {
    assert_eq!(bench.get(&key()).await, None);
}

/// A second put replaces the first whole, also where it is shorter.
pub async fn a_second_put_replaces_the_first(bench: &Bench) {
    let key = key();
    bench.put(&key, b"a longer first", bench.later()).await;
    bench.put(&key, b"second", bench.later()).await;
    assert_eq!(bench.get(&key).await.as_deref(), Some(&b"second"[..]));
}

/// Of writers at a time one wins, whole.
pub async fn concurrent_puts_never_mix(bench: &Bench) {
    let key = key();
    let blobs: Vec<Vec<u8>> = (0..8).map(|n| vec![n; 100_000 + usize::from(n)]).collect();
    join_all(blobs.iter().map(|bytes| bench.put(&key, bytes, bench.later()))).await;
    let found = bench.get(&key).await.expect("it was put").to_vec();
    assert!(blobs.contains(&found));
}

/// A deleted blob is gone; deleting it again is fine.
pub async fn a_delete_forgets_and_may_be_repeated(bench: &Bench) {
    let key = key();
    bench.put(&key, b"x", bench.later()).await;
    for _ in 0..2 {
        bench.blobs.delete(&key).await.expect("blobs can be written");
        assert_eq!(bench.get(&key).await, None);
    }
}

/// A blob is there until it expires.
pub async fn a_blob_lives_until_it_expires(bench: &Bench) {
    let key = key();
    bench.put(&key, b"x", bench.later()).await;
    bench.clock.advance(Duration::from_millis(59_999));
    assert_eq!(bench.get(&key).await.as_deref(), Some(&b"x"[..]));
    bench.clock.advance(Duration::from_millis(1));
    assert_eq!(bench.get(&key).await, None);
    bench.put(&key, b"y", bench.later()).await;
    assert_eq!(bench.get(&key).await.as_deref(), Some(&b"y"[..]));
}

/// Makes a module of tests, one for each promise of [`crate::ports::Blobs`], from an async expression that gives a
/// fresh [`Bench`].
#[macro_export]
macro_rules! blobs_contract {
    ($name:ident, $bench:expr) => {
        $crate::contract_tests! {
            $name, $crate::testkit::blobs, $bench;
            a_blob_is_read_as_it_was_put;
            keys_of_any_text_are_different_keys;
            a_missing_blob_is_none;
            a_second_put_replaces_the_first;
            concurrent_puts_never_mix;
            a_delete_forgets_and_may_be_repeated;
            a_blob_lives_until_it_expires;
        }
    };
}
