//! The `annex` binary as a shell sees it: exit codes, standard output and standard error.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};

const OID: &str = "8cbe27f4-0000-4000-8000-138cd51389cd";

/// What a run of the program left behind.
#[derive(Debug, PartialEq)]
struct Ran {
    code: i32,
    out: String,
    err: String,
}

fn annex(url: &str, args: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_annex"))
        .args(args)
        .env_clear()
        .envs([("ANNEX_URL", url), ("ANNEX_OID", OID), ("ANNEX_ROOT_KEY", "root")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A platform that answers from a script, and keeps what it was asked.
struct Platform {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Platform {
    /// Answers `POST /jwt` with a token, and everything else with `status` and `body`.
    fn start(status: u16, body: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let router = Router::new().fallback(answer).with_state((asked.clone(), (status, body)));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                axum::serve(listener, router).await.unwrap();
            });
        });
        Self { url, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

type Script = (Arc<Mutex<Vec<String>>>, (u16, &'static str));

async fn answer(State((asked, (status, body))): State<Script>, request: Request) -> Response {
    let token = request.headers().get("authorization").map(|v| v.to_str().unwrap().to_owned());
    let line = format!("{} {}", request.method(), request.uri());
    let is_token = request.uri().path() == "/jwt";
    let sent: Bytes = to_bytes(request.into_body(), usize::MAX).await.unwrap();
    let sent = String::from_utf8(sent.into()).unwrap();
    let line = format!("{line} [{}] {sent}", token.unwrap_or_default());
    asked.lock().unwrap().push(line.trim_end().to_owned());
    if is_token {
        return r#"{"jwt": "t"}"#.into_response();
    }
    let status = axum::http::StatusCode::from_u16(status).unwrap();
    (status, [("annex-invocation-id", "i1")], body).into_response()
}

#[test]
fn json_output_is_exactly_what_the_platform_answered() {
    let body =
        r#"{"errors":[ {"component":"x","big":123456789012345678901234567890,"f":1.0e+16} ]}"#;
    let platform = Platform::start(200, body);
    let ran = annex(&platform.url, &["error", "list", "--output", "json"]);
    assert_eq!(ran, Ran { code: 0, out: format!("{body}\n"), err: String::new() });
    assert_eq!(
        platform.asked(),
        [format!("POST /jwt [] secret=root&oid={OID}"), format!("GET /v1/errors/{OID} [Bearer t]"),]
    );
}

#[test]
fn tables_are_for_people() {
    let body = r#"{"usage":[{"sku":"scanner:scans","value":3,"from":"2026-01-01T00:00:00.000Z","to":"2026-01-02T00:00:00.000Z"}]}"#;
    let platform = Platform::start(200, body);
    let ran = annex(&platform.url, &["usage", "--by", "day"]);
    let out = "\
SKU            VALUE  FROM                      TO
scanner:scans  3      2026-01-01T00:00:00.000Z  2026-01-02T00:00:00.000Z
";
    assert_eq!(ran, Ran { code: 0, out: out.to_owned(), err: String::new() });
    assert_eq!(platform.asked()[1], format!("GET /v1/orgs/{OID}/usage?by=day [Bearer t]"));
}

#[test]
fn quiet_prints_only_what_is_passed_on() {
    let check = |args: &[&str], body: &'static str, out: &str| {
        let platform = Platform::start(200, body);
        let ran = annex(&platform.url, args);
        assert_eq!(ran, Ran { code: 0, out: format!("{out}\n"), err: String::new() });
    };
    check(&["org", "create", "x", "-q"], r#"{"success":true,"data":{"oid":"o1"}}"#, "o1");
    check(&["key", "create", "x", "--quiet"], r#"{"api_key":"k1","key_hash":"h"}"#, "k1");
    check(&["request", "x", "a", "--async", "--quiet"], r#"{"status":"queued"}"#, "i1");
}

#[test]
fn refusals_exit_1_with_text_and_code_on_standard_error() {
    let body = r#"{"error":"unknown parameter name: \u001b[2Jx","code":"schema-refused"}"#;
    let platform = Platform::start(400, body);
    let ran = annex(&platform.url, &["request", "scanner", "scan", "--data", r#"{"x": 1}"#]);
    let err = "error: unknown parameter name: \u{fffd}[2Jx (schema-refused)\n";
    assert_eq!(ran, Ran { code: 1, out: String::new(), err: err.to_owned() });
    assert_eq!(
        platform.asked()[1],
        format!(
            "POST /v1/extension/request/scanner [Bearer t] \
             oid={OID}&action=scan&data=%7B%22x%22%3A+1%7D"
        )
    );
}

#[test]
fn a_capability_extension_is_registered_and_its_token_printed_once() {
    let body = r#"{"contract":"chaster","name":"dice","developer_token":"axd.dice.s3cr3t"}"#;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "p4ss\n").unwrap();
    let file = file.to_str().unwrap();
    let check = |args: &[&str], out: &str, asked: &str| {
        let platform = Platform::start(200, body);
        let ran = annex(&platform.url, args);
        assert_eq!(ran, Ran { code: 0, out: format!("{out}\n"), err: String::new() });
        assert_eq!(platform.asked()[1], asked);
    };
    let register = ["extension", "register", "dice", "--contract", "chaster"];
    let whole = ["--url", "https://h/", "--webhook-username", "u", "--webhook-password-file", file];
    check(
        &[&register[..], &whole, &["--platform-owned"]].concat(),
        "registered dice; its developer token is not shown again\n\n  axd.dice.s3cr3t",
        r#"POST /v1/extension/definition [Bearer t] {"name":"dice","url":"https://h/","contract":"chaster","platform_owned":true,"webhook":{"username":"u","password":"p4ss"}}"#,
    );
    let bare = r#"POST /v1/extension/definition [Bearer t] {"name":"dice","contract":"chaster"}"#;
    check(&[&register[..], &["--quiet"]].concat(), "axd.dice.s3cr3t", bare);
    check(&[&register[..], &["--output", "json"]].concat(), body, bare);
    let token = "POST /v1/extension/definition/dice/developer-token [Bearer t]";
    check(
        &["extension", "token", "dice"],
        "made a new developer token for dice; it is not shown again\n\n  axd.dice.s3cr3t",
        token,
    );
    check(&["extension", "token", "dice", "-q"], "axd.dice.s3cr3t", token);
}

#[test]
fn locks_and_sessions_are_reached_by_their_organization() {
    let check = |args: &[&str], body: &'static str, out: &str, asked: &str| {
        let platform = Platform::start(200, body);
        let ran = annex(&platform.url, args);
        assert_eq!(ran, Ran { code: 0, out: format!("{out}\n"), err: String::new() });
        let (method, path) = asked.split_once(' ').unwrap();
        let asked = format!("{method} /v1/orgs/{OID}/scopes/lock/l{path}");
        assert_eq!(platform.asked()[1], asked);
    };
    let lock = r#"{"lockId":"l","status":"locked"}"#;
    check(&["lock", "show", "l"], lock, "lockId  l\nstatus  locked", "GET  [Bearer t]");
    check(
        &["lock", "set", "l", "--status", "unlocked", "--has-keyholder", "true"],
        lock,
        "changed l",
        r#"PATCH  [Bearer t] {"status":"unlocked","hasKeyholder":true}"#,
    );
    check(
        &["lock", "history", "l", "--role", "wearer", "--before", "0f"],
        r#"{"count":0,"hasMore":false,"results":[]}"#,
        "nothing happened",
        "GET /history?role=wearer&limit=50&lastId=0f [Bearer t]",
    );
    let made = r#"{"sessionId":"0f","lockId":"l"}"#;
    let create = ["session", "create", "l", "dice"];
    let asked = r#"POST /sessions [Bearer t] {"extension":"dice"}"#;
    check(&create, made, "installed dice on l\n\nsession 0f", asked);
    check(&[&create[..], &["-q"]].concat(), made, "0f", asked);
    check(
        &["session", "list", "l"],
        r#"{"sessions":[{"sessionId":"0f","extension":"dice","createdAt":"t","config":{"a":1}}]}"#,
        "SESSION  EXTENSION  SINCE  CONFIG\n0f       dice       t      {\"a\":1}",
        "GET /sessions [Bearer t]",
    );
    check(
        &["session", "delete", "l", "0f"],
        r#"{"success":true}"#,
        "deleted session 0f",
        "DELETE /sessions/0f [Bearer t]",
    );
}

#[test]
fn an_answer_too_large_for_a_response_is_fetched_without_a_token() {
    let store = Platform::start(200, r#"{"data":{"x":"y"},"version":1}"#);
    let check = |status: u16, code: i32, out: &str, err: &str| {
        let url = format!("{}/k?signed", store.url);
        let body = format!(
            r#"{{"error":"e","code":"answer-too-large","status":{status},"location":"/v1/invocations/i1","url":"{url}"}}"#
        );
        let platform = Platform::start(413, body.leak());
        let ran = annex(&platform.url, &["request", "x", "a", "--output", "json"]);
        assert_eq!(ran, Ran { code, out: out.to_owned(), err: err.to_owned() });
    };
    check(200, 0, "{\"data\":{\"x\":\"y\"},\"version\":1}\n", "");
    check(502, 1, "", "error: the platform answered 502 (HTTP 502)\n");
    assert_eq!(store.asked(), ["GET /k?signed []"; 2]);
}

#[test]
fn a_platform_that_is_not_there_exits_3() {
    // The port was free a moment ago: nobody listens on it.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let err = format!("error: {url}: could not connect: is `annex serve` running?\n");
    assert_eq!(annex(&url, &["org", "list"]), Ran { code: 3, out: String::new(), err });
}

#[test]
fn arguments_that_make_no_sense_exit_2_and_reach_nobody() {
    let platform = Platform::start(200, "{}");
    for args in [
        &["orgs"][..],
        &["request", "x", "a", "--data", "{"],
        &["usage", "--by", "week"],
        &["extension", "register", "x", "--webhook-username", "u"],
    ] {
        let ran = annex(&platform.url, args);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}");
        assert!(ran.err.starts_with("error: "), "{}", ran.err);
    }
    assert_eq!(platform.asked(), Vec::<String>::new());
}

#[test]
fn help_and_completion_need_no_platform() {
    for (args, part) in [
        (&["--help"][..], "Exit codes:"),
        (&["request", "--help"], "annex request scanner scan"),
        (&["completion", "bash"], "complete -F _annex"),
        (&["completion", "zsh"], "#compdef annex"),
        (&["completion", "fish"], "complete -c annex"),
    ] {
        let ran = annex("http://127.0.0.1:1", args);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
        assert!(ran.out.contains(part), "{args:?}: {}", ran.out);
    }
}
