//! `annex serve`: every function in one process.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use annex_embedded::RootKeyring;
use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::platform::{Platform, Settings};

/// How a platform on one machine runs.
#[derive(Debug, Clone, clap::Args)]
pub struct ServeOptions {
    /// Where to listen; port 0 takes a free port, which is printed
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Folder that holds everything the platform keeps; made when it does not exist
    #[arg(long, value_name = "DIR", default_value = "annex-data")]
    pub data: PathBuf,
    /// Let extensions live on private addresses and plain http on loopback
    #[arg(long)]
    pub allow_private_networks: bool,
    /// The URL under which clients reach this platform, where that is not http:// and the listen address
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,
    /// Hours for which a call is tried again that an extension answers with 429
    #[arg(long, value_name = "HOURS", default_value_t = 6, value_parser = clap::value_parser!(u32).range(0..=72))]
    pub slow_retry_hours: u32,
    /// Calls of one capability extension that are under way at most
    #[arg(long, value_name = "CALLS", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub partner_calls: u16,
    /// Days for which telemetry events are kept
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=400))]
    pub telemetry_days: u32,
    /// How log lines look, on standard error; RUST_LOG sets which
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log: LogFormat,
}

/// A file would grow beyond what the process may write (`ulimit -f`). The number is the same on Linux and macOS.
const SIGXFSZ: SignalKind = SignalKind::from_raw(25);

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// For programs: one JSON object a line
    Json,
}

/// Runs the platform until SIGINT or SIGTERM.
pub async fn run(options: ServeOptions) -> anyhow::Result<()> {
    log_to_stderr(options.log);
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be listened for")?;
    let mut terminate =
        signal(SignalKind::terminate()).context("SIGTERM cannot be listened for")?;
    // Its default is to end the process; taken, a write that is too large is an error like that of a full disk.
    let _too_large = signal(SIGXFSZ).context("SIGXFSZ cannot be listened for")?;
    std::fs::create_dir_all(&options.data)
        .with_context(|| format!("{} cannot be made", options.data.display()))?;
    let settings = Settings {
        listen: options.listen,
        data: options.data.clone(),
        allow_private_networks: options.allow_private_networks,
        public_url: options.public_url.clone(),
        slow_retry_hours: options.slow_retry_hours,
        partner_calls: options.partner_calls,
        telemetry_days: options.telemetry_days,
        extra_roots: Vec::new(),
    };
    let (keyring, own_file) = keyring(&options.data)?;
    let platform = Platform::start(settings, keyring).await?;
    greet(platform.address(), own_file.as_deref());
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    tracing::info!("stopping");
    platform.stop().await;
    Ok(())
}

/// The keys: from `ANNEX_ROOT_KEY`, or from the file of the data folder, which is named then.
fn keyring(data: &Path) -> anyhow::Result<(RootKeyring, Option<PathBuf>)> {
    match std::env::var("ANNEX_ROOT_KEY") {
        Ok(text) => Ok((RootKeyring::from_hex(&text).context("ANNEX_ROOT_KEY")?, None)),
        Err(std::env::VarError::NotUnicode(_)) => anyhow::bail!("ANNEX_ROOT_KEY is not text"),
        Err(std::env::VarError::NotPresent) => {
            let path = data.join("root-key");
            let keyring = RootKeyring::load_or_create(&path)
                .with_context(|| format!("the root key in {}", path.display()))?;
            Ok((keyring, Some(path)))
        }
    }
}

/// Says where the platform listens and what to type next.
fn greet(address: SocketAddr, root_key: Option<&Path>) {
    let mut text = format!("annex listens on http://{address}\n\nNext, in another terminal:\n\n");
    text.push_str(&format!("  export ANNEX_URL=http://{address}\n"));
    if let Some(path) = root_key {
        text.push_str(&format!("  export ANNEX_ROOT_KEY=$(cat '{}')\n", path.display()));
    }
    text.push_str("  annex org create my-first-organization\n  annex --help\n");
    // A closed standard output is no reason to stop.
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn log_to_stderr(format: LogFormat) {
    // The line of a call (`annex::call`) takes 4 µs, as JSON 5.5, and its two spans some 2.5, of the 355 µs of a call: under
    // 3 %, so it is there unless it is turned off.
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    // A line that cannot be written, because the disk of the log is full, is lost. Telling standard error would panic.
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .log_internal_errors(false);
    // A second platform in one process, as tests have it, keeps the first one's log.
    let _ = match format {
        LogFormat::Text => builder.with_ansi(false).try_init(),
        // Of spans there is one around each call, and no more.
        LogFormat::Json => builder.json().with_span_list(false).try_init(),
    };
}
