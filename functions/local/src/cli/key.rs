//! `annex key`: API keys of an organization.

use http::Method;
use serde_json::Value;

use super::error::Error;
use super::session::Session;

/// What can be done with API keys.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Create a key; it is shown once
    #[command(after_help = "\
Examples:
  annex key create ci --perms ext.request,org.get
  export ANNEX_API_KEY=$(annex key create ci --quiet)")]
    Create {
        /// What people call it
        name: String,
        /// What it may do, with commas between; `*` is everything in the organization
        #[arg(long, value_delimiter = ',', value_name = "PERMISSION", default_value = "*")]
        perms: Vec<String>,
        /// Print nothing but the key
        #[arg(long, short)]
        quiet: bool,
    },
    /// List keys; the keys themselves are not kept and cannot be shown
    List,
    /// Delete a key
    Delete {
        /// Its hash, as `annex key list` shows it
        hash: String,
    },
}

/// Does what was typed.
pub async fn run(command: Command, session: &Session) -> Result<(), Error> {
    match command {
        Command::Create { name, perms, quiet } => {
            let fields = [("key_name", &*name), ("perms", &*perms.join(","))];
            let call = session.org(Method::POST, &["keys"])?.form(&fields);
            let answer = call.send("creating the key").await?;
            if quiet {
                return session.print_member(&answer, "/api_key");
            }
            session.print_with(&answer, |value| {
                let member = |name| value.get(name).and_then(Value::as_str).unwrap_or_default();
                format!(
                    "created key {name}; it is not shown again\n\n  export ANNEX_API_KEY={}\n\nhash {}",
                    member("api_key"),
                    member("key_hash")
                )
            })
        }
        Command::List => {
            let answer = session.org(Method::GET, &["keys"])?.send("listing keys").await?;
            session.print_with(&answer, table)
        }
        Command::Delete { hash } => {
            let call = session.org(Method::DELETE, &["keys"])?.form(&[("key_hash", &hash)]);
            let answer = call.send("deleting the key").await?;
            session.print_done(&answer, &format!("deleted key {hash}"))
        }
    }
}

/// Keys stand by their hash and have a name beside it, so the hash needs a column of its own.
fn table(value: &Value) -> String {
    let keys = value.get("api_keys").and_then(Value::as_object);
    let rows: Vec<_> = keys
        .into_iter()
        .flatten()
        .filter_map(|(hash, key)| {
            let mut row = key.as_object()?.clone();
            row.insert("hash".to_owned(), Value::String(hash.clone()));
            Some(row)
        })
        .collect();
    let columns =
        [("NAME", "name"), ("PERMISSIONS", "priv"), ("CREATED", "created"), ("HASH", "hash")];
    super::output::table(&rows, &columns, "no keys")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_listed_with_their_hash() {
        let key = json!({"name": "ci", "priv": ["org.get"], "created": 1_700_000_000});
        assert_eq!(
            table(&json!({"api_keys": {"0f": key}})),
            "NAME  PERMISSIONS  CREATED                   HASH\n\
             ci    org.get      2023-11-14T22:13:20.000Z  0f"
        );
        assert_eq!(table(&json!({"api_keys": {}})), "no keys");
    }
}
