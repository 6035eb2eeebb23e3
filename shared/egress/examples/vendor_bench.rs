//! Requests per second over one kept connection: through the vendors' client, and through a bare hyper client.
//!
//! `cargo run --release -p annex-egress --example vendor_bench [requests]`. Prints one JSON line. The clients run on one
//! thread, the vendor on another; rounds alternate, so that whatever else the machine does meets both.

mod receiver;

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use annex_egress::draft::{Scheme, SentUrl};
use annex_egress::vendor::{Outgoing, OutgoingBody};
use annex_egress::{Policy, SystemResolver, VendorClient};
use bytes::Bytes;
use http::Method;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use receiver::{BODY, serve};

type Bare = Client<HttpConnector, Full<Bytes>>;
type Fault = Box<dyn Error + Send + Sync>;

const TARGET: &str = "/v1/screen?mode=fast";
const TOKEN: &str = "Bearer w3Kp9xV2mQ8rT1zL5nB7cA";
const ROUNDS: usize = 5;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Fault> {
    let requests = std::env::args().nth(1).map(|text| text.parse()).transpose()?.unwrap_or(10_000);
    let port = serve()?;
    let policy = Policy { allow_private_networks: true, extra_roots: Vec::new() };
    let resolver = Arc::new(SystemResolver::new());
    let vendor = VendorClient::new(policy, resolver, VendorClient::KEEPALIVE)?;
    let bare: Bare = Client::builder(TokioExecutor::new()).build_http();

    let (mut best, mut best_bare) = (0_f64, 0_f64);
    for _ in 0..ROUNDS {
        best_bare = best_bare.max(measure(requests, || send_bare(&bare, port)).await?);
        best = best.max(measure(requests, || send_vendor(&vendor, port)).await?);
    }
    println!(r#"{{"requests_per_second":{best:.0},"bare_requests_per_second":{best_bare:.0}}}"#);
    Ok(())
}

async fn send_vendor(client: &VendorClient, port: u16) -> Result<(), Fault> {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let outgoing = Outgoing {
        method: Method::POST,
        url: SentUrl {
            scheme: Scheme::Http,
            host: "127.0.0.1".to_owned(),
            port: Some(port),
            target: TARGET.to_owned(),
        },
        headers: vec![
            header("content-type", "application/json"),
            header("authorization", TOKEN),
            header("user-agent", "Aletheia-Apps/1"),
        ],
        body: OutgoingBody::Bytes(Bytes::from_static(BODY)),
    };
    client.send("tenant", outgoing, Duration::from_secs(10)).await?;
    Ok(())
}

async fn send_bare(client: &Bare, port: u16) -> Result<(), Fault> {
    let request = http::Request::post(format!("http://127.0.0.1:{port}{TARGET}"))
        .header("content-type", "application/json")
        .header("authorization", TOKEN)
        .header("user-agent", "Aletheia-Apps/1")
        .body(Full::new(Bytes::from_static(BODY)))?;
    client.request(request).await?.into_body().collect().await?;
    Ok(())
}

/// Requests per second, one after the other.
async fn measure<F>(requests: usize, send: impl Fn() -> F) -> Result<f64, Fault>
where
    F: Future<Output = Result<(), Fault>>,
{
    let start = Instant::now();
    for _ in 0..requests {
        send().await?;
    }
    Ok(requests as f64 / start.elapsed().as_secs_f64())
}
