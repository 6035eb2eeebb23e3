//! `annex serve`: every function in one process.

use std::net::SocketAddr;
use std::path::PathBuf;

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
    /// How log lines look, on standard error
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log: LogFormat,
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// For programs: one JSON object a line
    Json,
}

/// Runs the platform until it is told to stop.
pub async fn run(_options: ServeOptions) -> anyhow::Result<()> {
    anyhow::bail!("serve is being written")
}
