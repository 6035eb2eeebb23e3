use super::keys::tests::{ec_key_pair, pem, rsa_pem};
use super::*;

/// 2026-01-01T00:00:00Z and a bit.
fn now() -> Timestamp {
    Timestamp::from_millisecond(1_767_225_600_999).unwrap()
}

fn auth() -> JwtAuth {
    JwtAuth {
        secret: "a-string-secret-at-least-256-bits-long".into(),
        payload: r#"{"sub":"1234567890","name":"John Doe","admin":true,"iat":1516239022}"#.into(),
        jwt_headers: r#"{"typ":"JWT"}"#.into(),
        ..JwtAuth::default()
    }
}

/// The example of jwt.io for HS256.
const TOKEN: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiYWRtaW\
    4iOnRydWUsImlhdCI6MTUxNjIzOTAyMn0.KMUFsIDTnFmyG3nMiGM6H9FNFUROf3wh7SmqJp-QV30";

#[track_caller]
fn check(auth: &JwtAuth, header: Option<&str>, query: Option<(&str, &str)>) {
    let expected = Additions {
        headers: header.map(|value| ("authorization".into(), value.into())).into_iter().collect(),
        query: query.map(|(name, value)| (name.into(), value.into())).into_iter().collect(),
        derived: vec![TOKEN.into()],
    };
    assert_eq!(build(auth, now()), Ok(expected));
}

// covers: AL-347, AL-357
#[test]
fn a_token_goes_into_the_authorization_header() {
    check(&auth(), Some(&format!("Bearer {TOKEN}")), None);
    for prefix in ["JWT ", "", "Bearer", " "] {
        let auth = JwtAuth { header_prefix: Some(prefix.into()), ..auth() };
        check(&auth, Some(&format!("{prefix}{TOKEN}")), None);
    }
}

// covers: AL-358
#[test]
fn a_token_goes_into_a_query_parameter() {
    for (name, expected) in [(None, "token"), (Some(""), "token"), (Some("jwt"), "jwt")] {
        let param_name = name.map(str::to_owned);
        let auth = JwtAuth { add_to: AddTo::QueryParams, param_name, ..auth() };
        check(&auth, None, Some((expected, TOKEN)));
    }
}

/// The claims of a token, as they were signed.
fn claims(auth: &JwtAuth, at: Timestamp) -> String {
    let token = build(auth, at).unwrap().derived.remove(0);
    let payload = token.split('.').nth(1).unwrap();
    String::from_utf8(URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}

// covers: AL-345, AL-353
#[test]
fn claims_are_signed_anew_at_each_time() {
    let auth = JwtAuth { payload: r#"{"iat":"now","exp":"5m","x":1.0}"#.into(), ..auth() };
    assert_eq!(claims(&auth, now()), r#"{"iat":1767225600,"exp":1767225900,"x":1.0}"#);
    let later = Timestamp::from_second(1_767_225_601).unwrap();
    assert_eq!(claims(&auth, later), r#"{"iat":1767225601,"exp":1767225901,"x":1.0}"#);
}

// covers: AL-355
#[test]
fn each_algorithm_is_named_in_the_header() {
    for algorithm in JwtAlgorithm::ALL {
        let private_key = match algorithm.name().as_bytes()[0] {
            b'E' => {
                let key = ec_key_pair(algorithm).to_pkcs8v1().unwrap();
                pem("PRIVATE KEY", key.as_ref())
            }
            _ => rsa_pem(),
        };
        let auth = JwtAuth { algorithm, private_key, ..auth() };
        let token = build(&auth, now()).unwrap().derived.remove(0);
        let header = URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap()).unwrap();
        let expected = format!("{{\"alg\":\"{}\",\"typ\":\"JWT\"}}", algorithm.name());
        assert_eq!(String::from_utf8(header).unwrap(), expected);
        assert_eq!(token.split('.').count(), 3);
    }
}

// covers: AL-362
#[test]
fn every_fault_begins_with_the_schemes_name_and_holds_no_key() {
    let rs256 = JwtAuth { algorithm: JwtAlgorithm::Rs256, ..auth() };
    for (auth, text) in [
        (JwtAuth { secret: String::new(), ..auth() }, "jwt auth: secret is empty"),
        (
            JwtAuth { is_secret_base64_encoded: true, secret: "se cret".into(), ..auth() },
            "jwt auth: secret is not base64",
        ),
        (rs256.clone(), "jwt auth: privateKey is not a private key in PEM"),
        (
            JwtAuth { private_key: pem("EC PRIVATE KEY", b"x"), ..rs256.clone() },
            "jwt auth: privateKey is not an RSA key of 2048 to 8192 bits",
        ),
        (
            JwtAuth { private_key: pem("ENCRYPTED PRIVATE KEY", b"x"), ..rs256 },
            "jwt auth: privateKey is encrypted",
        ),
        (JwtAuth { payload: "[]".into(), ..auth() }, "jwt auth: payload: not a JSON object"),
        (
            JwtAuth { payload: r#"{"exp":"soon"}"#.into(), ..auth() },
            "jwt auth: payload: exp: expected a number, or text such as \"now\", \"5m\" or \"-30s\"",
        ),
        (
            JwtAuth { jwt_headers: r#"{"alg":"none"}"#.into(), ..auth() },
            "jwt auth: jwtHeaders: alg may not be set",
        ),
    ] {
        assert_eq!(build(&auth, now()), Err(AuthFault::new(text)));
    }
}
