//! Signatures over a final request, in a header of the app's choice (AL-385 to AL-402).

use zeroize::Zeroizing;

use crate::draft::Draft;
use crate::hmac::{self, Hmac, HmacAlgorithm, KeyEncoding, KeyFault, SignatureEncoding};
use crate::placeholder::FILLED_BYTES_MAX;

/// What a request's `sign` asks for. The key is a text by now, whether the request named a secret or gave the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Sign {
    /// The name of the header, in lower case.
    pub header: String,
    /// The hash.
    pub algorithm: HmacAlgorithm,
    /// The key's text.
    pub key: Zeroizing<String>,
    /// How the text becomes the key's bytes (AL-392).
    pub key_encoding: KeyEncoding,
    /// How the signature is written (AL-390).
    pub encoding: SignatureEncoding,
    /// Signed before the body; not filled yet.
    pub prefix: Option<String>,
    /// Signed behind the body; not filled yet.
    pub suffix: Option<String>,
}

/// Why a request is not signed. The text is the one the caller gets, before redaction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignFault {
    /// The request or its auth has the header (AL-401).
    #[error("sign: header {0} is set already")]
    HeaderSet(String),
    /// The key's text does not decode (AL-393).
    #[error("sign: {0}")]
    Key(#[from] KeyFault),
    /// Prefix and suffix are longer than [`FILLED_BYTES_MAX`].
    #[error(
        "sign: prefix and suffix are longer than {FILLED_BYTES_MAX} bytes once they are filled"
    )]
    TooLong,
    /// A placeholder with the call's tag names a secret that the call does not carry (AL-091).
    #[error("secret {0} is not set for this install")]
    SecretNotSet(String),
}

/// The secrets of a call, for its placeholders.
#[derive(Clone, Copy)]
pub struct Secrets<'s> {
    /// The call's tag.
    pub tag: &'s str,
    /// The value of a secret, by its name; none for one that the call does not carry.
    pub value: &'s dyn Fn(&str) -> Option<&'s str>,
}

/// Checks a `prefix` or `suffix` as it is parsed: an unknown `{{request:…}}` is a problem, whose text this gives (AL-399).
/// All else is taken, the bare tag included (AL-104).
pub fn check_template(template: &str) -> Result<(), String> {
    for piece in Pieces::new(template, None) {
        if let Piece::UnknownPart(name) = piece {
            let name = shown(name);
            let known = "{{request:method}}, {{request:target}} or {{request:host}}";
            return Err(format!("unknown placeholder {{{{request:{name}}}}}: expected {known}"));
        }
    }
    Ok(())
}

/// Characters of a name that a problem shows.
const NAME_CHARS_SHOWN: usize = 128;

fn shown(name: &str) -> String {
    name.chars().take(NAME_CHARS_SHOWN).collect()
}

/// The header that signs `draft`, which has its auth's additions by now (AL-265): its name and its value, the HMAC of
/// prefix, body and suffix (AL-388, AL-389).
pub fn signature(
    sign: &Sign,
    draft: &Draft<'_>,
    secrets: Secrets<'_>,
) -> Result<(String, String), SignFault> {
    if draft.header(&sign.header).is_some() {
        return Err(SignFault::HeaderSet(sign.header.clone()));
    }
    let key = hmac::key_bytes(&sign.key, sign.key_encoding)?;
    let mut hmac = Hmac::new(sign.algorithm, &key);
    let mut left = FILLED_BYTES_MAX;
    update_filled(&mut hmac, sign.prefix.as_deref(), draft, secrets, &mut left)?;
    hmac.update(draft.body_bytes());
    update_filled(&mut hmac, sign.suffix.as_deref(), draft, secrets, &mut left)?;
    Ok((sign.header.clone(), hmac.finish(sign.encoding)))
}

