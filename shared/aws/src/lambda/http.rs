//! The HTTP entry: events of an HTTP API or a function URL in, answers of a router out.

use std::sync::Arc;
use std::time::Duration;

use annex_core::fault::{Code, Fault};
use annex_core::limits;
use annex_core::ports::{Blobs as _, Clock, Ids, Outage};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::Request;
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::value::RawValue;
use tokio::sync::OnceCell;
use tower::ServiceExt as _;

use super::Error;
use super::fresh::Fresh;
use super::request::HttpEvent;
use super::response::Answer;
use crate::S3Blobs;

/// How long the URL of an answer that is too large is valid.
const URL_TTL: Duration = Duration::from_secs(15 * 60);

/// Largest answer that is read, in bytes: an extension's largest answer and room for what is around it.
const BODY_BYTES_MAX: usize = limits::RESPONSE_BYTES_MAX + (16 << 20);

/// Where answers are put that are larger than Lambda carries.
pub(crate) struct Shelf {
    /// The blobs.
    pub blobs: S3Blobs,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Names that nobody can guess.
    pub ids: Arc<dyn Ids>,
}

impl Shelf {
    /// Keeps an answer's body, and answers a URL that gives it to whoever has it, for [`URL_TTL`].
    async fn put(&self, body: Bytes) -> Result<String, Outage> {
        // The template's bucket removes what begins so within a day.
        let key = format!("answer-{}", hex::encode(self.ids.secret()));
        let until = self.clock.now().plus(URL_TTL);
        self.blobs.put(&key, body, until).await?;
        self.blobs.link(&key, URL_TTL).await
    }
}

/// The entry of one function.
pub(crate) struct Entry<F> {
    /// Makes the router, given the public URL.
    pub make: F,
    /// The public URL, where it is known beforehand.
    pub public_url: Option<String>,
    /// Where large answers go.
    pub shelf: Shelf,
    /// What keeps the key ring up to date.
    pub fresh: Fresh,
    /// Made for the first request, which may be the first to know the public URL.
    pub router: OnceCell<Router>,
}

impl<F: Fn(String) -> Router> Entry<F> {
    /// Answers one event.
    pub(crate) async fn answer(&self, event: &RawValue) -> Result<Box<RawValue>, Error> {
        self.fresh.look().await;
        let event = HttpEvent::read(event)?;
        let public_url = || self.public_url.clone().unwrap_or_else(|| event.public_url());
        let router = self.router.get_or_init(async || (self.make)(public_url())).await.clone();
        let answer = match event.into_request() {
            Ok(request) => route(router, request).await,
            Err(fault) => Answer::fault(&fault),
        };
        if let Some(payload) = answer.payload() {
            return Ok(payload);
        }
        let answer = match self.shelf.put(answer.body.clone()).await {
            Ok(url) => answer.elsewhere(&url),
            Err(outage) => Answer::fault(&outage.into()),
        };
        Ok(answer.payload().expect("a fault and a URL are short"))
    }
}

async fn route(router: Router, request: Request<Body>) -> Answer {
    let response = match router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let (head, body) = response.into_parts();
    match axum::body::to_bytes(body, BODY_BYTES_MAX).await {
        Ok(body) => Answer { status: head.status, headers: head.headers, body },
        Err(error) => {
            tracing::error!("the body of an answer could not be read: {error}");
            Answer::fault(&Fault::new(Code::Internal, "internal error"))
        }
    }
}

/// Serves events until the process is ended.
pub(crate) async fn run<F>(entry: Entry<F>) -> Result<(), Error>
where
    F: Fn(String) -> Router + Send + Sync + 'static,
{
    let entry = Arc::new(entry);
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Box<RawValue>>| {
        let entry = Arc::clone(&entry);
        async move { entry.answer(&event.payload).await }
    }))
    .await
}
