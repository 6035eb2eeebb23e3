//! `annex lock`: locks, which capability extensions are installed on.

use http::Method;
use serde_json::{Map, Value};

use super::error::Error;
use super::lock_call;
use super::output;
use super::session::Session;

/// What can be done with locks. The first session on a lock makes it: see `annex session create`.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show a lock
    Show {
        /// Its id
        lock: String,
    },
    /// Change a lock: only what is given changes
    #[command(after_help = "\
Examples:
  annex lock set lock-1 --status unlocked         # its extensions are not called any more
  annex lock set lock-1 --has-keyholder true")]
    Set(Set),
    /// Call a command of a capability extension as the wearer or the keyholder, and print its output
    #[command(after_help = "\
Examples:
  annex lock call lock-1 dice.roll --data '{\"sides\": 6}'
  annex lock call lock-1 dice.roll --as keyholder --idempotency-key monday")]
    Call(lock_call::Call),
    /// Ask a query of a capability extension as the wearer or the keyholder, and print its output
    #[command(after_help = "\
Examples:
  annex lock ask lock-1 dice.sides --as keyholder")]
    Ask(lock_call::Call),
    /// Show a call of a capability on a lock, whoever made it
    #[command(after_help = "\
Examples:
  annex lock invocation lock-1 inv_0123456789abcdef0123456789abcdef")]
    Invocation {
        /// The lock
        lock: String,
        /// The call, as its record names it
        id: String,
    },
    /// Show what happened on a lock, newest first
    #[command(after_help = "\
Examples:
  annex lock history lock-1
  annex lock history lock-1 --role extension --limit 10")]
    History(History),
}

/// A lock, and what it becomes.
#[derive(Debug, clap::Args)]
pub struct Set {
    /// Its id
    lock: String,
    /// What changes.
    #[command(flatten)]
    change: Change,
}

/// What a lock becomes.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub struct Change {
    /// Where it stands
    #[arg(long, value_enum)]
    status: Option<Status>,
    /// Whether somebody holds its key
    #[arg(long, value_name = "true|false")]
    has_keyholder: Option<bool>,
}

/// Where a lock stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Status {
    /// Active
    Locked,
    /// Ended
    Unlocked,
    /// Ended without an end
    Deserted,
}

/// Which lines of a history are shown.
#[derive(Debug, clap::Args)]
pub struct History {
    /// The lock
    lock: String,
    /// Only what this one did
    #[arg(long, value_enum)]
    role: Option<Role>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: u32,
    /// Where the page before ended: its lastId
    #[arg(long, value_name = "ID")]
    before: Option<String>,
}

/// Who did what a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Role {
    /// The wearer
    Wearer,
    /// The keyholder
    Keyholder,
    /// An extension
    Extension,
    /// Somebody in the organization, or the platform
    Admin,
}

/// Does what was typed.
pub async fn run(command: Command, session: &Session) -> Result<(), Error> {
    match command {
        Command::Show { lock } => {
            let call = session.org(Method::GET, &["scopes", "lock", &lock])?;
            session.print_record(&call.send("reading the lock").await?)
        }
        Command::Set(Set { lock, change }) => {
            let call = session.org(Method::PATCH, &["scopes", "lock", &lock])?;
            let call = call.json(change.body().to_string());
            let answer = call.send("changing the lock").await?;
            session.print_done(&answer, &format!("changed {lock}"))
        }
        Command::Call(call) => lock_call::run(call, false, session).await,
        Command::Ask(call) => lock_call::run(call, true, session).await,
        Command::Invocation { lock, id } => {
            let path = ["scopes", "lock", &lock, "invocations", &id];
            let call = session.org(Method::GET, &path)?;
            session.print_record(&call.send("reading the call").await?)
        }
        Command::History(history) => {
            let (role, limit) = (history.role.map(word), history.limit.to_string());
            let given = [
                ("role", role.as_deref()),
                ("limit", Some(&*limit)),
                ("lastId", history.before.as_deref()),
            ];
            let query: Vec<_> =
                given.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect();
            let call = session.org(Method::GET, &["scopes", "lock", &history.lock, "history"])?;
            let answer = call.query(&query).send("reading the history").await?;
            session.print_with(&answer, table)
        }
    }
}

/// The word of a value, as it is typed and as it travels.
pub(super) fn word(value: impl clap::ValueEnum) -> String {
    let name = value.to_possible_value().map(|value| value.get_name().to_owned());
    name.unwrap_or_default()
}

impl Change {
    fn body(&self) -> Value {
        let mut body = Map::new();
        if let Some(status) = self.status {
            body.insert("status".to_owned(), word(status).into());
        }
        if let Some(has) = self.has_keyholder {
            body.insert("hasKeyholder".to_owned(), has.into());
        }
        body.into()
    }
}

fn table(value: &Value) -> String {
    let columns = [
        ("TIME", "createdAt"),
        ("ROLE", "role"),
        ("EXTENSION", "extension"),
        ("TYPE", "type"),
        ("TITLE", "title"),
        ("PAYLOAD", "payload"),
    ];
    let lines = output::table(&output::rows(&value["results"]), &columns, "nothing happened");
    match value["lastId"].as_str() {
        None => lines,
        Some(last) => format!("{lines}\n\nthere is more: --before {}", output::printable(last)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_history_is_listed_with_who_did_what() {
        let line = json!({
            "_id": "0f", "type": "dice.rolled", "payload": {"value": 4}, "lock": "l",
            "role": "extension", "extension": "dice", "title": "A die was rolled",
            "description": "", "color": null, "icon": null, "prefix": "dice",
            "createdAt": "2026-01-31T00:00:00.000Z",
        });
        let lines = "TIME                      ROLE       EXTENSION  TYPE         TITLE             PAYLOAD\n\
             2026-01-31T00:00:00.000Z  extension  dice       dice.rolled  A die was rolled  {\"value\":4}";
        assert_eq!(table(&json!({"results": [line]})), lines);
        assert_eq!(
            table(&json!({"results": [line], "lastId": "0f"})),
            format!("{lines}\n\nthere is more: --before 0f")
        );
        assert_eq!(table(&json!({"results": []})), "nothing happened");
    }

    #[test]
    fn only_what_is_given_of_a_lock_changes() {
        let check = |status, has_keyholder, expected: Value| {
            let change = Change { status, has_keyholder };
            assert_eq!(change.body(), expected);
        };
        check(Some(Status::Deserted), None, json!({"status": "deserted"}));
        check(None, Some(false), json!({"hasKeyholder": false}));
    }
}
