//! The pair against a platform that takes everything and keeps what it was asked.

use std::sync::Mutex;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;

type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// A platform on a port of its own, and what it was asked: method and path, and the body.
async fn platform() -> (String, Asked) {
    let asked = Asked::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let keep = asked.clone();
    let router = Router::new().fallback(async move |request: Request<Body>| {
        let line = format!("{} {}", request.method(), request.uri());
        let body = axum::body::to_bytes(request.into_body(), MESSAGE_BYTES_MAX).await.unwrap();
        keep.lock().unwrap().push((line, serde_json::from_slice(&body).unwrap()));
        "{}"
    });
    tokio::spawn(async { axum::serve(listener, router).await });
    (url, asked)
}

struct Scene {
    router: Router,
    asked: Asked,
}

impl Scene {
    async fn new() -> Self {
        let (url, asked) = platform().await;
        let client = |token| Annex::new(&url, token);
        let pair = Pair::new(Credentials::new("annex", "p4ss"), client("d"), client("l"));
        Self { router: router(Arc::new(pair)), asked }
    }

    /// The answer to a message.
    async fn send(&self, to: &str, password: &str, message: &Value) -> (StatusCode, Value) {
        use base64::Engine as _;
        let pair = base64::engine::general_purpose::STANDARD.encode(format!("annex:{password}"));
        let request = Request::post(to)
            .header("authorization", format!("Basic {pair}"))
            .body(Body::from(message.to_string()))
            .unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), MESSAGE_BYTES_MAX).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    fn asked(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn invoked(capability: &str, invocation: &str, causation: Option<&str>, input: Value) -> Value {
    json!({
        "event": "command.invoked", "sentAt": "t", "requestId": "r",
        "data": {
            "sessionId": "s1", "lockId": "l1", "extension": { "slug": "x" },
            "invocationId": invocation, "capability": capability, "input": input,
            "actor": "wearer", "caller": { "type": "extension", "slug": "y" },
            "causationId": causation, "correlationId": invocation, "depth": 1,
        },
    })
}

#[tokio::test]
async fn who_has_other_credentials_is_sent_away() {
    let scene = Scene::new().await;
    let message = invoked("dice.sides", "inv_1", None, json!({}));
    assert_eq!(scene.send("/dice", "p4s", &message).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(scene.send("/ledger", "", &message).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(scene.send("/dice", "p4ss", &message).await.0, StatusCode::OK);
    assert_eq!(scene.send("/dice", "p4ss", &json!([])).await.0, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_roll_is_told_with_the_call_as_its_cause() {
    let scene = Scene::new().await;
    let message = invoked("dice.roll", "inv_1", None, json!({ "sides": 1 }));
    let rolled = json!({ "value": 1, "sides": 1 });
    let answer = scene.send("/dice", "p4ss", &message).await;
    assert_eq!(answer, (StatusCode::OK, json!({ "output": rolled })));
    let event = json!({
        "type": "dice.rolled", "payload": rolled, "actor": "wearer", "causationId": "inv_1",
    });
    let path = "POST /api/extensions/sessions/s1/events".to_owned();
    assert_eq!(scene.asked(), [(path, event)]);
}

#[tokio::test]
async fn an_event_that_comes_twice_is_added_once() {
    let scene = Scene::new().await;
    let add = async |invocation: &str, event: &str, value: i64| {
        let input = json!({ "value": value, "sides": 6 });
        let message = invoked("ledger.add", invocation, Some(event), input);
        let (status, body) = scene.send("/ledger", "p4ss", &message).await;
        assert_eq!(status, StatusCode::OK);
        (body["output"]["total"].as_i64().unwrap(), scene.asked().len())
    };
    // An event and a line of the history for each sum, and nothing for a repeat.
    assert_eq!(add("inv_1", "evt_1", 4).await, (4, 2));
    assert_eq!(add("inv_2", "evt_1", 4).await, (4, 0));
    assert_eq!(add("inv_3", "evt_2", 5).await, (9, 2));
}

#[tokio::test]
async fn news_and_unknown_commands_are_answered() {
    let scene = Scene::new().await;
    let news =
        json!({ "event": "action_log.created", "data": {}, "sentAt": "t", "requestId": "r" });
    assert_eq!(scene.send("/ledger", "p4ss", &news).await, (StatusCode::NO_CONTENT, Value::Null));
    let unknown = invoked("dice.throw", "inv_1", None, json!({}));
    let (status, body) = scene.send("/dice", "p4ss", &unknown).await;
    assert_eq!((status, &body["error"]["code"]), (StatusCode::OK, &json!("unknown")));
}
