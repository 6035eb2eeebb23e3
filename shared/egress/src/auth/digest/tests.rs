//! The examples of the RFCs, which challenge is chosen, and when a third request follows.

use super::*;
use crate::draft::{Draft, Nonces, Scheme, SentUrl};

struct Fixed(&'static str);

impl Nonces for Fixed {
    fn hawk(&self) -> String {
        unreachable!("Digest has no Hawk nonce")
    }

    fn cnonce(&self) -> String {
        self.0.to_owned()
    }

    fn uuid(&self) -> String {
        unreachable!("Digest has no UUID")
    }

    fn boundary(&self) -> String {
        unreachable!("Digest has no boundary")
    }
}

fn chosen(lines: &[&str]) -> Challenge {
    match choose(lines) {
        Choice::Answer(challenge) => *challenge,
        other => panic!("{other:?}"),
    }
}

/// The header that answers the first of these challenges for a GET, and the derived values.
fn answered(digest: &Digest, lines: &[&str], target: &str, cnonce: &'static str) -> Vec<String> {
    let url = SentUrl {
        scheme: Scheme::Https,
        host: "www.example.org".to_owned(),
        port: None,
        target: target.to_owned(),
    };
    let draft = Draft { method: "GET", url: &url, headers: &[], body: None };
    let added = digest.respond(&chosen(lines), &draft, &Fixed(cnonce));
    assert!(added.query.is_empty());
    let headers = added.headers.into_iter().map(|(name, value)| {
        assert_eq!(name, "authorization");
        value
    });
    headers.chain(added.derived).collect()
}

// covers: AL-284, AL-286, AL-292
#[test]
fn the_answers_are_those_of_rfc_7616() {
    // AL-283, AL-284, AL-286, AL-292: RFC 7616, 3.9.1.
    let digest = Digest::new("Mufasa", "Circle of Life");
    let rest = r#"realm="http-auth@example.org", qop="auth, auth-int", nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS""#;
    let sha = format!("Digest {rest}, algorithm=SHA-256");
    let md5 = format!("Digest {rest}, algorithm=MD5");
    let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
    let expected = |algorithm: &str, response: &str| {
        let header = format!(
            "Digest username=\"Mufasa\", realm=\"http-auth@example.org\", \
             uri=\"/dir/index.html\", algorithm={algorithm}, \
             nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", nc=00000001, \
             cnonce=\"{cnonce}\", qop=auth, response=\"{response}\", \
             opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
        );
        // AL-115.
        vec![header, response.to_owned()]
    };
    let sha_response = "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1";
    assert_eq!(
        answered(&digest, &[&sha, &md5], "/dir/index.html", cnonce),
        expected("SHA-256", sha_response)
    );
    assert_eq!(
        answered(&digest, &[&md5, &sha], "/dir/index.html", cnonce),
        expected("MD5", "8ca523f5e9506fed4657c9700eebdbec")
    );
}

// covers: AL-284, AL-293, AL-294
#[test]
fn a_username_is_hashed_or_extended_as_in_rfc_7616() {
    // RFC 7616, 3.9.2, with the corrected response of erratum 4897.
    let digest = Digest::new("Jäsøn Doe", "Secret, or not?");
    let challenge = r#"Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS", charset=UTF-8"#;
    let cnonce = "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v";
    let response = "3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5";
    let header = |username: &str, end: &str| {
        format!(
            "Digest {username}, realm=\"api@example.org\", uri=\"/doe.json\", \
             algorithm=SHA-512-256, nonce=\"5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK\", \
             nc=00000001, cnonce=\"{cnonce}\", qop=auth, response=\"{response}\", \
             opaque=\"HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS\"{end}"
        )
    };
    // AL-294.
    assert_eq!(
        answered(&digest, &[challenge], "/doe.json", cnonce),
        [header("username*=UTF-8''J%C3%A4s%C3%B8n%20Doe", ""), response.to_owned()]
    );
    // AL-293.
    let hashed = "793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b";
    assert_eq!(
        answered(&digest, &[&format!("{challenge}, userhash=true")], "/doe.json", cnonce),
        [
            header(&format!("username=\"{hashed}\""), ", userhash=true"),
            response.to_owned(),
            hashed.to_owned()
        ]
    );
}

// covers: AL-288
#[test]
fn a_server_of_rfc_2069_gets_neither_a_count_nor_a_cnonce() {
    // AL-288: RFC 2069, 2.4, with the corrected response of erratum 749.
    let digest = Digest::new("Mufasa", "CircleOfLife");
    let challenge = r#"Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc069c403ebaf9f0171e9517f40e41""#;
    let header = r#"Digest username="Mufasa", realm="testrealm@host.com", uri="/dir/index.html", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", response="1949323746fe6a43ef61f9606e7febea", opaque="5ccc069c403ebaf9f0171e9517f40e41""#;
    let response = "1949323746fe6a43ef61f9606e7febea";
    assert_eq!(answered(&digest, &[challenge], "/dir/index.html", "c"), [header, response]);
    let empty = challenge.to_owned() + r#", qop="""#;
    assert_eq!(answered(&digest, &[&empty], "/dir/index.html", "c"), [header, response]);
    // AL-285: the key of a session is made of the cnonce, so it is sent there.
    let session = challenge.to_owned() + ", algorithm=MD5-sess";
    let header = answered(&digest, &[&session], "/dir/index.html", "c").remove(0);
    assert!(header.contains(r#", cnonce="c", response=""#), "{header}");
    assert!(!header.contains("nc="), "{header}");
}

// Computed by another implementation, over an empty body.
// covers: AL-285, AL-286, AL-287
#[test]
fn session_forms_and_the_hash_of_the_body_are_computed() {
    let digest = Digest::new("Mufasa", "Circle of Life");
    for (algorithm, qop, response) in [
        ("MD5-sess", "auth", "19c2fe1e7255f2d79cdfc73e69c5810a"),
        ("MD5-sess", "auth-int", "1588b54e2a16864ac94a178d750e8f2f"),
        (
            "SHA-256-sess",
            "auth",
            "19597e1e576e058f89c351aaa0ce1cfca1f60f95b6b413ab6720a0fa628c438f",
        ),
        (
            "SHA-256-sess",
            "auth-int",
            "93756e9b8f111ac2d52d5826eb7e2774580a221ef529b1dceb9d83b1a6adf2eb",
        ),
        (
            "SHA-512-256-sess",
            "auth",
            "877d5f87db395b471ee11c4d8f93e094f3258a525b3b0cae170b28c056512079",
        ),
        (
            "SHA-512-256-sess",
            "auth-int",
            "9f2af83310494a6ec7ffb3126df52f8a5c83ac7d07763dc7d7d80786be784f04",
        ),
    ] {
        let challenge =
            format!("Digest realm=\"r\", nonce=\"n\", qop=\"{qop}\", algorithm={algorithm}");
        let header = format!(
            "Digest username=\"Mufasa\", realm=\"r\", uri=\"/x\", algorithm={algorithm}, nonce=\"n\", \
             nc=00000001, cnonce=\"c\", qop={qop}, response=\"{response}\""
        );
        assert_eq!(answered(&digest, &[&challenge], "/x", "c"), [&header, response]);
    }
}

#[test]
fn quotes_and_backslashes_are_hashed_plain_and_sent_escaped() {
    let digest = Digest::new("us\\er\"", "p");
    let challenge = r#"Digest realm="a \"b\" c", nonce="n\\", opaque="\o", qop="auth""#;
    let header = answered(&digest, &[challenge], "/x?a=\\", "c").remove(0);
    let start = r#"Digest username="us\\er\"", realm="a \"b\" c", uri="/x?a=\\", nonce="n\\", nc=00000001, cnonce="c", qop=auth, response=""#;
    assert!(header.starts_with(start), "{header}");
    assert!(header.ends_with(r#"", opaque="o""#), "{header}");
    // A line break of a username never gets into a header.
    let digest = Digest::new("a\r\nb: c", "p");
    let header = answered(&digest, &[challenge], "/", "c").remove(0);
    assert!(header.starts_with("Digest username*=UTF-8''a%0D%0Ab%3A%20c, "), "{header}");
}

#[track_caller]
fn check(lines: &[&str], expected: &str) {
    let text = match choose(lines) {
        Choice::Answer(challenge) => challenge.nonce,
        Choice::NotDigest => "not digest".to_owned(),
        Choice::Error(fault) => {
            let start = "digest auth: the vendor's challenge cannot be answered: ";
            fault.0.strip_prefix(start).unwrap().to_owned()
        }
    };
    assert_eq!(text, expected, "{lines:?}");
}

// covers: AL-282, AL-289
#[test]
fn the_first_challenge_that_can_be_answered_is_chosen() {
    // AL-282.
    check(&[], "not digest");
    check(&[r#"Basic realm="r""#, "Negotiate"], "not digest");
    check(&["Basic realm=Digest"], "not digest");
    check(&[r#"Basic realm="r", dIgEsT realm="r", nonce="n""#], "n");
    // AL-289.
    let unknown = r#"Digest realm="r", nonce="0", algorithm=SHA3-256"#;
    let md5 = r#"Digest realm="r", nonce="1", algorithm=MD5"#;
    let sha = r#"Digest realm="r", nonce="2", algorithm=SHA-256"#;
    check(&[unknown, md5, sha], "1");
    check(&[&format!("{unknown}, {sha}, {md5}")], "2");
    check(&[&format!("Digest realm=r nonce=0, {md5}")], "1");
}

// covers: AL-309
#[test]
fn a_challenge_that_cannot_be_answered_is_an_error_with_its_reason() {
    let algorithm = "its algorithm is not MD5, SHA-256, SHA-512-256 or a -sess form of one of them";
    check(&["Digest realm=r, nonce=n, algorithm=FOO"], algorithm);
    check(&["Digest realm=r, nonce=n, algorithm=MD5-sess-sess"], algorithm);
    check(&[r#"Digest realm=r, nonce=n, algorithm="""#], algorithm);
    check(&["Digest realm=r, nonce=n, qop=auth-conf"], "its qop is neither auth nor auth-int");
    check(&["Digest"], "it has no realm");
    check(&["Digest nonce=n"], "it has no realm");
    check(&["Digest realm=r"], "it has no nonce");
    check(&["Digest abc=="], "it has no realm");
    check(&["Digest realm=r, nonce=n, =x"], "it is malformed");
    check(&["Digest realm=r, nonce=n, nonce=m"], "it has a parameter more than once");
    for name in ["realm", "nonce", "opaque"] {
        for bad in ["\\\r", "\n", "\u{0}", "\u{7f}", "\u{85}"] {
            let others: Vec<String> = ["realm", "nonce", "opaque"]
                .iter()
                .map(|known| format!(r#"{known}="{}""#, if *known == name { bad } else { "v" }))
                .collect();
            check(&[&format!("Digest {}", others.join(", "))], "it holds a control character");
        }
    }
    // The first one's reason is told.
    check(&["Digest nonce=n", "Digest realm=r"], "it has no realm");
}

// covers: AL-290, AL-291, AL-293
#[test]
fn what_a_challenge_offers_is_read_in_any_case() {
    let read = |rest: &str| chosen(&[&format!("Digest realm=r, nonce=n{rest}")]);
    use challenge::{Hash, Qop};
    // AL-284, AL-285.
    let algorithms = [
        ("", Hash::Md5, false),
        (", algorithm=md5", Hash::Md5, false),
        (r#", algorithm="MD5-Sess""#, Hash::Md5, true),
        (", algorithm=SHA-256", Hash::Sha256, false),
        (", algorithm=SHA-256-sess", Hash::Sha256, true),
        (", algorithm=sha-512-256", Hash::Sha512_256, false),
        (", algorithm=SHA-512-256-sess", Hash::Sha512_256, true),
    ];
    for (rest, hash, session) in algorithms {
        let challenge = read(rest);
        assert_eq!((challenge.hash, challenge.session), (hash, session), "{rest}");
    }
    // AL-286, AL-287, AL-288, AL-290, AL-291.
    let qops = [
        ("", None),
        (r#", qop=" , ""#, None),
        (", qop=AUTH", Some(Qop::Auth)),
        (r#", qop="auth-int,auth""#, Some(Qop::Auth)),
        (r#", qop="x, auth-int""#, Some(Qop::AuthInt)),
    ];
    for (rest, qop) in qops {
        assert_eq!(read(rest).qop, qop, "{rest}");
    }
    // AL-293.
    for (rest, userhash) in [("true", true), (r#""TRUE""#, true), ("false", false), ("1", false)] {
        assert_eq!(read(&format!(", userhash={rest}")).userhash, userhash, "{rest}");
    }
}

// covers: AL-303, AL-307, AL-308
#[test]
fn a_third_request_follows_a_stale_nonce_that_was_replaced() {
    let first = chosen(&["Digest realm=r, nonce=n1"]);
    let third = |lines: &[&str]| wants_third(&first, lines).map(|challenge| challenge.nonce);
    // AL-303.
    assert_eq!(third(&["Digest realm=r, nonce=n2, stale=TRUE"]).as_deref(), Some("n2"));
    let second = "Digest realm=r, nonce=n2, Digest realm=r, nonce=n3, stale=\"true\"";
    assert_eq!(third(&["Basic realm=b", second]).as_deref(), Some("n3"));
    // AL-307, AL-308.
    for stands in [
        "Digest realm=r, nonce=n1, stale=true",
        "Digest realm=r, nonce=n2",
        "Digest realm=r, nonce=n2, stale=false",
        "Digest realm=r, nonce=n2, stale=yes",
        "Digest realm=r, nonce=n2, stale=true, algorithm=FOO",
        "Basic realm=r, nonce=n2, stale=true",
    ] {
        assert_eq!(third(&[stands]), None, "{stands}");
    }
    assert_eq!(third(&[]), None);
}

proptest::proptest! {
    /// Whatever a vendor and a user write, the header that is sent holds it and nothing else.
    #[test]
    fn what_is_sent_reads_as_what_was_asked(
        username in ".{0,20}",
        realm in "\\PC{0,20}",
        nonce in "\\PC{0,20}",
        opaque in "\\PC{0,20}",
    ) {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let challenge = format!(
            "Digest realm=\"{}\", nonce=\"{}\", opaque=\"{}\", qop=auth",
            quoted(&realm), quoted(&nonce), quoted(&opaque)
        );
        let sent = answered(&Digest::new(username, "p"), &[&challenge], "/", "c").remove(0);
        let offers = header::offers(&[&sent]);
        assert_eq!(offers.len(), 1);
        let value = |name| offers[0].parameter(name).unwrap();
        assert!(!offers[0].malformed);
        assert!(!sent.contains(char::is_control));
        assert_eq!(value("realm"), Some(realm.as_str()));
        assert_eq!(value("nonce"), Some(nonce.as_str()));
        assert_eq!(value("opaque"), Some(opaque.as_str()));
        assert!(value("username").is_some() != value("username*").is_some());
    }
}
