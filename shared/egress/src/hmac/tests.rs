use super::*;

const DATA: &[u8] = b"what do ya want for nothing?";

/// Of RFC 2202 and RFC 4231, test case 2.
const HEX: [(HmacAlgorithm, &str); 3] = [
    (HmacAlgorithm::Sha1, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
    (HmacAlgorithm::Sha256, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
    (
        HmacAlgorithm::Sha512,
        "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a\
         6b4b636e070a38bce737",
    ),
];

/// The SHA-256 one.
const BASE64: &str = "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=";

// covers: AL-406, AL-407
#[test]
fn published_signatures_come_out_in_hex_and_in_base64() {
    for (algorithm, hex) in HEX {
        assert_eq!(sign(algorithm, b"Jefe", DATA, SignatureEncoding::default()), hex);
    }
    assert_eq!(sign(HmacAlgorithm::Sha256, b"Jefe", DATA, SignatureEncoding::Base64), BASE64);
}

#[test]
fn empty_keys_and_empty_data_are_signed_too() {
    let empty = "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad";
    assert_eq!(sign(HmacAlgorithm::Sha256, b"", b"", SignatureEncoding::Hex), empty);
}

#[test]
fn data_in_pieces_signs_as_data_in_one() {
    let mut pieces = Hmac::new(HmacAlgorithm::Sha256, b"Jefe");
    for piece in DATA.chunks(5) {
        pieces.update(piece);
    }
    assert_eq!(pieces.finish(SignatureEncoding::Base64), BASE64);
}

#[track_caller]
fn check_key(encoding: KeyEncoding, text: &str, expected: Result<&[u8], KeyFault>) {
    let bytes = key_bytes(text, encoding);
    assert_eq!(
        bytes.as_ref().map(|bytes| bytes.as_slice()),
        expected.as_ref().copied(),
        "{text:?}"
    );
}

// covers: AL-408
#[test]
fn a_utf8_key_is_its_text() {
    check_key(KeyEncoding::default(), "é", Ok(&[0xC3, 0xA9]));
    check_key(KeyEncoding::Utf8, "whsec_AA==", Ok(b"whsec_AA=="));
    check_key(KeyEncoding::Utf8, "", Ok(b""));
}

// covers: AL-409
#[test]
fn a_base64_key_is_standard_or_url_safe_and_padded_or_not() {
    for text in ["//79/w==", "//79/w", "__79_w==", "__79_w"] {
        check_key(KeyEncoding::Base64, text, Ok(&[0xFF, 0xFE, 0xFD, 0xFF]));
    }
    for (text, bytes) in
        [("", &b""[..]), ("Zg", b"f"), ("Zm8=", b"fo"), ("Zm8", b"fo"), ("Zm9v", b"foo")]
    {
        check_key(KeyEncoding::Base64, text, Ok(bytes));
    }
}

#[test]
fn bits_behind_the_last_byte_of_a_base64_key_are_not_looked_at() {
    for text in ["ab==", "ab", "aa"] {
        check_key(KeyEncoding::Base64, text, Ok(&[0x69]));
    }
    check_key(KeyEncoding::Base64, "AA/", Ok(&[0x00, 0x0F]));
}

// covers: AL-410
#[test]
fn a_standard_webhooks_prefix_is_dropped_once_and_in_lower_case_only() {
    check_key(KeyEncoding::Base64, "whsec_Zm9v", Ok(b"foo"));
    check_key(KeyEncoding::Base64, "whsec_", Ok(b""));
    let twice = [0xC2, 0x1B, 0x1E, 0x73, 0xF6, 0x66, 0xF6];
    check_key(KeyEncoding::Base64, "whsec_whsec_Zm9v", Ok(&twice));
    let upper = [0x58, 0x74, 0x84, 0x0B, 0xF6, 0x66, 0xF6];
    check_key(KeyEncoding::Base64, "WHSEC_Zm9v", Ok(&upper));
}

// covers: AL-411
#[test]
fn a_hex_key_is_in_either_case() {
    for text in ["00abFF", "00ABff"] {
        check_key(KeyEncoding::Hex, text, Ok(&[0x00, 0xAB, 0xFF]));
    }
    check_key(KeyEncoding::Hex, "", Ok(b""));
}

// covers: AL-412, AL-413, AL-414
#[test]
fn a_key_that_does_not_decode_is_refused_without_its_text() {
    let texts = [
        "***secretkey***",
        "A",
        "abcde",
        "=",
        "==",
        "a=",
        "ab=",
        "ab===",
        "abc==",
        "abcd=",
        "abcd====",
        "ab=c",
        "=abc",
        "ab cd",
        "abcd\n",
        " abcd",
        "é",
        "~~",
        "/-8",
        "whsec_A",
        "whsec_ Zm9v",
    ];
    for text in texts {
        check_key(KeyEncoding::Base64, text, Err(KeyFault::NotBase64));
    }
    for text in ["zz", "0", "00 ", "0x00", "+0", "g0", "00\n", "０0", "é"] {
        check_key(KeyEncoding::Hex, text, Err(KeyFault::NotHex));
    }
    assert_eq!(KeyFault::NotBase64.to_string(), "the key is not base64");
    assert_eq!(KeyFault::NotHex.to_string(), "the key is not hex");
}

// No time that a test can take shows it, so what is compared with is read.
// covers: AL-416
#[test]
fn signatures_are_compared_in_constant_time() {
    let source = include_str!("../hmac.rs");
    let compared =
        "constant_time::verify_slices_are_equal(expected.as_bytes(), signature.as_bytes())";
    assert_eq!(source.matches(compared).count(), 1);
    assert!(!source.contains("signature =="), "and in no other way");
}

#[track_caller]
fn check_verify(encoding: SignatureEncoding, signature: &str, expected: bool) {
    let is_valid = verify(HmacAlgorithm::Sha256, b"Jefe", DATA, encoding, signature);
    assert_eq!(is_valid, expected, "{signature:?}");
}

// covers: AL-415, AL-417
#[test]
fn a_hex_signature_is_valid_in_any_case() {
    let hex = HEX[1].1;
    check_verify(SignatureEncoding::Hex, hex, true);
    check_verify(SignatureEncoding::Hex, &hex.to_uppercase(), true);
    check_verify(SignatureEncoding::Hex, &hex.replace("5b", "5B"), true);
    check_verify(SignatureEncoding::Hex, &hex.replace("5bd", "5be"), false);
}

// covers: AL-415, AL-418
#[test]
fn a_base64_signature_is_valid_exactly_as_it_is_written() {
    check_verify(SignatureEncoding::Base64, BASE64, true);
    check_verify(SignatureEncoding::Base64, &BASE64.to_lowercase(), false);
    check_verify(SignatureEncoding::Base64, BASE64.trim_end_matches('='), false);
    // The same bytes, but another text: a bit behind the last byte is set.
    check_verify(SignatureEncoding::Base64, &BASE64.replace("EM=", "EN="), false);
}

// covers: AL-419
#[test]
fn a_signature_of_another_length_or_form_is_not_valid_and_no_error() {
    let hex = HEX[1].1;
    let short = &hex[..hex.len() - 2];
    let long = format!("{hex}00");
    let spaced = format!(" {}", &hex[1..]);
    let foreign = "é".repeat(hex.len() / 2);
    for signature in ["", short, &long, &spaced, &foreign, HEX[0].1, HEX[2].1, BASE64] {
        check_verify(SignatureEncoding::Hex, signature, false);
    }
    for signature in ["", hex, "=", &"=".repeat(BASE64.len())] {
        check_verify(SignatureEncoding::Base64, signature, false);
    }
}
