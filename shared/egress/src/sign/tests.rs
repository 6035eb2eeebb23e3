use super::*;
use crate::draft::{Scheme, SentUrl};

const TAG: &str = "w3Kp9xV2mQ8rT1zL5nB7cA";

fn url(port: Option<u16>) -> SentUrl {
    SentUrl {
        scheme: Scheme::Https,
        host: "api.vendor.example".into(),
        port,
        target: "/v1/a%20b?x=1&api_key=k".into(),
    }
}

fn sign() -> Sign {
    Sign {
        header: "x-acme-signature".into(),
        algorithm: HmacAlgorithm::Sha256,
        key: Zeroizing::new("key".into()),
        key_encoding: KeyEncoding::Utf8,
        encoding: SignatureEncoding::Hex,
        prefix: None,
        suffix: None,
    }
}

fn value(name: &str) -> Option<&'static str> {
    match name {
        "apiKey" => Some("s3cret"),
        "nested" => Some("{{request:method}}{{secret:apiKey:w3Kp9xV2mQ8rT1zL5nB7cA}}"),
        "empty" => Some(""),
        "with:colon" | "" => Some("c"),
        _ => None,
    }
}

const SECRETS: Secrets<'static> = Secrets { tag: TAG, value: &value };

/// The signature of a POST with this body.
fn signed(sign: &Sign, body: Option<&[u8]>) -> Result<String, SignFault> {
    let headers = [("content-type".to_owned(), "text/plain".to_owned())];
    let url = url(None);
    let draft = Draft { method: "POST", url: &url, headers: &headers, body };
    signature(sign, &draft, SECRETS).map(|(name, value)| {
        assert_eq!(name, "x-acme-signature");
        value
    })
}

fn hmac_of(text: &str) -> String {
    hmac::sign(HmacAlgorithm::Sha256, b"key", text.as_bytes(), SignatureEncoding::Hex)
}

/// What is signed of a prefix, alone.
#[track_caller]
fn check(prefix: &str, text: &str) {
    let sign = Sign { prefix: Some(prefix.into()), ..sign() };
    assert_eq!(signed(&sign, None), Ok(hmac_of(text)), "{prefix}");
}

// covers: AL-388, AL-389
#[test]
fn prefix_body_and_suffix_are_signed_in_this_order() {
    let both = Sign { prefix: Some("a".into()), suffix: Some("c".into()), ..sign() };
    assert_eq!(signed(&both, Some(b"b")), Ok(hmac_of("abc")));
    assert_eq!(signed(&both, None), Ok(hmac_of("ac")));
    assert_eq!(signed(&sign(), Some(b"b")), Ok(hmac_of("b")));
    assert_eq!(signed(&sign(), None), Ok(hmac_of("")));
    let suffix = Sign { suffix: Some("{{request:method}}".into()), ..sign() };
    assert_eq!(signed(&suffix, Some(b"b")), Ok(hmac_of("bPOST")));
}

// covers: AL-388
#[test]
fn bytes_of_a_body_are_signed_as_they_are() {
    let body = [0x00, 0xFF, b'{', b'{'];
    let expected = hmac::sign(HmacAlgorithm::Sha256, b"key", &body, SignatureEncoding::Hex);
    assert_eq!(signed(&sign(), Some(&body)), Ok(expected));
    let placeholder = b"{{request:method}}";
    assert_eq!(signed(&sign(), Some(placeholder)), Ok(hmac_of("{{request:method}}")));
}

// covers: AL-387, AL-390, AL-392
#[test]
fn each_algorithm_encoding_and_key_encoding_signs_as_hmac_does() {
    for algorithm in [HmacAlgorithm::Sha1, HmacAlgorithm::Sha256, HmacAlgorithm::Sha512] {
        for encoding in [SignatureEncoding::Hex, SignatureEncoding::Base64] {
            for (key, key_encoding) in [
                ("Zm9v", KeyEncoding::Utf8),
                ("whsec_-_8", KeyEncoding::Base64),
                ("AbCd", KeyEncoding::Hex),
            ] {
                let sign = Sign {
                    algorithm,
                    encoding,
                    key_encoding,
                    key: Zeroizing::new(key.into()),
                    ..sign()
                };
                let bytes = hmac::key_bytes(key, key_encoding).unwrap();
                let expected = hmac::sign(algorithm, &bytes, b"b", encoding);
                assert_eq!(signed(&sign, Some(b"b")), Ok(expected), "{key}");
            }
        }
    }
}

// covers: AL-393
#[test]
fn a_key_that_does_not_decode_is_refused_without_its_text() {
    for (key, key_encoding, text) in [
        ("***", KeyEncoding::Base64, "sign: the key is not base64"),
        ("zz", KeyEncoding::Hex, "sign: the key is not hex"),
    ] {
        let sign = Sign { key: Zeroizing::new(key.into()), key_encoding, ..sign() };
        assert_eq!(signed(&sign, None).unwrap_err().to_string(), text);
    }
}

// covers: AL-395
#[test]
fn a_placeholder_with_the_calls_tag_is_filled() {
    check(&format!("<{{{{secret:apiKey:{TAG}}}}}>"), "<s3cret>");
    check(&format!("{{{{secret:empty:{TAG}}}}}{{{{secret:apiKey:{TAG}}}}}"), "s3cret");
}

