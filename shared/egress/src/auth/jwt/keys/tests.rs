use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, KeyPair as _,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    UnparsedPublicKey, VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::*;

/// The private key of RFC 7515, appendix A.2 (2048 bits), as PKCS #1 in base64.
pub(in crate::auth::jwt) const RFC_7515_A2: &str = "\
    MIIEowIBAAKCAQEAofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd/wWJcyQoTbji9k0l8W26mPddxHmfHQp+Vaw+4qPCJrcS2mJPMEz\
    P1Pt0Bm4d4QlL+yRT+SFd2lZS+pCgNMsD1W/YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb/7OMg0LOL+bSf63kpaSHSXndS5z5re\
    xMdbBYUsLA9e+KXBdQOS+UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6/I5IhlJH7aGhyxXFvUK+DWN\
    moudF8NAco9/h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQIDAQABAoIBABKucaRpzQorw35SbEUAVx8dYXUdZOlJ\
    cHtiWQ+dC6V8ljxAHj/PLyzTveyI5QO/xkObCyjIL303l2cfUhPu2MFaJdjVzqACXuOrLot/eSFvxjvqVidTtAZExqFRJ9mylUVA\
    oLvhowVWmC1On95fZCXxTUtxNEG1Xcc7m0rtzJKs45J+N/V9DP1edYH6USyPSWGp6wuA+KgHRnKKVf9GRx80JQY7nVNkL17eHoTW\
    Ewga+lwi0FEoW9Y7lDtWXYmKBWhUE+U8PGxlJf8f40493HDw1WRQ/aSLoS4QTp3rn7gYgeHEvfJdkkf0UMhlknlo53M09EFPdadQ\
    4TlUbjqKc50CgYEA4BzEEOtIpmVdVEZNCqS7baC4crd0pqnRH/5IB3jw3bcxGn6QLvnEtfdUdiYrqBdss1l58BQ3KhooKeQTa9AB\
    0Hw/Py5PJdTJNPY8cQn7ouZ2KKDcmnPGBY5t7yLc1QlQ5xHdwW1VhvKn+nXqhJTBgIPgtldC+KDV5z+y2XDwGUcCgYEAuQPEfgmV\
    tjL0Uyyx88GZFF1fOunH3+7cepKmtH4pxhtCoHqpWmT8YAmZxaewHgHAjLYsp1ZSe7zFYHj7C6ul7TjeLQeZD/YwD66t62wDmpe/\
    HlB+TnBA+njbglfIsRLtXlnDzQkv5dTltRJ11BKBBypeeF6689rjcJIDEz9RWdcCgYAHAp9XcCSrn8wVkMVkKdb7DOX4IKjzdahm\
    +ctDAJN4O/y7OW5FKebvUjdAIt2GuoTZ71iTG+7F0F+lP88jtjP4U4qe7VHoewl4MKOfXZKTe+YCS1XbNvfgwJ3Ltyl1OH9hWvu2\
    yza7q+d5PCsDzqtm27kxuvULVeya+TEdAB1ijQKBgQCH/3r6YrVH/uCWGy6bzV1nGNOdjKc9tmkfOJmN54dxdixdpozCQ6U4OxZr\
    sj3FcOhHBsqAHvX2uuYjagqvo3cOj1TRqNocX40omfCCMx3bD1yPPf/6TI2XECva/ggqEY2mYzmIiA5LVVmc5nrybr+lssFKneey\
    xN2Wq93S0iJMdQKBgCGHewxzoa1r8ZMD0LETNrToK423K377UCYqXfg5XMclbrjPbEC3YI1ZNqMtuhdBJqUnBi6tjKMF+34Xf0CU\
    N8ncuXGO2CAYvO8PdyCixHX52ybaDjy1FtCE6yUXjoKNXKvUm7MWGsAYH6f4IegOetN5NvmUMFStCSkh7ixZLkN1";

