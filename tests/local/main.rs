//! The one-process server over loopback, end to end: bad input, faults, load, and its promises.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod answers;
mod clocks;
mod crash;
mod deleted;
mod disk;
mod hostile;
mod http;
mod lines;
mod passing;
mod process;
mod records;
mod repeats;
mod replay;
mod rotation;
mod secrets;
mod sizes;
mod tenants;
mod traces;
mod vendor_lines;

/// The `annex` binary.
const PROGRAM: &str = env!("CARGO_BIN_EXE_annex-child");
