//! `annex extension`: what is published on the platform.

use http::Method;
use serde_json::Value;

use super::client::Answer;
use super::definition::{Definition, is_capability, merged};
use super::error::Error;
use super::session::Session;
use super::{diagnose, hive, input, output, rotate};

/// What can be done with extensions.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Register an extension; needs the root key
    #[command(after_help = "\
The shared secret signs every call. It has at least 32 characters, is asked for, and is never an argument. A capability
extension (--contract chaster) has no shared secret: its calls carry Basic credentials, and it calls with a developer
token, which is printed once.

Examples:
  openssl rand -hex 32 > secret.txt
  annex extension register scanner --url https://scanner.example.com/ --secret-file secret.txt \\
    --description 'Scans targets' --permission org.get,sensor.list
  annex extension register scanner --file definition.json
  annex extension register dice --contract chaster --url https://dice.example.com/ \\
    --webhook-username annex --webhook-password-file password.txt")]
    Register {
        /// What it is.
        #[command(flatten)]
        definition: Box<Definition>,
        /// Print nothing but the developer token of a capability extension
        #[arg(long, short, help_heading = "Capability extensions")]
        quiet: bool,
    },
    /// Change an extension: only what is given changes
    Update(Box<Definition>),
    /// Give an extension a new shared secret, while the old one goes on working for a while; needs the root key
    #[command(after_help = rotate::HELP)]
    RotateSecret(rotate::Options),
    /// Give a capability extension a new developer token, which is printed once; needs the root key
    #[command(after_help = "\
The token before is worth nothing any more, at the latest after a minute.

Examples:
  annex extension token dice
  annex extension token dice --quiet > dice-token")]
    Token {
        /// Its name
        name: String,
        /// Print nothing but the token
        #[arg(long, short)]
        quiet: bool,
    },
    /// List every extension
    List,
    /// Show an extension
    Show {
        /// Its name
        name: String,
    },
    /// Show what an extension says that it can do
    Schema {
        /// Its name
        name: String,
    },
    /// Delete an extension; needs the root key
    Delete {
        /// Its name
        name: String,
    },
    /// Find out why an extension is not called
    #[command(after_help = "\
Checks that the extension answers signed messages with a schema, that the organization is subscribed to it, and, where
an action is named, that the call would pass the schema. Exits 1 when a check fails. `annex error list` shows what
failed before.

Examples:
  annex extension diagnose scanner
  annex extension diagnose scanner --action scan --data '{\"target\": \"example.com\"}'")]
    Diagnose(diagnose::Options),
}

/// Does what was typed.
pub async fn run(command: Command, session: &Session) -> Result<(), Error> {
    match command {
        Command::Register { definition, quiet } => register(&definition, quiet, session).await,
        Command::Update(definition) => update(&definition, session).await,
        Command::Token { name, quiet } => {
            let path = ["extension", "definition", &name, "developer-token"];
            let answer = session.operator(Method::POST, &path).send("making a token").await?;
            print_token(
                &answer,
                &format!("made a new developer token for {name}; it is not shown again"),
                quiet,
                session,
            )
        }
        Command::RotateSecret(options) => rotate::run(&options, session).await,
        Command::List => {
            // The operator sees the URLs too, and is one only without an organization.
            let call = session.operator(Method::GET, &["extension", "definition"]);
            let answer = call.send("listing extensions").await?;
            session.print_rows(
                &answer,
                |value| value,
                &[
                    ("NAME", "name"),
                    ("CONTRACT", "contract"),
                    ("URL", "url"),
                    ("DESCRIPTION", "description"),
                ],
                "no extensions",
            )
        }
        Command::Show { name } => {
            let call = session.operator(Method::GET, &["extension", "definition", &name]);
            session.print_record(&call.send("reading the extension").await?)
        }
        Command::Schema { name } => {
            let oid = session.oid.as_deref().map(|oid| ("oid", oid));
            let call = session.any(Method::GET, &["extension", "schema", &name]);
            let call = call.query(oid.as_slice());
            session.print_with(&call.send("asking the extension").await?, hive::pretty)
        }
        Command::Delete { name } => {
            let call = session.operator(Method::DELETE, &["extension", "definition", &name]);
            let answer = call.send("deleting the extension").await?;
            session.print_done(&answer, &format!("deleted {name}"))
        }
        Command::Diagnose(options) => diagnose::run(&options, session).await,
    }
}

async fn register(definition: &Definition, quiet: bool, session: &Session) -> Result<(), Error> {
    let mut members = definition.members()?;
    let of_capabilities = is_capability(&members);
    if of_capabilities {
        let webhook = members.get_mut("webhook").and_then(Value::as_object_mut);
        if let Some(webhook) = webhook.filter(|webhook| !webhook.contains_key("password")) {
            webhook.insert("password".to_owned(), input::secret("webhook password")?.into());
        }
    } else if members.contains_key("webhook") || members.contains_key("platform_owned") {
        return Err(Error::Usage("a webhook username and platform-owned are a capability extension's: add --contract chaster".to_owned()));
    } else if !members.contains_key("url") {
        return Err(Error::Usage("an extension needs a --url".to_owned()));
    } else if !members.contains_key("secret") {
        members.insert("secret".to_owned(), input::secret("shared secret")?.into());
    }
    let call = session.operator(Method::POST, &["extension", "definition"]);
    let call = call.json(Value::Object(members).to_string());
    let answer = call.send("registering the extension").await?;
    let done = format!("registered {}", definition.name);
    if of_capabilities {
        let done = format!("{done}; its developer token is not shown again");
        return print_token(&answer, &done, quiet, session);
    }
    if quiet { Ok(()) } else { session.print_done(&answer, &done) }
}

/// Prints what was done, and the developer token that the answer holds: the platform does not show it again.
fn print_token(answer: &Answer, done: &str, quiet: bool, session: &Session) -> Result<(), Error> {
    if quiet {
        return session.print_member(answer, "/developer_token");
    }
    session.print_with(answer, |value| {
        let token = value["developer_token"].as_str().unwrap_or_default();
        let token = output::printable(token);
        format!("{done}\n\n  {token}")
    })
}

async fn update(definition: &Definition, session: &Session) -> Result<(), Error> {
    let path = ["extension", "definition", &definition.name];
    let found = session.operator(Method::GET, &path).send("reading the extension").await?;
    let found: Value = serde_json::from_slice(&found.body)
        .map_err(|error| Error::Local(format!("the definition is not JSON: {error}")))?;
    let members = merged(&found, definition.members()?);
    let call = session.operator(Method::PUT, &["extension", "definition"]);
    let call = call.json(Value::Object(members).to_string());
    let answer = call.send("changing the extension").await?;
    session.print_done(&answer, &format!("changed {}", definition.name))
}
