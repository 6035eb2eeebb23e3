//! The bytes of a webhook: signed as JSON, sent as gzip.

use std::cell::RefCell;

use aws_lc_rs::hmac;
use bytes::Bytes;
use flate2::{Compress, Compression, FlushCompress, Status};

/// Header of the signature (LC-018).
pub const SIGNATURE_HEADER: &str = "lc-ext-sig";

/// Header of a second signature, while one shared secret takes over from another.
pub const PREVIOUS_SIGNATURE_HEADER: &str = "lc-ext-sig-previous";

/// Signs the messages of one extension: HMAC-SHA256 over the JSON *before* compression, in lower-case hex.
///
/// The contract says "raw request body"; every receiver decompresses first and verifies after (LC-019 to LC-021).
#[derive(Debug, Clone)]
pub struct Signer(hmac::Key);

impl Signer {
    /// With an extension's shared secret.
    pub fn new(secret: &str) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()))
    }

    /// The value of [`SIGNATURE_HEADER`].
    pub fn sign(&self, json: &[u8]) -> String {
        hex::encode(hmac::sign(&self.0, json))
    }
}

thread_local! {
    // A compressor's state is hundreds of kilobytes; making one per message would cost more than compressing it.
    static COMPRESSOR: RefCell<Compress> = RefCell::new(Compress::new_gzip(Compression::new(4), 15));
}

/// One gzip member (RFC 1952), nothing after it.
pub fn gzip(json: &[u8]) -> Bytes {
    COMPRESSOR.with_borrow_mut(|compressor| {
        compressor.reset();
        let mut out = Vec::with_capacity(json.len() / 2 + 64);
        loop {
            let read =
                usize::try_from(compressor.total_in()).expect("no more was read than there is");
            let status = compressor
                .compress_vec(&json[read..], &mut out, FlushCompress::Finish)
                .expect("compressing into memory cannot fail");
            if status == Status::StreamEnd {
                return Bytes::from(out);
            }
            out.reserve(json.len() / 4 + 64);
        }
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    // covers: LC-019, LC-020, LC-021
    #[test]
    fn signatures_match_what_real_receivers_accept() {
        let signer = Signer::new("test-secret-0123456789abcdef0123");
        for (json, signature) in [
            (
                r#"{"version":20221218,"idempotency_key":"5f0c7a3e-1111-4222-8333-9c1d2e3f4a5b","heartbeat":{}}"#,
                "f7dfa89e7cc3a7151688ab3fb8dfefed0efffddcc880ee8aa3cb48b9afbaa7e3",
            ),
            (r#"{"k":"é<&>"}"#, "48d3e9e316f49b8b48b3a46c93b7af6306e3f63b09bcc4ae5d59e24cf4921703"),
        ] {
            assert_eq!(signer.sign(json.as_bytes()), signature);
        }
        assert_ne!(Signer::new("another").sign(b"{}"), signer.sign(b"{}"), "LC-020");
    }

    // covers: LC-015
    #[test]
    fn any_body_is_one_gzip_member_of_itself() {
        let noise: Vec<u8> =
            (0..200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for body in [&b""[..], b"{}", b"null", &[b'a'; 70_000], &noise] {
            let wire = gzip(body);
            assert_eq!(&wire[..2], &[0x1f, 0x8b], "LC-015");
            let mut decoder = flate2::bufread::GzDecoder::new(&wire[..]);
            let mut back = Vec::new();
            decoder.read_to_end(&mut back).unwrap();
            assert_eq!(back, body);
            assert!(decoder.into_inner().is_empty(), "no bytes after the member");
        }
    }
}
