//! The examples of Hawk's own documentation, what is refused, and the check of answers.

use super::*;
use crate::draft::{Scheme, SentUrl};

struct Fixed;

impl Nonces for Fixed {
    fn hawk(&self) -> String {
        "fresh".to_owned()
    }

    fn cnonce(&self) -> String {
        unreachable!("Hawk has no client nonce")
    }

    fn uuid(&self) -> String {
        unreachable!("Hawk has no UUID")
    }

    fn boundary(&self) -> String {
        unreachable!("Hawk has no boundary")
    }
}

/// The credential and the values of the examples in Hawk's documentation.
fn documented() -> HawkAuth {
    HawkAuth {
        auth_id: "dh37fgj492je".to_owned(),
        auth_key: "werxhqb98rpaxn39848xrunpaw3489ruxnpa98w4rxn".to_owned(),
        ext: Some("some-app-ext-data".to_owned()),
        nonce: Some("j4h3g2".to_owned()),
        timestamp: Some(1_353_832_234),
        ..HawkAuth::default()
    }
}

type Built = Result<(Additions, Artifacts), AuthFault>;

fn built(auth: &HawkAuth, body: Option<(&str, &[u8])>) -> Built {
    let url = SentUrl {
        scheme: Scheme::Http,
        host: "example.com".to_owned(),
        port: Some(8000),
        target: "/resource/1?b=1&a=2".to_owned(),
    };
    let headers: Vec<(String, String)> =
        body.iter().map(|(kind, _)| ("content-type".to_owned(), (*kind).to_owned())).collect();
    let method = if body.is_some() { "POST" } else { "GET" };
    let draft = Draft { method, url: &url, headers: &headers, body: body.map(|(_, bytes)| bytes) };
    build(auth, &draft, "2026-01-02T03:04:05Z".parse().unwrap(), &Fixed)
}

