//! `annex secret`: secrets that configurations and calls refer to as `hive://secret/<name>`.

use serde_json::{Value, json};

use super::error::Error;
use super::hive::{self, Hive};
use super::input;
use super::session::Session;

/// What can be done with secrets.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List the names of secrets
    List,
    /// Show the value of a secret
    Get {
        /// Its name
        name: String,
    },
    /// Keep a secret; the value is asked for, or read from standard input
    #[command(after_help = "\
Examples:
  annex secret set scanner                 # asks for the value and does not show it
  annex secret set scanner < key.txt       # one line end at the end is not part of the value

Configurations and calls refer to it as hive://secret/scanner.")]
    Set {
        /// Its name
        name: String,
    },
    /// Delete a secret
    Delete {
        /// Its name
        name: String,
    },
}

/// Does what was typed.
pub async fn run(command: Command, session: &Session) -> Result<(), Error> {
    let secrets = Hive::new(session, "secret");
    match command {
        Command::List => {
            // A listing with data would hold every value.
            let answer = secrets.list(true).await?;
            session.print_with(&answer, |value| hive::table(value, "SECRET", "no secrets"))
        }
        Command::Get { name } => session.print_with(&secrets.get(&name).await?, value),
        Command::Set { name } => {
            let value = input::secret("secret value")?;
            let data = json!({ "secret": value }).to_string();
            let answer = secrets.set(&name, &data, None).await?;
            session.print_done(&answer, &format!("kept secret {name}"))
        }
        Command::Delete { name } => {
            let answer = secrets.delete(&name).await?;
            session.print_done(&answer, &format!("deleted secret {name}"))
        }
    }
}

/// The value alone, so that it can be passed on.
fn value(record: &Value) -> String {
    match record.pointer("/data/secret").and_then(Value::as_str) {
        Some(value) => value.to_owned(),
        None => hive::data(record),
    }
}
