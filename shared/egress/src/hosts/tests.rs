use super::*;

fn hosts(patterns: &[&str]) -> Hosts {
    let patterns: Vec<String> = patterns.iter().map(|text| (*text).to_owned()).collect();
    Hosts::parse(&patterns).unwrap()
}

const APPROVED: &[&str] = &[
    "api.vendor.example",
    "*.wild.example",
    "alt.vendor.example:8443",
    "irc.vendor.example:6667",
    "xn--mnchen-3ya.example",
    "10.0.0.1",
    "[fd00::1]:8443",
    "169.254.169.254",
    "93.184.216.34",
];

#[track_caller]
fn check(url: &str, expected: Result<&str, &str>) {
    let sent = approve(url, &hosts(APPROVED), false);
    let sent = sent.map(|url| url.to_string()).map_err(String::from);
    assert_eq!(sent, expected.map(str::to_owned).map_err(str::to_owned), "{url:?}");
}

#[track_caller]
fn check_private(url: &str, expected: Result<&str, &str>) {
    let sent = approve(url, &hosts(APPROVED), true);
    let sent = sent.map(|url| url.to_string()).map_err(String::from);
    assert_eq!(sent, expected.map(str::to_owned).map_err(str::to_owned), "{url:?}");
}

const NOT_VALID: Result<&str, &str> = Err("URL is not valid");
const NOT_HTTPS: Result<&str, &str> = Err("URL must be https");
const CREDENTIALS: Result<&str, &str> = Err("URL must not carry a user name or a password");
const DOTS: Result<&str, &str> = Err("URL must not have a . or .. segment in its path");

#[test]
fn what_is_sent_is_what_a_whatwg_parser_writes() {
    check("https://api.vendor.example", Ok("https://api.vendor.example/"));
    check("https://api.vendor.example/a#b", Ok("https://api.vendor.example/a"));
    check("https://api.vendor.example?#b?c", Ok("https://api.vendor.example/?"));
    check(
        "https://api.vendor.example/é b?é 'q'",
        Ok("https://api.vendor.example/%C3%A9%20b?%C3%A9%20%27q%27"),
    );
    check(
        "https://api.vendor.example/a[0]|b`?{}|^`",
        Ok("https://api.vendor.example/a[0]|b%60?{}|^`"),
    );
    check("https://api.vendor.example/%2f%zz?x=%2f", Ok("https://api.vendor.example/%2f%zz?x=%2f"));
    check("https://api.vendor.example//a///b", Ok("https://api.vendor.example//a///b"));
    check(" https:\\\\api.vendor.example\\a\tb\n", Ok("https://api.vendor.example/ab"));
    let sent = approve("https://alt.vendor.example:8443/p?q", &hosts(APPROVED), false).unwrap();
    assert_eq!(sent.host_header(), "alt.vendor.example:8443");
    assert_eq!((sent.path(), sent.query()), ("/p", Some("q")));
}

// covers: AL-143, AL-145
#[test]
fn url_is_https() {
    check("HTTPS://api.vendor.example/", Ok("https://api.vendor.example/"));
    check("http://api.vendor.example/", NOT_HTTPS);
    check("wss://api.vendor.example/", NOT_HTTPS);
    check("javascript:alert(1)", NOT_HTTPS);
    check("blob:https://api.vendor.example/x", NOT_HTTPS);
    check_private("http://api.vendor.example/", Ok("http://api.vendor.example/"));
    check_private("ftp://api.vendor.example/", NOT_HTTPS);
}

// covers: AL-068
#[test]
fn text_that_is_no_url_is_not_valid() {
    for text in ["", "/v1/x", "api.vendor.example", "https://", "https://a b/", "https://h:65536/"]
    {
        check(text, NOT_VALID);
    }
    // A base URL that was kept in a secret, percent-encoded as secrets are.
    check("https%3A%2F%2Fapi.vendor.example/v1", NOT_VALID);
    check("https://https%3A%2F%2Fapi.vendor.example/v1", NOT_VALID);
}