// covers: AL-087, AL-088, AL-395
#[test]
fn a_placeholder_with_another_tag_or_none_is_text() {
    for text in [
        "{{secret:apiKey}}",
        "{{secret:nope}}",
        "{{secret:apiKey:AAAAAAAAAAAAAAAAAAAAAA}}",
        "{{secret:apiKey:w3Kp9xV2mQ8rT1zL5nB7ca}}",
        "{{secret::w3Kp9xV2mQ8rT1zL5nB7cA}}",
        "{{secret:with:colon:w3Kp9xV2mQ8rT1zL5nB7cA}}",
        "{{secret:apiKey:w3Kp9xV2mQ8rT1zL5nB7cA}",
        "{{ secret:apiKey:w3Kp9xV2mQ8rT1zL5nB7cA}}",
        "{{SECRET:apiKey:w3Kp9xV2mQ8rT1zL5nB7cA}}",
    ] {
        check(text, text);
    }
}

// covers: AL-104
#[test]
fn the_bare_tag_is_signed_as_it_is() {
    check(TAG, TAG);
    assert_eq!(check_template(TAG), Ok(()));
}

#[test]
fn a_call_without_a_tag_fills_nothing() {
    let sign = Sign { prefix: Some("{{secret:apiKey:}}".into()), ..sign() };
    let url = url(None);
    let draft = Draft { method: "GET", url: &url, headers: &[], body: None };
    let untagged = Secrets { tag: "", ..SECRETS };
    assert_eq!(signature(&sign, &draft, untagged).unwrap().1, hmac_of("{{secret:apiKey:}}"));
}

// covers: AL-091
#[test]
fn a_secret_that_the_call_does_not_carry_fails_the_request() {
    for (prefix, suffix) in [(true, false), (false, true)] {
        let text = Some(format!("{{{{secret:nope:{TAG}}}}}"));
        let sign = Sign {
            prefix: text.clone().filter(|_| prefix),
            suffix: text.filter(|_| suffix),
            ..sign()
        };
        let fault = signed(&sign, Some(b"b")).unwrap_err();
        assert_eq!(fault.to_string(), "secret nope is not set for this install");
    }
}

// covers: AL-396, AL-397
#[test]
fn parts_of_the_request_are_filled_as_they_are_sent() {
    check(
        "1760000000{{request:method}}{{request:target}}",
        "1760000000POST/v1/a%20b?x=1&api_key=k",
    );
    check("{{{request:method}}}", "{POST}");
    check("é{{request:method}}é", "éPOSTé");
    check("{{request:me{{request:method}}", "{{request:mePOST");
}

// covers: AL-398
#[test]
fn the_host_has_its_port_where_it_is_not_the_schemes_own() {
    for (port, host) in [(None, "api.vendor.example"), (Some(8443), "api.vendor.example:8443")] {
        let sign = Sign { prefix: Some("{{request:host}}".into()), ..sign() };
        let url = url(port);
        let draft = Draft { method: "GET", url: &url, headers: &[], body: None };
        assert_eq!(signature(&sign, &draft, SECRETS).unwrap().1, hmac_of(host));
    }
}

// covers: AL-394
#[test]
fn what_was_filled_in_is_never_read_again() {
    let nested = value("nested").unwrap();
    check(&format!("{{{{secret:nested:{TAG}}}}}"), nested);
    // Nor does it make a placeholder together with what stands around it.
    check(&format!("{{{{request:{{{{secret:apiKey:{TAG}}}}}}}}}"), "{{request:s3cret}}");
}

// covers: AL-399
#[test]
fn an_unknown_part_is_a_problem_while_the_request_is_parsed() {
    for (template, name) in [
        ("{{request:path}}", "path"),
        ("a{{request:}}", ""),
        ("{{request:method}}{{request:Method}}", "Method"),
        ("{{request: method}}", " method"),
        ("{{{request:body}}", "body"),
    ] {
        let problem = format!(
            "unknown placeholder {{{{request:{name}}}}}: expected {{{{request:method}}}}, {{{{request:target}}}} or \
             {{{{request:host}}}}"
        );
        assert_eq!(check_template(template), Err(problem), "{template}");
    }
    let long = format!("{{{{request:{}}}}}", "x".repeat(10_000));
    assert!(check_template(&long).unwrap_err().len() < 300);
}

#[test]
fn all_else_passes_while_the_request_is_parsed() {
    for template in [
        "",
        "{{request:method}}{{request:target}}{{request:host}}",
        "{{request:path}",
        "{{request:",
        "{request:path}",
        "{{secret:apiKey}}",
        "{{secret:nope:w3Kp9xV2mQ8rT1zL5nB7cA}}",
        "{{other:path}}",
    ] {
        assert_eq!(check_template(template), Ok(()), "{template}");
    }
}

// covers: AL-401
#[test]
fn a_header_that_is_set_already_is_not_replaced() {
    let headers = [("x-acme-signature".to_owned(), String::new())];
    let url = url(None);
    let draft = Draft { method: "GET", url: &url, headers: &headers, body: None };
    let fault = signature(&sign(), &draft, SECRETS).unwrap_err();
    assert_eq!(fault.to_string(), "sign: header x-acme-signature is set already");
}

#[test]
fn templates_full_of_braces_take_linear_time() {
    let braces = "{".repeat(1 << 20);
    check(&braces, &braces);
    let opened = "{{secret:".repeat(1 << 17);
    check(&opened, &opened);
}
