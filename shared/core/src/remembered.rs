//! What a process remembers of what it read or made: bounded caches.
//!
//! Behind all of them is one type, whose keys and values have lost theirs: the code of a cache is large, and the compiler
//! writes it anew for each type of key and value.

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use moka::future::Cache;
use moka::ops::compute::{CompResult, Op};

/// A key of any type. Keys of one cache have one type.
trait Key: Any + Send + Sync {
    fn feed(&self, hasher: &mut dyn Hasher);
    fn equals(&self, other: &dyn Key) -> bool;
}

impl<K: Any + Eq + Hash + Send + Sync> Key for K {
    fn feed(&self, mut hasher: &mut dyn Hasher) {
        self.hash(&mut hasher);
    }

    fn equals(&self, other: &dyn Key) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref::<K>() == Some(self)
    }
}

impl Hash for dyn Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.feed(state);
    }
}

impl PartialEq for dyn Key {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other)
    }
}

impl Eq for dyn Key {}

type AnyKey = Box<dyn Key>;
type AnyValue = Arc<dyn Any + Send + Sync>;
type AnyError = Arc<dyn Any + Send + Sync>;

/// How much an entry counts against the capacity, from its key and its value.
type Weigh = Box<dyn Fn(&dyn Key, &AnyValue) -> u32 + Send + Sync>;

const ONE_TYPE: &str = "a cache holds keys, values and errors of its own types only";

/// A bounded cache. When it is full, the entries go that are used least.
pub struct Remembered<K, V> {
    entries: Entries,
    types: PhantomData<fn(K) -> V>,
}

impl<K, V> Clone for Remembered<K, V> {
    /// The same cache.
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), types: PhantomData }
    }
}

impl<K: Eq + Hash + Send + Sync + 'static, V: Send + Sync + 'static> Remembered<K, V> {
    /// At most `most` entries.
    pub fn new(most: u64) -> Self {
        Self { entries: Entries::new(most, None, None), types: PhantomData }
    }

    /// At most `most` entries, each until it was not used for `time`.
    pub fn idle(most: u64, time: Duration) -> Self {
        Self { entries: Entries::new(most, None, Some(time)), types: PhantomData }
    }

    /// Entries that weigh at most `most` together, by the weight of each.
    pub fn weighed(most: u64, weigh: fn(&K, &V) -> u32) -> Self {
        let weigh: Weigh = Box::new(move |key, value| {
            let key: &dyn Any = key;
            weigh(key.downcast_ref().expect(ONE_TYPE), value.downcast_ref().expect(ONE_TYPE))
        });
        Self { entries: Entries::new(most, Some(weigh), None), types: PhantomData }
    }

    /// What is remembered of a key.
    pub async fn get(&self, key: &K) -> Option<Arc<V>> {
        self.entries.get(key).await.map(typed)
    }

    /// Remembers it, in place of what was remembered of the key.
    pub async fn insert(&self, key: K, value: impl Into<Arc<V>>) {
        self.entries.insert(Box::new(key), value.into()).await;
    }

    /// What is remembered of a key, or what `make` makes. Whoever asks for the key meanwhile waits for the same.
    pub async fn get_or(&self, key: K, make: impl Future<Output = V> + Send) -> Arc<V> {
        let make = async { Ok::<AnyValue, AnyError>(Arc::new(make.await)) };
        match self.entries.get_or(Box::new(key), make.boxed()).await {
            Ok(value) => typed(value),
            Err(_) => unreachable!("what was made is no error"),
        }
    }

