//! Log lines: one JSON object each, on standard output, where Lambda takes them up.

use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Starts logging. `RUST_LOG` says what is logged, as in `info,annex_core=debug`; without it everything from `info` on.
pub fn log() {
    let wanted = std::env::var("RUST_LOG").ok().and_then(|text| text.parse::<Targets>().ok());
    let filter = wanted.unwrap_or_else(|| Targets::new().with_default(tracing::Level::INFO));
    // A line that cannot be written is lost; saying so on standard error would panic where that is gone as well.
    let lines = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(true)
        .with_span_list(false)
        .log_internal_errors(false);
    // A second function in one process, as tests have it, keeps the first one's log.
    let _ = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
}
