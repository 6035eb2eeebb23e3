//! The adapters against an emulator of AWS: `scripts/aws/with-emulator cargo test -p annex-aws`.

mod contracts;
