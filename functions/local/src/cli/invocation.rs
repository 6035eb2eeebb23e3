//! `annex invocation`: calls that were made.

use std::time::Duration;

use http::Method;
use serde_json::Value;

use super::client::Answer;
use super::error::Error;
use super::progress;
use super::session::Session;

/// How long to wait between two looks at a call that goes on, at first and at most.
const LOOK_AFTER: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));

/// What can be done with calls.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show the record of a call: how it stands, and what came of it
    Show {
        /// Its id
        id: String,
        /// Wait until it ended
        #[arg(long)]
        follow: bool,
    },
}

/// Does what was typed.
pub async fn run(command: Command, session: &Session) -> Result<(), Error> {
    let Command::Show { id, follow } = command;
    let answer = if follow { ended(&id, session).await? } else { record(&id, session).await? };
    session.print_record(&answer)
}

/// The record of a call.
pub async fn record(id: &str, session: &Session) -> Result<Answer, Error> {
    let oid = session.oid()?;
    session.v1(Method::GET, &["invocations", id], oid).send("reading the call").await
}

/// The record of a call once it ended.
pub async fn ended(id: &str, session: &Session) -> Result<Answer, Error> {
    progress::during("waiting for the call to end", async {
        let (mut pause, longest) = LOOK_AFTER;
        loop {
            let answer = record(id, session).await?;
            let value: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            if !matches!(value["status"].as_str(), Some("queued" | "running" | "waiting")) {
                return Ok(answer);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
    })
    .await
}
