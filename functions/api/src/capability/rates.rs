//! What counts against the rates of an extension on a lock.

use annex_core::capability::model::Session;
use annex_core::capability::refusal::Refusal;

use crate::App;

/// Counts one operation of a session's extension on its lock (CH-054, CH-055).
pub(super) async fn take(app: &App, session: &Session) -> Result<(), Refusal> {
    let rates = app.calls.capabilities().rates();
    rates.take(session.oid, &session.lock, &session.extension).await
}