    /// What is remembered of a key, or what `make` makes. Whoever asks for the key meanwhile waits for the same, an error
    /// included. Errors are not remembered.
    pub async fn try_get_or<E: Send + Sync + 'static>(
        &self,
        key: K,
        make: impl Future<Output = Result<V, E>> + Send,
    ) -> Result<Arc<V>, Arc<E>> {
        let make = async {
            match make.await {
                Ok(value) => Ok::<AnyValue, AnyError>(Arc::new(value)),
                Err(error) => Err::<AnyValue, AnyError>(Arc::new(error)),
            }
        };
        self.entries.get_or(Box::new(key), make.boxed()).await.map(typed).map_err(typed)
    }

    /// What is remembered of a key, where it is fresh, or what `make` makes, which is remembered in its place. Those who
    /// ask for one key do so one after the other; who gets an error has it alone.
    pub async fn try_refreshed<E: Send>(
        &self,
        key: K,
        is_fresh: impl Fn(&V) -> bool + Send + Sync,
        make: impl Future<Output = Result<V, E>> + Send,
    ) -> Result<Arc<V>, E> {
        let is_fresh = |value: &AnyValue| is_fresh(value.downcast_ref().expect(ONE_TYPE));
        let mut failure = None;
        let make = async {
            match make.await {
                Ok(value) => Some(Arc::new(value) as AnyValue),
                Err(error) => {
                    failure = Some(error);
                    None
                }
            }
        };
        let found = self.entries.refreshed(Box::new(key), &is_fresh, make.boxed()).await;
        match failure {
            Some(error) => Err(error),
            None => Ok(typed(found.expect("what was neither there nor made has failed"))),
        }
    }

    /// How many entries there are, and what they weigh together.
    #[cfg(any(test, feature = "testkit"))]
    pub async fn size(&self) -> (u64, u64) {
        let cache = &self.entries.0;
        cache.run_pending_tasks().await;
        (cache.entry_count(), cache.weighted_size())
    }
}

fn typed<T: Send + Sync + 'static>(erased: Arc<dyn Any + Send + Sync>) -> Arc<T> {
    erased.downcast().expect(ONE_TYPE)
}

/// The one cache. **Invariant:** nothing here is generic, so that all of its code is there once.
#[derive(Clone)]
struct Entries(Cache<AnyKey, AnyValue>);

impl Entries {
    fn new(most: u64, weigh: Option<Weigh>, idle: Option<Duration>) -> Self {
        let mut builder = Cache::builder().max_capacity(most);
        if let Some(weigh) = weigh {
            builder = builder.weigher(move |key: &AnyKey, value| weigh(&**key, value));
        }
        if let Some(idle) = idle {
            builder = builder.time_to_idle(idle);
        }
        Self(builder.build())
    }

    async fn get(&self, key: &dyn Key) -> Option<AnyValue> {
        self.0.get(key).await
    }

    async fn insert(&self, key: AnyKey, value: AnyValue) {
        self.0.insert(key, value).await;
    }

    async fn get_or(
        &self,
        key: AnyKey,
        make: BoxFuture<'_, Result<AnyValue, AnyError>>,
    ) -> Result<AnyValue, AnyError> {
        self.0.try_get_with(key, make).await.map_err(|error| AnyError::clone(&error))
    }

