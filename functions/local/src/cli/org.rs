//! `annex org`: organizations.

use http::Method;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::Error;
use super::output;
use super::session::Session;

/// What can be done with organizations.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Create an organization; needs the root key
    #[command(after_help = "\
Examples:
  annex org create demo
  export ANNEX_OID=$(annex org create demo --quiet)")]
    Create {
        /// What people call it
        name: String,
        /// Print nothing but its id
        #[arg(long, short)]
        quiet: bool,
    },
    /// List the organizations that the key can reach
    List,
    /// Show an organization: the one given, or the one of --oid
    Show {
        /// Its id
        #[arg(value_name = "OID")]
        id: Option<String>,
    },
    /// Write everything that is kept of an organization, one JSON object a line
    #[command(after_help = "\
Examples:
  annex org export > organization.jsonl")]
    Export {
        /// Its id; the one of --oid unless given
        #[arg(value_name = "OID")]
        id: Option<String>,
    },
    /// Delete an organization and everything that is kept of it; needs the root key
    Delete {
        /// Its id
        #[arg(value_name = "OID")]
        id: String,
        /// Its name, so that no other one is deleted
        #[arg(long, value_name = "NAME")]
        confirm: String,
    },
}

/// Does what was typed.
pub async fn run(command: Command, session: &Session) -> Result<(), Error> {
    match command {
        Command::Create { name, quiet } => create(&name, quiet, session).await,
        Command::List => {
            // The key alone says what can be reached, so the token is for no organization.
            let call = session.operator(Method::GET, &["user", "orgs"]);
            let answer = call.query(&[("limit", "500")]).send("listing organizations").await?;
            session.print_rows(
                &answer,
                |value| &value["orgs"],
                &[("OID", "oid"), ("NAME", "name")],
                "no organizations",
            )
        }
        Command::Show { id } => {
            let oid = match &id {
                Some(id) => id,
                None => session.oid()?,
            };
            let call = session.v1(Method::GET, &["orgs", oid], oid);
            session.print_record(&call.send("reading the organization").await?)
        }
        Command::Export { id } => {
            let oid = match &id {
                Some(id) => id,
                None => session.oid()?,
            };
            export(oid, session).await
        }
        Command::Delete { id, confirm } => {
            let call = session.operator(Method::DELETE, &["orgs", &id]);
            let answer = call.form(&[("confirm", &confirm)]).send("deleting").await?;
            session.print_done(&answer, &format!("deleted {id}; its data is gone in an hour"))
        }
    }
}

async fn create(name: &str, quiet: bool, session: &Session) -> Result<(), Error> {
    let call = session.operator(Method::POST, &["orgs", "new"]);
    let fields = [("name", name), ("loc", "auto")];
    let answer = call.form(&fields).send("creating the organization").await?;
    if quiet {
        return session.print_member(&answer, "/data/oid");
    }
    session.print_with(&answer, |value| {
        let oid = value.pointer("/data/oid").and_then(Value::as_str).unwrap_or_default();
        format!("created organization {name}\n\n  export ANNEX_OID={oid}")
    })
}

/// A page of an export.
#[derive(Deserialize)]
struct Page {
    items: Vec<Box<RawValue>>,
    next: Option<String>,
}

/// What tells that an entry is not whole.
#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    data_in: Option<String>,
    #[serde(default)]
    record: Option<Box<RawValue>>,
}

async fn export(oid: &str, session: &Session) -> Result<(), Error> {
    let odd = |error| Error::Local(format!("the platform answered something else: {error}"));
    let mut cursor = String::new();
    loop {
        let call = session.v1(Method::GET, &["orgs", oid, "export"], oid);
        let answer = call.query(&[("cursor", &cursor)]).send("exporting").await?;
        let page: Page = serde_json::from_slice(&answer.body).map_err(odd)?;
        for item in page.items {
            let entry: Entry = serde_json::from_str(item.get()).map_err(odd)?;
            match entry {
                Entry { data_in: Some(_), record: Some(record) } => {
                    let whole = whole(oid, &record, session).await?;
                    output::line(&item.get().replacen(record.get(), &whole, 1))?;
                }
                _ => output::line(item.get())?,
            }
        }
        match page.next {
            Some(next) => cursor = next,
            None => return Ok(()),
        }
    }
}

/// The record of an invocation whose data is too large for the pages of an export.
async fn whole(oid: &str, record: &RawValue, session: &Session) -> Result<String, Error> {
    let value: Value = serde_json::from_str(record.get()).unwrap_or_default();
    let id = value["id"].as_str().unwrap_or_default();
    let call = session.v1(Method::GET, &["invocations", id], oid).query(&[("oid", oid)]);
    let answer = call.send("reading a record").await?;
    Ok(String::from_utf8_lossy(&answer.body).into_owned())
}
