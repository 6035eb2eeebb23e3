//! What a request asks for.

use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use serde_json::Value;

/// A service, as far as the tap tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    DynamoDb,
    Sqs,
    Secrets,
    Lambda,
    S3,
}

/// A message that an SQS request sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The URL of its queue.
    pub queue_url: String,
    /// Its body.
    pub body: String,
    /// Its delay, in seconds.
    pub delay_secs: u64,
}

/// One request, taken apart.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) service: Service,
    /// The operation; for S3 the method.
    pub(super) operation: String,
    /// Service and operation.
    pub(super) name: String,
    /// The JSON body; null where there is none.
    pub(super) body: Value,
    pub(super) request_bytes: u64,
}

impl Call {
    pub(super) fn read(request: &HttpRequest) -> Self {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let (api, operation) = target.rsplit_once('.').unwrap_or_default();
        let path = request.uri().parse::<http::Uri>();
        let path = path.as_ref().map_or("", http::Uri::path);
        let (service, operation) = match api {
            "AmazonSQS" => (Service::Sqs, operation),
            "secretsmanager" => (Service::Secrets, operation),
            api if api.starts_with("DynamoDB") => (Service::DynamoDb, operation),
            _ if path.starts_with("/2015-03-31/functions/") && path.ends_with("/invocations") => {
                (Service::Lambda, "Invoke")
            }
            _ => (Service::S3, request.method()),
        };
        let name = match service {
            Service::DynamoDb => "dynamodb",
            Service::Sqs => "sqs",
            Service::Secrets => "secretsmanager",
            Service::Lambda => "lambda",
            Service::S3 => "s3",
        };
        let bytes = request.body().bytes();
        let is_json = matches!(service, Service::DynamoDb | Service::Sqs | Service::Secrets);
        let body = bytes.filter(|_| is_json).and_then(|bytes| serde_json::from_slice(bytes).ok());
        let known = bytes.map(|bytes| bytes.len() as u64).or(request.body().content_length());
        Self {
            service,
            name: format!("{name} {operation}"),
            operation: operation.to_owned(),
            body: body.unwrap_or(Value::Null),
            request_bytes: known.unwrap_or(0),
        }
    }

    /// The messages that an SQS request sends.
    fn sent(&self) -> Vec<&Value> {
        match (self.service, self.operation.as_str()) {
            (Service::Sqs, "SendMessage") => vec![&self.body],
            (Service::Sqs, "SendMessageBatch") => self.entries().collect(),
            _ => Vec::new(),
        }
    }

    fn entries(&self) -> impl Iterator<Item = &Value> {
        self.body["Entries"].as_array().into_iter().flatten()
    }

    /// How many messages an SQS request sends, deletes or changes.
    pub(super) fn messages(&self) -> u64 {
        match (self.service, self.operation.as_str()) {
            (Service::Sqs, operation) if operation.ends_with("Batch") => {
                self.entries().count() as u64
            }
            (Service::Sqs, "SendMessage" | "DeleteMessage" | "ChangeMessageVisibility") => 1,
            _ => 0,
        }
    }

    /// The messages that are sent, as they were asked for.
    pub(super) fn messages_sent(&self) -> Vec<Sent> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let sent = |message: &Value| Sent {
            queue_url: text(&self.body["QueueUrl"]),
            body: text(&message["MessageBody"]),
            delay_secs: message["DelaySeconds"].as_u64().unwrap_or(0),
        };
        self.sent().into_iter().map(sent).collect()
    }

    /// Seconds of delay of each message that is sent.
    pub(super) fn delays(&self) -> Vec<u64> {
        let delay = |message: &Value| message["DelaySeconds"].as_u64().unwrap_or(0);
        self.sent().into_iter().map(delay).collect()
    }

    /// Sends at once what is delayed. Answers whether there was such a message.
    pub(super) fn drop_delays(&mut self) -> bool {
        if self.delays().iter().all(|delay| *delay == 0) {
            return false;
        }
        let drop = |message: &mut Value| {
            if let Some(message) = message.as_object_mut() {
                message.insert("DelaySeconds".to_owned(), Value::from(0));
            }
        };
        match self.body["Entries"].as_array_mut() {
            Some(entries) => entries.iter_mut().for_each(drop),
            None => drop(&mut self.body),
        }
        true
    }

    /// Puts the body into the request again.
    pub(super) fn write(&self, request: &mut HttpRequest) -> Result<(), ConnectorError> {
        let body = self.body.to_string();
        let length = body.len().to_string();
        request
            .headers_mut()
            .try_insert("content-length", length)
            .map_err(|error| ConnectorError::user(error.into()))?;
        *request.body_mut() = SdkBody::from(body);
        Ok(())
    }
}
