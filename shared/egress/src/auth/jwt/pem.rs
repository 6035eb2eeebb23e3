//! Private keys as PEM (RFC 7468): which one a text holds, in which form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

/// A private key's form, by its label (AL-359).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `PRIVATE KEY`: PKCS #8.
    Pkcs8,
    /// `RSA PRIVATE KEY`: PKCS #1.
    Rsa,
    /// `EC PRIVATE KEY`: SEC 1.
    Ec,
}

/// Why a text holds no private key that can be used. No variant holds any of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum PemFault {
    /// No private key, or one cut short.
    #[error("privateKey is not a private key in PEM")]
    Missing,
    /// AL-360.
    #[error("privateKey is encrypted")]
    Encrypted,
    /// Of another algorithm's own form.
    #[error("privateKey is not PKCS #8, PKCS #1 or SEC 1")]
    Form,
}

/// The first private key of a text, as DER. Text around it and blocks that are no private keys are passed over, such as
/// the parameters that stand before an EC key; a second private key is never looked at.
pub(super) fn private_key(text: &str) -> Result<(Form, Zeroizing<Vec<u8>>), PemFault> {
    // A byte order mark comes with files from some editors.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().map(str::trim_ascii_end);
    let label = lines
        .by_ref()
        .find_map(|line| label(line, "-----BEGIN ").filter(|label| label.ends_with("PRIVATE KEY")))
        .ok_or(PemFault::Missing)?;
    let form = match label {
        "PRIVATE KEY" => Form::Pkcs8,
        "RSA PRIVATE KEY" => Form::Rsa,
        "EC PRIVATE KEY" => Form::Ec,
        "ENCRYPTED PRIVATE KEY" => return Err(PemFault::Encrypted),
        _ => return Err(PemFault::Form),
    };
    let mut body = Zeroizing::new(String::with_capacity(text.len()));
    for line in lines {
        if label == self::label(line, "-----END ").unwrap_or_default() {
            let der = STANDARD.decode(body.as_bytes()).map_err(|_bad| PemFault::Missing)?;
            return Ok((form, Zeroizing::new(der)));
        }
        // How keys were encrypted before PKCS #8 (RFC 1421).
        if line.starts_with("Proc-Type:") && line.ends_with("ENCRYPTED") {
            return Err(PemFault::Encrypted);
        }
        // A blank line ends such a header, so it makes no sense in a key that has none.
        if line.is_empty() {
            return Err(PemFault::Missing);
        }
        body.push_str(line);
    }
    Err(PemFault::Missing)
}

/// The label of an encapsulation boundary, which is a line of its own.
fn label<'t>(line: &'t str, opens: &str) -> Option<&'t str> {
    line.strip_prefix(opens)?.strip_suffix("-----").filter(|label| !label.contains('-'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<(Form, &[u8]), PemFault>) {
        let read = private_key(text);
        let read = read.as_ref().map(|(form, der)| (*form, der.as_slice()));
        assert_eq!(read, expected.as_ref().copied(), "{text:?}");
    }

    fn block(label: &str, body: &str) -> String {
        format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
    }

    // covers: AL-359
    #[test]
    fn the_label_says_the_form() {
        for (label, form) in [
            ("PRIVATE KEY", Form::Pkcs8),
            ("RSA PRIVATE KEY", Form::Rsa),
            ("EC PRIVATE KEY", Form::Ec),
        ] {
            check(&block(label, "Zm9v"), Ok((form, b"foo")));
        }
        for label in ["DSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "XPRIVATE KEY", "ANY PRIVATE KEY"] {
            check(&block(label, "Zm9v"), Err(PemFault::Form));
        }
    }

    // covers: AL-360
    #[test]
    fn an_encrypted_key_is_refused() {
        check(&block("ENCRYPTED PRIVATE KEY", "Zm9v"), Err(PemFault::Encrypted));
        let headers = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nZm9v";
        check(&block("EC PRIVATE KEY", headers), Err(PemFault::Encrypted));
        let first = block("ENCRYPTED PRIVATE KEY", "Zm9v") + &block("PRIVATE KEY", "Zm9v");
        check(&first, Err(PemFault::Encrypted));
    }

    #[test]
    fn lines_may_end_and_break_as_they_like() {
        let long = block("PRIVATE KEY", "Zm9vYmFy");
        for text in [
            long.clone(),
            long.replace('\n', "\r\n"),
            long.replace('\n', " \t\n"),
            long.trim_end().to_owned(),
            long.replace("Zm9v", "Zm\n9v"),
            format!("\u{feff}{long}"),
            format!("\n\nkey of: nobody\n{long}text behind"),
        ] {
            check(&text, Ok((Form::Pkcs8, b"foobar")));
        }
    }

    #[test]
    fn only_the_first_private_key_is_looked_at() {
        let second = block("PRIVATE KEY", "YmFy");
        check(&(block("PRIVATE KEY", "Zm9v") + &second), Ok((Form::Pkcs8, b"foo")));
        check(&(block("PRIVATE KEY", "~~~~") + &second), Err(PemFault::Missing));
        check(&(block("EC PARAMETERS", "Zm9v") + &second), Ok((Form::Pkcs8, b"bar")));
        check(&(block("PUBLIC KEY", "Zm9v") + &second), Ok((Form::Pkcs8, b"bar")));
    }

    #[test]
    fn what_is_no_pem_is_refused() {
        let good = block("PRIVATE KEY", "Zm9v");
        for text in [
            String::new(),
            "Zm9v".to_owned(),
            block("PUBLIC KEY", "Zm9v"),
            block("CERTIFICATE", "Zm9v"),
            good.to_lowercase(),
            good.replace('\n', " "),
            good.replace('\n', "\\n"),
            good.replace('\n', ""),
            good.replace('\n', "\r"),
            good.replace('\n', "\n\n"),
            format!(" {good}"),
            good.replace("-----END PRIVATE KEY-----\n", ""),
            good.replace("END PRIVATE", "END EC PRIVATE"),
            good.replace("Zm9v", "Comment: x\n\nZm9v"),
            good.replace("Zm9v", "Zm9"),
            good.replace("Zm9v", "__8="),
            good.replace("Zm9v", "Zm 9v"),
            good.replace("Zm9v", "é"),
        ] {
            check(&text, Err(PemFault::Missing));
        }
        check(&block("PRIVATE KEY", "").replace("\n\n", "\n"), Ok((Form::Pkcs8, b"")));
    }
    proptest! {
        #[test]
        fn any_text_is_read_or_refused(pieces in proptest::collection::vec(0usize..9, 0..12), other in ".{0,9}") {
            let text: String = pieces
                .iter()
                .map(|piece| {
                    ["-----BEGIN ", "-----END ", "PRIVATE KEY", "EC ", "-----", "\n", "Zm9v", "=", &other][*piece]
                })
                .collect();
            let _ = private_key(&text);
        }
    }
}
