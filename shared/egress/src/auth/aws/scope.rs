//! The key and the text of a signature.

use aws_lc_rs::{digest, hmac};

/// The name of the algorithm.
pub const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// When, where and for which service a signature holds.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// `yyyyMMddTHHmmssZ`.
    pub date_time: &'a str,
    /// Such as `us-east-1`.
    pub region: &'a str,
    /// Such as `s3`.
    pub service: &'a str,
}

impl Scope<'_> {
    /// The scope as a credential and the signed text hold it.
    pub fn text(&self) -> String {
        format!("{}/{}/{}/aws4_request", self.date(), self.region, self.service)
    }

    /// The text that is signed for a canonical request.
    pub fn string_to_sign(&self, canonical_request: &str) -> String {
        let hash = sha256(canonical_request.as_bytes());
        format!("{ALGORITHM}\n{}\n{}\n{hash}", self.date_time, self.text())
    }

    /// The key derived for this scope.
    pub fn signing_key(&self, secret_key: &str) -> Vec<u8> {
        let first = format!("AWS4{secret_key}").into_bytes();
        [self.date(), self.region, self.service, "aws4_request"]
            .iter()
            .fold(first, |key, part| mac(&key, part.as_bytes()))
    }

    /// The signature of a canonical request, in lower-case hex.
    pub fn signature(&self, secret_key: &str, canonical_request: &str) -> String {
        let text = self.string_to_sign(canonical_request);
        hex::encode(mac(&self.signing_key(secret_key), text.as_bytes()))
    }

    /// `yyyyMMdd`.
    fn date(&self) -> &str {
        self.date_time.split('T').next().unwrap_or_default()
    }
}

/// SHA-256 in lower-case hex.
pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(digest::digest(&digest::SHA256, bytes))
}

fn mac(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), bytes).as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_that_of_the_aws_documentation() {
        // AWS General Reference, examples of how to derive a signing key.
        let scope = Scope { date_time: "20120215T000000Z", region: "us-east-1", service: "iam" };
        assert_eq!(
            hex::encode(scope.signing_key("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")),
            "f4780e2d9f65fa895f9c67b32ce1baf0b0d8a43505a000a1a9e090d414db404d"
        );
        assert_eq!(scope.text(), "20120215/us-east-1/iam/aws4_request");
    }
}
