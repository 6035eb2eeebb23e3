//! Metrics of calls in CloudWatch: one line in the embedded metric format for every run that ended.
//!
//! The dimensions are few on purpose, since each combination of their values is a metric that is billed. Which call
//! and which tenant it was stands in the line beside them, where a query of the logs finds it.

use std::fmt;
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use annex_core::call::LOG_TARGET;
use serde::Serialize;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// The namespace of the metrics.
const NAMESPACE: &str = "Annex";

/// The sets of dimensions of every metric.
const DIMENSIONS: &[&[&str]] = &[&["Function"], &["Function", "Outcome"]];

/// Writes the metrics of the runs of calls, a line each, for the function of this name.
///
/// It takes the canonical line of a run (`annex_core::call::LOG_TARGET`) and nothing else, and has its own filter: give
/// that of the log to the log's layer, or a log of warnings alone has no metrics.
pub fn layer<S, W>(function: &str, writer: W) -> impl Layer<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    layer_at(function, writer, now)
}

fn layer_at<S, W>(function: &str, writer: W, now: fn() -> u64) -> impl Layer<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let only = Targets::new().with_target(LOG_TARGET, Level::INFO);
    Metrics { function: function.to_owned(), writer, now }.with_filter(only)
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

struct Metrics<W> {
    function: String,
    writer: W,
    now: fn() -> u64,
}

impl<S, W> Layer<S> for Metrics<W>
where
    S: Subscriber,
    W: for<'writer> MakeWriter<'writer> + 'static,
{
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut run = Run::default();
        event.record(&mut run);
        let Ok(mut line) = serde_json::to_vec(&run.line(&self.function, (self.now)())) else {
            return;
        };
        line.push(b'\n');
        // In one piece, so that no other line stands in its middle. A log that cannot be written is lost.
        let _ = self.writer.make_writer().write_all(&line);
    }
}

/// What is taken of the line of a run.
#[derive(Default)]
struct Run {
    id: String,
    oid: String,
    extension: String,
    outcome: String,
    attempts: u64,
    latency_ms: u64,
    queue_age_ms: u64,
}

impl Visit for Run {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "attempts" => self.attempts = value,
            "latency_ms" => self.latency_ms = value,
            "queue_age_ms" => self.queue_age_ms = value,
            _ => {}
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "extension" => value.clone_into(&mut self.extension),
            "outcome" => value.clone_into(&mut self.outcome),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "id" => self.id = format!("{value:?}"),
            "oid" => self.oid = format!("{value:?}"),
            _ => {}
        }
    }
}

impl Run {
    fn line<'a>(&'a self, function: &'a str, timestamp: u64) -> Line<'a> {
        let mut metrics = vec![
            Metric { name: "Calls", unit: "Count" },
            Metric { name: "Attempts", unit: "Count" },
            Metric { name: "Failures", unit: "Count" },
            Metric { name: "QueueAge", unit: "Milliseconds" },
        ];
        // What was not sent took no time; as a zero it would lower the average.
        let latency = (0 < self.attempts).then_some(self.latency_ms);
        metrics.extend(latency.map(|_| Metric { name: "Latency", unit: "Milliseconds" }));
        Line {
            aws: Metadata {
                timestamp,
                directives: [Directive { namespace: NAMESPACE, dimensions: DIMENSIONS, metrics }],
            },
            function,
            outcome: &self.outcome,
            calls: 1,
            attempts: self.attempts,
            failures: u64::from(self.outcome == "failed"),
            queue_age: self.queue_age_ms,
            latency,
            id: &self.id,
            oid: &self.oid,
            extension: &self.extension,
        }
    }
}

/// A line of the embedded metric format: what CloudWatch is told, the dimensions, the metrics, and properties.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Line<'a> {
    #[serde(rename = "_aws")]
    aws: Metadata,
    function: &'a str,
    outcome: &'a str,
    calls: u64,
    attempts: u64,
    failures: u64,
    queue_age: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency: Option<u64>,
    #[serde(rename = "id")]
    id: &'a str,
    #[serde(rename = "oid")]
    oid: &'a str,
    #[serde(rename = "extension")]
    extension: &'a str,
}

