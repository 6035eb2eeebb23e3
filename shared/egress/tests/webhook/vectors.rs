//! Published lists of addresses and URLs. They lie beside the repository, and are read where they are.

use annex_egress::address::{self, Class};
use annex_egress::target;
use annex_vectors::{cases, read};
use serde_json::Value;

#[test]
fn every_listed_address_is_judged_as_listed() {
    for case in cases("iana-special-purpose") {
        let text = case["input"]["address"].as_str().unwrap();
        let refused = address::permit(text.parse().unwrap(), false).is_err();
        if let Some(blocked) = case["expect"]["blocked"].as_bool() {
            assert_eq!(refused, blocked, "{case}");
        }
    }
}

#[test]
fn every_block_of_the_registries_is_judged_as_it_says() {
    let Some(table) = read("iana-special-purpose", "table.json.gz") else { return };
    for family in ["ipv4", "ipv6"] {
        for entry in table[family].as_array().unwrap() {
            let prefix = entry["prefix"].as_str().unwrap();
            // A mapped address is judged by what it carries; NAT64 is refused by the contract.
            if matches!(prefix, "::ffff:0:0/96" | "64:ff9b::/96") {
                continue;
            }
            let first = prefix.split('/').next().unwrap().parse().unwrap();
            let public = address::classify(first).0 == Class::Public;
            assert_eq!(public, entry["globallyReachable"] == Value::Bool(true), "{entry}");
        }
    }
}

#[test]
fn every_port_that_browsers_refuse_is_refused() {
    let Some(table) = read("url-policy", "bad-ports.json.gz") else { return };
    let bad: Vec<u64> =
        table["badPorts"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    for port in 0..=65_535 {
        let refused = target::parse(&format!("https://h.example:{port}/"), false).is_err();
        assert_eq!(refused, bad.contains(&port), "{port}");
    }
}

/// Rules of the list that are ours too; approved hosts and dot segments are not a webhook's.
const OURS: [&str; 6] = ["url", "scheme", "credentials", "bad-port", "length", "ip"];

#[test]
fn every_listed_url_is_judged_as_listed_where_the_rule_is_ours() {
    for case in cases("url-policy") {
        let url = case["input"]["url"].as_str().unwrap();
        let permitted = target::parse(url, false).is_ok();
        let rules = case["expect"]["rules"].as_array().unwrap();
        let ours = rules.iter().any(|rule| OURS.iter().any(|our| rule == our));
        match case["expect"]["allowed"].as_bool() {
            Some(true) => assert!(permitted, "{case}"),
            // Public addresses are refused there only because no approved host is an address.
            Some(false) if ours && !url.contains("[2606:") => assert!(!permitted, "{case}"),
            _ => {}
        }
    }
}
