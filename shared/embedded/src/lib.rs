//! The ports of Annex on one machine: a store file with queues in it, a folder of blobs, a key file, and the clocks
//! and random numbers of the operating system.
//!
//! **Invariant:** no rule of a contract is known here; the crate keeps what the core gives it.

mod blobs;
mod clock;
mod disk;
mod engine;
mod item;
mod jobs;
mod keyring;
mod queue;
mod read;
mod shared;
mod store;
mod tables;
mod transaction;
mod writer;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use self::blobs::FileBlobs;
pub use self::clock::SystemClock;
pub use self::keyring::{RootKeyError, RootKeyring, change_ring, read_ring};
pub use self::queue::{ConsumerOptions, Depth};
pub use self::store::{Embedded, OpenError, Options};
