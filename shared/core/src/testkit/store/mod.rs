//! The promises of [`Store`], one async function for each; [`crate::store_contract!`] makes a test of each.

mod commits;
mod counts;
mod queries;
mod scans;

pub use self::commits::*;
pub use self::counts::*;
pub use self::queries::*;
pub use self::scans::*;

use std::any::Any;
use std::sync::Arc;

use uuid::Uuid;

use super::ManualClock;
use crate::ports::{Commit, Committed, Item, Key, Store, When, Write};
use crate::time::Timestamp;

/// A store to check, and the clock it goes by.
pub struct Bench {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Its clock.
    pub clock: Arc<ManualClock>,
    /// What must live as long as the store: a folder, a process.
    pub guard: Box<dyn Any + Send>,
}

impl Bench {
    /// A bench of a store that needs nothing else.
    pub fn new(store: Arc<dyn Store>, clock: Arc<ManualClock>) -> Self {
        Self { store, clock, guard: Box::new(()) }
    }

    async fn get(&self, key: &Key) -> Option<Item> {
        self.store.get(key).await.expect("the store can be read")
    }

    async fn commit(&self, commit: Commit) -> Committed {
        self.store.commit(commit).await.expect("the store can be written")
    }

    async fn write(&self, writes: Vec<Write>) -> Committed {
        self.commit(Commit { writes, ..Commit::default() }).await
    }
}

/// A partition that no other test uses, also where all tests share one table.
fn partition() -> String {
    format!("contract#{}", Uuid::new_v4())
}

fn key() -> Key {
    Key::new(partition(), "item")
}

fn put(key: &Key, data: &[u8], when: When) -> Write {
    Write::Put { key: key.clone(), data: data.to_vec(), expires_at: None, when }
}

fn put_until(key: &Key, data: &[u8], expires_at: Timestamp) -> Write {
    Write::Put {
        key: key.clone(),
        data: data.to_vec(),
        expires_at: Some(expires_at),
        when: When::Always,
    }
}

fn delete(key: &Key, when: When) -> Write {
    Write::Delete { key: key.clone(), when }
}

fn tally(key: &Key, data: &[u8], add: &[(&str, i128)], expires_at: Option<Timestamp>) -> Write {
    let add = add.iter().map(|(name, amount)| ((*name).to_owned(), *amount)).collect();
    Write::Tally { key: key.clone(), data: data.to_vec(), add, expires_at }
}

fn item(data: &[u8], revision: u64) -> Item {
    Item { data: data.to_vec(), counters: Default::default(), revision, expires_at: None }
}

fn lost(index: usize, found: Option<Item>) -> Committed {
    Committed::Lost { index, found }
}

/// Makes a module of tests, one for each promise of [`crate::ports::Store`], from an async expression that gives a
/// fresh [`Bench`].
#[macro_export]
macro_rules! store_contract {
    ($name:ident, $bench:expr) => {
        $crate::contract_tests! {
            $name, $crate::testkit::store, $bench;
            an_item_is_read_as_it_was_put;
            a_missing_item_is_none;
            revisions_start_at_1_and_grow_with_every_write;
            a_put_replaces_data_counters_and_expiry;
            when_absent_wins_once_and_the_loser_sees_what_stands_there;
            when_present_needs_a_live_item;
            when_revision_needs_just_that_revision;
            a_delete_removes_and_may_be_repeated;
            a_lost_commit_leaves_nothing_of_its_writes;
            the_first_condition_that_fails_is_named;
            a_commit_of_100_writes_happens_whole;
            of_64_concurrent_writers_under_one_condition_one_is_done;
            a_tally_creates_then_adds_and_keeps_the_data;
            concurrent_tallies_lose_nothing;
            a_counter_stops_at_38_digits_either_way;
            an_expired_item_is_absent_to_every_method;
            a_tally_moves_the_expiry;
            a_count_creates_then_adds_and_keeps_the_data;
            a_counter_gets_through_under_its_bound_and_not_at_it;
            a_refused_count_changes_nothing;
            a_refused_count_makes_no_item;
            a_count_gives_the_item_a_higher_revision_and_a_refused_one_does_not;
            a_count_begins_anew_where_an_item_has_expired;
            a_count_moves_the_expiry_where_it_is_done;
            counts_tallies_and_puts_see_each_other;
            of_64_concurrent_callers_on_one_bound_exactly_as_many_get_through;
            a_shared_bound_holds_over_concurrent_callers_with_bounds_of_their_own;
            a_count_stops_at_38_digits_either_way;
            limits_of_a_count_are_refused_with_an_outage_that_writes_nothing;
            data_of_any_bytes_and_an_empty_one_are_kept;
            an_item_of_the_largest_size_is_kept;
            limits_are_refused_with_an_outage_that_writes_nothing;
            a_sort_key_is_ordered_byte_by_byte;
            a_query_reads_a_range_of_one_partition;
            a_query_goes_backward;
            pages_of_a_query_join_without_gap_or_repeat;
            a_query_by_prefix_reads_what_starts_with_it;
            an_empty_range_is_an_empty_page;
            a_query_of_large_items_comes_in_pages;
            a_scan_finds_every_partition_of_its_prefix_once_and_no_other;
            a_scan_without_a_match_ends_empty;
            a_scan_leaves_out_what_has_expired;
            a_scan_of_large_items_comes_in_pages;
            what_stands_there_during_a_whole_scan_is_in_it_once_while_others_write;
            a_scan_of_everything_is_refused;
        }
    };
}

/// Makes a module of tests from the functions of a suite.
#[macro_export]
macro_rules! contract_tests {
    ($name:ident, $suite:path, $bench:expr; $($promise:ident;)+) => {
        mod $name {
            #[allow(unused_imports, reason = "the bench may need what stands around it")]
            use super::*;
            use $suite as suite;

            $(
                #[tokio::test]
                async fn $promise() {
                    let bench = $bench.await;
                    suite::$promise(&bench).await;
                }
            )+
        }
    };
}