/// An RSA key of 2047 bits, made for this test, as PKCS #1 in base64.
pub(in crate::auth::jwt) const BITS_2047: &str = "\
    MIIEogIBAAKCAQBy6hKhLH5RYKZwdrF/XxNp+PQGIIev7Jxk26Znh35oviBWzlo9+JfekUj7R+ioCY3++vPHKkObj8SbDUalPvjU\
    iimkEzzWM+WsgBo8RT3bCzrevihXW5zRP65kRUQnEQQnwmc0vC4cn9blSjn5G6NAoOGcHECNeA8EAuapAxjEI+XiIjUCQMsePqVy\
    EB+9ecI497cfq3UElaaaTV+mt1ruUQHmem4wW8p7eli/2w4UV3o7P4NvVhnggjymJ1Sq5ROxSvIiDywXZpOPaTLLpMlGpWbs1xsi\
    4GO7KFUxzcgXnA92UPIZ+GPOEI52aHg0gt7xJTzMhbLkI5ZMLQ3y3kv5AgMBAAECggEALtpzaBW9Fy8CDb7HVjiMsNuZm1nuGPOv\
    PIw2R+X9y3UhuGMAdl4ChfPUvuet272xkLH/bUg1MpsmvVVnZX7Mc9Q1cDmLx4Z3caL1j3dn5gSpJyJ/TkcDJGoDj8ySIh+VAyUH\
    cX/8iR0+wFRIWOJE6NfvxPfb9hJqhOct5uFlWqr1T9++tw6nJj9ZpiIo96sO15loWvnHUIzSf+2XSP9K95awYqlgMMblV0ejTvbV\
    tboyLBt2wTTNOwa7uy4Fz2HjScO7oTiBNxUNe18oNZuGK8z6BVE/Tk191yElxGd5WMWNLiGGUlkUB1PaUojbZA0hOTu5AR4pJjTZ\
    5Fi0qHCi5QKBgQD/A8oMnSDsnfLNIR8NN1S0lYF2BIxwpi+C4sRPMl5ik4MusRlMpTwReHajhfp2yrZoIxFMvDOF1z7apTz0HmC7\
    Z2OShfXJ4TkrgUdFTbeCIu0Om44+BqhN3dMOWz92f0anUTv8MeJ1qYMZP/j4NRmcA7o5lTeLf3mPGciH6icU6wKBgHNbuTsstgqL\
    J98L73FVhggVywDxGZKUB3ltIe2pgQut/p5g3hTAhlGlc6P+nuQjB8PKUFmpfeUsx0Ug+9erL94Li1R8va9H7WwwnbsNjOZ/hNKo\
    TTKcWbE+kzmfEEBnwvXGsDBR6tpRH0HH6dV3Tk8U4WpZ90QVTx41D1V6kTmrAoGBAOe758Vim+Ko/VSOfosh9qVLHqPCKmTLf20u\
    6DkXilGFvrWVVWoi1N0DXLvoKdv9BZjIFRZoB2HeYU2KzkL/v+NMZl1lwh67vZndFojRwKpPVp/pl26h2hs4MmxfWuIxcmDlHt9j\
    7WgCrBEr4vCaQDVX5cgh4qGvKyVwxptLmkwVAoGAVeKvaPAj5HuwRq7jKVUMQg6/okbezDOr0OrAfOpbKm/zhsUF8xtXpYfyLeHP\
    OHkgOdPxuJ+pHKwW/E/PUMWiEMY1iMSKkOqTSJ51gKNZCO9d21z0hL7FRGIbSKY1ek4GZ+fymzcSDFKjW91UKdr2kYgxP3YV0zmu\
    OwY0EWb8opsCgYEAxMBFPpNbQirM+rfFaLwDbzmuaTDGj0EgHvzgZVR+WugzLSIQBNE30yWIIi4QCpRP/eUPIv0gLfQMUIdi48RL\
    rq9xR0nY292At8tLA7qajQigBxDQlQryk4dYvuxy8LEJuU82YR9Spoy8yA53nuUqv67EV0RhfySnWhqAKNizKP4=";

/// An element of DER.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    match content.len() {
        0..=0x7F => [&[tag, length[1]], content].concat(),
        _ => [&[tag, 0x82], &length[..], content].concat(),
    }
}

fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    der(0x30, &parts.concat())
}

/// PKCS #8 around a key of an algorithm.
fn pkcs8(algorithm: &[&[u8]], key: &[u8]) -> Vec<u8> {
    sequence(&[&[2, 1, 0], &sequence(algorithm), &der(4, key)])
}

