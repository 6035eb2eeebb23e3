//! Log lines: one JSON object each, on standard output, where Lambda takes them up. And metrics, which are lines too.

use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::metrics;

/// Starts logging. `RUST_LOG` says what is logged, as in `info,annex_core=debug`; without it everything from `info` on.
pub fn log() {
    let variable = |name| std::env::var(name).ok();
    let wanted = variable("RUST_LOG").and_then(|text| text.parse::<Targets>().ok());
    let filter = wanted.unwrap_or_else(|| Targets::new().with_default(tracing::Level::INFO));
    let function = variable("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_default();
    // A line that cannot be written is lost; saying so on standard error would panic where that is gone as well.
    let lines = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(true)
        .with_span_list(false)
        .log_internal_errors(false);
    let lines = lines.with_filter(filter);
    let metrics = metrics::layer(&function, std::io::stdout);
    // A second function in one process, as tests have it, keeps the first one's log.
    let _ = tracing_subscriber::registry().with(lines).with(metrics).try_init();
}
