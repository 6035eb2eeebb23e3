//! `annex event`: telemetry events of an organization.

use http::Method;
use serde_json::Value;

use super::error::Error;
use super::output;
use super::session::Session;

/// What can be done with telemetry events.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List events, newest first
    #[command(after_help = "\
Example:
  annex event list --type login --from 2026-01-01T00:00:00Z --limit 20")]
    List {
        /// Only events of this type
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<String>,
        /// From when on, included: RFC 3339, or seconds since 1970
        #[arg(long, value_name = "TIME")]
        from: Option<String>,
        /// Until when, excluded: RFC 3339, or seconds since 1970
        #[arg(long, value_name = "TIME")]
        to: Option<String>,
        /// At most so many
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// Where the page before ended: its next_cursor
        #[arg(long)]
        cursor: Option<String>,
    },
}

/// Does what was typed.
pub async fn run(command: Command, session: &Session) -> Result<(), Error> {
    let Command::List { kind, from, to, limit, cursor } = command;
    let limit = limit.to_string();
    let given = [
        ("type", kind.as_deref()),
        ("from", from.as_deref()),
        ("to", to.as_deref()),
        ("limit", Some(&*limit)),
        ("cursor", cursor.as_deref()),
    ];
    let query: Vec<_> = given.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect();
    let call = session.org(Method::GET, &["events"])?.query(&query);
    let answer = call.send("listing events").await?;
    session.print_with(&answer, table)
}

fn table(value: &Value) -> String {
    let mut rows = output::rows(&value["events"]);
    for row in &mut rows {
        output::lift(row, "routing", &["event_type", "hostname"]);
    }
    let columns =
        [("TIME", "ts"), ("TYPE", "event_type"), ("HOST", "hostname"), ("EVENT", "event")];
    let events = output::table(&rows, &columns, "no events");
    match value["next_cursor"].as_str() {
        None => events,
        Some(cursor) => {
            format!("{events}\n\nthere is more: --cursor {}", output::printable(cursor))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_listed_with_what_the_platform_knows_about_them() {
        let event = json!({
            "event": {"user": "u"}, "ts": "2026-01-31T00:00:00.000Z",
            "routing": {"event_type": "login", "hostname": "h", "event_time": 1},
        });
        assert_eq!(
            table(&json!({"events": [event], "next_cursor": null})),
            "TIME                      TYPE   HOST  EVENT\n\
             2026-01-31T00:00:00.000Z  login  h     {\"user\":\"u\"}"
        );
        assert_eq!(table(&json!({"events": []})), "no events");
        assert_eq!(
            table(&json!({"events": [], "next_cursor": "c"})),
            "no events\n\nthere is more: --cursor c"
        );
    }
}
