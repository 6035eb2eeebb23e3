//! Waiting for what a test expects, for a bounded time.

use std::future::Future;
use std::time::{Duration, Instant};

/// Longest that anything is waited for.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Looks again and again until there is an answer; fails with `what` when there is none after [`PATIENCE`].
#[track_caller]
pub fn until<T, F: Future<Output = Option<T>>>(
    what: impl Into<String>,
    mut look: impl FnMut() -> F,
) -> impl Future<Output = T> {
    let (place, what) = (std::panic::Location::caller(), what.into());
    async move {
        let began = Instant::now();
        loop {
            if let Some(found) = look().await {
                return found;
            }
            assert!(began.elapsed() < PATIENCE, "{place}: {what} did not happen");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
