//! SQS takes a part of a batch: what it refused for a moment is sent again, and only that. No emulator does that, so
//! the answers are written here.

use std::sync::{Arc, Mutex};

use annex_aws::{DynamoStore, Queue, Queues};
use annex_core::ports::{Commit, Outage, QueueName, Store as _};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};

use crate::bench::{clients_of_nothing, clock, message};

/// Answers each batch: for each body, how often it is refused before it is taken.
#[derive(Debug, Clone)]
struct Moody {
    refused: Arc<Mutex<std::collections::BTreeMap<String, u32>>>,
    batches: Arc<Mutex<Vec<Vec<String>>>>,
    is_sender_fault: bool,
}

impl HttpConnector for Moody {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let body: Value = serde_json::from_slice(request.body().bytes().unwrap()).unwrap();
        let (mut taken, mut failed, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
        let mut refused = self.refused.lock().unwrap();
        for entry in body["Entries"].as_array().unwrap() {
            let text = entry["MessageBody"].as_str().unwrap();
            bodies.push(text.to_owned());
            match refused.get_mut(text) {
                Some(times) if 0 < *times => {
                    *times -= 1;
                    failed.push(json!({
                        "Id": entry["Id"], "Code": "InternalError", "Message": "later",
                        "SenderFault": self.is_sender_fault,
                    }));
                }
                _ => taken.push(json!({
                    "Id": entry["Id"], "MessageId": "m", "MD5OfMessageBody": "x",
                })),
            }
        }
        self.batches.lock().unwrap().push(bodies);
        let answer = json!({"Successful": taken, "Failed": failed}).to_string();
        let response = HttpResponse::new(200.try_into().unwrap(), SdkBody::from(answer));
        HttpConnectorFuture::ready(Ok(response))
    }
}

/// Sends three messages; answers how that ended, and the batches.
async fn send(
    refused: &[(&str, u32)],
    is_sender_fault: bool,
) -> (Result<(), Outage>, Vec<Vec<String>>) {
    let refused = refused.iter().map(|(body, times)| ((*body).to_owned(), *times)).collect();
    let moody =
        Moody { refused: Arc::new(Mutex::new(refused)), batches: Arc::default(), is_sender_fault };
    let connector = SharedHttpConnector::new(moody.clone());
    let clients = clients_of_nothing(http_client_fn(move |_, _| connector.clone()));
    let queue = Queue { url: "http://127.0.0.1:1/q".to_owned(), dead_letters_url: None };
    let queues = Queues { meter: Some(queue), ..Queues::default() };
    let store = DynamoStore::new(&clients, "none", queues, clock());
    let sends = ["a", "b", "c"].iter().map(|body| message(QueueName::Meter, body)).collect();
    let done = store.commit(Commit { sends, ..Commit::default() }).await;
    let batches = moody.batches.lock().unwrap().clone();
    (done.map(drop), batches)
}

#[tokio::test]
async fn only_what_was_refused_for_a_moment_is_sent_again() {
    let (done, batches) = send(&[("b", 2), ("c", 1)], false).await;
    assert!(done.is_ok());
    assert_eq!(batches, [vec!["a", "b", "c"], vec!["b", "c"], vec!["b"]]);
}

#[tokio::test]
async fn what_is_refused_again_and_again_or_for_good_is_an_outage() {
    let (done, batches) = send(&[("b", u32::MAX)], false).await;
    assert_eq!(done.unwrap_err().what, "a message cannot be sent: InternalError: later");
    assert_eq!(batches.len(), 6);
    let (done, batches) = send(&[("b", u32::MAX)], true).await;
    assert!(done.is_err());
    assert_eq!(batches, [["a", "b", "c"]]);
}