/// Signs a template as it is filled: in one pass, so that what was filled in is never read again (AL-394).
fn update_filled(
    hmac: &mut Hmac,
    template: Option<&str>,
    draft: &Draft<'_>,
    secrets: Secrets<'_>,
    left: &mut usize,
) -> Result<(), SignFault> {
    let mut update = |text: &str| {
        *left = left.checked_sub(text.len()).ok_or(SignFault::TooLong)?;
        hmac.update(text.as_bytes());
        Ok::<(), SignFault>(())
    };
    for piece in Pieces::new(template.unwrap_or_default(), Some(secrets.tag)) {
        match piece {
            Piece::Text(text) => update(text)?,
            Piece::Secret(name) => {
                let value =
                    (secrets.value)(name).ok_or_else(|| SignFault::SecretNotSet(shown(name)))?;
                update(value)?;
            }
            Piece::Part(Part::Method) => update(draft.method)?,
            Piece::Part(Part::Target) => update(&draft.url.target)?,
            Piece::Part(Part::Host) => update(&draft.url.host_header())?,
            // Refused when the request was parsed; signed as what it is if it comes here all the same.
            Piece::UnknownPart(name) => update(&format!("{REQUEST_OPENS}{name}{CLOSES}"))?,
        }
    }
    Ok(())
}

/// A part of the request that a template names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// In upper case (AL-396).
    Method,
    /// Path and query as they are sent (AL-397).
    Target,
    /// The host header (AL-398).
    Host,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'t> {
    Text(&'t str),
    /// By its name; only with the call's tag (AL-395).
    Secret(&'t str),
    Part(Part),
    UnknownPart(&'t str),
}

const SECRET_OPENS: &str = "{{secret:";
const REQUEST_OPENS: &str = "{{request:";
const CLOSES: &str = "}}";

/// The pieces of a template, in order. What is no placeholder is text, and so is a secret's with another tag or none.
struct Pieces<'t> {
    rest: &'t str,
    tag: Option<&'t str>,
    /// The placeholder that ends the text that was handed out last.
    next: Option<Piece<'t>>,
}

impl<'t> Pieces<'t> {
    fn new(template: &'t str, tag: Option<&'t str>) -> Self {
        Self { rest: template, tag, next: None }
    }

    /// The placeholder that `text` begins with, and what follows it.
    fn placeholder(&self, text: &'t str) -> Option<(Piece<'t>, &'t str)> {
        if let Some((name, rest)) = enclosed(text, REQUEST_OPENS) {
            let piece = match name {
                "method" => Piece::Part(Part::Method),
                "target" => Piece::Part(Part::Target),
                "host" => Piece::Part(Part::Host),
                unknown => Piece::UnknownPart(unknown),
            };
            return Some((piece, rest));
        }
        let (inside, rest) = enclosed(text, SECRET_OPENS)?;
        let (name, tag) = inside.rsplit_once(':')?;
        let is_filled = Some(tag) == self.tag && !tag.is_empty();
        let is_name = !name.is_empty() && !name.contains(':');
        (is_filled && is_name).then_some((Piece::Secret(name), rest))
    }
}

impl<'t> Iterator for Pieces<'t> {
    type Item = Piece<'t>;

    fn next(&mut self) -> Option<Piece<'t>> {
        if let Some(piece) = self.next.take() {
            return Some(piece);
        }
        if self.rest.is_empty() {
            return None;
        }
        let template = self.rest;
        for (at, _brace) in template.match_indices('{') {
            if let Some((piece, rest)) = self.placeholder(&template[at..]) {
                self.rest = rest;
                if at == 0 {
                    return Some(piece);
                }
                self.next = Some(piece);
                return Some(Piece::Text(&template[..at]));
            }
        }
        self.rest = "";
        Some(Piece::Text(template))
    }
}

/// What stands between `opens` and the closing braces, without a brace in it, and what follows them.
fn enclosed<'t>(text: &'t str, opens: &str) -> Option<(&'t str, &'t str)> {
    let inside = text.strip_prefix(opens)?;
    let end = inside.find(['{', '}'])?;
    let rest = inside[end..].strip_prefix(CLOSES)?;
    Some((&inside[..end], rest))
}

#[cfg(test)]
mod tests;