fn authorization(built: Built) -> String {
    let (added, _) = built.ok().unwrap();
    assert_eq!(added.headers.len(), 1);
    assert!(added.query.is_empty());
    let (name, value) = added.headers.into_iter().next().unwrap();
    assert_eq!(name, "authorization");
    assert!(value.contains(&format!(r#"mac="{}""#, added.derived[0])));
    value
}

// covers: AL-326, AL-328, AL-330, AL-331, AL-332, AL-333
#[test]
fn headers_are_those_of_hawks_documentation() {
    // AL-326, AL-328, AL-333.
    assert_eq!(
        authorization(built(&documented(), None)),
        r#"Hawk id="dh37fgj492je", ts="1353832234", nonce="j4h3g2", ext="some-app-ext-data", mac="6R4rV5iE+NPoym+WwjeHzjAGXUtLNIxmo1vpMofpLAE=""#
    );
    // AL-330, AL-331.
    let hashed = HawkAuth { include_payload_hash: true, ..documented() };
    let body = b"Thank you for flying Hawk".as_slice();
    for media_type in ["text/plain", "Text/Plain; charset=utf-8"] {
        assert_eq!(
            authorization(built(&hashed, Some((media_type, body)))),
            r#"Hawk id="dh37fgj492je", ts="1353832234", nonce="j4h3g2", hash="Yi9LfIIFRtBEPt74PVmbTF/xVAwPn7ub15ePICfgnuY=", ext="some-app-ext-data", mac="aSe1DERmZuRl3pI36/9BdZmnErTw3sNzOOAUlfeKjVw=""#
        );
    }
    // AL-332: no body is an empty body of no type.
    let empty = mac::payload_hash(HawkAlgorithm::Sha256, None, b"");
    let value = authorization(built(&hashed, None));
    assert!(value.contains(&format!(r#"hash="{empty}""#)), "{value}");
}

// The example of SHA-1 in the tests of Hawk's own library.
// covers: AL-326, AL-329
#[test]
fn sha_1_and_the_port_of_the_scheme_are_those_of_hawks_own_tests() {
    let auth = HawkAuth {
        auth_id: "123456".to_owned(),
        auth_key: "2983d45yun89q".to_owned(),
        algorithm: HawkAlgorithm::Sha1,
        include_payload_hash: true,
        ext: Some("Bazinga!".to_owned()),
        nonce: Some("Ygvqdz".to_owned()),
        timestamp: Some(1_353_809_207),
        ..HawkAuth::default()
    };
    let sent = |scheme, port| {
        let (host, target) = ("example.net".to_owned(), "/somewhere/over/the/rainbow".to_owned());
        let url = SentUrl { scheme, host, port, target };
        let body = Some(b"something to write about".as_slice());
        let draft = Draft { method: "POST", url: &url, headers: &[], body };
        authorization(build(&auth, &draft, "2026-01-02T03:04:05Z".parse().unwrap(), &Fixed))
    };
    assert_eq!(
        sent(Scheme::Http, None),
        r#"Hawk id="123456", ts="1353809207", nonce="Ygvqdz", hash="bsvY3IfUllw6V5rvk4tStEvpBhE=", ext="Bazinga!", mac="qbf1ZPG/r/e06F4ht+T77LXi5vw=""#
    );
    assert_eq!(sent(Scheme::Http, Some(80)), sent(Scheme::Http, None));
    assert_eq!(sent(Scheme::Https, Some(443)), sent(Scheme::Https, None));
    assert_ne!(sent(Scheme::Https, None), sent(Scheme::Http, None));
    assert_ne!(sent(Scheme::Http, Some(8080)), sent(Scheme::Http, None));
}

// covers: AL-334
#[test]
fn an_application_and_who_delegated_are_sent_and_covered() {
    let app = HawkAuth { app: Some("a".to_owned()), ..documented() };
    let dlg = HawkAuth { dlg: Some("d".to_owned()), ..app.clone() };
    let parts = |auth: &HawkAuth| {
        let value = authorization(built(auth, None));
        value.split_once(r#"mac=""#).map(|(_, rest)| rest.to_owned()).unwrap()
    };
    assert!(parts(&app).ends_with(r#"", app="a""#), "{}", parts(&app));
    assert!(parts(&dlg).ends_with(r#"", app="a", dlg="d""#), "{}", parts(&dlg));
    assert_ne!(parts(&app)[..40], parts(&dlg)[..40]);
    assert_ne!(parts(&app)[..40], parts(&documented())[..40]);
}

// covers: AL-337
#[test]
fn the_clock_and_a_fresh_nonce_are_taken_where_none_is_given() {
    let auth = HawkAuth { nonce: Some(String::new()), timestamp: None, ..documented() };
    let value = authorization(built(&auth, None));
    assert!(
        value.starts_with(r#"Hawk id="dh37fgj492je", ts="1767323045", nonce="fresh", "#),
        "{value}"
    );
}

// covers: AL-335, AL-336
#[test]
fn fields_that_a_server_would_not_read_are_refused() {
    #[track_caller]
    fn check(change: impl Fn(&mut HawkAuth), expected: Option<&str>) {
        let mut auth = HawkAuth { app: Some("a".to_owned()), ..documented() };
        change(&mut auth);
        let text = built(&auth, None).err().map(|fault| fault.to_string());
        assert_eq!(text, expected.map(|text| format!("hawk auth: {text}")));
    }
    // AL-336.
    let printable = "must be printable ASCII without a double quote and a backslash";
    for bad in ["a\"b", "a\\b", "é", "a\nb", "\u{7f}"] {
        let bad = || Some(bad.to_owned());
        check(|auth| auth.auth_id = bad().unwrap(), Some(&format!("authId {printable}")));
        check(|auth| auth.nonce = bad(), Some(&format!("nonce {printable}")));
        check(|auth| auth.ext = bad(), Some(&format!("ext {printable}")));
        check(|auth| auth.app = bad(), Some(&format!("app {printable}")));
        check(|auth| auth.dlg = bad(), Some(&format!("dlg {printable}")));
    }
    check(|auth| auth.ext = Some(" !#~".to_owned()), None);
    // AL-335.
    let alone = |auth: &mut HawkAuth| (auth.app, auth.dlg) = (None, Some("d".to_owned()));
    check(alone, Some("dlg is set without app"));
    check(|auth| auth.dlg = Some(String::new()), None);
    // AL-273.
    check(|auth| auth.auth_id.clear(), Some("authId is empty"));
    check(|auth| auth.auth_key.clear(), Some("authKey is empty"));
    let bounds = "timestamp must be seconds since 1970, from 0 to 2^53 - 1";
    check(|auth| auth.timestamp = Some(-1), Some(bounds));
    check(|auth| auth.timestamp = Some(0), None);
    check(|auth| auth.timestamp = Some(TIMESTAMP_MAX), None);
    check(|auth| auth.timestamp = Some(TIMESTAMP_MAX + 1), Some(bounds));
}

// covers: AL-338, AL-339, AL-340, AL-341, AL-342, AL-343, AL-344
#[test]
fn an_answer_is_checked_as_hawks_documentation_checks_it() {
    let artifacts = Artifacts {
        key: "werxhqb98rpaxn39848xrunpaw3489ruxnpa98w4rxn".to_owned(),
        algorithm: HawkAlgorithm::Sha256,
        timestamp: "1362336900".to_owned(),
        nonce: "eb5S_L".to_owned(),
        method: "POST".to_owned(),
        resource: "/resource/4?filter=a".to_owned(),
        host: "example.com".to_owned(),
        port: 8080,
        app: None,
        dlg: None,
    };
    let header = r#"Hawk mac="XIJRsMl/4oL+nn+vKoeVZPdCHXB4yJkNnBbTbHFZUYE=", hash="f9cDF/TDm7TkYRLnGwRMfeDzT6LixQVLvrIKhh0vgmM=", ext="response-specific""#;
    let check = |artifacts: &Artifacts, header: &str, media_type: &str, body: &str| {
        artifacts
            .check_answer(header, Some(media_type), body.as_bytes())
            .err()
            .map(|fault| fault.to_string())
    };
    // AL-338, AL-339.
    assert_eq!(check(&artifacts, header, "text/plain", "some reply"), None);
    let differs = Some("hawk auth: the vendor's server-authorization does not verify".to_owned());
    let other = Artifacts { nonce: "other".to_owned(), ..artifacts.clone() };
    assert_eq!(check(&other, header, "text/plain", "some reply"), differs);
    let other = Artifacts { app: Some("a".to_owned()), ..artifacts.clone() };
    assert_eq!(check(&other, header, "text/plain", "some reply"), differs);
    // AL-342.
    for changed in [header.replace("XIJ", "XIK"), header.replace("specific", "Specific")] {
        assert_eq!(check(&artifacts, &changed, "text/plain", "some reply"), differs);
    }
    assert_eq!(check(&artifacts, r#"Hawk ext="e""#, "text/plain", "some reply"), differs);
    // AL-340, AL-343.
    let altered = Some(
        "hawk auth: the vendor's answer does not match the hash in its server-authorization"
            .to_owned(),
    );
    assert_eq!(check(&artifacts, header, "text/plain", "some replY"), altered);
    assert_eq!(check(&artifacts, header, "text/html", "some reply"), altered);
    // AL-341.
    let unreadable = Some("hawk auth: the vendor's server-authorization cannot be read".to_owned());
    assert_eq!(check(&artifacts, "garbage", "text/plain", "some reply"), unreadable);
    // AL-344.
    assert_eq!(check(&artifacts, "", "text/plain", "some reply"), None);
}
