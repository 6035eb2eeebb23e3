//! `annex org`: organizations.

use http::Method;
use serde_json::Value;

use super::error::Error;
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