// covers: AL-144
#[test]
fn url_carries_no_credentials() {
    check("https://u:p@api.vendor.example/", CREDENTIALS);
    check("https://u@api.vendor.example/", CREDENTIALS);
    check("https://:p@api.vendor.example/", CREDENTIALS);
    check("https://api.vendor.example@evil.example/", CREDENTIALS);
    check("https://@api.vendor.example/", Ok("https://api.vendor.example/"));
}

// covers: AL-146, AL-147, AL-148, AL-149, AL-150, AL-151
#[test]
fn dot_segments_are_refused_with_the_contracts_text() {
    check("https://api.vendor.example/v1/../admin", DOTS);
    check("https://api.vendor.example/v1/./x", DOTS);
    // A secret stored as two dots, filled in.
    check("https://api.vendor.example/v1/../x", DOTS);
    check("https://api.vendor.example/v1/%2e%2e/admin", DOTS);
    check("https://api.vendor.example/v1/..%2Fadmin", DOTS);
    check("https://api.vendor.example/v1\\..\\admin", DOTS);
    check("https://api.vendor.example/report..pdf", Ok("https://api.vendor.example/report..pdf"));
    check("https://api.vendor.example/?p=../x", Ok("https://api.vendor.example/?p=../x"));
}

#[test]
fn lengths_of_a_filled_url_are_bounded() {
    let url = |bytes: usize| format!("https://api.vendor.example/{}", "a".repeat(bytes - 27));
    assert!(approve(&url(FILLED_URL_BYTES_MAX), &hosts(APPROVED), false).is_ok());
    let long = approve(&url(FILLED_URL_BYTES_MAX + 1), &hosts(APPROVED), false);
    assert_eq!(long, Err(UrlRefusal::TooLong));
    // Three bytes each as sent, two as written.
    let wide = format!("https://api.vendor.example/{}", "é".repeat(10_000));
    assert_eq!(approve(&wide, &hosts(APPROVED), false), Err(UrlRefusal::TooLong));
}

// covers: AL-197, AL-199
#[test]
fn host_is_one_of_the_approved() {
    let refused = Err("host llm.example is not in the hosts the install approved");
    check("https://llm.example/", refused);
    check("https://API.Vendor.Example/", Ok("https://api.vendor.example/"));
    check("https://ａｐｉ.vendor.example/", Ok("https://api.vendor.example/"));
    check("https://api%2Evendor%2Eexample/", Ok("https://api.vendor.example/"));
    check("https://münchen.example/", Ok("https://xn--mnchen-3ya.example/"));
    check(
        "https://x.api.vendor.example/",
        Err("host x.api.vendor.example is not in the hosts the install approved"),
    );
    check(
        "https://api.vendor.example./",
        Err("host api.vendor.example. is not in the hosts the install approved"),
    );
    check(
        "https://evil.test\\@api.vendor.example/",
        Err("host evil.test is not in the hosts the install approved"),
    );
    assert_eq!(
        approve("https://h.example/", &Hosts::default(), true),
        Err(UrlRefusal::Host("h.example".into()))
    );
}

// covers: AL-200, AL-201
#[test]
fn star_stands_for_one_label_or_more() {
    check("https://a.wild.example/", Ok("https://a.wild.example/"));
    check("https://a.b.wild.example/", Ok("https://a.b.wild.example/"));
    check("https://a_b.wild.example/", Ok("https://a_b.wild.example/"));
    for host in
        ["wild.example", "evilwild.example", ".wild.example", "a..wild.example", "*.wild.example"]
    {
        let text = format!("host {host} is not in the hosts the install approved");
        check(&format!("https://{host}/"), Err(&text));
    }
}

// covers: AL-202, AL-203, AL-204
#[test]
fn port_is_the_schemes_or_the_patterns() {
    check("https://api.vendor.example:443/", Ok("https://api.vendor.example/"));
    check(
        "https://api.vendor.example:8443/",
        Err("port 8443 of api.vendor.example is not in the hosts the install approved"),
    );
    check("https://alt.vendor.example:8443/", Ok("https://alt.vendor.example:8443/"));
    check("https://alt.vendor.example:08443/", Ok("https://alt.vendor.example:8443/"));
    check(
        "https://alt.vendor.example/",
        Err("port 443 of alt.vendor.example is not in the hosts the install approved"),
    );
    check(
        "https://a.wild.example:8443/",
        Err("port 8443 of a.wild.example is not in the hosts the install approved"),
    );
    let both = hosts(&["h.example", "*.h.example:444", "a.h.example:445"]);
    assert!(approve("https://a.h.example:444/", &both, false).is_ok());
    assert!(approve("https://a.h.example:445/", &both, false).is_ok());
    assert!(approve("https://b.h.example:445/", &both, false).is_err());
    let named = hosts(&["h.example:443"]);
    assert!(approve("https://h.example/", &named, false).is_ok());
}