#[derive(Serialize)]
struct Metadata {
    /// Milliseconds since 1970.
    #[serde(rename = "Timestamp")]
    timestamp: u64,
    #[serde(rename = "CloudWatchMetrics")]
    directives: [Directive; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Directive {
    namespace: &'static str,
    dimensions: &'static [&'static [&'static str]],
    metrics: Vec<Metric>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Metric {
    name: &'static str,
    unit: &'static str,
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// The lines that `work` leaves.
    fn lines(work: impl FnOnce()) -> Vec<String> {
        let written = Written::default();
        let made = written.clone();
        let layer = layer_at("dispatch", move || made.clone(), || 1_700_000_000_123);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), work);
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'));
        text.lines().map(str::to_owned).collect()
    }

    fn run(outcome: &str, attempts: u32) {
        tracing::info!(
            target: LOG_TARGET,
            id = %"i1",
            oid = %"o1",
            extension = "scanner",
            action = Some("scan"),
            event = None::<&str>,
            origin = "api",
            outcome,
            code = (outcome == "failed").then_some("extension-failed"),
            attempts,
            latency_ms = 250_u64,
            queue_age_ms = 40_u64,
            trace_id = %"4bf92f3577b34da6a3ce929d0e0e4736",
            "call"
        );
    }

    #[test]
    fn a_run_is_one_line_with_what_the_format_requires_and_nothing_else() {
        let lines = lines(|| run("succeeded", 2));
        let expected = concat!(
            r#"{"_aws":{"Timestamp":1700000000123,"CloudWatchMetrics":[{"Namespace":"Annex","#,
            r#""Dimensions":[["Function"],["Function","Outcome"]],"Metrics":["#,
            r#"{"Name":"Calls","Unit":"Count"},{"Name":"Attempts","Unit":"Count"},"#,
            r#"{"Name":"Failures","Unit":"Count"},{"Name":"QueueAge","Unit":"Milliseconds"},"#,
            r#"{"Name":"Latency","Unit":"Milliseconds"}]}]},"#,
            r#""Function":"dispatch","Outcome":"succeeded","Calls":1,"Attempts":2,"Failures":0,"#,
            r#""QueueAge":40,"Latency":250,"id":"i1","oid":"o1","extension":"scanner"}"#,
        );
        assert_eq!(lines, [expected]);
    }

    #[test]
    fn every_name_that_the_directive_refers_to_is_a_member_of_the_right_type() {
        let lines = lines(|| {
            for outcome in ["succeeded", "failed", "waiting"] {
                run(outcome, 0);
                run(outcome, 1);
            }
        });
        assert_eq!(lines.len(), 6);
        for line in lines {
            let line: Value = serde_json::from_str(&line).unwrap();
            let directive = &line["_aws"]["CloudWatchMetrics"][0];
            for set in directive["Dimensions"].as_array().unwrap() {
                for name in set.as_array().unwrap() {
                    let value = line[name.as_str().unwrap()].as_str().unwrap();
                    assert!((1..=1024).contains(&value.len()));
                }
            }
            let mut known = vec!["_aws", "Function", "Outcome", "id", "oid", "extension"];
            for metric in directive["Metrics"].as_array().unwrap() {
                let name = metric["Name"].as_str().unwrap();
                assert!(line[name].is_u64(), "{name}");
                assert!(["Count", "Milliseconds"].contains(&metric["Unit"].as_str().unwrap()));
                known.push(name);
            }
            assert!(line.as_object().unwrap().keys().all(|name| known.contains(&name.as_str())));
            assert_eq!(line["Failures"], json!(u8::from(line["Outcome"] == "failed")));
            // What was not sent has no latency.
            assert_eq!(line.get("Latency").is_some(), line["Attempts"] == 1);
        }
    }

    #[test]
    fn no_other_line_becomes_a_metric() {
        let lines = lines(|| {
            tracing::error!(id = "x", "another target");
            tracing::debug!(target: LOG_TARGET, "not the line of a run");
        });
        assert_eq!(lines, [""; 0]);
    }
}
