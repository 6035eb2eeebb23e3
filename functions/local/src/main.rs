//! The `annex` binary.

fn main() {}
