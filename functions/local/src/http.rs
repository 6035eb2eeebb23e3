//! The HTTP server: bounded connections, bounded waits for what a client has to send, and a clean end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use annex_core::fault::{Code, Fault};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::IntoResponse as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tower::ServiceExt as _;

use crate::deadline::{Deadline, Place};
use crate::stall::Stall;

/// Connections open at a time. Further ones wait in the backlog.
const CONNECTIONS_MAX: usize = 4_096;

/// How long a client may take for the head of a request, and keep a connection idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(75);

/// How long a client may take for a whole request body, however slowly it sends.
const BODY_TIMEOUT: Duration = Duration::from_secs(120);

/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// How long a client may take nothing of what is written to it.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Requests of whose body more was read are worked on [`LARGE_REQUESTS_AT_ONCE`] at a time, in bytes.
const LARGE_REQUEST_BYTES: usize = 256 << 10;

/// How long a large request waits for its place.
const PLACE_PATIENCE: Duration = Duration::from_secs(30);

/// What bounds the memory that request bodies can take.
const LARGE_REQUESTS_AT_ONCE: usize = 32;

/// What connections share.
#[derive(Clone)]
struct Server {
    router: Router,
    large: Arc<Semaphore>,
}

/// Serves until `stop` is true; then open requests have `drain` to end.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    drain: Duration,
    mut stop: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
    let server = Server { router, large: Arc::new(Semaphore::new(LARGE_REQUESTS_AT_ONCE)) };
    loop {
        let place = tokio::select! {
            place = Arc::clone(&places).acquire_owned() => {
                place.expect("the semaphore is never closed")
            }
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        match accepted {
            Ok((stream, _)) => connection(stream, &server, &graceful, place),
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
    server: &Server,
    graceful: &GracefulShutdown,
    place: OwnedSemaphorePermit,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("TCP_NODELAY could not be set: {error}");
    }
    let server = server.clone();
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let server = server.clone();
        async move { Ok::<_, Infallible>(answer(server, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Stall::new(stream, STALL_TIMEOUT)), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!("a connection ended: {error}");
        }
        drop(place);
    });
}

async fn answer(server: Server, request: hyper::Request<Incoming>) -> axum::response::Response {
    let place = Place::new(server.large, PLACE_PATIENCE);
    let body = |body| Deadline::new(body, BODY_TIMEOUT, LARGE_REQUEST_BYTES, Arc::clone(&place));
    let request: Request = request.map(|incoming| Body::new(body(incoming)));
    match server.router.oneshot(request).await {
        Ok(_) if place.is_refused() => busy(),
        Ok(response) => response,
        Err(never) => match never {},
    }
}

fn busy() -> axum::response::Response {
    let fault = Fault::new(Code::Busy, "too many large requests at a time; try again later");
    api::Failure::from(fault).into_response()
}
