//! The `annex` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    local::cli::main()
}
