//! Queues: what lies on disk is every message in the order in which it becomes due; what is under way, waits to come
//! back, or is held is known in memory only, since this process is the only one.

mod consumer;
mod letters;
mod state;

pub use self::consumer::ConsumerOptions;
pub use self::letters::Depth;
pub(crate) use self::state::{Candidate, Queue, Step};
