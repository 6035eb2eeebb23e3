//! A line that moves while something takes its time.

use std::future::Future;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::ProgressBar;

/// What takes longer than this gets a line.
const QUIET: Duration = Duration::from_secs(1);

/// How often the line moves.
const TICK: Duration = Duration::from_millis(100);

/// Waits for `work`, and shows `doing` on standard error while it takes longer than a second.
///
/// Nothing is shown where standard error is not a terminal: a log has no use for a moving line.
pub async fn during<T>(doing: &str, work: impl Future<Output = T>) -> T {
    if !std::io::stderr().is_terminal() {
        return work.await;
    }
    let mut work = std::pin::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        () = tokio::time::sleep(QUIET) => {}
    }
    let line = ProgressBar::new_spinner().with_message(format!("{doing} …"));
    line.enable_steady_tick(TICK);
    let done = work.await;
    line.finish_and_clear();
    done
}
