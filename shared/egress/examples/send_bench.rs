//! What a webhook costs over kept connections, in CPU time, beside a bare hyper client that does the same.
//!
//! `cargo run -p annex-egress --example send_bench [requests] [in flight]`. The clients run on one thread of their own,
//! whose CPU time Linux tells; the server's threads do not count.

use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
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

type Fault = Box<dyn Error + Send + Sync>;

/// What a small webhook and its answer weigh.
const BODY: &[u8] = &[b'x'; 600];
const ROUNDS: usize = 5;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Fault> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let requests = arguments.next().transpose()?.unwrap_or(20_000);
    let in_flight = arguments.next().transpose()?.unwrap_or(64);
    let url = Arc::new(serve()?);

    let policy = Policy { allow_private_networks: true, extra_roots: Vec::new() };
    let annex = Arc::new(WebhookClient::new(policy, Arc::new(SystemResolver::new()))?);
    let bare: Client<HttpConnector, Full<Bytes>> =
        Client::builder(TokioExecutor::new()).build_http();

    // Rounds alternate, so that whatever else the machine does meets both.
    let (mut annex_best, mut bare_best) = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        let (client, target) = (bare.clone(), Arc::clone(&url));
        let cost = measure(requests, in_flight, async move || send_bare(&client, &target).await);
        bare_best = bare_best.min(cost.await?);
        let (client, target) = (Arc::clone(&annex), Arc::clone(&url));
        let cost = measure(requests, in_flight, async move || send_annex(&client, &target).await);
        annex_best = annex_best.min(cost.await?);
    }
    let share = 100.0 * (annex_best / bare_best - 1.0);
    println!("bare hyper {bare_best:.1} us, annex {annex_best:.1} us CPU a request ({share:+.0} %)");
    Ok(())
}

/// CPU microseconds of this thread for each request.
async fn measure(
    requests: usize,
    in_flight: usize,
    send: impl AsyncSend,
) -> Result<f64, Fault> {
    let (start, cpu) = (Instant::now(), cpu_time()?);
    let mut lanes = JoinSet::new();
    for _ in 0..in_flight {
        let send = send.clone();
        lanes.spawn(async move {
            for _ in 0..requests / in_flight {
                send.send().await?;
            }
            Ok::<(), Fault>(())
        });
    }
    while let Some(lane) = lanes.join_next().await {
        lane??;
    }
    let spent = cpu_time()?.saturating_sub(cpu);
    let sent = (requests / in_flight * in_flight) as f64;
    eprintln!("{:.0} requests/s", sent / start.elapsed().as_secs_f64());
    Ok(spent.as_secs_f64() * 1e6 / sent)
}
