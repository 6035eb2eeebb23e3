//! What the machine does without Annex: the same signed calls straight to the extension, and writes to its disk.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use scanner::signature::{HEADER, Signature};

use crate::load::{self, Target};
use crate::platform::{DATA, Extension, SECRET};
use crate::report::Report;
use crate::{IN_FLIGHT, WARM_UP};

/// How long the disk is measured.
const DISK_TIME: Duration = Duration::from_secs(1);

/// Calls that are made one after the other, to see what the extension takes when nobody disturbs it.
const ALONE: usize = 2_000;

/// Measures; answers the median time of a call that the extension serves alone.
pub(crate) async fn run(
    extension: &Extension,
    folder: &Path,
    calls: usize,
    report: &mut Report,
) -> anyhow::Result<Duration> {
    let target = target(extension)?;
    load::run(&target, WARM_UP, IN_FLIGHT).await?;
    let (alone, _) = load::run(&target, ALONE, 1).await?;
    let own = alone.quantile(0.5);
    report.add("direct_alone_p50_ms", crate::millis(own), None);
    let (latencies, took) = load::run(&target, calls, IN_FLIGHT).await?;
    report.add("direct_per_second", calls as f64 / took.as_secs_f64(), None);
    report.add("direct_p50_ms", crate::millis(latencies.quantile(0.5)), None);
    report.add("direct_p99_ms", crate::millis(latencies.quantile(0.99)), None);
    report.add("disk_syncs_per_second", disk(folder)?, None);
    Ok(own)
}

/// The call that the platform would make, signed and compressed once.
fn target(extension: &Extension) -> anyhow::Result<Target> {
    let json = format!(
        r#"{{"version":20221218,"idempotency_key":"5f0c7a3e-1111-4222-8333-9c1d2e3f4a5b","request":{{"org":{{"oid":"8cbe27f4-0000-4000-8000-138cd51389cd","jwt":"j","ident":"i"}},"action":"echo","data":{DATA},"config":{{}},"resource_state":{{}},"inv_id":""}}}}"#
    );
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(json.as_bytes())?;
    Ok(Target {
        address: extension.address.clone(),
        paths: vec!["/".to_owned()],
        headers: vec![
            ("content-encoding", "gzip".to_owned()),
            (HEADER, Signature::new(SECRET.as_bytes()).sign(json.as_bytes())),
        ],
        body: gzip.finish()?.into(),
        expected: "a message of some length",
    })
}

/// How often a second 4 KiB more in one file reach the disk.
fn disk(folder: &Path) -> anyhow::Result<f64> {
    let mut file = File::create(folder.join("disk"))?;
    let started = Instant::now();
    let mut count = 0_u32;
    while started.elapsed() < DISK_TIME {
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        count += 1;
    }
    Ok(f64::from(count) / started.elapsed().as_secs_f64())
}
