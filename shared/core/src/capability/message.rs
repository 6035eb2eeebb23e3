//! Messages to extensions: the documented envelope `{event, data, sentAt, requestId}`, with Basic credentials.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Serialize;
use zeroize::Zeroizing;

use crate::limits::{CAPABILITY_ANSWER_BYTES_MAX, CAPABILITY_TIMEOUT};
use crate::ports::{Outage, Ports, SendFault, WebhookAnswer, WebhookRequest};
use crate::redact::Redactor;
use crate::seal;
use crate::trace::{TRACEPARENT_HEADER, Trace};

use super::extensions::binding;
use super::id::Slug;
use super::model::{Credentials, Extension};

/// Every message to an extension.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a, T> {
    event: &'a str,
    data: T,
    sent_at: String,
    request_id: String,
}

/// Which extension a message is for, in its data.
#[derive(Serialize)]
pub(super) struct Named<'a> {
    pub(super) slug: &'a Slug,
}

/// Sends a message, in one attempt with a `requestId` of its own, and with credentials if the extension has any. It
/// takes at most [`CAPABILITY_TIMEOUT`], and no more than [`CAPABILITY_ANSWER_BYTES_MAX`] of the answer is read.
pub(super) async fn post<T: Serialize>(
    ports: &Ports,
    extension: &Extension,
    event: &str,
    data: T,
    trace: Option<Trace>,
) -> Result<Result<WebhookAnswer, SendFault>, Outage> {
    let Some(url) = extension.url.clone() else {
        return Ok(Err(SendFault::Refused("there is no URL".to_owned())));
    };
    let envelope = Envelope {
        event,
        data,
        sent_at: ports.clock.now().to_string(),
        request_id: ports.ids.uuid().hyphenated().to_string(),
    };
    let body = serde_json::to_vec(&envelope).expect("a message can be written as JSON");
    let mut headers = vec![("content-type", "application/json".to_owned())];
    if let Some(credentials) = &extension.webhook {
        let pair = pair(credentials, &password(ports, &extension.slug, credentials)?);
        headers.push(("authorization", format!("Basic {}", STANDARD.encode(pair.as_bytes()))));
    }
    if let Some(trace) = trace {
        headers.push((TRACEPARENT_HEADER, trace.header(ports.ids.random())));
    }
    let request = WebhookRequest {
        url,
        headers,
        body: Bytes::from(body),
        timeout: CAPABILITY_TIMEOUT,
        response_bytes_max: CAPABILITY_ANSWER_BYTES_MAX,
    };
    Ok(ports.outbound.send(request).await)
}

/// Hides an extension's credentials in its own answer: that goes to another one.
pub(super) fn redactor(ports: &Ports, extension: &Extension) -> Result<Redactor, Outage> {
    let Some(credentials) = &extension.webhook else { return Ok(Redactor::default()) };
    let password = password(ports, &extension.slug, credentials)?;
    let name = "webhook.password".to_owned();
    Ok(Redactor::new([
        (name.clone(), pair(credentials, &password).to_string()),
        (name, password.to_string()),
    ]))
}

fn password(
    ports: &Ports,
    slug: &Slug,
    credentials: &Credentials,
) -> Result<Zeroizing<String>, Outage> {
    seal::open_text(ports.keyring.as_ref(), &binding(slug), &credentials.password)
}

fn pair(credentials: &Credentials, password: &str) -> Zeroizing<String> {
    Zeroizing::new(format!("{}:{password}", credentials.username))
}