const OID_RSA: &[u8] = &[6, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 1];
const OID_RSA_PSS: &[u8] = &[6, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 10];
const OID_EC: &[u8] = &[6, 7, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 2, 1];
const OID_P256: &[u8] = &[6, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 3, 1, 7];
const NULL: &[u8] = &[5, 0];

pub(in crate::auth::jwt) fn pem(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let lines: Vec<&str> =
        body.as_bytes().chunks(64).map(|line| str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn pkcs1() -> Vec<u8> {
    STANDARD.decode(RFC_7515_A2).unwrap()
}

/// The key of RFC 7515, appendix A.2, as PKCS #8.
pub(in crate::auth::jwt) fn rsa_pem() -> String {
    pem("PRIVATE KEY", &pkcs8(&[OID_RSA, NULL], &pkcs1()))
}

/// A fresh key on the curve of an algorithm, and its public key.
pub(in crate::auth::jwt) fn ec_key_pair(algorithm: JwtAlgorithm) -> EcdsaKeyPair {
    let Scheme::Ecdsa(algorithm, _curve) = scheme(algorithm) else { panic!("no curve") };
    EcdsaKeyPair::generate(algorithm).unwrap()
}

fn ec_pems(key: &EcdsaKeyPair) -> [String; 2] {
    let sec1 = key.private_key().as_der().unwrap();
    [pem("PRIVATE KEY", key.to_pkcs8v1().unwrap().as_ref()), pem("EC PRIVATE KEY", sec1.as_ref())]
}

const INPUT: &[u8] = b"eyJhbGciOiJIUzI1NiJ9.e30";

fn signed(algorithm: JwtAlgorithm, private_key: &str) -> Result<Vec<u8>, String> {
    let auth = JwtAuth { algorithm, private_key: private_key.to_owned(), ..JwtAuth::default() };
    sign(&auth, INPUT)
}

#[track_caller]
fn check_valid(
    algorithm: JwtAlgorithm,
    private_key: &str,
    verifier: &'static dyn VerificationAlgorithm,
    public_key: &[u8],
) {
    let signature = signed(algorithm, private_key).unwrap();
    UnparsedPublicKey::new(verifier, public_key).verify(INPUT, &signature).unwrap();
}

#[track_caller]
fn check_refused(algorithm: JwtAlgorithm, private_key: &str, problem: &str) {
    assert_eq!(signed(algorithm, private_key), Err(problem.to_owned()), "{algorithm:?}");
}

const RSA: [(JwtAlgorithm, &dyn VerificationAlgorithm); 6] = [
    (JwtAlgorithm::Rs256, &RSA_PKCS1_2048_8192_SHA256),
    (JwtAlgorithm::Rs384, &RSA_PKCS1_2048_8192_SHA384),
    (JwtAlgorithm::Rs512, &RSA_PKCS1_2048_8192_SHA512),
    (JwtAlgorithm::Ps256, &RSA_PSS_2048_8192_SHA256),
    (JwtAlgorithm::Ps384, &RSA_PSS_2048_8192_SHA384),
    (JwtAlgorithm::Ps512, &RSA_PSS_2048_8192_SHA512),
];

const EC: [(JwtAlgorithm, &dyn VerificationAlgorithm, &str); 3] = [
    (JwtAlgorithm::Es256, &ECDSA_P256_SHA256_FIXED, "P-256"),
    (JwtAlgorithm::Es384, &ECDSA_P384_SHA384_FIXED, "P-384"),
    (JwtAlgorithm::Es512, &ECDSA_P521_SHA512_FIXED, "P-521"),
];

// covers: AL-350, AL-359
#[test]
fn an_rsa_key_of_2048_bits_signs_in_each_form() {
    let public_key = RsaKeyPair::from_der(&pkcs1()).unwrap().public_key().as_ref().to_vec();
    for (algorithm, verifier) in RSA {
        check_valid(algorithm, &rsa_pem(), verifier, &public_key);
        check_valid(algorithm, &pem("RSA PRIVATE KEY", &pkcs1()), verifier, &public_key);
        let labelled = pem("RSA PRIVATE KEY", &pkcs8(&[OID_RSA, NULL], &pkcs1()));
        check_valid(algorithm, &labelled, verifier, &public_key);
    }
}

#[test]
fn the_signature_of_rfc_7515_appendix_a_2_comes_out() {
    let input = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb2\
        90Ijp0cnVlfQ";
    let expected = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbd\
        s9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383\
        LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtV\
        rBp0igcN_IoypGlUPQGe77Rw";
    let auth =
        JwtAuth { algorithm: JwtAlgorithm::Rs256, private_key: rsa_pem(), ..JwtAuth::default() };
    let signature = sign(&auth, input.as_bytes()).unwrap();
    assert_eq!(URL_SAFE_NO_PAD.encode(signature), expected);
}

// covers: AL-350
#[test]
fn an_rsa_key_below_2048_bits_is_refused() {
    let small = STANDARD.decode(BITS_2047).unwrap();
    for key in
        [pem("RSA PRIVATE KEY", &small), pem("PRIVATE KEY", &pkcs8(&[OID_RSA, NULL], &small))]
    {
        for (algorithm, _verifier) in RSA {
            check_refused(algorithm, &key, NOT_RSA);
        }
    }
}

// covers: AL-361
#[test]
fn a_key_typed_for_rsa_pss_only_is_refused() {
    for (algorithm, _verifier) in RSA {
        check_refused(algorithm, &pem("PRIVATE KEY", &pkcs8(&[OID_RSA_PSS], &pkcs1())), NOT_RSA);
    }
}

// covers: AL-351, AL-359
#[test]
fn a_key_on_the_algorithms_curve_signs_in_each_form() {
    for (algorithm, verifier, _curve) in EC {
        let key = ec_key_pair(algorithm);
        for pem in ec_pems(&key) {
            check_valid(algorithm, &pem, verifier, key.public_key().as_ref());
            let parameters =
                format!("-----BEGIN EC PARAMETERS-----\nAA==\n-----END EC PARAMETERS-----\n{pem}");
            check_valid(algorithm, &parameters, verifier, key.public_key().as_ref());
        }
    }
}

#[test]
fn signatures_on_a_curve_are_both_numbers_at_full_length() {
    for (algorithm, bytes) in
        [(JwtAlgorithm::Es256, 64), (JwtAlgorithm::Es384, 96), (JwtAlgorithm::Es512, 132)]
    {
        let [pem, _sec1] = ec_pems(&ec_key_pair(algorithm));
        for _ in 0..20 {
            assert_eq!(signed(algorithm, &pem).unwrap().len(), bytes);
        }
    }
}

// covers: AL-351
#[test]
fn a_key_on_another_curve_or_of_another_kind_is_refused() {
    for (algorithm, _verifier, curve) in EC {
        let not_on = format!("privateKey is not a key on {curve}");
        for (other, _verifier, _curve) in EC.iter().filter(|(other, ..)| *other != algorithm) {
            for pem in ec_pems(&ec_key_pair(*other)) {
                check_refused(algorithm, &pem, &not_on);
            }
        }
        check_refused(algorithm, &rsa_pem(), &not_on);
        check_refused(algorithm, &pem("RSA PRIVATE KEY", &pkcs1()), &not_on);
        check_refused(algorithm, &pem("EC PRIVATE KEY", &pkcs1()), &not_on);
    }
    for pem in ec_pems(&ec_key_pair(JwtAlgorithm::Es256)) {
        check_refused(JwtAlgorithm::Ps256, &pem, NOT_RSA);
    }
}

#[test]
fn a_scalar_beyond_the_curves_order_is_refused() {
    for scalar in [[0xFF; 32], [0; 32]] {
        let version = [2, 1, 1];
        let inner = sequence(&[&version, &der(4, &scalar)]);
        let pkcs8 = pem("PRIVATE KEY", &pkcs8(&[OID_EC, OID_P256], &inner));
        let sec1 = sequence(&[&version, &der(4, &scalar), &der(0xA0, OID_P256)]);
        for key in [pkcs8, pem("EC PRIVATE KEY", &sec1)] {
            check_refused(JwtAlgorithm::Es256, &key, "privateKey is not a key on P-256");
        }
    }
}

#[test]
fn bytes_that_are_no_key_are_refused() {
    let cut = &pkcs1()[..1_000];
    for bytes in
        [&b""[..], &[0], &[0x30], &[0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF], &[0x30, 0x80, 0, 0], cut]
    {
        for label in ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"] {
            let key = pem(label, bytes).replace("\n\n", "\n");
            check_refused(JwtAlgorithm::Rs256, &key, NOT_RSA);
            check_refused(JwtAlgorithm::Es512, &key, "privateKey is not a key on P-521");
        }
    }
    for text in ["", "secret", "-----BEGIN PRIVATE KEY-----"] {
        check_refused(JwtAlgorithm::Rs256, text, "privateKey is not a private key in PEM");
        check_refused(JwtAlgorithm::Es256, text, "privateKey is not a private key in PEM");
    }
}

// covers: AL-360
#[test]
fn an_encrypted_key_is_refused() {
    let key = pem("ENCRYPTED PRIVATE KEY", b"foo");
    check_refused(JwtAlgorithm::Rs256, &key, "privateKey is encrypted");
    check_refused(JwtAlgorithm::Es256, &key, "privateKey is encrypted");
}

/// A key whose bytes were changed anywhere never takes the process down, whatever becomes of the signature.
#[test]
fn a_changed_key_signs_or_is_refused() {
    let [_pkcs8, sec1] = ec_pems(&ec_key_pair(JwtAlgorithm::Es256));
    let sec1 = pem::private_key(&sec1).unwrap().1.to_vec();
    let rsa = pkcs1();
    for (algorithm, label, good, step) in [
        (JwtAlgorithm::Es256, "EC PRIVATE KEY", &sec1, 1),
        (JwtAlgorithm::Ps256, "RSA PRIVATE KEY", &rsa, 37),
    ] {
        for at in (0..good.len()).step_by(step) {
            let mut changed = good.clone();
            changed[at] ^= 0x81;
            let _ = signed(algorithm, &pem(label, &changed));
        }
    }
}

#[track_caller]
fn check_secret(secret: &str, is_secret_base64_encoded: bool, expected: Result<&[u8], &str>) {
    let auth =
        JwtAuth { secret: secret.to_owned(), is_secret_base64_encoded, ..JwtAuth::default() };
    let read = super::secret(&auth);
    assert_eq!(read.as_ref().map(|bytes| bytes.as_slice()).map_err(String::as_str), expected);
}

// covers: AL-348, AL-349
#[test]
fn a_secret_is_its_text_or_base64_of_either_alphabet() {
    check_secret("clé", false, Ok(&[b'c', b'l', 0xC3, 0xA9]));
    check_secret("//79/w==", false, Ok(b"//79/w=="));
    for secret in ["//79/w==", "//79/w", "__79_w==", "__79_w"] {
        check_secret(secret, true, Ok(&[0xFF, 0xFE, 0xFD, 0xFF]));
    }
    // The prefix of Standard Webhooks means nothing here: it is base64 like the rest.
    check_secret("whsec_", true, Ok(&[0xC2, 0x1B, 0x1E, 0x73]));
}

// Of RFC 4231, test case 2.
// covers: AL-347
#[test]
fn each_hash_signs_under_the_secret() {
    for (algorithm, hex) in [
        (
            JwtAlgorithm::default(),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            JwtAlgorithm::Hs384,
            "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e\
             8e2240ca5e69e2c78b3239ecfab21649",
        ),
        (
            JwtAlgorithm::Hs512,
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554\
             9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
        ),
    ] {
        let auth = JwtAuth { algorithm, secret: "Jefe".into(), ..JwtAuth::default() };
        let signature = sign(&auth, b"what do ya want for nothing?").map(hex::encode);
        assert_eq!(signature.as_deref(), Ok(hex));
    }
}

#[test]
fn a_secret_that_does_not_decode_or_is_empty_is_refused() {
    for secret in ["***", "ab=", "Zm9v\n"] {
        check_secret(secret, true, Err("secret is not base64"));
    }
    check_secret("", false, Err("secret is empty"));
    check_secret("", true, Err("secret is empty"));
    check_secret("0", false, Ok(b"0"));
}

#[test]
fn the_signature_of_rfc_7515_appendix_a_1_comes_out() {
    let auth = JwtAuth {
        secret:
            "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"
                .into(),
        is_secret_base64_encoded: true,
        ..JwtAuth::default()
    };
    let input = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9\
        leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    let signature = sign(&auth, input.as_bytes()).unwrap();
    assert_eq!(URL_SAFE_NO_PAD.encode(signature), "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
}
