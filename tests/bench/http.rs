//! A connection that is kept alive, and nothing around it: what the load generator costs is not measured.

use anyhow::Context;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// One connection.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
}

impl Connection {
    /// Connects to `host:port`.
    pub(crate) async fn open(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(async move {
            // A connection that broke shows in the next call on it.
            let _ = connection.await;
        });
        Ok(Self { sender })
    }

    /// Sends a request and reads its answer.
    pub(crate) async fn call(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> anyhow::Result<(StatusCode, Bytes)> {
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, body))
    }
}

/// Makes one call on a connection of its own, and reads the JSON of a success.
pub(crate) async fn once(
    address: &str,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<serde_json::Value> {
    let path = request.uri().path().to_owned();
    let (status, body) = Connection::open(address).await?.call(request).await?;
    let text = String::from_utf8_lossy(&body);
    anyhow::ensure!(status.is_success(), "{path} answered {status}: {text}");
    serde_json::from_slice(&body).with_context(|| format!("{path} answered no JSON: {text}"))
}
