//! The set `jwt`: signatures, tokens, keys and times.
//!
//! The platform signs tokens and never reads one, so the verifier is this file's own: it keeps what is signed honest.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use annex_egress::auth::jwt::{build, signature};
use annex_egress::auth::{JwtAlgorithm, JwtAuth};
use aws_lc_rs::hmac;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters,
    RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::set::{cases, text};

#[test]
fn every_jwt_case_comes_out_as_published() {
    for case in cases("jwt") {
        let input = &case["input"];
        let expect = &case["expect"];
        match text(&case, "kind") {
            "sign" => {
                let signed = signature(&auth(input), text(input, "signingInput").as_bytes());
                let signed = signed.ok().map(|bytes| URL_SAFE_NO_PAD.encode(bytes));
                assert_eq!(signed.as_deref(), expect["signature"].as_str(), "{case}");
            }
            "verify" => {
                let is_valid = is_valid(text(input, "token"), algorithm(input), input).is_some();
                if let Some(valid) = expect["valid"].as_bool() {
                    assert_eq!(is_valid, valid, "{case}");
                }
            }
            "private-key" => check_key(&case, input, expect),
            "token" => check_token(&case, input, expect),
            "relative-time" => check_time(&case, input, expect),
            other => panic!("an unknown kind {other}: {case}"),
        }
    }
}

fn algorithm(input: &Value) -> JwtAlgorithm {
    let name = text(input, "alg");
    *JwtAlgorithm::ALL.iter().find(|known| known.name() == name).unwrap()
}

/// An auth with a case's key.
fn auth(input: &Value) -> JwtAuth {
    let mut auth = JwtAuth { algorithm: algorithm(input), ..JwtAuth::default() };
    if let Some(secret) = input["secret_b64u"].as_str() {
        auth.secret = secret.to_owned();
        auth.is_secret_base64_encoded = true;
    }
    if let Some(secret) = input["secret"].as_str() {
        auth.secret = secret.to_owned();
        auth.is_secret_base64_encoded = input["isSecretBase64Encoded"] == true;
    }
    if let Some(key) = input["privateKey"].as_str() {
        auth.private_key = key.to_owned();
    }
    auth
}

fn check_key(case: &Value, input: &Value, expect: &Value) {
    let data = b"eyJhbGciOiJub25lIn0.e30";
    let signed = signature(&auth(input), data);
    if let Some(accepted) = expect["accepted"].as_bool() {
        assert_eq!(signed.is_ok(), accepted, "{case}");
    }
    if let (Ok(signature), Some(public_key)) = (signed, expect["publicKey"].as_str()) {
        let body: String = public_key.lines().filter(|line| !line.starts_with('-')).collect();
        let public_key = STANDARD.decode(body).unwrap();
        let verifier: &'static dyn VerificationAlgorithm = match algorithm(input) {
            JwtAlgorithm::Es256 => &ECDSA_P256_SHA256_FIXED,
            JwtAlgorithm::Es384 => &ECDSA_P384_SHA384_FIXED,
            JwtAlgorithm::Es512 => &ECDSA_P521_SHA512_FIXED,
            other => rsa(other).unwrap(),
        };
        let verified = UnparsedPublicKey::new(verifier, public_key).verify(data, &signature);
        assert!(verified.is_ok(), "{case}");
    }
}

fn check_token(case: &Value, input: &Value, expect: &Value) {
    let auth = JwtAuth {
        payload: input["payload"].to_string(),
        jwt_headers: input["jwtHeaders"].to_string(),
        ..auth(input)
    };
    let at = Timestamp::from_second(input["now"].as_i64().unwrap_or(0)).unwrap();
    let token = build(&auth, at).ok().map(|additions| additions.derived[0].clone());
    let (Some(token), Some(expected)) = (&token, expect["token"].as_str()) else {
        assert_eq!(token.as_deref(), expect["token"].as_str(), "{case}");
        return;
    };
    if matches!(auth.algorithm.name().as_bytes()[0], b'H' | b'R') {
        assert_eq!(token, expected, "{case}");
    } else {
        // These signatures are random: only what is signed can be compared.
        let signed = |token: &str| token.rsplit_once('.').unwrap().0.to_owned();
        assert_eq!(signed(token), signed(expected), "{case}");
    }
}

