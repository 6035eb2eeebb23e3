//! Which URLs an app may reach.

use annex_egress::hosts::{Hosts, URL_CHARS_MAX, UrlRefusal, approve};
use serde_json::Value;

use crate::set::{cases, text};

/// The set's name of a rule.
fn rule(refusal: &UrlRefusal) -> &'static str {
    match refusal {
        UrlRefusal::TooLong => "length",
        UrlRefusal::NotValid => "url",
        UrlRefusal::Scheme => "scheme",
        UrlRefusal::Credentials => "credentials",
        UrlRefusal::DotSegment => "dot-segment",
        UrlRefusal::BadPort(_) => "bad-port",
        UrlRefusal::Literal(_) | UrlRefusal::Address { .. } => "ip",
        UrlRefusal::Host(_) => "host",
        UrlRefusal::Port { .. } => "port",
    }
}

fn check(case: &Value) {
    let url = text(&case["input"], "url");
    let patterns: Vec<String> =
        serde_json::from_value(case["input"]["approvedHosts"].clone()).expect("they are texts");
    let hosts = Hosts::parse(&patterns).expect("they are hosts");
    let judged = approve(url, &hosts, false).map_err(|refusal| rule(&refusal));
    // The reader of the request counts what is written.
    let judged = if URL_CHARS_MAX < url.chars().count() { Err("length") } else { judged };
    let Some(allowed) = case["expect"]["allowed"].as_bool() else { return };
    match judged {
        Ok(sent) => {
            assert!(allowed, "{case}");
            let parsed = &case["expect"]["parsed"];
            assert_eq!(sent.host, text(parsed, "hostname"), "{case}");
            assert_eq!(sent.path(), text(parsed, "pathname"), "{case}");
        }
        Err(rule) => {
            assert!(!allowed, "{rule}: {case}");
            let rules = case["expect"]["rules"].as_array().expect("there are rules");
            assert!(rules.iter().any(|known| known == rule), "{rule}: {case}");
        }
    }
}

#[test]
fn every_url_is_judged_by_the_rule_that_is_listed() {
    for case in cases("url-policy") {
        match text(&case, "kind") {
            "host" | "wild" | "port" | "bad-port" | "good-port" | "scheme" | "cred" | "ip"
            | "path" | "length" => check(&case),
            other => panic!("unknown kind {other}"),
        }
    }
}
