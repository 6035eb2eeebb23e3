//! Keys of a token, and the signatures under them.
//!
//! Keys come from tenants: a key of the wrong kind, size or curve is refused, whatever its bytes are.

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair as RsaKeyPair;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING,
    ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, RSA_PKCS1_SHA256,
    RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512,
    RsaEncoding,
};
use zeroize::Zeroizing;

use super::pem::{self, Form};
use super::{JwtAlgorithm, JwtAuth};
use crate::hmac::decode_base64;

/// What makes the signature of an algorithm.
#[derive(Clone, Copy)]
enum Scheme {
    Hmac(hmac::Algorithm),
    Rsa(&'static dyn RsaEncoding),
    /// With the name of the curve.
    Ecdsa(&'static EcdsaSigningAlgorithm, &'static str),
}

fn scheme(algorithm: JwtAlgorithm) -> Scheme {
    match algorithm {
        JwtAlgorithm::Hs256 => Scheme::Hmac(hmac::HMAC_SHA256),
        JwtAlgorithm::Hs384 => Scheme::Hmac(hmac::HMAC_SHA384),
        JwtAlgorithm::Hs512 => Scheme::Hmac(hmac::HMAC_SHA512),
        JwtAlgorithm::Rs256 => Scheme::Rsa(&RSA_PKCS1_SHA256),
        JwtAlgorithm::Rs384 => Scheme::Rsa(&RSA_PKCS1_SHA384),
        JwtAlgorithm::Rs512 => Scheme::Rsa(&RSA_PKCS1_SHA512),
        JwtAlgorithm::Ps256 => Scheme::Rsa(&RSA_PSS_SHA256),
        JwtAlgorithm::Ps384 => Scheme::Rsa(&RSA_PSS_SHA384),
        JwtAlgorithm::Ps512 => Scheme::Rsa(&RSA_PSS_SHA512),
        JwtAlgorithm::Es256 => Scheme::Ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING, "P-256"),
        JwtAlgorithm::Es384 => Scheme::Ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING, "P-384"),
        JwtAlgorithm::Es512 => Scheme::Ecdsa(&ECDSA_P521_SHA512_FIXED_SIGNING, "P-521"),
    }
}

/// The signature of `input` under the auth's key (AL-347, AL-350, AL-351). A problem never holds the key.
pub(super) fn sign(auth: &JwtAuth, input: &[u8]) -> Result<Vec<u8>, String> {
    match scheme(auth.algorithm) {
        Scheme::Hmac(algorithm) => {
            let secret = secret(auth)?;
            Ok(hmac::sign(&hmac::Key::new(algorithm, &secret), input).as_ref().to_vec())
        }
        Scheme::Rsa(encoding) => {
            let key = rsa_key(&auth.private_key)?;
            let mut signature = vec![0; key.public_modulus_len()];
            key.sign(encoding, &SystemRandom::new(), input, &mut signature)
                .map_err(|_unspecified| CANNOT_SIGN)?;
            Ok(signature)
        }
        Scheme::Ecdsa(algorithm, curve) => {
            let key = ec_key(&auth.private_key, algorithm, curve)?;
            let signature =
                key.sign(&SystemRandom::new(), input).map_err(|_unspecified| CANNOT_SIGN)?;
            Ok(signature.as_ref().to_vec())
        }
    }
}

/// A key that was read, but whose numbers do not fit together.
const CANNOT_SIGN: &str = "privateKey cannot sign";

/// The bytes of the secret (AL-348, AL-349). An empty one signs nothing: anybody could make the same token.
fn secret(auth: &JwtAuth) -> Result<Zeroizing<Vec<u8>>, String> {
    let secret = Zeroizing::new(if auth.is_secret_base64_encoded {
        decode_base64(&auth.secret).ok_or("secret is not base64")?
    } else {
        auth.secret.as_bytes().to_vec()
    });
    if secret.is_empty() { Err("secret is empty".to_owned()) } else { Ok(secret) }
}

/// An RSA key (AL-350): one typed for RSA-PSS only is none (AL-361), and the library knows none beyond 8192 bits.
fn rsa_key(text: &str) -> Result<RsaKeyPair, String> {
    let (form, der) = pem::private_key(text).map_err(|fault| fault.to_string())?;
    // Some tools write PKCS #8 under the label of the older form.
    let key = match form {
        Form::Pkcs8 => RsaKeyPair::from_pkcs8(&der),
        Form::Rsa => RsaKeyPair::from_der(&der).or_else(|_other| RsaKeyPair::from_pkcs8(&der)),
        Form::Ec => return Err(NOT_RSA.to_owned()),
    };
    key.map_err(|_rejected| NOT_RSA.to_owned())
}

const NOT_RSA: &str = "privateKey is not an RSA key of 2048 to 8192 bits";

/// A key on the curve (AL-351).
fn ec_key(
    text: &str,
    algorithm: &'static EcdsaSigningAlgorithm,
    curve: &str,
) -> Result<EcdsaKeyPair, String> {
    let (form, der) = pem::private_key(text).map_err(|fault| fault.to_string())?;
    let key = match form {
        Form::Pkcs8 => EcdsaKeyPair::from_pkcs8(algorithm, &der).ok(),
        Form::Ec => EcdsaKeyPair::from_private_key_der(algorithm, &der).ok(),
        Form::Rsa => None,
    };
    key.ok_or_else(|| format!("privateKey is not a key on {curve}"))
}

#[cfg(test)]
pub(super) mod tests;
