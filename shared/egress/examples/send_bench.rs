//! What a webhook costs over kept connections, in CPU time, beside a bare hyper client that does the same.
//!
//! `cargo run -p annex-egress --example send_bench [requests] [in flight]`. The clients run on one thread of their own,
//! whose CPU time Linux tells; the server's threads do not count.

mod receiver;

use std::error::Error;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use annex_core::ports::{Outbound, WebhookRequest};
use annex_egress::{Policy, SystemResolver, WebhookClient};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::task::JoinSet;

use receiver::{BODY, serve};

type Bare = Client<HttpConnector, Full<Bytes>>;
type Fault = Box<dyn Error + Send + Sync>;

const ROUNDS: usize = 5;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Fault> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let requests = arguments.next().transpose()?.unwrap_or(20_000);
    let in_flight = arguments.next().transpose()?.unwrap_or(64);
    let url = Arc::new(format!("http://127.0.0.1:{}/hook", serve()?));

    let policy = Policy { allow_private_networks: true, extra_roots: Vec::new() };
    let annex = Arc::new(WebhookClient::new(policy, Arc::new(SystemResolver::new()))?);
    let bare: Bare = Client::builder(TokioExecutor::new()).build_http();

    // Rounds alternate, so that whatever else the machine does meets both.
    let (mut annex_best, mut bare_best) = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        let send = || send_bare(bare.clone(), Arc::clone(&url));
        bare_best = bare_best.min(measure(requests, in_flight, send).await?);
        let send = || send_annex(Arc::clone(&annex), Arc::clone(&url));
        annex_best = annex_best.min(measure(requests, in_flight, send).await?);
    }
    let share = 100.0 * (annex_best / bare_best - 1.0);
    println!(
        "bare hyper {bare_best:.1} us, annex {annex_best:.1} us CPU a request ({share:+.0} %)"
    );
    Ok(())
}

async fn send_annex(client: Arc<WebhookClient>, url: Arc<String>) -> Result<(), Fault> {
    let request = WebhookRequest {
        url: url.to_string(),
        headers: vec![("content-type", "application/json".to_owned())],
        body: Bytes::from_static(BODY),
        timeout: Duration::from_secs(120),
        response_bytes_max: 100_000_000,
    };
    client.send(request).await?;
    Ok(())
}

async fn send_bare(client: Bare, url: Arc<String>) -> Result<(), Fault> {
    let request = http::Request::post(url.as_str())
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from_static(BODY)))?;
    client.request(request).await?.into_body().collect().await?;
    Ok(())
}

/// CPU microseconds of this thread for each request.
async fn measure<F>(requests: usize, in_flight: usize, send: impl Fn() -> F) -> Result<f64, Fault>
where
    F: Future<Output = Result<(), Fault>> + Send + 'static,
{
    let (start, cpu) = (Instant::now(), cpu_time()?);
    let mut running = JoinSet::new();
    for _ in 0..requests {
        if running.len() == in_flight
            && let Some(done) = running.join_next().await
        {
            done??;
        }
        running.spawn(send());
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    let spent = cpu_time()?.saturating_sub(cpu);
    eprintln!("{:.0} requests/s", requests as f64 / start.elapsed().as_secs_f64());
    Ok(spent.as_secs_f64() * 1e6 / requests as f64)
}

/// CPU time of the calling thread, to the nanosecond.
fn cpu_time() -> Result<Duration, Fault> {
    let stat = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = stat.split_whitespace().next().ok_or("schedstat is empty")?.parse()?;
    Ok(Duration::from_nanos(nanos))
}
