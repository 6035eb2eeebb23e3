//! The `annex` binary.

use std::process::ExitCode;

use mimalloc::MiMalloc;

// A call makes some hundreds of small allocations on several threads; the system's allocator spends a tenth of the
// processor time of a delivery on them, and keeps what a burst took.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    local::cli::main()
}
