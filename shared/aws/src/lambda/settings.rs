//! What the template tells a function, in its environment.

use std::time::Duration;

use annex_core::ports::QueueName;

use super::Error;
use crate::{Queue, Queues};

/// How often the same refused request is filed as an error at most, by one process: each write is billed.
pub const REFUSALS_FILED_EVERY: Duration = Duration::from_secs(60);

/// The value of `ANNEX_PUBLIC_URL` that leaves the URL to the first request: that of a function URL is not known when
/// the function is made.
const FROM_REQUESTS: &str = "from-requests";

/// What every function is told. It is read and checked as a whole when the process starts, so that a template that
/// forgets something fails at once and not on the first customer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `ANNEX_TABLE`: the name of the table.
    pub table: String,
    /// `ANNEX_BUCKET`: the name of the bucket.
    pub bucket: String,
    /// `ANNEX_DISPATCH_QUEUE_URL`, `ANNEX_DISPATCH_DEAD_LETTERS_URL`, and their like for each queue.
    pub queues: Queues,
    /// `ANNEX_KEYRING_SECRET`: the id of the secret that holds the key ring.
    pub keyring_secret: String,
    /// `ANNEX_DISPATCH_FUNCTION`: the name of the function that runs calls whose caller waits.
    pub dispatch_function: String,
    /// `ANNEX_PUBLIC_URL`: where clients reach the API, without a slash at its end. `None`, written as `from-requests`:
    /// under the name that the first request came to.
    pub public_url: Option<String>,
    /// `ANNEX_ALLOW_PRIVATE_NETWORKS`: whether extensions may live on private addresses and plain http on loopback.
    pub allow_private_networks: bool,
    /// `ANNEX_SLOW_RETRY_HOURS`: how long calls are tried again that are answered 429; 0 to 72.
    pub slow_retry_window: Duration,
    /// `ANNEX_TELEMETRY_DAYS`: how long telemetry is kept; 1 to 400.
    pub telemetry_retention: Duration,
}

impl Settings {
    /// From the environment of this process. The error names every variable that is missing or wrong.
    pub fn from_env() -> Result<Self, Error> {
        Self::read(|name| std::env::var(name).ok())
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let mut reader = Reader { variable, wrong: Vec::new() };
        let queue = |reader: &mut Reader<_>, queue: QueueName| {
            let name = queue.name().to_uppercase();
            let url = reader.url(&format!("ANNEX_{name}_QUEUE_URL"));
            let dead_letters_url = Some(reader.url(&format!("ANNEX_{name}_DEAD_LETTERS_URL")));
            Some(Queue { url, dead_letters_url })
        };
        let queues = Queues {
            dispatch: queue(&mut reader, QueueName::Dispatch),
            resume: queue(&mut reader, QueueName::Resume),
            meter: queue(&mut reader, QueueName::Meter),
        };
        let settings = Self {
            table: reader.text("ANNEX_TABLE"),
            bucket: reader.text("ANNEX_BUCKET"),
            queues,
            keyring_secret: reader.text("ANNEX_KEYRING_SECRET"),
            dispatch_function: reader.text("ANNEX_DISPATCH_FUNCTION"),
            public_url: reader.public_url("ANNEX_PUBLIC_URL"),
            allow_private_networks: reader.switch("ANNEX_ALLOW_PRIVATE_NETWORKS"),
            slow_retry_window: reader.number("ANNEX_SLOW_RETRY_HOURS", 0, 72) * 3600,
            telemetry_retention: reader.number("ANNEX_TELEMETRY_DAYS", 1, 400) * 86_400,
        };
        if reader.wrong.is_empty() { Ok(settings) } else { Err(reader.wrong.join("; ").into()) }
    }
}

/// Reads variables, and remembers what is wrong with them.
struct Reader<F> {
    variable: F,
    wrong: Vec<String>,
}

impl<F: Fn(&str) -> Option<String>> Reader<F> {
    fn text(&mut self, name: &str) -> String {
        let text = (self.variable)(name).filter(|text| !text.is_empty());
        text.unwrap_or_else(|| self.refuse(format!("{name} is not set")))
    }

    fn url(&mut self, name: &str) -> String {
        let text = self.text(name);
        let is_url = text.starts_with("https://") || text.starts_with("http://");
        if is_url || text.is_empty() {
            return text.trim_end_matches('/').to_owned();
        }
        self.refuse(format!("{name} is not a URL"))
    }

    fn public_url(&mut self, name: &str) -> Option<String> {
        let from_requests = (self.variable)(name).is_some_and(|text| text == FROM_REQUESTS);
        (!from_requests).then(|| self.url(name))
    }

    fn switch(&mut self, name: &str) -> bool {
        match self.text(name).as_str() {
            "true" => true,
            "false" | "" => false,
            _ => {
                self.refuse::<String>(format!("{name} is neither true nor false"));
                false
            }
        }
    }

