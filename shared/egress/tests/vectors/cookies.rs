//! Cookies: dates, what RFC 6265 keeps and sends, and what the answer to a Digest challenge carries.
//!
//! The host looks at neither the domain nor the security of a cookie, since an exchange stays with one URL; the cases of
//! the RFC that do are helped out here.

use annex_egress::auth::digest::cookies::{self, Jar, SetCookie};
use annex_egress::auth::digest::date;
use jiff::Timestamp;
use serde_json::{Value, json};
use url::Url;

use crate::set::{self, optional, same, text_or_empty, texts};

#[test]
fn every_cookie_is_kept_and_sent_as_listed() {
    set::run("cookies", |case| match case["kind"].as_str() {
        Some("expires-date") => expires_date(case),
        Some("parser") => parser(case),
        Some("digest-carry") => digest_carry(case),
        kind => Err(format!("unknown kind {kind:?}")),
    });
}

fn expires_date(case: &Value) -> Result<(), String> {
    let found = date::parse(text_or_empty(&case["input"], "text"));
    same("time", found, &case["expect"]["unixSeconds"])
}

fn now(input: &Value) -> Timestamp {
    Timestamp::from_second(input["now"].as_i64().expect("a time")).expect("a time")
}

/// Whether a host lies in a domain (RFC 6265, 5.1.3).
fn lies_in(host: &str, domain: &str) -> bool {
    host == domain || host.strip_suffix(domain).is_some_and(|start| start.ends_with('.'))
}

fn parser(case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let asked = Url::parse(text_or_empty(input, "requestUrl")).expect("a URL");
    let sent_to = asked.join(text_or_empty(input, "sentTo")).expect("a URL");
    let (from, to) = (asked.host_str().expect("a host"), sent_to.host_str().expect("a host"));

    let mut jar = Jar::default();
    let keeps = |cookie: &SetCookie| match &cookie.domain {
        // A single label is a public suffix.
        Some(domain) => lies_in(from, domain) && (domain.contains('.') || domain == from),
        None => true,
    };
    for cookie in texts(&input["setCookie"]).into_iter().filter_map(cookies::parse) {
        if keeps(&cookie) {
            jar.keep(cookie, asked.path(), now(input));
        }
    }
    let sends = |cookie: &&SetCookie| {
        let at_home = match &cookie.domain {
            Some(domain) => lies_in(to, domain),
            None => to == from,
        };
        at_home && (!cookie.secure || sent_to.scheme() == "https")
    };
    let sent: Vec<(&str, &str)> = jar
        .matching(sent_to.path(), now(input))
        .into_iter()
        .map(|kept| &kept.cookie)
        .filter(sends)
        .map(|cookie| (cookie.name.as_str(), cookie.value.as_str()))
        .collect();
    same("cookies", json!(sent), &case["expect"]["cookies"])
}

fn digest_carry(case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let path = text_or_empty(input, "requestPath");
    let own = optional(input, "ownCookie");
    let mut jar = Jar::default();
    jar.receive(&texts(&input["setCookie"]), path, now(input));
    jar.receive(&texts(&input["secondSetCookie"]), path, now(input));
    let header = jar.header(own.as_deref(), path, now(input));

    // The order of what follows the request's own cookie is free.
    let sorted = |header: Option<&str>| {
        header.map(|header| {
            let start = own.as_deref().unwrap_or_default();
            let rest = header.strip_prefix(start).unwrap_or(header);
            let mut pairs: Vec<&str> = rest.split("; ").filter(|pair| !pair.is_empty()).collect();
            pairs.sort_unstable();
            (header.starts_with(start), pairs.join("; "))
        })
    };
    if sorted(header.as_deref()) == sorted(case["expect"]["cookie"].as_str()) {
        return Ok(());
    }
    same("cookie", header, &case["expect"]["cookie"])
}
