//! Load: many calls on connections that are kept alive, and how long each took.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::ensure;
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;

use crate::http::Connection;

/// A call that is made many times.
#[derive(Clone)]
pub(crate) struct Target {
    /// `host:port`.
    pub(crate) address: String,
    /// The paths, one after the other, from the start again behind the last.
    pub(crate) paths: Vec<String>,
    /// Header names and values.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The body.
    pub(crate) body: Bytes,
    /// What the answer of a call that was really made contains.
    pub(crate) expected: &'static str,
}

/// How long calls took.
pub(crate) struct Latencies {
    sorted: Vec<Duration>,
}

impl Latencies {
    fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self { sorted: times }
    }

    /// These and others.
    pub(crate) fn with(self, others: Self) -> Self {
        Self::new([self.sorted, others.sorted].concat())
    }

    /// The time that this share of the calls did not exceed.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let rank = (share * self.sorted.len() as f64).ceil() as usize;
        self.sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }
}

impl Target {
    /// Makes the call of this number and checks its answer.
    async fn call(&self, connection: &mut Connection, number: usize) -> anyhow::Result<()> {
        let path = &self.paths[number % self.paths.len()];
        let mut request = Request::post(path).header("host", &self.address);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let (status, body) = connection.call(request.body(Full::new(self.body.clone()))?).await?;
        let text = String::from_utf8_lossy(&body);
        ensure!(status.is_success() && text.contains(self.expected), "answered {status}: {text}");
        Ok(())
    }
}

/// Makes `calls` calls with `in_flight` at a time; says how long each took, and all of them. One failure ends it.
pub(crate) async fn run(
    target: &Target,
    calls: usize,
    in_flight: usize,
) -> anyhow::Result<(Latencies, Duration)> {
    let left = Arc::new(AtomicUsize::new(calls));
    let mut connections = Vec::new();
    for _ in 0..in_flight {
        connections.push(Connection::open(&target.address).await?);
    }
    let started = Instant::now();
    let mut workers = Vec::new();
    for mut connection in connections {
        let (target, left) = (target.clone(), left.clone());
        workers.push(tokio::spawn(async move {
            let mut times = Vec::with_capacity(calls / in_flight + 1);
            let one_less = |left: usize| left.checked_sub(1);
            let next = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
            while let Ok(number) = next() {
                let began = Instant::now();
                target.call(&mut connection, number).await?;
                times.push(began.elapsed());
            }
            anyhow::Ok(times)
        }));
    }
    let mut times = Vec::with_capacity(calls);
    for worker in workers {
        times.extend(worker.await??);
    }
    Ok((Latencies::new(times), started.elapsed()))
}

/// Makes `rate` calls a second for `time`, spread over `connections`. A call is timed from when it was due, so that
/// a slow one does not hide the wait of those behind it.
pub(crate) async fn paced(
    target: &Target,
    rate: u32,
    time: Duration,
    connections: usize,
) -> anyhow::Result<Latencies> {
    let calls = (f64::from(rate) * time.as_secs_f64()) as usize;
    let step = Duration::from_secs(1) / rate;
    let start = tokio::time::Instant::now() + Duration::from_millis(100);
    let mut workers = Vec::new();
    for worker in 0..connections {
        let mut connection = Connection::open(&target.address).await?;
        let target = target.clone();
        workers.push(tokio::spawn(async move {
            let mut times = Vec::new();
            for call in (worker..calls).step_by(connections) {
                let due = start + step * u32::try_from(call)?;
                tokio::time::sleep_until(due).await;
                target.call(&mut connection, call).await?;
                times.push(due.elapsed());
            }
            anyhow::Ok(times)
        }));
    }
    let mut times = Vec::with_capacity(calls);
    for worker in workers {
        times.extend(worker.await??);
    }
    Ok(Latencies::new(times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_were_measured() {
        let check = |count: u64, share, expected| {
            let times = (1..=count).rev().map(Duration::from_millis).collect();
            assert_eq!(Latencies::new(times).quantile(share), Duration::from_millis(expected));
        };
        check(100, 0.5, 50);
        check(100, 0.99, 99);
        check(1, 0.99, 1);
        check(0, 0.5, 0);
    }
}
