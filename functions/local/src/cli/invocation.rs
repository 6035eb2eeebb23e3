//! `annex invocation`: calls that were made.

use std::time::Duration;

use http::Method;
use serde_json::Value;

use super::client::Answer;
use super::error::Error;
use super::progress;
use super::request::{self, How};
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
    /// Make a call that failed once more, with the data of then
    #[command(after_help = "\
The new call has an id of its own and names the old one as replay_of; the old one stays as it is.

Examples:
  annex invocation replay 01890a5d-ac96-774b-bcce-b302099a8057 --follow
  annex invocation replay 01890a5d-ac96-774b-bcce-b302099a8057 --idempotency-key repair-1")]
    Replay(Replay),
}

/// Which call is made once more, and how.
#[derive(Debug, clap::Args)]
pub struct Replay {
    /// Its id
    id: String,
    #[command(flatten)]
    how: How,
}

/// Does what was typed.
pub async fn run(command: Command, session: &Session) -> Result<(), Error> {
    match command {
        Command::Show { id, follow: true } => session.print_record(&ended(&id, session).await?),
        Command::Show { id, follow: false } => session.print_record(&record(&id, session).await?),
        Command::Replay(Replay { id, how }) => {
            let oid = session.oid()?;
            let call = session.v1(Method::POST, &["invocations", &id, "replay"], oid);
            request::call(call, vec![("oid", oid)], &how, &format!("replaying {id}"), session).await
        }
    }
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
