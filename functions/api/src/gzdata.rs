//! `gzdata`: base64 of gzip of JSON, as several real clients send request data.

use annex_core::fault::{Code, Fault, Outcome};
use annex_core::gzip::{self, GzipFault};
use annex_core::limits::REQUEST_BYTES_MAX;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

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
    gzip::unpack(&packed, REQUEST_BYTES_MAX).map_err(|fault| match fault {
        GzipFault::TooLarge => Fault::new(
            Code::TooLarge,
            format!("gzdata decodes to more than {REQUEST_BYTES_MAX} bytes"),
        ),
        fault => refused(&fault.to_string()),
    })
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

    fn pack(data: &[u8]) -> Vec<u8> {
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
            .map(|n| pack(&[n; 3]))
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
        let (one, two) = (pack(b"{\"a\":"), pack(b"1}"));
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
        check(&pack(&full), Ok(&full));
        check(&pack(&[full.as_slice(), b" "].concat()), Err(Code::TooLarge));
        let half = pack(&full[..REQUEST_BYTES_MAX / 2]);
        check(&[half.as_slice(), &half].concat(), Ok(&full));
        check(&[half.as_slice(), &half, &pack(b" ")].concat(), Err(Code::TooLarge));
    }
}
