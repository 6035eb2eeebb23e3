//! The options that say what an extension is, and the JSON that they make.

use serde_json::{Map, Value};

use super::error::Error;
use super::input;

/// Contracts that an extension is registered for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Contract {
    /// Capability extensions: commands, queries and events on locks
    Chaster,
}

impl Contract {
    /// The word that travels.
    const fn word(self) -> &'static str {
        match self {
            Self::Chaster => "chaster",
        }
    }
}

/// What an extension is.
#[derive(Debug, clap::Args)]
pub struct Definition {
    /// Its name: letters, digits, dots, dashes and underscores; of a capability extension lower-case letters, digits and dashes
    pub name: String,
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
    /// The contract of a capability extension; without it, the extension is one of signed webhooks
    #[arg(long, value_enum, help_heading = "Capability extensions")]
    contract: Option<Contract>,
    /// The username that its calls and webhooks carry (HTTP Basic)
    #[arg(long, value_name = "USERNAME", help_heading = "Capability extensions")]
    webhook_username: Option<String>,
    /// A file with the password that goes with it; - is standard input
    #[arg(
        long,
        value_name = "FILE",
        requires = "webhook_username",
        help_heading = "Capability extensions"
    )]
    webhook_password_file: Option<String>,
    /// It belongs to the platform itself, and may offer start commands
    #[arg(long, help_heading = "Capability extensions")]
    platform_owned: bool,
}

impl Definition {
    /// The members that were given.
    pub fn members(&self) -> Result<Map<String, Value>, Error> {
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
        self.of_a_capability_extension(&mut members)?;
        Ok(members)
    }

    fn of_a_capability_extension(&self, members: &mut Map<String, Value>) -> Result<(), Error> {
        if let Some(contract) = self.contract {
            members.insert("contract".to_owned(), contract.word().into());
        }
        if self.platform_owned {
            members.insert("platform_owned".to_owned(), true.into());
        }
        if let Some(username) = &self.webhook_username {
            let mut webhook = Map::new();
            webhook.insert("username".to_owned(), username.clone().into());
            if let Some(path) = &self.webhook_password_file {
                let password = input::without_line_end(input::file(path)?);
                webhook.insert("password".to_owned(), password.into());
            }
            members.insert("webhook".to_owned(), webhook.into());
        }
        Ok(())
    }
}

/// Whether these members are of a capability extension.
pub fn is_capability(members: &Map<String, Value>) -> bool {
    members.contains_key("contract")
}

/// The members of a definition that a client may write, as they stand, with what changes.
pub fn merged(found: &Value, changes: Map<String, Value>) -> Map<String, Value> {
    const WRITABLE: &[&str] =
        &["name", "url", "description", "permissions", "required_extensions", "flairs", "events"];
    const OF_A_CAPABILITY_EXTENSION: &[&str] =
        &["contract", "name", "url", "description", "webhook", "platform_owned"];
    let writable = match found.get("contract") {
        Some(_) => OF_A_CAPABILITY_EXTENSION,
        None => WRITABLE,
    };
    let mut members = Map::new();
    for name in writable {
        if let Some(value) = found.get(name).filter(|value| !value.is_null()) {
            members.insert((*name).to_owned(), value.clone());
        }
    }
    members.extend(changes);
    members
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(found: &Value, changes: Value, expected: &Value) {
        let Value::Object(changes) = changes else { panic!("{changes}") };
        assert_eq!(Value::Object(merged(found, changes)), *expected);
    }

    #[test]
    fn only_what_is_given_changes() {
        let found = json!({
            "name": "x", "url": "https://old/", "permissions": ["a"], "events": null,
            "created_at": 1, "description": "d",
        });
        check(
            &found,
            json!({"url": "https://new/"}),
            &json!({"name": "x", "url": "https://new/", "description": "d", "permissions": ["a"]}),
        );
    }

    #[test]
    fn a_capability_extension_keeps_its_credentials_and_not_what_its_manifest_says() {
        let found = json!({
            "contract": "chaster", "name": "dice", "url": "https://old/", "description": "",
            "webhook": {"username": "u"}, "platform_owned": false, "commands": ["dice.roll"],
            "queries": [], "events": [], "created_at": "t", "updated_at": "t",
        });
        check(
            &found,
            json!({"url": "https://new/"}),
            &json!({
                "contract": "chaster", "name": "dice", "url": "https://new/", "description": "",
                "webhook": {"username": "u"}, "platform_owned": false,
            }),
        );
    }
}
