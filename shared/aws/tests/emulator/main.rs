//! The adapters against an emulator of AWS: `scripts/aws/with-emulator cargo test -p annex-aws`.

#![allow(
    clippy::unwrap_used,
    reason = "all of this is tests, also what stands in no test function"
)]

mod ahead;
mod bench;
mod bills;
mod consumers;
mod contracts;
mod counts;
mod crashes;
mod keyrings;
mod letters;
mod partial;
mod rates;
mod sends;
mod stores;
