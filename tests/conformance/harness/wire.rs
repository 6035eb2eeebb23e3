//! The HTTP client of a process of a world on AWS: every request is counted, and one may be disturbed.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient as _, HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector,
    http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::retry::RetryConfig;

use super::gate::{Fault, Gate, Life};

/// An HTTP client without TLS: an emulator needs none.
pub(crate) fn plain() -> SharedHttpClient {
    aws_smithy_http_client::Builder::new().build_http()
}

/// The SDK's retries, sooner than they are.
pub(crate) fn soon() -> RetryConfig {
    let most = Duration::from_millis(2);
    RetryConfig::standard().with_initial_backoff(Duration::from_millis(1)).with_max_backoff(most)
}

/// The HTTP client of one process.
pub(crate) fn gated(gate: Arc<Gate>, life: Life) -> SharedHttpClient {
    let inner = plain();
    http_client_fn(move |settings, components| {
        let inner = inner.http_connector(settings, components);
        SharedHttpConnector::new(Wire { inner, gate: gate.clone(), life: life.clone() })
    })
}

#[derive(Debug, Clone)]
struct Wire {
    inner: SharedHttpConnector,
    gate: Arc<Gate>,
    life: Life,
}

impl HttpConnector for Wire {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let wire = self.clone();
        HttpConnectorFuture::new(async move { wire.pass(request).await })
    }
}

impl Wire {
    async fn pass(self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        self.life.goes_on().await;
        let target = request.headers().get("x-amz-target").map(str::to_owned);
        let is_s3 = target.is_none();
        let what = target.unwrap_or_else(|| format!("S3 {}", request.method()));
        match self.gate.count(&what) {
            None => self.inner.call(request).await,
            Some(Fault::DieBefore) => self.life.die().await,
            Some(Fault::DieAfter) => {
                let _unheard = self.inner.call(request).await;
                self.life.die().await
            }
            Some(Fault::FailBefore) => Ok(refusal(500, "InternalServerError", is_s3)),
            Some(Fault::FailAfter) => {
                let _unheard = self.inner.call(request).await;
                Err(ConnectorError::io(io::Error::from(io::ErrorKind::ConnectionReset).into()))
            }
            Some(Fault::Throttle) if is_s3 => Ok(refusal(503, "SlowDown", true)),
            Some(Fault::Throttle) => Ok(refusal(400, "ThrottlingException", false)),
            Some(Fault::Late) => {
                self.gate.late();
                let answer = self.inner.call(request).await;
                self.gate.late();
                answer
            }
        }
    }
}

/// What a service answers that does nothing.
fn refusal(status: u16, code: &str, is_s3: bool) -> HttpResponse {
    let body = match is_s3 {
        true => format!("<Error><Code>{code}</Code><Message>told to</Message></Error>"),
        false => format!("{{\"__type\":\"{code}\",\"message\":\"told to\"}}"),
    };
    let status = status.try_into().expect("a status of HTTP");
    HttpResponse::new(status, SdkBody::from(body))
}
