//! What an extension answers.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// The version of the protocol. An answer without it counts as "not processed".
pub const VERSION: u32 = 20_221_218;

/// An answer: a status, and the members of its JSON body.
#[derive(Debug, Serialize)]
pub struct Answer {
    #[serde(skip)]
    status: StatusCode,
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retriable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    continuations: Vec<Continuation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<MetricReport>,
}

/// "Call me again": an action of this extension, later, with this state as its data.
#[derive(Debug, Serialize)]
pub struct Continuation {
    /// After how many seconds; at most 300.
    pub in_delay_sec: u32,
    /// Which action.
    pub action: &'static str,
    /// What the action gets as `data`.
    pub state: Box<RawValue>,
}

/// What was used, to be metered.
#[derive(Debug, Serialize)]
pub struct MetricReport {
    /// Reports with the same key are counted once.
    pub idempotent_key: String,
    /// How much of what; at most ten.
    pub metrics: Vec<Metric>,
}

/// How much of one thing was used.
#[derive(Debug, Serialize)]
pub struct Metric {
    /// The thing; Annex shows it as `<extension>:<sku>`.
    pub sku: &'static str,
    /// How much of it.
    pub value: u64,
}

impl Answer {
    /// Success with nothing to say.
    pub fn ok() -> Self {
        Self {
            status: StatusCode::OK,
            version: VERSION,
            error: None,
            retriable: None,
            data: None,
            continuations: Vec::new(),
            metrics: None,
        }
    }

    /// Success with data.
    pub fn data(data: impl Serialize) -> Self {
        Self { data: Some(raw(&data)), ..Self::ok() }
    }

    /// Success with data that is JSON text already.
    pub fn raw_data(data: &RawValue) -> Self {
        Self { data: Some(data.to_owned()), ..Self::ok() }
    }

    /// A failure of our own making that a retry may mend: status 500, and Annex tries again (LC-049).
    pub fn transient(text: impl Into<String>) -> Self {
        Self::error(StatusCode::INTERNAL_SERVER_ERROR, text)
    }

    /// A failure that no retry can mend, such as a bad parameter: status 400 and `retriable: false`, and Annex does
    /// not try again (LC-051, LC-055).
    pub fn permanent(text: impl Into<String>) -> Self {
        Self { retriable: Some(false), ..Self::error(StatusCode::BAD_REQUEST, text) }
    }

    /// A message that is not understood: status 400.
    pub fn bad_request(text: impl Into<String>) -> Self {
        Self::error(StatusCode::BAD_REQUEST, text)
    }

    /// A failure with this status. The text reaches the caller.
    pub fn error(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, error: Some(text.into()), ..Self::ok() }
    }

    /// Asks for a call of `action` with `state` in `in_delay_sec` seconds.
    pub fn continue_with(
        mut self,
        in_delay_sec: u32,
        action: &'static str,
        state: impl Serialize,
    ) -> Self {
        self.continuations.push(Continuation { in_delay_sec, action, state: raw(&state) });
        self
    }

    /// Reports what was used. The key of the message makes the report count once, also when the answer is lost on
    /// its way and the call is made again.
    pub fn meter(mut self, idempotency_key: &str, used: &[(&'static str, u64)]) -> Self {
        let metrics = used.iter().map(|&(sku, value)| Metric { sku, value }).collect();
        self.metrics = Some(MetricReport { idempotent_key: idempotency_key.to_owned(), metrics });
        self
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let body = raw(&self).get().to_owned();
        (self.status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
    }
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("values with text keys are always JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(answer: Answer, status: u16, body: &str) {
        assert_eq!((answer.status.as_u16(), raw(&answer).get()), (status, body));
    }

    #[test]
    fn retriable_unset_true_and_false_differ_on_the_wire_lc_054() {
        let retriable = Answer { retriable: Some(true), ..Answer::transient("no luck") };
        check(Answer::transient("no luck"), 500, r#"{"version":20221218,"error":"no luck"}"#);
        check(retriable, 500, r#"{"version":20221218,"error":"no luck","retriable":true}"#);
        check(
            Answer::permanent("no way"),
            400,
            r#"{"version":20221218,"error":"no way","retriable":false}"#,
        );
    }

    #[test]
    fn continuations_and_metrics_stand_beside_the_data() {
        check(
            Answer::data([1]).continue_with(3, "more", ["s"]).meter("k", &[("scans", 2)]),
            200,
            concat!(
                r#"{"version":20221218,"data":[1],"#,
                r#""continuations":[{"in_delay_sec":3,"action":"more","state":["s"]}],"#,
                r#""metrics":{"idempotent_key":"k","metrics":[{"sku":"scans","value":2}]}}"#
            ),
        );
    }
}
