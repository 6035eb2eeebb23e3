//! What the platform sends, and what is answered.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::Json;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

/// The credentials that every message carries: HTTP Basic.
pub struct Credentials {
    header: String,
}

impl Credentials {
    /// Those that the extension was registered with.
    pub fn new(username: &str, password: &str) -> Self {
        Self { header: format!("Basic {}", STANDARD.encode(format!("{username}:{password}"))) }
    }

    /// Whether a message carries them. Takes the same time however much of a wrong password is right.
    pub fn are_in(&self, headers: &HeaderMap) -> bool {
        let found = headers.get(header::AUTHORIZATION).map_or(&b""[..], |value| value.as_bytes());
        verify_slices_are_equal(found, self.header.as_bytes()).is_ok()
    }
}

/// A message. Each has the envelope `{event, data, sentAt, requestId}`. `requestId` is another on every attempt: what must
/// not be done twice is told apart by what is in `data`.
pub enum Envelope {
    /// `command.invoked` or `query.invoked`: somebody waits for the answer, ten seconds at most.
    Invoked(Box<Invocation>),
    /// Anything else is news: an event that was subscribed to, a session that was made, a line in a lock's history.
    Told {
        /// For example `event.emitted`.
        event: String,
        /// What it says.
        data: Value,
    },
}

/// A call of a command or a query.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Invocation {
    /// The called extension's own session on the lock.
    pub session_id: String,
    /// The lock.
    pub lock_id: String,
    /// The call. It is the same in the record that the caller gets.
    pub invocation_id: String,
    /// For example `dice.roll`.
    pub capability: String,
    /// It was checked against the `inputSchema`.
    pub input: Value,
    /// On whose behalf: `wearer`, `keyholder` or `extension`.
    pub actor: String,
    /// The event or the call that caused this one.
    pub causation_id: Option<String>,
    /// Links of the chain so far: the platform refuses the ninth.
    pub depth: u32,
}

impl Envelope {
    /// Reads the body of a message.
    pub fn read(body: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Members {
            event: String,
            data: Value,
        }
        let Members { event, data } =
            serde_json::from_slice(body).map_err(|error| error.to_string())?;
        match event.as_str() {
            "command.invoked" | "query.invoked" => {
                serde_json::from_value(data).map(Self::Invoked).map_err(|error| error.to_string())
            }
            _ => Ok(Self::Told { event, data }),
        }
    }
}

/// Why a call failed, for its caller.
#[derive(Debug)]
pub struct Failure {
    /// A word of the extension's own.
    pub code: &'static str,
    /// For people.
    pub message: String,
    /// Whether calling again may help.
    pub retryable: bool,
}

/// What an extension does with messages.
pub trait Extension: Sync {
    /// Answers a call of one of its commands or queries: the output, which has to fit the `outputSchema`.
    fn invoked(&self, call: &Invocation) -> impl Future<Output = Result<Value, Failure>> + Send;

    /// Takes notice of something.
    fn told(&self, event: &str, data: &Value) -> impl Future<Output = ()> + Send;
}

/// What is answered.
pub enum Answer {
    /// The output of a call.
    Output(Value),
    /// The failure of a call. It is an answer like any other, hence 200: the caller gets `error` in the record.
    Failed(Failure),
    /// News were taken notice of. Any 2xx will do; without one they come again, up to four times.
    Taken,
    /// The credentials are wrong.
    Unauthorized,
    /// It is no message.
    BadRequest(String),
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        match self {
            Self::Output(output) => Json(json!({ "output": output })).into_response(),
            Self::Failed(Failure { code, message, retryable }) => {
                let error = json!({ "code": code, "message": message, "retryable": retryable });
                Json(json!({ "error": error })).into_response()
            }
            Self::Taken => StatusCode::NO_CONTENT.into_response(),
            Self::Unauthorized => StatusCode::UNAUTHORIZED.into_response(),
            Self::BadRequest(why) => (StatusCode::BAD_REQUEST, why).into_response(),
        }
    }
}
