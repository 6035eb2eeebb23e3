//! `annex session`: capability extensions installed on locks.

use http::Method;
use serde_json::{Map, Value};

use super::error::Error;
use super::input;
use super::output;
use super::session::Session;

/// What can be done with sessions.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Install a capability extension on a lock; a lock that is not there is made
    #[command(after_help = "\
Examples:
  annex session create lock-1 dice
  annex session create lock-1 dice --has-keyholder --config '{\"sides\": 20}'
  id=$(annex session create lock-1 dice --quiet)")]
    Create(Create),
    /// List the extensions of a lock
    List {
        /// The lock
        lock: String,
    },
    /// Remove an extension from a lock; the lock and its history stay
    Delete {
        /// The lock
        lock: String,
        /// The session, as `annex session list` shows it
        session: String,
    },
}

/// What is installed, and where.
#[derive(Debug, clap::Args)]
pub struct Create {
    /// The lock: 1 to 64 letters, digits, dashes or underscores
    lock: String,
    /// Name of the extension
    extension: String,
    /// Somebody holds the key of the lock
    #[arg(long)]
    has_keyholder: bool,
    /// Its configuration: a JSON object, @FILE, or - for standard input
    #[arg(long, value_name = "JSON|@FILE|-")]
    config: Option<String>,
    /// Print nothing but the id of the session
    #[arg(long, short)]
    quiet: bool,
}

/// Does what was typed.
pub async fn run(command: Command, session: &Session) -> Result<(), Error> {
    match command {
        Command::Create(create) => {
            let path = ["scopes", "lock", &create.lock, "sessions"];
            let call = session.org(Method::POST, &path)?.json(create.body()?);
            let answer = call.send("installing the extension").await?;
            if create.quiet {
                return session.print_member(&answer, "/sessionId");
            }
            session.print_with(&answer, |value| {
                let id = output::printable(value["sessionId"].as_str().unwrap_or_default());
                format!("installed {} on {}\n\nsession {id}", create.extension, create.lock)
            })
        }
        Command::List { lock } => {
            let call = session.org(Method::GET, &["scopes", "lock", &lock, "sessions"])?;
            let answer = call.send("listing sessions").await?;
            session.print_rows(
                &answer,
                |value| &value["sessions"],
                &[
                    ("SESSION", "sessionId"),
                    ("EXTENSION", "extension"),
                    ("SINCE", "createdAt"),
                    ("CONFIG", "config"),
                ],
                "no sessions",
            )
        }
        Command::Delete { lock, session: id } => {
            let path = ["scopes", "lock", &lock, "sessions", &id];
            let answer = session.org(Method::DELETE, &path)?.send("removing the extension").await?;
            session.print_done(&answer, &format!("deleted session {id}"))
        }
    }
}

impl Create {
    /// The configuration goes out as it was spelled.
    fn body(&self) -> Result<String, Error> {
        let mut body = Map::new();
        body.insert("extension".to_owned(), self.extension.clone().into());
        if self.has_keyholder {
            body.insert("hasKeyholder".to_owned(), true.into());
        }
        let mut text = Value::Object(body).to_string();
        if let Some(config) = &self.config {
            let config = input::json(config)?;
            text.pop();
            text.push_str(&format!(r#","config":{config}}}"#));
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_keeps_every_byte() {
        let check = |has_keyholder, config: Option<&str>, expected: &str| {
            let create = Create {
                lock: "l".to_owned(),
                extension: "dice".to_owned(),
                has_keyholder,
                config: config.map(str::to_owned),
                quiet: false,
            };
            assert_eq!(create.body().unwrap(), expected);
        };
        check(false, None, r#"{"extension":"dice"}"#);
        check(
            true,
            Some(r#"{"n": 1e400}"#),
            r#"{"extension":"dice","hasKeyholder":true,"config":{"n": 1e400}}"#,
        );
    }
}
