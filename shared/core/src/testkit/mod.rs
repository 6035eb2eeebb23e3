//! Fakes of the ports for tests, and the suites that every adapter of a port must pass.

pub mod blobs;
mod clock;
mod ids;
mod keyring;
mod launcher;
mod memory;
mod ports;
pub mod rates;
pub mod store;

pub use self::clock::ManualClock;
pub use self::ids::SeededIds;
pub use self::keyring::FixedKeyring;
pub use self::launcher::Inline;
pub use self::memory::{MemoryBlobs, MemoryStore};
pub use self::ports::ports;
