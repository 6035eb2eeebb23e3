//! A process of our own: started, measured through `/proc`, and stopped by its id.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// Length of one unit of processor time in `/proc`: `CLK_TCK` is 100 on every Linux that we know of.
const TICK: Duration = Duration::from_millis(10);

/// How long a process may take to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// A child process; killed when dropped.
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// Starts a command whose output goes to a file.
    pub(crate) fn start(command: &mut Command, log: &Path) -> anyhow::Result<Self> {
        let name = command.get_program().to_owned();
        let log = File::create(log)?;
        let child = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(Self { child: child.spawn().with_context(|| format!("starting {}", name.display()))? })
    }

    /// Starts a command and reads the first line that it prints.
    pub(crate) fn start_and_read(command: &mut Command) -> anyhow::Result<(Self, String)> {
        let name = command.get_program().to_owned();
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = child.spawn().with_context(|| format!("starting {}", name.display()))?;
        let out = child.stdout.take().context("the output is a pipe")?;
        let process = Self { child };
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        Ok((process, line))
    }

    /// Whether it ended by itself.
    pub(crate) fn ended(&mut self) -> anyhow::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Processor time that it used so far, user and system.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        cpu(&fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?)
    }

    /// Memory that it holds, in MiB.
    pub(crate) fn rss_mib(&self) -> anyhow::Result<f64> {
        rss_mib(&fs::read_to_string(format!("/proc/{}/status", self.child.id()))?)
    }

    /// Asks it to stop (SIGTERM) and waits until it did.
    pub(crate) fn stop(&mut self) -> anyhow::Result<()> {
        let asked = Command::new("kill").arg("-TERM").arg(self.child.id().to_string()).status()?;
        if !asked.success() {
            bail!("it was gone already");
        }
        let asked = Instant::now();
        while self.child.try_wait()?.is_none() {
            if STOP_TIMEOUT < asked.elapsed() {
                bail!("it did not stop within {} seconds", STOP_TIMEOUT.as_secs());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processor time of `/proc/<pid>/stat`: the 14th and the 15th field. The second one, the name, may hold anything but
/// ends at the last parenthesis.
fn cpu(stat: &str) -> anyhow::Result<Duration> {
    let fields = stat.rsplit_once(')').context("no process name")?.1;
    let mut fields = fields.split_whitespace().skip(11);
    let mut ticks = || fields.next().and_then(|field| field.parse::<u32>().ok()).context("no time");
    Ok(TICK * (ticks()? + ticks()?))
}

/// Resident memory of `/proc/<pid>/status`.
fn rss_mib(status: &str) -> anyhow::Result<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib = line.trim().trim_end_matches(" kB").parse::<f64>()?;
    Ok(kib / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_user_and_system_whatever_the_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 120 30 5 6 20 0 1 0 8 9 10";
        assert_eq!(cpu(stat).unwrap(), Duration::from_millis(1500));
        assert!(cpu("7 (a) S 1").is_err());
    }

    #[test]
    fn memory_is_read_in_mib() {
        assert_eq!(rss_mib("Name:\tx\nVmRSS:\t    2048 kB\nThreads:\t1\n").unwrap(), 2.0);
    }
}
