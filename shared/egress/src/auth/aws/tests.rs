//! Signatures of whole requests: those of the documentation of S3, and what is added and refused.

use super::*;
use crate::draft::{Scheme, SentUrl};

/// The empty body's hash.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// The credentials and the request of the S3 documentation's examples, at 2013-05-24T00:00:00Z.
fn auth(service: &str, add_to: AddTo) -> AwsAuth {
    AwsAuth {
        access_key: "AKIAIOSFODNN7EXAMPLE".to_owned(),
        secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
        region: "us-east-1".to_owned(),
        service_name: service.to_owned(),
        service_token: None,
        add_to,
    }
}

fn sent(
    auth: &AwsAuth,
    target: &str,
    headers: &[(&str, &str)],
    body: Option<&[u8]>,
) -> Result<Additions, String> {
    let url = SentUrl {
        scheme: Scheme::Https,
        host: "examplebucket.s3.amazonaws.com".to_owned(),
        port: None,
        target: target.to_owned(),
    };
    let headers: Vec<(String, String)> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let method = if body.is_some() { "PUT" } else { "GET" };
    let draft = Draft { method, url: &url, headers: &headers, body };
    let at = "2013-05-24T00:00:00Z".parse().unwrap();
    build(auth, &draft, at).map_err(|fault| fault.to_string())
}