// covers: AL-205
#[test]
fn bad_ports_are_refused_whatever_the_hosts_say() {
    check("https://irc.vendor.example:6667/", Err("port 6667 is not permitted"));
    check("https://api.vendor.example:22/", Err("port 22 is not permitted"));
    check("https://api.vendor.example:0/", Err("port 0 is not permitted"));
    check_private("https://api.vendor.example:25/", Err("port 25 is not permitted"));
}

// covers: AL-206
#[test]
fn any_port_of_an_approved_host_passes_with_private_networks() {
    check_private("https://api.vendor.example:8443/", Ok("https://api.vendor.example:8443/"));
    check_private("https://alt.vendor.example/", Ok("https://alt.vendor.example/"));
    check_private("http://a.wild.example:8080/", Ok("http://a.wild.example:8080/"));
    check_private(
        "https://wild.example:8443/",
        Err("host wild.example is not in the hosts the install approved"),
    );
}

// covers: AL-207
#[test]
fn address_as_the_host_needs_private_networks() {
    for (url, host) in [
        ("https://93.184.216.34/", "93.184.216.34"),
        ("https://10.0.0.1/", "10.0.0.1"),
        ("https://2130706433/", "127.0.0.1"),
        ("https://0x7f.1/", "127.0.0.1"),
        ("https://①②⑦.⓪.⓪.①/", "127.0.0.1"),
        ("https://127%2e0%2e0%2e1/", "127.0.0.1"),
        ("https://[::ffff:10.0.0.1]/", "[::ffff:a00:1]"),
        ("https://[fd00::1]:8443/", "[fd00::1]"),
    ] {
        let text = format!("host {host} is an IP address, which is not permitted");
        check(url, Err(&text));
    }
    check_private("https://93.184.216.34/", Ok("https://93.184.216.34/"));
    check_private("http://10.0.0.1:8080/", Ok("http://10.0.0.1:8080/"));
    check_private("https://[FD00::1]/", Ok("https://[fd00::1]/"));
    check_private(
        "https://10.0.0.2/",
        Err("host 10.0.0.2 is not in the hosts the install approved"),
    );
    check_private(
        "https://169.254.169.254/",
        Err("address 169.254.169.254 is not permitted (link-local)"),
    );
}

#[test]
fn pattern_is_a_name_in_lower_case_with_a_port_or_without() {
    for text in ["h.example", "localhost", "h.example:1", "h.example:65535", "*.a.b", "*.a.b:0"] {
        assert_eq!(Hosts::parse(&[text.to_owned()]).map(|_| ()), Ok(()), "{text}");
    }
    for text in [
        "",
        "*",
        "*.example",
        "*.",
        "*.*.a.b",
        "a.*.b",
        "*a.b.c",
        "H.example",
        "münchen.example",
        "h.example.",
        ".h.example",
        "h..example",
        "h.example:",
        "h.example:0443",
        "h.example:65536",
        "h.example:+1",
        "h.example:1:2",
        ":443",
        "https://h.example",
        "h.example/",
        "u@h.example",
        " h.example",
        "h.example\n",
        "127.1",
        "0x7f.0.0.1",
        "*.0.0.1",
        "*.10.0.0.1",
        "::1",
        "[::0]",
        "[::1]x",
        "[::1",
        "xn--a",
    ] {
        let patterns = ["ok.example".to_owned(), text.to_owned()];
        assert_eq!(Hosts::parse(&patterns), Err(BadPattern { index: 1 }), "{text:?}");
    }
    let long = format!("{}.example", "a".repeat(64));
    assert!(Hosts::parse(&[long]).is_err());
}
