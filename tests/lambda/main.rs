//! The Lambda functions as processes, behind a local endpoint of the Lambda runtime and on an emulator of AWS, fed with the
//! sample events of `events/`: `scripts/aws/with-emulator cargo test -p annex-tests --test lambda`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod events;
mod function;
mod runtime;
