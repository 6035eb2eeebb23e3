//! What a WHATWG parser makes of http and https URLs.

use annex_egress::hosts::{Hosts, UrlRefusal, approve};
use serde_json::Value;

use crate::set::{cases, text};

/// A URL without a base is sent as the parser writes it, or refused by a rule of ours.
fn check_parse(case: &Value) {
    let expected = &case["expect"]["url"];
    let input = text(&case["input"], "url");
    if let Some(base) = case["input"]["base"].as_str() {
        // No request has a base: only the parser is asked, which cannot read what begins with three slashes.
        if !input.starts_with("///") {
            let parsed =
                url::Url::parse(base).and_then(|base| base.join(input)).expect("it is a URL");
            assert_eq!(parsed.as_str(), text(expected, "href"), "{case}");
        }
        return;
    }
    let host = text(expected, "hostname");
    let hosts = Hosts::parse(&[host.to_owned()]).unwrap_or_default();
    match approve(input, &hosts, true) {
        Ok(sent) => {
            let href = text(expected, "href");
            let href = href.split_once('#').map_or(href, |(sent, _fragment)| sent);
            assert_eq!(sent.to_string(), href, "{case}");
        }
        Err(UrlRefusal::Credentials) => {
            assert!(
                text(expected, "username").len() + text(expected, "password").len() > 0,
                "{case}"
            );
        }
        Err(UrlRefusal::NotValid) => panic!("{case}"),
        Err(_ours) => {}
    }
}

fn check_failure(case: &Value) {
    let input = text(&case["input"], "url");
    let refused = approve(input, &Hosts::default(), true);
    if case["input"]["base"].is_null() {
        assert_eq!(refused, Err(UrlRefusal::NotValid), "{case}");
    } else {
        assert!(refused.is_err(), "{case}");
    }
}

#[test]
fn every_url_is_read_as_by_a_whatwg_parser() {
    for case in cases("url") {
        match text(&case, "kind") {
            "parse" => check_parse(&case),
            "failure" => check_failure(&case),
            other => panic!("unknown kind {other}"),
        }
    }
}
