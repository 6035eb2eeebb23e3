//! `annex extension`: what is published on the platform.

use http::Method;
use serde_json::{Map, Value};

use super::error::Error;
use super::session::Session;
use super::{diagnose, hive, input, rotate};

/// What can be done with extensions.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Register an extension; needs the root key
    #[command(after_help = "\
The shared secret signs every call. It has at least 32 characters, is asked for, and is never an argument.

Examples:
  openssl rand -hex 32 > secret.txt
  annex extension register scanner --url https://scanner.example.com/ --secret-file secret.txt \\
    --description 'Scans targets' --permission org.get,sensor.list
  annex extension register scanner --file definition.json")]
    Register(Definition),
    /// Change an extension: only what is given changes
    Update(Definition),
    /// Give an extension a new shared secret, while the old one goes on working for a while; needs the root key
    #[command(after_help = rotate::HELP)]
    RotateSecret(rotate::Options),
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

/// What an extension is.
#[derive(Debug, clap::Args)]
pub struct Definition {
    /// Its name: letters, digits, dots, dashes and underscores
    name: String,
    /// Where its webhooks go
    #[arg(long)]
    url: Option<String>,
    /// A file with the shared secret; - is standard input
    #[arg(long, value_name = "FILE")]
    secret_file: Option<String>,
    /// For people
    #[arg(long)]
    description: Option<String>,
    /// What its tokens may do in an organization, with commas between
    #[arg(long = "permission", value_name = "PERMISSION", value_delimiter = ',')]
    permissions: Option<Vec<String>>,
    /// Extensions that an organization must use before, with commas between
    #[arg(long = "requires", value_name = "EXTENSION", value_delimiter = ',')]
    required_extensions: Option<Vec<String>>,
    /// Labels such as segment or bulk, with commas between
    #[arg(long = "flair", value_name = "FLAIR", value_delimiter = ',')]
    flairs: Option<Vec<String>>,
    /// Events that it wants; without it, those that its schema names
    #[arg(long = "event", value_name = "EVENT", value_delimiter = ',')]
    events: Option<Vec<String>>,
    /// A file with the whole definition as JSON; - is standard input; other options replace its members
    #[arg(long, value_name = "FILE")]
    file: Option<String>,
}

/// Does what was typed.
pub async fn run(command: Command, session: &Session) -> Result<(), Error> {
    match command {
        Command::Register(definition) => register(&definition, session).await,
        Command::Update(definition) => update(&definition, session).await,
        Command::RotateSecret(options) => rotate::run(&options, session).await,
        Command::List => {
            // The operator sees the URLs too, and is one only without an organization.
            let call = session.operator(Method::GET, &["extension", "definition"]);
            let answer = call.send("listing extensions").await?;
            session.print_rows(
                &answer,
                |value| value,
                &[("NAME", "name"), ("URL", "url"), ("DESCRIPTION", "description")],
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

async fn register(definition: &Definition, session: &Session) -> Result<(), Error> {
    let mut members = definition.members()?;
    if !members.contains_key("url") {
        return Err(Error::Usage("an extension needs a --url".to_owned()));
    }
    if !members.contains_key("secret") {
        members.insert("secret".to_owned(), input::secret("shared secret")?.into());
    }
    let call = session.operator(Method::POST, &["extension", "definition"]);
    let call = call.json(Value::Object(members).to_string());
    let answer = call.send("registering the extension").await?;
    session.print_done(&answer, &format!("registered {}", definition.name))
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

/// The members of a definition that a client may write, as they stand, with what changes.
fn merged(found: &Value, changes: Map<String, Value>) -> Map<String, Value> {
    const WRITABLE: &[&str] =
        &["name", "url", "description", "permissions", "required_extensions", "flairs", "events"];
    let mut members = Map::new();
    for name in WRITABLE {
        if let Some(value) = found.get(name).filter(|value| !value.is_null()) {
            members.insert((*name).to_owned(), value.clone());
        }
    }
    members.extend(changes);
    members
}

impl Definition {
    /// The members that were given.
    fn members(&self) -> Result<Map<String, Value>, Error> {
        let mut members = match &self.file {
            None => Map::new(),
            Some(path) => serde_json::from_str(&input::file(path)?)
                .map_err(|error| Error::Usage(format!("{path}: {error}")))?,
        };
        members.insert("name".to_owned(), self.name.clone().into());
        let texts = [("url", &self.url), ("description", &self.description)];
        for (name, text) in texts {
            if let Some(text) = text {
                members.insert(name.to_owned(), text.clone().into());
            }
        }
        let lists = [
            ("permissions", &self.permissions),
            ("required_extensions", &self.required_extensions),
            ("flairs", &self.flairs),
            ("events", &self.events),
        ];
        for (name, list) in lists {
            if let Some(list) = list {
                members.insert(name.to_owned(), list.clone().into());
            }
        }
        if let Some(path) = &self.secret_file {
            let secret = input::without_line_end(input::file(path)?);
            members.insert("secret".to_owned(), secret.into());
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_given_changes() {
        let found = json!({
            "name": "x", "url": "https://old/", "permissions": ["a"], "events": null,
            "created_at": 1, "description": "d",
        });
        let changes = Map::from_iter([("url".to_owned(), json!("https://new/"))]);
        assert_eq!(
            Value::Object(merged(&found, changes)),
            json!({"name": "x", "url": "https://new/", "description": "d", "permissions": ["a"]})
        );
    }
}
