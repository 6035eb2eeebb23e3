//! `annex extension rotate-secret`: a new shared secret, and a time in which the old one works as well.

use http::Method;
use serde_json::Value;

use super::error::Error;
use super::input;
use super::output::printable;
use super::session::Session;

/// What is said below the options.
pub const HELP: &str = "\
Until the overlap ends, messages are signed with both secrets, and an extension that knows one of them takes them.
The secret is asked for where no file is given, and is never an argument.

Examples:
  openssl rand -hex 32 > new-secret.txt
  annex extension rotate-secret scanner --secret-file new-secret.txt
  annex extension rotate-secret scanner --finish         # the extension has the new secret: end the old one now";

/// Which extension, and how.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Its name
    name: String,
    /// A file with the new shared secret; - is standard input
    #[arg(long, value_name = "FILE")]
    secret_file: Option<String>,
    /// How long the old secret works as well: a number of s, m, h or d; 30 days at most
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = seconds)]
    overlap: u64,
    /// Begin although a rotation is under way: the oldest secret ends at once
    #[arg(long)]
    force: bool,
    /// End the overlap of a rotation now
    #[arg(long, conflicts_with_all = ["secret_file", "overlap", "force"])]
    finish: bool,
}

/// Does what was typed.
pub async fn run(options: &Options, session: &Session) -> Result<(), Error> {
    let path = ["extension", "definition", &options.name, "rotate-secret"];
    if options.finish {
        let call = session.operator(Method::DELETE, &path);
        let answer = call.send("ending the old secret").await?;
        return session.print_done(&answer, &format!("the old secret of {} ended", options.name));
    }
    let secret = match &options.secret_file {
        Some(path) => input::without_line_end(input::file(path)?),
        None => input::secret("new shared secret")?,
    };
    let overlap = options.overlap.to_string();
    let mut fields = vec![("secret", secret.as_str()), ("overlap", &overlap)];
    if options.force {
        fields.push(("force", "true"));
    }
    let call = session.operator(Method::POST, &path).form(&fields);
    let answer = call.send("rotating the secret").await?;
    let definition: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let done = match definition["previous_secret_until"].as_str() {
        Some(until) => {
            format!("the old secret of {} works until {}", options.name, printable(until))
        }
        None => format!("{} has the new secret only", options.name),
    };
    session.print_done(&answer, &done)
}

/// A time as a number of seconds, or with `s`, `m`, `h` or `d` after it.
fn seconds(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().next_back() {
        Some((at, 's')) => (&text[..at], 1),
        Some((at, 'm')) => (&text[..at], 60),
        Some((at, 'h')) => (&text[..at], 3_600),
        Some((at, 'd')) => (&text[..at], 86_400),
        _ => (text, 1),
    };
    let number =
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>().ok());
    number
        .flatten()
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(|| "it is a number of s, m, h or d, such as 24h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_with_a_unit() {
        let check = |text: &str, expected| assert_eq!(seconds(text).ok(), expected, "{text}");
        check("0", Some(0));
        check("45", Some(45));
        check("45s", Some(45));
        check("90m", Some(5_400));
        check("24h", Some(86_400));
        check("30d", Some(2_592_000));
        for bad in [
            "",
            "h",
            "-1h",
            "1.5h",
            "1w",
            "1 h",
            "h1",
            "99999999999999999999",
            "999999999999999999d",
        ] {
            check(bad, None);
        }
    }
}
