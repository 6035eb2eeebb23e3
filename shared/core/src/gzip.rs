//! Decompression of what came from outside: as large as allowed, and no larger.

use std::io::Read as _;

use flate2::bufread::GzDecoder;

use crate::limits::GZIP_MEMBERS_MAX;

/// Why a text was not decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GzipFault {
    /// It is no gzip, is cut off, has bytes after its end, or its checksum does not fit.
    #[error("is not gzip, is cut off, or has bytes after its end")]
    Invalid,
    /// More bytes come out of it than allowed.
    #[error("decompresses to more bytes than allowed")]
    TooLarge,
    /// It has more than [`GZIP_MEMBERS_MAX`] members.
    #[error("has more than {GZIP_MEMBERS_MAX} members")]
    TooManyMembers,
}

/// Decompresses a gzip text of one or several members (RFC 1952), once: what comes out may be gzip again. Never holds
/// more than `most` bytes of it and one.
///
/// # Errors
///
/// See [`GzipFault`].
pub fn unpack(packed: &[u8], most: usize) -> Result<Vec<u8>, GzipFault> {
    let mut out = Vec::with_capacity(packed.len().saturating_mul(4).min(most));
    let mut rest = packed;
    for _ in 0..GZIP_MEMBERS_MAX {
        let left = most - out.len();
        let mut member = GzDecoder::new(rest);
        (&mut member)
            .take(left as u64 + 1)
            .read_to_end(&mut out)
            .map_err(|_| GzipFault::Invalid)?;
        if most < out.len() {
            return Err(GzipFault::TooLarge);
        }
        rest = member.into_inner();
        if rest.is_empty() {
            return Ok(out);
        }
    }
    Err(GzipFault::TooManyMembers)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use aws_lc_rs::digest::{SHA256, digest};
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use serde_json::Value;

    use super::*;

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn check(packed: &[u8], most: usize, expected: Result<&[u8], GzipFault>) {
        assert_eq!(unpack(packed, most), expected.map(<[u8]>::to_vec));
    }

    #[test]
    fn the_members_are_one_text() {
        let (one, two) = (gzip(b"{\"a\":"), gzip(b"1}"));
        check(&[one.clone(), two.clone()].concat(), 7, Ok(b"{\"a\":1}"));
        check(&gzip(&one), 100, Ok(&one));
        check(&[one.as_slice(), &two[..5]].concat(), 100, Err(GzipFault::Invalid));
        check(&[one.as_slice(), b"x"].concat(), 100, Err(GzipFault::Invalid));
        check(b"", 100, Err(GzipFault::Invalid));
    }

    #[test]
    fn the_last_accepted_and_the_first_refused_size() {
        check(&gzip(b"abcd"), 4, Ok(b"abcd"));
        check(&gzip(b"abcde"), 4, Err(GzipFault::TooLarge));
        check(&gzip(b""), 0, Ok(b""));
        check(&[gzip(b"ab"), gzip(b"cd")].concat(), 4, Ok(b"abcd"));
        check(&[gzip(b"ab"), gzip(b"cd"), gzip(b"e")].concat(), 4, Err(GzipFault::TooLarge));
    }

    #[test]
    fn the_last_accepted_and_the_first_refused_number_of_members() {
        let empty = gzip(b"");
        check(&empty.repeat(GZIP_MEMBERS_MAX), 0, Ok(b""));
        check(&empty.repeat(GZIP_MEMBERS_MAX + 1), 0, Err(GzipFault::TooManyMembers));
    }

    /// Largest text of the published cases that is no bomb, and room above it.
    const MOST: usize = 8 << 20;

    #[test]
    fn the_published_streams_are_judged_as_they_say() {
        annex_vectors::run("gzip-edge", |case| {
            let expected = &case["expect"];
            match (unpack(&packed(&case["input"]), MOST), expected["result"].as_str()) {
                (Ok(_), Some("either")) if expected["length"].is_null() => Ok(()),
                (Ok(data), Some("ok" | "either")) => {
                    annex_vectors::same("the length", data.len(), &expected["length"])?;
                    let sum = hex::encode(digest(&SHA256, &data));
                    annex_vectors::same("the sum", sum, &expected["sha256_hex"])
                }
                (Err(GzipFault::Invalid), Some("error" | "either"))
                | (Err(GzipFault::TooManyMembers), Some("either"))
                | (Err(GzipFault::TooLarge), Some("limit")) => Ok(()),
                (found, _) => Err(format!("{:?}", found.map(|data| data.len()))),
            }
        });
    }

    fn packed(input: &Value) -> Vec<u8> {
        let bytes = |part: &Value| STANDARD.decode(part["bytes_b64"].as_str().unwrap()).unwrap();
        let Some(parts) = input["generate"].as_array() else { return bytes(input) };
        let count = |part: &Value| usize::try_from(part["count"].as_u64().unwrap()).unwrap();
        parts.iter().flat_map(|part| bytes(part).repeat(count(part))).collect()
    }
}