    async fn refreshed(
        &self,
        key: AnyKey,
        is_fresh: &(dyn Fn(&AnyValue) -> bool + Send + Sync),
        make: BoxFuture<'_, Option<AnyValue>>,
    ) -> Option<AnyValue> {
        let refresh = |entry: Option<moka::Entry<AnyKey, AnyValue>>| async move {
            if entry.is_some_and(|entry| is_fresh(entry.value())) {
                return Op::Nop;
            }
            make.await.map_or(Op::Nop, Op::Put)
        };
        match self.0.entry(key).and_compute_with(refresh).await {
            CompResult::Inserted(entry)
            | CompResult::ReplacedWith(entry)
            | CompResult::Unchanged(entry) => Some(entry.into_value()),
            CompResult::StillNone(_) | CompResult::Removed(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures_util::future::join_all;

    use super::*;

    /// Lets the others of a `join_all` come as far as they can.
    async fn let_others_come() {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn what_was_inserted_is_found_under_its_key_alone() {
        let cache = Remembered::<(String, u8), String>::new(10);
        let key = |text: &str, number| (text.to_owned(), number);
        assert_eq!(cache.get(&key("a", 1)).await, None);
        cache.insert(key("a", 1), "x".to_owned()).await;
        cache.insert(key("a", 2), Arc::new("y".to_owned())).await;
        let found = |text, number| {
            let cache = cache.clone();
            async move { cache.get(&key(text, number)).await.map(|value| String::clone(&value)) }
        };
        assert_eq!(found("a", 1).await, Some("x".to_owned()));
        assert_eq!(found("a", 2).await, Some("y".to_owned()));
        assert_eq!(found("b", 1).await, None);
        cache.insert(key("a", 1), "z".to_owned()).await;
        assert_eq!(found("a", 1).await, Some("z".to_owned()));
        assert_eq!(cache.size().await, (2, 2));
    }

    #[test]
    fn keys_of_different_types_differ() {
        let keys: [AnyKey; 4] =
            [Box::new(1_u8), Box::new(1_u16), Box::new("1"), Box::new("1".to_owned())];
        for (index, one) in keys.iter().enumerate() {
            for (other_index, other) in keys.iter().enumerate() {
                assert_eq!(one == other, index == other_index);
            }
        }
    }

    #[tokio::test]
    async fn what_is_remembered_is_bounded_in_number_or_in_weight() {
        let cache = Remembered::<u32, ()>::new(10);
        let idle = Remembered::<u32, ()>::idle(10, Duration::from_secs(3_600));
        for number in 0..100 {
            cache.insert(number, ()).await;
            idle.insert(number, ()).await;
        }
        assert_eq!(cache.size().await, (10, 10));
        assert_eq!(idle.size().await, (10, 10));
        let weighed = Remembered::<u32, String>::weighed(10, |key, value| {
            key + u32::try_from(value.len()).unwrap()
        });
        weighed.insert(1, "12".to_owned()).await;
        weighed.insert(2, "12345".to_owned()).await;
        assert_eq!(weighed.size().await, (2, 10));
        weighed.insert(3, "1".to_owned()).await;
        assert!(weighed.size().await.1 <= 10);
        // Heavier than all there may be.
        weighed.insert(4, "1234567".to_owned()).await;
        assert!(weighed.size().await.1 <= 10);
        assert_eq!(weighed.get(&4).await, None);
    }

    #[tokio::test]
    async fn equal_requests_wait_for_one_that_makes() {
        let cache = Remembered::<&str, u32>::new(10);
        let made = AtomicU32::new(0);
        let make = || async {
            let_others_come().await;
            made.fetch_add(1, Ordering::Relaxed) + 7
        };
        let asked = join_all((0..5).map(|_| cache.get_or("a", make()))).await;
        assert_eq!(asked.iter().map(|value| **value).collect::<Vec<_>>(), [7; 5]);
        assert_eq!(*cache.get_or("b", make()).await, 8);
        assert_eq!(made.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn an_error_is_told_to_all_who_wait_and_forgotten() {
        let cache = Remembered::<&str, u32>::new(10);
        let failed = AtomicU32::new(0);
        let fail = || async {
            let_others_come().await;
            Err::<u32, u32>(failed.fetch_add(1, Ordering::Relaxed))
        };
        let asked = join_all((0..5).map(|_| cache.try_get_or("a", fail()))).await;
        assert_eq!(asked, vec![Err(Arc::new(0)); 5]);
        assert_eq!(cache.get(&"a").await, None);
        assert_eq!(cache.try_get_or("a", async { Ok::<_, u32>(7) }).await, Ok(Arc::new(7)));
        assert_eq!(cache.try_get_or("a", fail()).await, Ok(Arc::new(7)));
        assert_eq!(failed.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn what_is_old_is_made_anew_one_after_the_other() {
        let cache = Remembered::<&str, u32>::new(10);
        let made = AtomicU32::new(0);
        let make = || async {
            let_others_come().await;
            Ok::<u32, ()>(made.fetch_add(1, Ordering::Relaxed) + 1)
        };
        let fresh_from = |least: u32| move |value: &u32| least <= *value;
        for (least, expected) in [(1, 1), (1, 1), (2, 2), (2, 2), (3, 3)] {
            let asked = (0..5).map(|_| cache.try_refreshed("a", fresh_from(least), make()));
            assert_eq!(join_all(asked).await, vec![Ok(Arc::new(expected)); 5]);
        }
        assert_eq!(made.load(Ordering::Relaxed), 3);
        assert_eq!(cache.get(&"a").await, Some(Arc::new(3)));
    }

    #[tokio::test]
    async fn who_cannot_refresh_has_the_error_alone_and_what_was_old_stays() {
        let cache = Remembered::<&str, u32>::new(10);
        let failed = AtomicU32::new(0);
        let fail = || async { Err::<u32, u32>(failed.fetch_add(1, Ordering::Relaxed)) };
        let asked = (0..3).map(|_| cache.try_refreshed("a", |_| true, fail()));
        assert_eq!(join_all(asked).await, [Err(0), Err(1), Err(2)]);
        assert_eq!(cache.get(&"a").await, None);
        cache.insert("a", 7).await;
        assert_eq!(cache.try_refreshed("a", |_| false, fail()).await, Err(3));
        assert_eq!(cache.get(&"a").await, Some(Arc::new(7)));
        assert_eq!(cache.try_refreshed("a", |_| true, fail()).await, Ok(Arc::new(7)));
    }
}
