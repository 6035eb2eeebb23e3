//! `annex rule`: rules that call extensions when a telemetry event matches.

use super::error::Error;
use super::hive::{self, Hive};
use super::input;
use super::session::Session;

/// What can be done with rules.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List rules
    List,
    /// Show a rule
    Get {
        /// Its name
        name: String,
    },
    /// Write a rule
    #[command(after_help = "\
Example:
  annex rule set scan-new-hosts --data '{
    \"detect\": {\"op\": \"exists\", \"path\": \"event/HOST\"},
    \"respond\": [{\"action\": \"extension request\", \"extension name\": \"scanner\",
                 \"extension action\": \"scan\", \"extension request\": {\"target\": \"event.HOST\"}}]}'")]
    Set {
        /// Its name
        name: String,
        /// A JSON object with `detect` and `respond`, @FILE, or - for standard input
        #[arg(long, value_name = "JSON|@FILE|-")]
        data: String,
        /// Keep the rule without using it
        #[arg(long)]
        disabled: bool,
    },
    /// Delete a rule
    Delete {
        /// Its name
        name: String,
    },
}

/// Does what was typed.
pub async fn run(command: Command, session: &Session) -> Result<(), Error> {
    let rules = Hive::new(session, "dr-general");
    match command {
        Command::List => {
            let answer = rules.list(true).await?;
            session.print_with(&answer, |value| hive::table(value, "RULE", "no rules"))
        }
        Command::Get { name } => session.print_with(&rules.get(&name).await?, hive::data),
        Command::Set { name, data, disabled } => {
            // A rule that is written is meant to work: written again without the flag, it is used again.
            let answer = rules.set(&name, &input::json(&data)?, Some(!disabled)).await?;
            session.print_done(&answer, &format!("wrote rule {name}"))
        }
        Command::Delete { name } => {
            let answer = rules.delete(&name).await?;
            session.print_done(&answer, &format!("deleted rule {name}"))
        }
    }
}