    fn number(&mut self, name: &str, min: u64, max: u64) -> Duration {
        let text = self.text(name);
        match text.parse() {
            Ok(number) if (min..=max).contains(&number) => return Duration::from_secs(number),
            _ if text.is_empty() => {}
            _ => {
                self.refuse::<String>(format!("{name} is not a number from {min} to {max}"));
            }
        }
        Duration::ZERO
    }

    fn refuse<T: Default>(&mut self, why: String) -> T {
        self.wrong.push(why);
        T::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: &[(&str, &str)] = &[
        ("ANNEX_TABLE", "t"),
        ("ANNEX_BUCKET", "b"),
        ("ANNEX_DISPATCH_QUEUE_URL", "https://q/d"),
        ("ANNEX_RESUME_QUEUE_URL", "https://q/r"),
        ("ANNEX_METER_QUEUE_URL", "https://q/m"),
        ("ANNEX_DISPATCH_DEAD_LETTERS_URL", "https://q/dd"),
        ("ANNEX_RESUME_DEAD_LETTERS_URL", "https://q/rd"),
        ("ANNEX_METER_DEAD_LETTERS_URL", "https://q/md"),
        ("ANNEX_KEYRING_SECRET", "s"),
        ("ANNEX_DISPATCH_FUNCTION", "f"),
        ("ANNEX_PUBLIC_URL", "https://api.example/"),
        ("ANNEX_ALLOW_PRIVATE_NETWORKS", "false"),
        ("ANNEX_SLOW_RETRY_HOURS", "6"),
        ("ANNEX_TELEMETRY_DAYS", "30"),
    ];

    /// The settings with one variable set to something else.
    fn read(name: &str, value: Option<&str>) -> Result<Settings, String> {
        let known = |asked: &str| {
            if asked == name {
                return value.map(str::to_owned);
            }
            SET.iter().find(|(name, _)| *name == asked).map(|(_, value)| (*value).to_owned())
        };
        Settings::read(known).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn check_refused(name: &str, value: Option<&str>, why: &str) {
        assert_eq!(read(name, value).unwrap_err(), why);
    }

    #[test]
    fn everything_is_read() {
        let settings = read("", None).unwrap();
        let meter = settings.queues.get(QueueName::Meter).unwrap();
        assert_eq!(
            (meter.url.as_str(), meter.dead_letters_url.as_deref()),
            ("https://q/m", Some("https://q/md"))
        );
        assert_eq!(settings.public_url.as_deref(), Some("https://api.example"));
        assert_eq!(settings.slow_retry_window, Duration::from_secs(6 * 3600));
        assert_eq!(settings.telemetry_retention, Duration::from_secs(30 * 86_400));
        assert!(!settings.allow_private_networks);
    }

    #[test]
    fn what_is_missing_is_named() {
        for (name, _) in SET {
            check_refused(name, None, &format!("{name} is not set"));
            check_refused(name, Some(""), &format!("{name} is not set"));
        }
        let nothing = Settings::read(|_| None).unwrap_err().to_string();
        assert_eq!(nothing.matches(" is not set").count(), SET.len());
    }

    #[test]
    fn values_outside_their_range_are_named() {
        let hours = "ANNEX_SLOW_RETRY_HOURS is not a number from 0 to 72";
        let days = "ANNEX_TELEMETRY_DAYS is not a number from 1 to 400";
        for (hours_max, days_max) in [("0", "1"), ("72", "400")] {
            assert!(read("ANNEX_SLOW_RETRY_HOURS", Some(hours_max)).is_ok());
            assert!(read("ANNEX_TELEMETRY_DAYS", Some(days_max)).is_ok());
        }
        check_refused("ANNEX_SLOW_RETRY_HOURS", Some("73"), hours);
        check_refused("ANNEX_SLOW_RETRY_HOURS", Some("-1"), hours);
        check_refused("ANNEX_TELEMETRY_DAYS", Some("0"), days);
        check_refused("ANNEX_TELEMETRY_DAYS", Some("401"), days);
        let switch = "ANNEX_ALLOW_PRIVATE_NETWORKS is neither true nor false";
        check_refused("ANNEX_ALLOW_PRIVATE_NETWORKS", Some("yes"), switch);
        check_refused("ANNEX_METER_QUEUE_URL", Some("q"), "ANNEX_METER_QUEUE_URL is not a URL");
    }

    #[test]
    fn the_public_url_may_be_left_to_the_requests() {
        let settings = read("ANNEX_PUBLIC_URL", Some("from-requests")).unwrap();
        assert_eq!(settings.public_url, None);
        check_refused("ANNEX_PUBLIC_URL", Some("here"), "ANNEX_PUBLIC_URL is not a URL");
    }
}
