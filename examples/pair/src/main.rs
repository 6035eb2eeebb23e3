//! Runs the two sample extensions, or has the ledger ask for a roll: `pair serve`, `pair roll SESSION`.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    pair::cli::run(std::env::args().skip(1)).await
}
