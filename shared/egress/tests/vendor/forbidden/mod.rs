//! Targets that must never be reached, in every spelling, with listeners that must hear of none of them
//! (AL-207, AL-210 to AL-217; design 10 (e)).

mod spellings;

use std::collections::{BTreeSet, HashMap};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use annex_egress::draft::{Scheme, SentUrl};
use annex_egress::hosts::{self, Hosts};
use annex_egress::vendor::{Outgoing, OutgoingBody, VendorClient};
use annex_egress::{Resolve, ResolveFault};
use async_trait::async_trait;
use http::Method;

use self::spellings::{FORBIDDEN_V6, PUBLIC, SPECIAL_V4, carrying, forbidden_v4, literals, names};
use crate::peer::{NOT_PERMITTED, PATIENT, Vendor, client, client_with, send};

/// Why a lock holds.
const NO_PANIC: &str = "no lookup panics";

/// A URL, and what the name service says about its host, lookup by lookup.
struct Case {
    url: String,
    answers: Vec<Vec<IpAddr>>,
}

/// A name service of one zone, in which some names are aliases of others.
#[derive(Default)]
struct Zone {
    aliases: Mutex<HashMap<String, String>>,
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    lookups: AtomicUsize,
}

#[async_trait]
impl Resolve for Zone {
    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, ResolveFault> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        let mut name = host.to_owned();
        while let Some(next) = self.aliases.lock().expect(NO_PANIC).get(&name) {
            name.clone_from(next);
        }
        let mut answers = self.answers.lock().expect(NO_PANIC);
        let answers = answers.get_mut(&name).ok_or(ResolveFault::NotFound)?;
        Ok(if answers.len() > 1 { answers.remove(0) } else { answers.concat() })
    }
}

/// Listeners on one port of both loopback addresses; on one where the machine has no other.
struct Listeners(Vec<TcpListener>);

impl Listeners {
    fn start() -> Self {
        let first = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
        let port = first.local_addr().expect("it is bound").port();
        let listeners: Vec<_> =
            [Ok(first), TcpListener::bind(("::1", port))].into_iter().flatten().collect();
        for listener in &listeners {
            listener.set_nonblocking(true).expect("a listener can be asked");
        }
        Self(listeners)
    }

    fn port(&self) -> u16 {
        self.0[0].local_addr().expect("it is bound").port()
    }

    /// A connection stands in a listener's queue from the moment the client has it.
    #[track_caller]
    fn heard_nothing(&self, what: &str) {
        for listener in &self.0 {
            let heard = listener.accept().map(drop).map_err(|error| error.kind());
            assert_eq!(heard, Err(ErrorKind::WouldBlock), "{what}");
        }
    }
}

/// The way of a URL to the client, for an install that approved its very host.
fn approve(url: &str, allow_private_networks: bool) -> Result<SentUrl, String> {
    let read = url::Url::parse(url).map_err(|error| error.to_string())?;
    let host = read.host_str().ok_or("a URL without a host")?;
    let port = read.port_or_known_default().ok_or("a URL without a port")?;
    let hosts = Hosts::parse(&[format!("{host}:{port}")]).map_err(|bad| bad.to_string())?;
    hosts::approve(url, &hosts, allow_private_networks).map_err(|refusal| refusal.to_string())
}

/// A URL as a browser reads it, without any rule.
fn as_read(url: &url::Url) -> Option<SentUrl> {
    let scheme = if url.scheme() == "http" { Scheme::Http } else { Scheme::Https };
    let (host, target) = (url.host_str()?.to_owned(), url.path().to_owned());
    Some(SentUrl { scheme, host, port: url.port(), target })
}

/// Sends over `url`, whatever rules it was read under: the answer to it must be a refusal.
async fn refuse(client: &VendorClient, url: SentUrl) -> Result<(), String> {
    let what = url.to_string();
    let (headers, body) = (Vec::new(), OutgoingBody::None);
    let outgoing = Outgoing { method: Method::GET, url, headers, body };
    match client.send("a", outgoing, PATIENT).await {
        Err(fault) if fault.network.is_none() => Ok(()),
        other => Err(format!("{what}: {other:?}")),
    }
}