fn check_time(case: &Value, input: &Value, expect: &Value) {
    let claim = text(input, "claim");
    let auth = JwtAuth {
        secret: "secret".into(),
        payload: json!({ claim: text(input, "text") }).to_string(),
        ..JwtAuth::default()
    };
    let at = Timestamp::from_second(input["now"].as_i64().unwrap()).unwrap();
    let claims = build(&auth, at).ok().map(|additions| {
        let payload = additions.derived[0].split('.').nth(1).unwrap().to_owned();
        serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
    });
    let expected = expect.get("text").or_else(|| expect.get("value").filter(|it| !it.is_null()));
    assert_eq!(claims, expected.map(|value| json!({ claim: value })), "{case}");
}

/// What a token of three strict parts, whose header names the algorithm, says under a key; none where it does not verify.
fn is_valid(token: &str, algorithm: JwtAlgorithm, input: &Value) -> Option<()> {
    let parts: Vec<&str> = token.split('.').collect();
    let [header, payload, signature] = parts[..] else { return None };
    let header = URL_SAFE_NO_PAD.decode(header).ok()?;
    let header: Value = serde_json::from_slice(&header).ok()?;
    URL_SAFE_NO_PAD.decode(payload).ok()?;
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    if header["alg"] != algorithm.name() || header.get("crit").is_some() {
        return None;
    }
    let signed = &token.as_bytes()[..token.rfind('.')?];
    let part = |name: &str| URL_SAFE_NO_PAD.decode(input["jwk"][name].as_str()?).ok();
    let (verifier, curve, length): (&'static dyn VerificationAlgorithm, _, _) = match algorithm {
        JwtAlgorithm::Hs256 => return hmac_is_valid(hmac::HMAC_SHA256, signed, &signature, input),
        JwtAlgorithm::Hs384 => return hmac_is_valid(hmac::HMAC_SHA384, signed, &signature, input),
        JwtAlgorithm::Hs512 => return hmac_is_valid(hmac::HMAC_SHA512, signed, &signature, input),
        JwtAlgorithm::Es256 => (&ECDSA_P256_SHA256_FIXED, "P-256", 32),
        JwtAlgorithm::Es384 => (&ECDSA_P384_SHA384_FIXED, "P-384", 48),
        JwtAlgorithm::Es512 => (&ECDSA_P521_SHA512_FIXED, "P-521", 66),
        other => {
            let key = RsaPublicKeyComponents { n: part("n")?, e: part("e")? };
            return key.verify(rsa(other)?, signed, &signature).ok();
        }
    };
    let (x, y) = (part("x")?, part("y")?);
    if input["jwk"]["crv"] != curve || x.len() != length || y.len() != length {
        return None;
    }
    let point = [&[4], x.as_slice(), y.as_slice()].concat();
    UnparsedPublicKey::new(verifier, point).verify(signed, &signature).ok()
}

fn hmac_is_valid(
    algorithm: hmac::Algorithm,
    signed: &[u8],
    signature: &[u8],
    input: &Value,
) -> Option<()> {
    let secret = URL_SAFE_NO_PAD.decode(input["secret_b64u"].as_str()?).ok()?;
    hmac::verify(&hmac::Key::new(algorithm, &secret), signed, signature).ok()
}

fn rsa(algorithm: JwtAlgorithm) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        JwtAlgorithm::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
        JwtAlgorithm::Rs384 => &RSA_PKCS1_2048_8192_SHA384,
        JwtAlgorithm::Rs512 => &RSA_PKCS1_2048_8192_SHA512,
        JwtAlgorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
        JwtAlgorithm::Ps384 => &RSA_PSS_2048_8192_SHA384,
        JwtAlgorithm::Ps512 => &RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}
