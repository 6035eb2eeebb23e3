//! What each way to authenticate or sign a request costs, in microseconds of one processor: prints one JSON line, an object by
//! scheme.
//!
//! `cargo run --release -p annex-egress --example sign_bench`. The request has a body of 1 KiB; the schemes that sign it hash
//! all of it.

use std::hint::black_box;
use std::time::{Duration, Instant};

use annex_egress::auth::digest::{Choice, Digest, choose};
use annex_egress::auth::{
    AddTo, AwsAuth, EdgeGridAuth, HawkAuth, JwtAlgorithm, JwtAuth, aws, edgegrid, hawk, jwt, plain,
};
use annex_egress::draft::{Draft, Scheme, SentUrl};
use annex_egress::hmac::{HmacAlgorithm, KeyEncoding, SignatureEncoding};
use annex_egress::nonces::FreshNonces;
use annex_egress::sign::{Secrets, Sign, signature};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

/// How long each figure is measured.
const TIME: Duration = Duration::from_millis(300);

/// The median of a round's time, in microseconds.
fn microseconds(mut round: impl FnMut()) -> f64 {
    round();
    let begin = Instant::now();
    let mut times = Vec::new();
    while begin.elapsed() < TIME {
        let start = Instant::now();
        round();
        times.push(start.elapsed());
    }
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e6
}

fn pem(der: &[u8]) -> String {
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der))
}

fn tokens(figures: &mut Vec<(&str, f64)>) {
    let at = Timestamp::now();
    let token = |algorithm, secret: &str, private_key: String| JwtAuth {
        algorithm,
        secret: secret.into(),
        private_key,
        payload: r#"{"iss":"annex","sub":"client","iat":"now","exp":"5m"}"#.into(),
        jwt_headers: r#"{"kid":"1"}"#.into(),
        ..JwtAuth::default()
    };
    let rsa = KeyPair::generate(KeySize::Rsa2048).expect("a key of 2048 bits");
    let rsa: Pkcs8V1Der<'_> = rsa.as_der().expect("it is written as PKCS 8");
    let ec = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key on P-256");
    let ec = ec.to_pkcs8v1().expect("it is written as PKCS 8");
    let secret = "0123456789abcdef0123456789abcdef";
    for (name, auth) in [
        ("jwt", token(JwtAlgorithm::Hs256, secret, String::new())),
        ("jwt-rs256", token(JwtAlgorithm::Rs256, "", pem(rsa.as_ref()))),
        ("jwt-es256", token(JwtAlgorithm::Es256, "", pem(ec.as_ref()))),
    ] {
        figures.push((name, microseconds(|| drop(black_box(jwt::build(&auth, at).expect(name))))));
    }
}

fn schemes(figures: &mut Vec<(&str, f64)>) {
    let at = Timestamp::now();
    let url = SentUrl {
        scheme: Scheme::Https,
        host: "api.vendor.example".into(),
        port: None,
        target: "/v1/screen?mode=fast&limit=10".into(),
    };
    let headers = [("content-type".to_owned(), "application/json".to_owned())];
    let body = vec![b'x'; 1 << 10];
    let draft = Draft { method: "POST", url: &url, headers: &headers, body: Some(&body) };

    figures.push(("basic", microseconds(|| drop(black_box(plain::basic("client", "password"))))));
    figures.push(("bearer", microseconds(|| drop(black_box(plain::bearer("token-0123456789"))))));
    let api_key = || drop(black_box(plain::api_key("x-key", "value", AddTo::Headers)));
    figures.push(("api-key", microseconds(api_key)));

    let challenge = r#"Digest realm="r", nonce="n", algorithm=SHA-256, qop="auth-int", opaque="o""#;
    let digest = Digest::new("client", "password");
    let answer = || {
        let Choice::Answer(challenge) = choose(&[challenge]) else { unreachable!("it can be") };
        drop(black_box(digest.respond(&challenge, &draft, &FreshNonces)));
    };
    figures.push(("digest", microseconds(answer)));

    let signed = AwsAuth {
        access_key: "AKIDEXAMPLE".into(),
        secret_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
        region: "eu-west-1".into(),
        service_name: "execute-api".into(),
        ..AwsAuth::default()
    };
    let aws = || drop(black_box(aws::build(&signed, &draft, at).expect("it signs")));
    figures.push(("aws-signature", microseconds(aws)));

    let hawk = HawkAuth {
        auth_id: "client".into(),
        auth_key: "0123456789abcdef".into(),
        include_payload_hash: true,
        ..HawkAuth::default()
    };
    let built = || drop(black_box(hawk::build(&hawk, &draft, at, &FreshNonces).expect("it signs")));
    figures.push(("hawk", microseconds(built)));

    let edge = EdgeGridAuth {
        access_token: "akab-access".into(),
        client_token: "akab-client".into(),
        client_secret: "c2VjcmV0".into(),
        ..EdgeGridAuth::default()
    };
    let built = || {
        drop(black_box(edgegrid::build(&edge, &draft, None, at, &FreshNonces).expect("it signs")));
    };
    figures.push(("akamai-eg", microseconds(built)));

    let sign = Sign {
        header: "x-signature".into(),
        algorithm: HmacAlgorithm::Sha256,
        key: zeroize::Zeroizing::new("0123456789abcdef".into()),
        key_encoding: KeyEncoding::Utf8,
        encoding: SignatureEncoding::Hex,
        prefix: Some("1760000000{{request:method}}{{request:target}}".into()),
        suffix: None,
    };
    let built = || {
        let secrets = Secrets { tag: "", value: &|_name| None };
        drop(black_box(signature(&sign, &draft, secrets).expect("it signs")));
    };
    figures.push(("sign", microseconds(built)));
}

fn main() {
    let mut figures = Vec::new();
    schemes(&mut figures);
    tokens(&mut figures);
    let figures: Vec<_> =
        figures.iter().map(|(name, time)| format!("\"{name}\":{time:.2}")).collect();
    println!("{{\"sign_us\":{{{}}}}}", figures.join(","));
}
