//! `gzdata`: base64 of gzip of JSON, as several real clients send request data.

use std::io::Read as _;

use annex_core::fault::{Code, Fault, Outcome};
use annex_core::limits::{GZIP_MEMBERS_MAX, REQUEST_BYTES_MAX};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use flate2::bufread::GzDecoder;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Decodes `gzdata`. Both alphabets of base64 pass, with or without padding, and a `+` that a form turned into a space.
/// Several gzip members pass as one text, as RFC 1952 says; what is cut off, or followed by anything else, does not.
/// Never holds more than [`REQUEST_BYTES_MAX`] and a byte of what comes out.
pub(crate) fn decode(text: &str) -> Outcome<Vec<u8>> {
    let standard: Vec<u8> = text
        .bytes()
        .map(|byte| match byte {
            b'-' | b' ' => b'+',
            b'_' => b'/',
            other => other,
        })
        .collect();
    let packed = BASE64.decode(standard).map_err(|_| refused("is not base64"))?;
    let mut data = Vec::with_capacity(packed.len().saturating_mul(4).min(REQUEST_BYTES_MAX));
    let mut rest = packed.as_slice();
    for _ in 0..GZIP_MEMBERS_MAX {
        let left = REQUEST_BYTES_MAX - data.len();
        let mut member = GzDecoder::new(rest);
        (&mut member)
            .take(left as u64 + 1)
            .read_to_end(&mut data)
            .map_err(|_| refused("is not gzip, is cut off, or has bytes after its end"))?;
        if REQUEST_BYTES_MAX < data.len() {
            return Err(Fault::new(
                Code::TooLarge,
                format!("gzdata decodes to more than {REQUEST_BYTES_MAX} bytes"),
            ));
        }
        rest = member.into_inner();
        if rest.is_empty() {
            return Ok(data);
        }
    }
    Err(refused(&format!("has more than {GZIP_MEMBERS_MAX} members")))
}

fn refused(what: &str) -> Fault {
    Fault::new(Code::BadRequest, format!("gzdata {what}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn check(packed: &[u8], expected: Result<&[u8], Code>) {
        let text = STANDARD.encode(packed);
        assert_eq!(decode(&text).map_err(|fault| fault.code), expected.map(<[u8]>::to_vec));
    }

    #[test]
    fn every_spelling_of_base64_passes() {
        // Bytes that need both special characters of the alphabets.
        let packed = (0..=255_u8)
            .map(|n| gzip(&[n; 3]))
            .find(|packed| {
                let text = STANDARD.encode(packed);
                text.contains('+') && text.contains('/')
            })
            .unwrap();
        let text = STANDARD.encode(&packed);
        let expected = decode(&text).unwrap();
        for spelling in [
            URL_SAFE_NO_PAD.encode(&packed),
            text.trim_end_matches('=').to_owned(),
            text.replace('+', " "),
        ] {
            assert_eq!(decode(&spelling), Ok(expected.clone()), "{spelling}");
        }
        for bad in ["", "%", "a", "AAAA AAAA*"] {
            assert_eq!(decode(bad).unwrap_err().code, Code::BadRequest, "{bad}");
        }
    }

    #[test]
    fn several_members_are_one_text_and_damage_is_refused() {
        let (one, two) = (gzip(b"{\"a\":"), gzip(b"1}"));
        check(&[one.clone(), two.clone()].concat(), Ok(b"{\"a\":1}"));
        check(&two[..two.len() - 1], Err(Code::BadRequest));
        check(&[one.as_slice(), &two[..5]].concat(), Err(Code::BadRequest));
        check(&[two.as_slice(), b"x"].concat(), Err(Code::BadRequest));
        check(&[two.as_slice(), &[0; 8]].concat(), Err(Code::BadRequest));
        check(b"{\"a\":1}", Err(Code::BadRequest));
        let mut wrong_sum = two;
        let at = wrong_sum.len() - 6;
        wrong_sum[at] ^= 1;
        check(&wrong_sum, Err(Code::BadRequest));
    }

    #[test]
    fn a_bomb_is_refused_at_the_limit() {
        let full = vec![b' '; REQUEST_BYTES_MAX];
        check(&gzip(&full), Ok(&full));
        check(&gzip(&[full.as_slice(), b" "].concat()), Err(Code::TooLarge));
        let half = gzip(&full[..REQUEST_BYTES_MAX / 2]);
        check(&[half.as_slice(), &half].concat(), Ok(&full));
        check(&[half.as_slice(), &half, &gzip(b" ")].concat(), Err(Code::TooLarge));
    }

    #[test]
    fn the_last_accepted_and_the_first_refused_number_of_members() {
        let empty = gzip(b"");
        check(&empty.repeat(GZIP_MEMBERS_MAX), Ok(b""));
        check(&empty.repeat(GZIP_MEMBERS_MAX + 1), Err(Code::BadRequest));
    }
}
