//! The HTTP server: bounded connections, bounded waits for what a client has to send, and a clean end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tower::ServiceExt as _;

/// Connections open at a time. Further ones wait in the backlog.
const CONNECTIONS_MAX: usize = 4_096;

/// How long a client may take for the head of a request, and keep a connection idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(75);

/// How long a client may take for a whole request body, however slowly it sends.
const BODY_TIMEOUT: Duration = Duration::from_secs(120);

/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Serves until `stop` is true; then open requests have `drain` to end.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    drain: Duration,
    mut stop: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
    loop {
        let place =
            Arc::clone(&places).acquire_owned().await.expect("the semaphore is never closed");
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        match accepted {
            Ok((stream, _)) => connection(stream, &router, &graceful, place),
            Err(error) => {
                // Out of file descriptors, most often: others end meanwhile.
                tracing::warn!("a connection could not be accepted: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(drain, graceful.shutdown()).await.is_err() {
        tracing::warn!("stopped before all requests were answered");
    }
}

fn connection(
    stream: TcpStream,
    router: &Router,
    graceful: &GracefulShutdown,
    place: OwnedSemaphorePermit,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("TCP_NODELAY could not be set: {error}");
    }
    let router = router.clone();
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let router = router.clone();
        async move { Ok::<_, Infallible>(answer(router, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!("a connection ended: {error}");
        }
        drop(place);
    });
}

async fn answer(router: Router, request: hyper::Request<Incoming>) -> axum::response::Response {
    let request: Request =
        request.map(|body| Body::new(crate::deadline::Deadline::new(body, BODY_TIMEOUT)));
    match router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
