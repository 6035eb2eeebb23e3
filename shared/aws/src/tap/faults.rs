//! What can happen to a request.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;

use super::call::{Call, Service};

/// Which requests are disturbed. Requests are numbered from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The process stops after this many requests: every later one fails, and the SDK does not try it again.
    pub stop_after: Option<u64>,
    /// What happens to the request of this number.
    pub faults: BTreeMap<u64, Fault>,
}

impl Plan {
    /// The process stops after this many requests.
    pub fn stop_after(requests: u64) -> Self {
        Self { stop_after: Some(requests), ..Self::default() }
    }

    /// One fault.
    pub fn fault(number: u64, fault: Fault) -> Self {
        Self { faults: BTreeMap::from([(number, fault)]), ..Self::default() }
    }
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is not sent; the SDK tries it again.
    NotSent,
    /// It is not sent, and the SDK gives up.
    Refused,
    /// It takes effect, and its answer is lost; the SDK tries it again.
    AnswerLost,
    /// It takes effect, its answer is lost, and the SDK gives up.
    AnswerLostForGood,
    /// The service answers that there are too many requests; the SDK tries it again.
    Throttled,
    /// It is sent this much later.
    Late(Duration),
}

impl Fault {
    /// What is answered in place of sending the request.
    pub(super) fn instead(self, call: &Call) -> Option<Result<HttpResponse, ConnectorError>> {
        match self {
            Self::NotSent => Some(Err(ConnectorError::io("planned: not sent".into()))),
            Self::Refused => Some(Err(ConnectorError::user("planned: refused".into()))),
            Self::Throttled => Some(throttled(call)),
            Self::AnswerLost | Self::AnswerLostForGood | Self::Late(_) => None,
        }
    }

    /// What is answered in place of the answer.
    pub(super) fn afterwards(self) -> Option<ConnectorError> {
        match self {
            Self::AnswerLost => Some(ConnectorError::io("planned: the answer is lost".into())),
            Self::AnswerLostForGood => {
                Some(ConnectorError::user("planned: the answer is lost for good".into()))
            }
            Self::NotSent | Self::Refused | Self::Throttled | Self::Late(_) => None,
        }
    }
}

fn throttled(call: &Call) -> Result<HttpResponse, ConnectorError> {
    let (status, code) = match call.service {
        Service::DynamoDb => (400, "ProvisionedThroughputExceededException"),
        Service::Sqs | Service::Secrets => (400, "ThrottlingException"),
        Service::Lambda => (429, "TooManyRequestsException"),
        Service::S3 => (503, "SlowDown"),
    };
    let body = match call.service {
        Service::S3 => format!("<Error><Code>{code}</Code><Message>planned</Message></Error>"),
        _ => format!("{{\"__type\":\"{code}\",\"message\":\"planned\"}}"),
    };
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| ConnectorError::user(error);
    let status = status.try_into().map_err(|_| ConnectorError::user("a status".into()))?;
    let mut response = HttpResponse::new(status, SdkBody::from(body));
    response
        .headers_mut()
        .try_insert("x-amzn-errortype", code)
        .map_err(|error| failed(error.into()))?;
    Ok(response)
}
