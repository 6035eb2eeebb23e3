//! `annex http`, as a process: a line out for every line in, and what really goes over a socket.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::PROGRAM;

/// The lines that the program answers to these.
fn answers(input: &str, arguments: &[&str]) -> Vec<Value> {
    let mut program = Command::new(PROGRAM)
        .arg("http")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = program.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = program.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let output = String::from_utf8(output.stdout).unwrap();
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn answer(line: &Value) -> Value {
    let mut answers = answers(&format!("{line}\n"), &[]);
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

const HOST: &str = "api.vendor.example";

#[test]
fn every_line_has_an_answer() {
    let good = json!({
        "request": {"method": "POST", "url": "https://api.vendor.example/a?b=1#c", "body": {"json": {"n": 1.0}}},
        "install": {"hosts": [HOST]},
        "answers": [{"status": 201, "headers": [["X-A", "1"], ["x-a", "2"]], "bodyBase64": "aGk="}],
    });
    // The last line has no end.
    let input = format!("{good}\n\nnothing\r\n{{}}\n[]\n{{\"request\": 1, \"more\": 2}}\n{good}");
    let found = answers(&input, &[]);
    let expected = json!({
        "sent": [{
            "method": "POST",
            "url": "https://api.vendor.example/a?b=1",
            "headers": {
                "host": HOST,
                "content-type": "application/json",
                "user-agent": "Aletheia-Apps/1",
                "content-length": "9",
            },
            "bodyBase64": "eyJuIjoxLjB9",
        }],
        "answer": {"status": 201, "headers": {"x-a": "1, 2"}, "bodyText": "hi"},
    });
    let refused = |text: &str| json!({"sent": [], "answer": {"error": text}});
    let unknown = "unknown field (the app may be built with a newer SDK than this platform runs)";
    assert_eq!(
        found,
        [
            expected.clone(),
            refused("request is not JSON"),
            refused("invalid request: request: is missing"),
            refused("invalid request: request: expected an object"),
            refused(&format!("invalid request: more: {unknown}")),
            expected,
        ]
    );
}

#[test]
fn line_that_cannot_be_meant_is_named() {
    for (field, value, problem) in [
        ("at", json!("yesterday"), "at: expected a time like 2026-01-02T03:04:05Z"),
        ("random", json!({}), "random: expected a text or a number"),
        ("answers", json!([{}]), "answers.0.status: is missing"),
        (
            "answers",
            json!([{"status": 99}]),
            "answers.0.status: expected a whole number from 100 to 999",
        ),
        (
            "answers",
            json!([{"status": 200, "headers": {"a": "b"}}]),
            "answers.0.headers: expected an array",
        ),
        (
            "answers",
            json!([{"status": 200, "headers": [["a"]]}]),
            "answers.0.headers.0: expected a [name, value] pair",
        ),
        (
            "answers",
            json!([{"status": 200, "bodyBase64": "*"}]),
            "answers.0.bodyBase64: expected base64",
        ),
        (
            "answers",
            json!([{"status": 200, "body": "", "bodyBase64": ""}]),
            "answers.0.bodyBase64: stands beside body",
        ),
    ] {
        let mut line = json!({"request": {"url": "https://api.vendor.example/"}});
        line[field] = value;
        let expected =
            json!({"sent": [], "answer": {"error": format!("invalid request: {problem}")}});
        assert_eq!(answer(&line), expected);
    }
    let mut line = json!({"request": {"url": "https://api.vendor.example/"}});
    line["install"] = json!({"hosts": ["https://api.vendor.example/"]});
    let found = answer(&line);
    let text = found["answer"]["error"].as_str().unwrap();
    assert!(text.starts_with("invalid request: install.hosts: "), "{text}");
}

#[test]
fn what_a_test_fixes_is_used() {
    let line = |random: Value| {
        json!({
            "request": {"url": "https://api.vendor.example/", "auth": {"authType": "hawk", "authId": "i", "authKey": "k"}},
            "install": {"hosts": [HOST]}, "at": "2026-01-02T03:04:05Z", "random": random,
            "answers": [{"status": 204}],
        })
    };
    for random in [json!("seed-1"), json!(["seed-1"])] {
        let found = answer(&line(random));
        let authorization = found["sent"][0]["headers"]["authorization"].as_str().unwrap();
        let expected = "Hawk id=\"i\", ts=\"1767323045\", nonce=\"seed-1\", mac=\"";
        assert!(authorization.starts_with(expected), "{authorization}");
    }
}

#[test]
fn request_beyond_the_answers_is_shown_and_not_sent() {
    let line = json!({
        "request": {"url": "https://api.vendor.example/", "auth": {"authType": "digest", "username": "u", "password": "p"}},
        "install": {"hosts": [HOST]},
        "answers": [{"status": 401, "headers": [["WWW-Authenticate", "Digest realm=\"r\", nonce=\"n\""]]}],
    });
    let found = answer(&line);
    assert_eq!(found["sent"].as_array().unwrap().len(), 2);
    let expected = json!({"error": "no answer is given for this request", "network": "unknown"});
    assert_eq!(found["answer"], expected);
}

/// Without answers it really sends: one request, with exactly what is shown.
// covers: AL-138, AL-145, AL-207, AL-208
#[tokio::test]
async fn without_answers_the_request_is_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let vendor = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\nok?") {
            let mut byte = [0];
            stream.read_exact(&mut byte).await.unwrap();
            head.push(byte[0]);
        }
        let answer = b"HTTP/1.1 200 OK\r\nX-A: 1\r\ncontent-length: 2\r\n\r\nok";
        stream.write_all(answer).await.unwrap();
        String::from_utf8(head).unwrap()
    });
    let line = json!({
        "request": {"method": "PUT", "url": format!("http://{address}/p"), "body": "ok?"},
        "install": {"hosts": [address.to_string()]},
    });
    let allowed = tokio::task::spawn_blocking(move || {
        answers(&line.to_string(), &["--allow-private-networks"])
    });
    let head = vendor.await.unwrap();
    let found = allowed.await.unwrap().remove(0);
    let answered =
        json!({"status": 200, "headers": {"content-length": "2", "x-a": "1"}, "bodyText": "ok"});
    assert_eq!(found["answer"], answered);
    let sent = found["sent"][0]["headers"].as_object().unwrap();
    let shown: String = sent
        .iter()
        .map(|(name, value)| format!("{name}: {}\r\n", value.as_str().unwrap()))
        .collect();
    assert_eq!(head, format!("PUT /p HTTP/1.1\r\n{shown}\r\nok?"));
}

/// Nothing on this machine is reached unless that is allowed.
// covers: AL-207
#[tokio::test]
async fn private_networks_are_refused_unless_allowed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let line = json!({
        "request": {"url": format!("https://{address}/p")},
        "install": {"hosts": [address.to_string()]},
    });
    let found = tokio::task::spawn_blocking(move || answers(&line.to_string(), &[]));
    let found = found.await.unwrap().remove(0);
    assert_eq!(found["sent"], json!([]));
    assert_eq!(found["answer"].get("network"), None, "{found}");
    assert!(found["answer"]["error"].is_string(), "{found}");
    let none = tokio::time::timeout(std::time::Duration::ZERO, listener.accept()).await;
    assert!(none.is_err(), "nobody connected");
}
