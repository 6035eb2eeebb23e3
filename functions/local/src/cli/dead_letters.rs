//! `annex dead-letters`: messages that the platform gave up.

use http::Method;
use serde_json::Value;

use super::error::Error;
use super::output;
use super::session::Session;

/// What can be done with dead letters.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List the oldest dead letters of a queue: what they are about, not what they carry
    List {
        /// `dispatch`, `resume` or `meter`
        queue: String,
        /// How many, at most
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Send the dead letters of a queue back to it, all of them
    Redrive {
        /// `dispatch`, `resume` or `meter`
        queue: String,
        /// How many, at most; all unless given
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: Option<u32>,
    },
}

/// Does what was typed.
pub async fn run(command: Command, session: &Session) -> Result<(), Error> {
    match command {
        Command::List { queue, limit } => {
            let call = session.operator(Method::GET, &["dead-letters", &queue]);
            let call = call.query(&[("limit", &limit.to_string())]);
            let answer = call.send("listing dead letters").await?;
            session.print_with(&answer, |value| {
                let mut rows = output::rows(&value["dead_letters"]);
                for row in &mut rows {
                    output::lift(row, "about", &["kind", "name", "oid", "extension", "invocation"]);
                }
                output::table(
                    &rows,
                    &[
                        ("ID", "id"),
                        ("RECEIVES", "receives"),
                        ("KIND", "kind"),
                        ("NAME", "name"),
                        ("OID", "oid"),
                        ("EXTENSION", "extension"),
                        ("INVOCATION", "invocation"),
                    ],
                    "no dead letters",
                )
            })
        }
        Command::Redrive { queue, limit } => {
            let mut total = 0;
            loop {
                let call = session.operator(Method::POST, &["dead-letters", &queue, "redrive"]);
                let most = limit.unwrap_or(1_000).to_string();
                let answer =
                    call.form(&[("limit", &most)]).send("putting dead letters back").await?;
                let value: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
                let count = value["redriven"].as_u64().unwrap_or_default();
                total += count;
                // What fails at once is a dead letter again, and not put back twice by one command.
                if limit.is_some() || count < 1_000 {
                    let answer = serde_json::json!({"redriven": total});
                    return match session.format {
                        output::Format::Json => output::line(&answer.to_string()),
                        output::Format::Table => {
                            output::line(&format!("put back {total} messages of {queue}"))
                        }
                    };
                }
            }
        }
    }
}
