//! `annex usage`: what was metered.

use http::Method;

use super::error::Error;
use super::session::Session;

/// Which usage to show.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --from and --to: the last 24 hours.

Examples:
  annex usage
  annex usage --by day --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z")]
pub struct Options {
    /// One line for each SKU and this long
    #[arg(long, value_enum)]
    by: Option<Step>,
    /// From when on, included: RFC 3339, or seconds since 1970
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Until when, excluded: RFC 3339, or seconds since 1970
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
}

/// How usage is split over time.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Step {
    /// An hour
    Hour,
    /// A day, in UTC
    Day,
}

/// Does what was typed.
pub async fn run(options: Options, session: &Session) -> Result<(), Error> {
    let by = options.by.map(|step| match step {
        Step::Hour => "hour",
        Step::Day => "day",
    });
    let given = [("from", options.from.as_deref()), ("to", options.to.as_deref()), ("by", by)];
    let query: Vec<_> = given.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect();
    let call = session.org(Method::GET, &["usage"])?.query(&query);
    let answer = call.send("reading usage").await?;
    session.print_rows(
        &answer,
        |value| &value["usage"],
        &[("SKU", "sku"), ("VALUE", "value"), ("FROM", "from"), ("TO", "to")],
        "no usage",
    )
}
