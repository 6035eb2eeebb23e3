//! The adapters against an emulator of AWS: `scripts/aws/with-emulator cargo test -p annex-aws`.

mod bench;
mod bills;
mod consumers;
mod contracts;
mod crashes;
mod keyrings;
mod letters;
mod partial;
mod sends;
mod stores;
