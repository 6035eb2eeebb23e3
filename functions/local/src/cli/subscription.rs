//! `annex subscription`, `annex subscribe`, `annex unsubscribe`: what an organization uses.

use http::Method;

use super::error::Error;
use super::session::Session;

/// What can be done with subscriptions.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List the extensions that the organization uses
    List,
    /// Use an extension
    Create {
        /// Name of the extension
        extension: String,
    },
    /// Stop using an extension
    Delete {
        /// Name of the extension
        extension: String,
    },
    /// Make the tokens that the extension holds for the organization worthless
    Rekey {
        /// Name of the extension
        extension: String,
    },
}

/// Does what was typed.
pub async fn run(command: Command, session: &Session) -> Result<(), Error> {
    match command {
        Command::List => {
            let call = session.org(Method::GET, &["subscriptions"])?;
            let answer = call.send("listing subscriptions").await?;
            session.print_rows(
                &answer,
                |value| value,
                &[("EXTENSION", "name"), ("SINCE", "created_at")],
                "no subscriptions",
            )
        }
        Command::Create { extension } => subscribe(&extension, session).await,
        Command::Delete { extension } => unsubscribe(&extension, session).await,
        Command::Rekey { extension } => {
            change(Method::PATCH, &extension, "re-keyed the subscription to", session).await
        }
    }
}

/// Makes the organization use an extension.
pub async fn subscribe(extension: &str, session: &Session) -> Result<(), Error> {
    change(Method::POST, extension, "subscribed to", session).await
}

/// Makes the organization stop using an extension.
pub async fn unsubscribe(extension: &str, session: &Session) -> Result<(), Error> {
    change(Method::DELETE, extension, "unsubscribed from", session).await
}

async fn change(
    method: Method,
    extension: &str,
    done: &str,
    session: &Session,
) -> Result<(), Error> {
    let call = session.org(method, &["subscription", "extension", extension])?;
    let answer = call.send("changing the subscription").await?;
    session.print_done(&answer, &format!("{done} {extension}"))
}
