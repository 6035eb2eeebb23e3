//! Measures one Annex process with an extension on loopback, and what the machine does without Annex.
//!
//! Run by `scripts/bench [NAME]`. Ends with one line of JSON.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};

mod baseline;
mod capability;
mod http;
mod load;
mod platform;
mod process;
mod report;

use load::Latencies;
use platform::{Extension, Platform};
use report::Report;

/// Calls in flight at a time.
const IN_FLIGHT: usize = 64;

/// Calls that are made before anything is counted: connections are opened and caches filled.
const WARM_UP: usize = 2_000;

/// Starts whose median is the start-up time.
const STARTS: usize = 5;

/// Calls per second of the paced measurement, and for how long.
const PACED: (u32, Duration) = (500, Duration::from_secs(10));

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bench {
    All,
    Baseline,
    Startup,
    Paced,
    Capability,
}

struct Options {
    annex: PathBuf,
    scanner: PathBuf,
    calls: usize,
    bench: Bench,
}

const USAGE: &str = "\
usage: annex-bench --annex FILE --scanner FILE [--calls N] [NAME]
  without a name  everything
  baseline        what the machine does without Annex
  startup         time to ready and idle memory, with an existing store
  paced           what Annex adds at 500 calls a second, when nothing waits for a processor
  capability      commands between two capability extensions";

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let (mut annex, mut scanner, mut calls, mut bench) = (None, None, 100_000, Bench::All);
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--annex" => annex = Some(PathBuf::from(value()?)),
                "--scanner" => scanner = Some(PathBuf::from(value()?)),
                "--calls" => calls = value()?.parse().context("--calls needs a number")?,
                "baseline" => bench = Bench::Baseline,
                "startup" => bench = Bench::Startup,
                "paced" => bench = Bench::Paced,
                "capability" => bench = Bench::Capability,
                _ => bail!("unexpected argument: {arg}"),
            }
        }
        Ok(Self {
            annex: annex.context("--annex is missing")?,
            scanner: scanner.context("--scanner is missing")?,
            calls,
            bench,
        })
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("error: {error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&options).await {
        Ok(report) => {
            println!("\n{}\n{}", report.table(), report.json());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> anyhow::Result<Report> {
    let folder = tempfile::tempdir()?;
    let mut report = Report::default();
    let extension = Extension::start(&options.scanner)?;
    if options.bench == Bench::Startup {
        let mut platform = Platform::set_up(&options.annex, folder.path(), &extension).await?;
        startup(&mut platform, &mut report, "ready_ms").await?;
        platform.stop()?;
        return Ok(report);
    }
    if options.bench == Bench::Capability {
        let mut platform = Platform::set_up(&options.annex, folder.path(), &extension).await?;
        capability::run(&platform, &mut report).await?;
        platform.stop()?;
        return Ok(report);
    }
    progress("the machine without Annex");
    let own = baseline::run(&extension, folder.path(), options.calls, &mut report).await?;
    if options.bench == Bench::Baseline {
        return Ok(report);
    }
    let mut platform = Platform::set_up(&options.annex, folder.path(), &extension).await?;
    match options.bench {
        Bench::Paced => paced(&platform, own, &mut report).await?,
        _ => everything(&mut platform, own, options.calls, &mut report).await?,
    }
    platform.stop()?;
    Ok(report)
}

async fn everything(
    platform: &mut Platform,
    own: Duration,
    calls: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    progress("start-up, with a store that was just made");
    startup(platform, report, "ready_new_store_ms").await?;
    progress(&format!("{calls} calls through Annex, {IN_FLIGHT} in flight"));
    load::run(&platform.target(), WARM_UP, IN_FLIGHT).await?;
    let before = platform.cpu()?;
    // In two halves: memory that is flat is as large after the second as after the first.
    let (first, first_took) = load::run(&platform.target(), calls / 2, IN_FLIGHT).await?;
    let half = platform.rss_mib()?;
    let (second, second_took) = load::run(&platform.target(), calls - calls / 2, IN_FLIGHT).await?;
    let cpu = platform.cpu()?.saturating_sub(before);
    let (latencies, took) = (first.with(second), first_took + second_took);
    // What is done in the background after the last answer is not what stays.
    tokio::time::sleep(Duration::from_secs(1)).await;
    report.add("deliveries_per_second", calls as f64 / took.as_secs_f64(), Some(">= 2000"));
    report.add("cpu_ms_per_delivery", millis(cpu) / calls as f64, Some("< 0.5"));
    added(&latencies, own, "added", report);
    report.add("rss_after_half_mib", half, None);
    report.add("rss_after_100k_mib", platform.rss_mib()?, Some("flat"));
    paced(platform, own, report).await?;
    progress("start-up, with the store that holds those calls");
    let times = platform.restart_times(STARTS).await?;
    report.add("ready_ms", millis(median(times)), Some("< 300"));
    Ok(())
}

async fn startup(
    platform: &mut Platform,
    report: &mut Report,
    name: &'static str,
) -> anyhow::Result<()> {
    let times = platform.restart_times(STARTS).await?;
    report.add(name, millis(median(times)), Some("< 300"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    report.add("rss_idle_mib", platform.rss_mib()?, None);
    Ok(())
}

async fn paced(platform: &Platform, own: Duration, report: &mut Report) -> anyhow::Result<()> {
    let (rate, time) = PACED;
    progress(&format!("{rate} calls a second for {} s", time.as_secs()));
    load::run(&platform.target(), WARM_UP, IN_FLIGHT).await?;
    let latencies = load::paced(&platform.target(), rate, time, IN_FLIGHT).await?;
    added(&latencies, own, "paced_added", report);
    Ok(())
}

/// What the caller waited beyond the time that the extension takes when nobody disturbs it.
fn added(latencies: &Latencies, own: Duration, prefix: &str, report: &mut Report) {
    let added = |quantile| millis(latencies.quantile(quantile).saturating_sub(own));
    report.add(format!("{prefix}_p50_ms"), added(0.5), None);
    report.add(format!("{prefix}_p99_ms"), added(0.99), Some("< 20"));
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn progress(what: &str) {
    eprintln!("-- {what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<(usize, Bench), String> {
        let options = Options::parse(line.split_whitespace().map(str::to_owned));
        options.map(|o| (o.calls, o.bench)).map_err(|error| error.to_string())
    }

    #[test]
    fn arguments_are_read_and_unknown_ones_refused() {
        assert_eq!(parse("--annex a --scanner s"), Ok((100_000, Bench::All)));
        assert_eq!(parse("--annex a --scanner s --calls 9 paced"), Ok((9, Bench::Paced)));
        assert_eq!(parse("--annex a"), Err("--scanner is missing".to_owned()));
        assert_eq!(parse("--annex"), Err("--annex needs a value".to_owned()));
        assert_eq!(parse("nonsense"), Err("unexpected argument: nonsense".to_owned()));
    }

    #[test]
    fn median_is_the_middle_one() {
        assert_eq!(median([3, 1, 2].map(Duration::from_secs).to_vec()), Duration::from_secs(2));
        assert_eq!(median(Vec::new()), Duration::ZERO);
    }
}