fn pairs(pairs: &[(String, String)]) -> Vec<(&str, &str)> {
    pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

// covers: AL-312, AL-314, AL-315
#[test]
fn a_request_in_the_headers_is_signed_as_the_documentation_of_s3_signs_it() {
    // The example "GET Bucket Lifecycle", whose request has no header of its own.
    let added = sent(&auth("s3", AddTo::Headers), "/?lifecycle", &[], None).unwrap();
    assert_eq!(
        pairs(&added.headers),
        [
            (
                "authorization",
                "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
                 SignedHeaders=host;x-amz-content-sha256;x-amz-date, \
                 Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
            ),
            ("x-amz-content-sha256", EMPTY),
            ("x-amz-date", "20130524T000000Z"),
        ]
    );
    assert!(added.query.is_empty());
    assert_eq!(added.derived, ["fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"]);
}

// covers: AL-312, AL-318, AL-319, AL-320, AL-321
#[test]
fn a_presigned_request_is_signed_as_the_documentation_of_s3_signs_it() {
    // AL-318, AL-319, AL-321: the example of query parameters, which holds for a day.
    let added = sent(&auth("s3", AddTo::QueryParams), "/test.txt", &[], None).unwrap();
    assert!(added.headers.is_empty());
    assert_eq!(
        pairs(&added.query),
        [
            ("X-Amz-Date", "20130524T000000Z"),
            ("X-Amz-Expires", "86400"),
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request"),
            ("X-Amz-SignedHeaders", "host"),
            ("X-Amz-Signature", "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"),
        ]
    );
    // AL-320: the URL's own validity is kept and signed. AL-319: another service has none.
    let names = |service: &str, target: &str| {
        let added = sent(&auth(service, AddTo::QueryParams), target, &[], None).unwrap();
        added.query.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(" ")
    };
    let without = "X-Amz-Date X-Amz-Algorithm X-Amz-Credential X-Amz-SignedHeaders X-Amz-Signature";
    assert_eq!(names("s3", "/k?X-Amz-Expires=60"), without);
    assert_eq!(names("s3", "/k?X%2DAmz%2DExpires=60"), without);
    assert_eq!(names("execute-api", "/k"), without);
}

// covers: AL-315, AL-318
#[test]
fn a_session_token_is_sent_and_signed() {
    let token = |add_to| AwsAuth {
        service_token: Some("a/token+==".to_owned()),
        ..auth("execute-api", add_to)
    };
    let added = sent(&token(AddTo::Headers), "/", &[], None).unwrap();
    assert_eq!(
        pairs(&added.headers)[1..],
        [("x-amz-date", "20130524T000000Z"), ("x-amz-security-token", "a/token+==")]
    );
    assert!(added.headers[0].1.contains("SignedHeaders=host;x-amz-date;x-amz-security-token,"));
    let added = sent(&token(AddTo::QueryParams), "/", &[], None).unwrap();
    assert_eq!(pairs(&added.query)[1], ("X-Amz-Security-Token", "a/token+=="));

    let empty = AwsAuth { service_token: Some(String::new()), ..auth("s3", AddTo::Headers) };
    assert_eq!(sent(&empty, "/", &[], None), sent(&auth("s3", AddTo::Headers), "/", &[], None));
}

// covers: AL-316, AL-317
#[test]
fn the_bodys_hash_is_sent_to_s3_alone_and_one_of_the_request_is_kept() {
    let header = |service: &str, headers: &[(&str, &str)], name: &str| {
        let added =
            sent(&auth(service, AddTo::Headers), "/k", headers, Some(b"x".as_slice())).unwrap();
        added.headers.into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    };
    // AL-316.
    let x = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    assert_eq!(header("s3", &[], "x-amz-content-sha256").as_deref(), Some(x));
    assert_eq!(header("execute-api", &[], "x-amz-content-sha256"), None);
    // AL-317: signed with the value of the request, as aws4fetch signs it.
    let own = [("x-amz-content-sha256", "UNSIGNED-PAYLOAD")];
    assert_eq!(header("s3", &own, "x-amz-content-sha256"), None);
    let value = header("s3", &own, "authorization").unwrap();
    assert!(value.contains("SignedHeaders=host;x-amz-content-sha256;x-amz-date,"), "{value}");
    assert_ne!(Some(value), header("s3", &[("x-amz-content-sha256", x)], "authorization"));
}

// covers: AL-322
#[test]
fn headers_of_the_list_stay_unsigned() {
    let headers: Vec<(&str, &str)> =
        UNSIGNED.iter().map(|name| (*name, "v")).chain([("x-signed", "v")]).collect();
    let added = sent(&auth("iam", AddTo::QueryParams), "/", &headers, None).unwrap();
    assert_eq!(pairs(&added.query)[3], ("X-Amz-SignedHeaders", "host;x-signed"));
}

// covers: AL-323, AL-324
#[test]
fn what_the_signature_would_set_twice_is_refused() {
    let refusal = |add_to, target: &str, headers: &[(&str, &str)]| {
        sent(&auth("s3", add_to), target, headers, None).unwrap_err()
    };
    // AL-323.
    let date = [("x-amz-date", "20130524T000000Z")];
    assert_eq!(
        refusal(AddTo::Headers, "/", &date),
        "header x-amz-date is set by both the request and its auth"
    );
    assert_eq!(
        refusal(AddTo::QueryParams, "/", &date),
        "aws-signature auth: the request sets x-amz-date, and the signature has its own date"
    );
    // AL-324, however the name is encoded.
    for name in ["Date", "Algorithm", "Credential", "SignedHeaders", "Signature"] {
        for target in [format!("/?a=1&X-Amz-{name}=x"), format!("/?X%2DAmz-{name}")] {
            assert_eq!(
                refusal(AddTo::QueryParams, &target, &[]),
                format!(
                    "aws-signature auth: query parameter X-Amz-{name} is set by both the URL \
                     and its auth"
                )
            );
        }
    }
    // What is not added is not refused.
    let token = "/?X-Amz-Security-Token=x";
    assert!(sent(&auth("s3", AddTo::QueryParams), token, &[], None).is_ok());
    assert!(sent(&auth("s3", AddTo::Headers), "/?X-Amz-Signature=x", &[], None).is_ok());
}

#[test]
fn fields_that_make_no_signature_are_refused() {
    fn check(change: impl Fn(&mut AwsAuth), expected: &str) {
        let mut auth = auth("s3", AddTo::Headers);
        change(&mut auth);
        let text = sent(&auth, "/", &[], None).unwrap_err();
        assert_eq!(text, format!("aws-signature auth: {expected}"));
    }
    let visible = "must be visible ASCII characters";
    let scoped = format!("{visible} other than a comma and a slash");
    check(|auth| auth.access_key.clear(), "accessKey is empty");
    check(|auth| auth.secret_key.clear(), "secretKey is empty");
    check(|auth| auth.region.clear(), "region is empty");
    check(|auth| auth.service_name.clear(), "serviceName is empty");
    check(|auth| auth.access_key.push('\n'), &format!("accessKey {scoped}"));
    check(|auth| auth.region.push('/'), &format!("region {scoped}"));
    check(|auth| auth.service_name.push('é'), &format!("serviceName {scoped}"));
    let token = |auth: &mut AwsAuth| auth.service_token = Some("a b".to_owned());
    check(token, &format!("serviceToken {visible}"));
}
