//! No connection to an address that is not permitted, whatever DNS or a URL says.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use annex_core::ports::{Outbound, SendFault, WebhookAnswer};
use annex_egress::{Policy, Resolve, ResolveFault, WebhookClient};
use async_trait::async_trait;

use crate::receiver::{
    Names, OK, Receiver, client, client_with, not_sent, ok, refused, request, send,
};

type Answer = Result<Vec<&'static str>, ResolveFault>;

const NOT_PERMITTED: &str = "the host has an address that is not permitted";
const NOT_HERE: &str = "the host is not on this machine, as plain http has to be";

/// Sends to a name with these answers, where a listener on this machine would notice every connection.
async fn check(
    private: bool,
    url: &str,
    names: Vec<Answer>,
    expected: Result<WebhookAnswer, SendFault>,
) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
    listener.set_nonblocking(true).expect("a listener can be asked");
    let port = listener.local_addr().expect("it is bound").port();
    let url = url.replace("PORT", &port.to_string());
    let client = client_with(Names::new(names), private, Vec::new());
    assert_eq!(send(&client, &url).await, expected, "{url}");
    // A connection stands in the listener's queue from the moment the client has it.
    assert_eq!(
        listener.accept().map(drop).map_err(|error| error.kind()),
        Err(ErrorKind::WouldBlock),
        "{url}"
    );
}

#[tokio::test]
async fn name_with_a_private_address_is_refused_without_a_connection() {
    let https = "https://hooks.example:PORT/";
    check(false, https, vec![Ok(vec!["127.0.0.1"])], refused(NOT_PERMITTED)).await;
    check(false, https, vec![Ok(vec!["::1"])], refused(NOT_PERMITTED)).await;
    check(false, https, vec![Ok(vec!["::ffff:127.0.0.1"])], refused(NOT_PERMITTED)).await;
    check(false, https, vec![Ok(vec!["10.0.0.1"])], refused(NOT_PERMITTED)).await;
    check(false, https, vec![Ok(vec!["64:ff9b::7f00:1"])], refused(NOT_PERMITTED)).await;
    check(true, https, vec![Ok(vec!["169.254.169.254"])], refused(NOT_PERMITTED)).await;
    check(true, https, vec![Ok(vec!["0.0.0.0"])], refused(NOT_PERMITTED)).await;
}

#[tokio::test]
async fn one_private_address_among_public_ones_is_refused_without_a_connection() {
    let https = "https://hooks.example:PORT/";
    check(false, https, vec![Ok(vec!["127.0.0.1", "8.8.8.8"])], refused(NOT_PERMITTED)).await;
    check(false, https, vec![Ok(vec!["8.8.8.8", "127.0.0.1"])], refused(NOT_PERMITTED)).await;
    check(true, https, vec![Ok(vec!["127.0.0.1", "fd00:ec2::254"])], refused(NOT_PERMITTED)).await;
}

// covers: LC-011
#[tokio::test]
async fn plain_http_leaves_this_machine_under_no_policy_lc_011() {
    let http =
        "url must start with https://: plain http is for loopback with private networks allowed";
    let local = || vec![Ok(vec!["127.0.0.1"])];
    check(false, "http://hooks.example:PORT/", local(), refused(http)).await;
    check(false, "http://localhost:PORT/", local(), refused(http)).await;
    check(true, "http://hooks.example:PORT/", local(), refused(http)).await;
    check(true, "http://localhost:PORT/", vec![Ok(vec!["10.0.0.1"])], refused(NOT_HERE)).await;
    check(
        true,
        "http://localhost:PORT/",
        vec![Ok(vec!["127.0.0.1", "8.8.8.8"])],
        refused(NOT_HERE),
    )
    .await;
}

#[tokio::test]
async fn literal_address_is_refused_without_a_lookup_or_a_connection() {
    let why = "address 127.0.0.1 is not permitted (loopback)";
    for host in ["127.0.0.1", "127.1", "2130706433", "0177.0.0.1", "０x7f.1"] {
        let url = format!("https://{host}:PORT/");
        check(false, &url, vec![Err(ResolveFault::Failed)], refused(why)).await;
    }
}

/// A name is looked up once for a connection: no second answer can slip in between the check and the connection.
#[tokio::test]
async fn name_that_moves_to_a_private_address_is_refused_at_its_next_connection() {
    let mut receiver = Receiver::start(|mut peer| async move {
        peer.answer(OK.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n")).await;
    })
    .await;
    let names = Names::new(vec![Ok(vec!["127.0.0.1"]), Ok(vec!["169.254.169.254"])]);
    let client = client_with(Arc::clone(&names), true, Vec::new());
    let url = format!("http://localhost:{}/", receiver.port);
    assert_eq!(send(&client, &url).await, ok());
    assert_eq!(names.lookups.load(Ordering::SeqCst), 1);
    assert_eq!(send(&client, &url).await, refused(NOT_PERMITTED));
    assert_eq!(names.lookups.load(Ordering::SeqCst), 2);
    assert_eq!((receiver.connections(), receiver.seen().len()), (1, 1));
}

#[tokio::test]
async fn name_that_is_not_found_is_not_sent() {
    let check = async |answer: Answer, why| {
        let client = client_with(Names::new(vec![answer]), false, Vec::new());
        assert_eq!(send(&client, "https://hooks.example/").await, not_sent(why));
    };
    check(Err(ResolveFault::NotFound), "name not found").await;
    check(Ok(Vec::new()), "name not found").await;
    check(Err(ResolveFault::Failed), "name lookup failed").await;
}

/// A name service that never answers.
struct Silence;

#[async_trait]
impl Resolve for Silence {
    async fn resolve(&self, _host: &str) -> Result<Vec<std::net::IpAddr>, ResolveFault> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn deadline_ends_a_lookup() {
    let policy = Policy { allow_private_networks: false, extra_roots: Vec::new() };
    let client = WebhookClient::new(policy, Arc::new(Silence)).unwrap();
    let mut request = request("https://hooks.example/");
    request.timeout = Duration::from_millis(200);
    let timed_out = Err(SendFault::TimedOut(request.timeout));
    assert_eq!(client.send(request).await, timed_out);
}

#[test]
fn registration_is_told_what_is_wrong_with_a_url() {
    let strict = client_with(Names::loopback(), false, Vec::new());
    let check = |url: &str, why: &str| assert_eq!(strict.check_url(url), Err(why.to_owned()));
    check("hooks.example", "url must start with https://");
    check("https://u:p@hooks.example/", "url must not contain credentials");
    check("https://hooks.example:25/", "port 25 is not permitted");
    check("https://169.254.169.254/", "address 169.254.169.254 is not permitted (link-local)");
    check("https://[::1]/", "address ::1 is not permitted (loopback)");
    assert_eq!(strict.check_url("https://hooks.example/a?b"), Ok(()));
    assert_eq!(client().check_url("http://localhost:9000/hook"), Ok(()));
}