/// Takes each case the whole way, and says how many different ones there were.
async fn check(private: bool, cases: impl IntoIterator<Item = Case>) -> usize {
    let listeners = Listeners::start();
    let zone = Arc::new(Zone::default());
    let client = client_with(zone.clone(), private, PATIENT);
    let mut different = BTreeSet::new();
    for case in cases {
        let url = case.url.replace("PORT", &listeners.port().to_string());
        let what = format!("{url} {:?}", case.answers);
        different.insert(what.clone());
        // The client alone holds too, however the URL was read.
        let read = url::Url::parse(&url).ok().and_then(|read| as_read(&read));
        for sent in [approve(&url, private).ok(), read].into_iter().flatten() {
            let answers = case.answers.clone();
            zone.answers.lock().expect(NO_PANIC).insert(sent.host.clone(), answers);
            zone.lookups.store(0, Ordering::SeqCst);
            refuse(&client, sent).await.expect("a forbidden target is refused");
            assert!(zone.lookups.load(Ordering::SeqCst) <= 1, "{what}");
        }
        listeners.heard_nothing(&what);
    }
    different.len()
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// Every spelling of every forbidden address as the host of a URL.
fn written(addresses: &[Ipv4Addr], six: &[&str]) -> Vec<Case> {
    let four = addresses.iter().flat_map(|address| literals(*address));
    let hosts = four.chain(six.iter().map(|address| format!("[{address}]")));
    hosts
        .flat_map(|host| {
            let https = format!("https://{host}:PORT/");
            [https, format!("http://{host}:PORT/?https://api.vendor.example/")]
        })
        .map(|url| Case { url, answers: Vec::new() })
        .collect()
}

/// Every forbidden address as what a name says: alone, among public ones, at first, and behind an alias.
fn resolved(forbidden: &[IpAddr]) -> Vec<Case> {
    let public = address(PUBLIC);
    let of = |bad: &IpAddr| {
        let bad = *bad;
        [
            vec![vec![bad]],
            vec![vec![bad, public]],
            vec![vec![public, bad]],
            vec![vec![public, public, bad, public]],
            vec![vec![bad], vec![public]],
        ]
    };
    let answers = forbidden.iter().flat_map(of);
    answers
        .enumerate()
        .map(|(number, answers)| Case {
            url: format!("https://n{number}.vendor.example:PORT/"),
            answers,
        })
        .collect()
}

/// All forbidden addresses, those inside IPv6 among them.
fn every(addresses: &[Ipv4Addr], six: &[&str]) -> Vec<IpAddr> {
    let four = addresses.iter().copied().map(IpAddr::V4);
    let carried = addresses.iter().flat_map(|four| carrying(*four));
    four.chain(carried.chain(six.iter().map(|text| (*text).to_owned())).map(|text| address(&text)))
        .collect()
}

// covers: AL-207, AL-210, AL-211, AL-212, AL-213, AL-214, AL-215
#[tokio::test]
async fn forbidden_target_is_not_connected_to_however_it_is_spelled() {
    let four = forbidden_v4();
    let carried: Vec<_> = four.iter().flat_map(|address| carrying(*address)).collect();
    let six: Vec<_> =
        FORBIDDEN_V6.iter().copied().chain(carried.iter().map(String::as_str)).collect();
    let mut different = check(false, written(&four, &six)).await;
    different += check(false, resolved(&every(&four, FORBIDDEN_V6))).await;
    let local = vec![vec![address("127.0.0.1")]];
    let named =
        names().map(|host| Case { url: format!("https://{host}:PORT/"), answers: local.clone() });
    different += check(false, named).await;
    println!("{different} spellings of forbidden targets, no connection");
    assert!(different >= 500, "{different}");
}

// covers: AL-212, AL-213, AL-214, AL-215
#[tokio::test]
async fn what_is_nobodys_private_network_stays_forbidden_where_those_are_allowed() {
    let four: Vec<Ipv4Addr> = SPECIAL_V4.iter().map(|text| text.parse().unwrap()).collect();
    let carried: Vec<_> = four.iter().flat_map(|four| carrying(*four)).collect();
    let six: Vec<_> = carried.iter().map(String::as_str).collect();
    let different = check(true, written(&four, &six)).await
        + check(true, resolved(&every(&four, &["fe80::1", "ff02::1", "fd00:ec2::254", "::"])))
            .await;
    println!("{different} spellings of special addresses, no connection");
    assert!(different >= 500, "{different}");
}

// covers: AL-210, AL-211
#[tokio::test]
async fn alias_of_a_forbidden_name_is_forbidden() {
    let listeners = Listeners::start();
    let zone = Arc::new(Zone::default());
    let alias = |from: &str, to: &str| {
        zone.aliases.lock().unwrap().insert(from.to_owned(), to.to_owned());
    };
    alias("api.vendor.example", "edge.cdn.example");
    alias("edge.cdn.example", "inside.corp.example");
    let client = client_with(zone.clone(), false, PATIENT);
    for bad in every(&forbidden_v4(), FORBIDDEN_V6) {
        zone.answers.lock().unwrap().insert("inside.corp.example".to_owned(), vec![vec![bad]]);
        let url = format!("https://api.vendor.example:{}/", listeners.port());
        refuse(&client, approve(&url, false).unwrap()).await.unwrap();
        listeners.heard_nothing(&bad.to_string());
    }
}

// covers: AL-217
#[tokio::test]
async fn redirect_is_an_answer_and_is_not_followed() {
    let listeners = Listeners::start();
    let port = listeners.port();
    let four = ["127.0.0.1", "2130706433", "0x7f.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"];
    let places = four.iter().flat_map(|host| {
        let schemes = ["http:", "https:", "", "HTTP:"];
        schemes.map(|scheme| format!("{scheme}//{host}:{port}/"))
    });
    for place in places {
        for status in [300, 301, 302, 303, 305, 307, 308] {
            let vendor = Vendor::answering(format!(
                "HTTP/1.1 {status} Elsewhere\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n"
            ))
            .await;
            let answer = send(&client(), vendor.get()).await.unwrap();
            assert_eq!((answer.status, answer.headers[0].1.as_str()), (status, place.as_str()));
            listeners.heard_nothing(&place);
        }
    }
}

/// That listeners hear nothing means something only where they can.
#[tokio::test]
async fn listener_hears_what_is_allowed() {
    let listeners = Listeners::start();
    let zone = Arc::new(Zone::default());
    let client = client_with(zone, true, std::time::Duration::ZERO);
    let url = approve(&format!("http://127.0.0.1:{}/", listeners.port()), true).unwrap();
    let (headers, body) = (Vec::new(), OutgoingBody::None);
    let outgoing = Outgoing { method: Method::GET, url, headers, body };
    let short = std::time::Duration::from_millis(50);
    let fault = client.send("a", outgoing, short).await.unwrap_err();
    assert_ne!(fault.text, NOT_PERMITTED);
    listeners.0[0].accept().unwrap();
}
