//! The ports of Annex on AWS: items in one DynamoDB table, messages in SQS, blobs in S3, the key ring in Secrets
//! Manager. And how a Lambda function starts and takes its events.
//!
//! **Invariant:** no rule of a contract is known here; the crate keeps what the core gives it. **Invariant:** no type
//! of an SDK leaves it but through [`Clients`].

mod backoff;
mod blobs;
mod clients;
mod clock;
mod dead_letters;
mod keyring;
pub mod lambda;
mod launcher;
pub mod metrics;
mod outage;
mod queues;
mod store;
#[cfg(feature = "tap")]
pub mod tap;
#[cfg(feature = "testkit")]
pub mod testing;

pub use self::blobs::S3Blobs;
pub use self::clients::Clients;
pub use self::clock::SystemClock;
pub use self::dead_letters::SqsDeadLetters;
pub use self::keyring::SecretKeyring;
pub use self::launcher::LambdaLauncher;
pub use self::queues::{Queue, QueueConsumer, Queues};
pub use self::store::DynamoStore;
