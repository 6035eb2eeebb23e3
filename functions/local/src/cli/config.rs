//! `annex config`: configurations of extensions in an organization.

use super::error::Error;
use super::hive::{self, Hive};
use super::input;
use super::session::Session;

/// What can be done with configurations.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show the configuration of an extension
    Get {
        /// Name of the extension
        extension: String,
    },
    /// Write the configuration of an extension, which is asked first whether it is right
    #[command(after_help = "\
Examples:
  annex config set scanner --data '{\"depth\": 3, \"api_key\": \"hive://secret/scanner\"}'
  annex config set scanner --data @config.json")]
    Set {
        /// Name of the extension
        extension: String,
        /// A JSON object, @FILE, or - for standard input
        #[arg(long, value_name = "JSON|@FILE|-")]
        data: String,
    },
    /// Delete the configuration of an extension
    Delete {
        /// Name of the extension
        extension: String,
    },
    /// List which extensions are configured
    List,
    /// Ask whether a configuration is right, without writing it
    Validate {
        /// Name of the extension
        extension: String,
        /// A JSON object, @FILE, or - for standard input
        #[arg(long, value_name = "JSON|@FILE|-")]
        data: String,
    },
}

/// Does what was typed.
pub async fn run(command: Command, session: &Session) -> Result<(), Error> {
    let configs = Hive::new(session, "extension_config");
    match command {
        Command::Get { extension } => {
            session.print_with(&configs.get(&extension).await?, hive::data)
        }
        Command::Set { extension, data } => {
            let answer = configs.set(&extension, &input::json(&data)?, None).await?;
            session.print_done(&answer, &format!("configured {extension}"))
        }
        Command::Delete { extension } => {
            let answer = configs.delete(&extension).await?;
            session.print_done(&answer, &format!("deleted the configuration of {extension}"))
        }
        Command::List => {
            let answer = configs.list(true).await?;
            session
                .print_with(&answer, |value| hive::table(value, "EXTENSION", "no configurations"))
        }
        Command::Validate { extension, data } => {
            let answer = configs.validate(&extension, &input::json(&data)?).await?;
            session.print_done(&answer, "the configuration is right")
        }
    }
}
