//! `annex error`: failures that were filed against an organization.

use http::Method;

use super::error::Error;
use super::session::Session;

/// What can be done with filed errors.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List what failed; the same failure stands once
    List,
    /// Remove the errors of a component
    Dismiss {
        /// The component, as `annex error list` shows it
        component: String,
    },
}

/// Does what was typed.
pub async fn run(command: Command, session: &Session) -> Result<(), Error> {
    let oid = session.oid()?;
    match command {
        Command::List => {
            let call = session.v1(Method::GET, &["errors", oid], oid);
            let answer = call.send("listing errors").await?;
            session.print_rows(
                &answer,
                |value| &value["errors"],
                &[
                    ("COMPONENT", "component"),
                    ("COUNT", "count"),
                    ("LAST", "last_ts"),
                    ("ERROR", "error"),
                ],
                "no errors",
            )
        }
        Command::Dismiss { component } => {
            let call = session.v1(Method::DELETE, &["errors", oid, &component], oid);
            let answer = call.send("dismissing the error").await?;
            session.print_done(&answer, &format!("dismissed {component}"))
        }
    }
}
