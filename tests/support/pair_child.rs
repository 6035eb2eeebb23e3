//! The sample pair of capability extensions, for tests that need it as a process of its own.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    pair::cli::run(std::env::args().skip(1)).await
}
