//! The `annex` binary, for tests that need a process of their own.

use std::process::ExitCode;

fn main() -> ExitCode {
    local::cli::main()
}
