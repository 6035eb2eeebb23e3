//! Reads `www-authenticate` (RFC 9110, 11.6.1): several challenges of several schemes, in one line or in many.
//!
//! Lines come from the vendor: what does not fit the grammar spoils the challenge it stands in, and no other. Each byte is
//! looked at a fixed number of times.

/// A challenge as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// The scheme, as written.
    pub scheme: String,
    /// Names in lower case, and values without their quotes and escapes, in the order written.
    pub parameters: Vec<(String, String)>,
    /// Whether something in it does not fit the grammar.
    pub malformed: bool,
}

impl Offer {
    /// The value of a parameter; an error where the offer has it twice.
    pub fn parameter(&self, name: &str) -> Result<Option<&str>, Twice> {
        let mut values = self.parameters.iter().filter(|(known, _)| known == name);
        let value = values.next().map(|(_, value)| value.as_str());
        if values.next().is_some() { Err(Twice) } else { Ok(value) }
    }
}

/// A parameter that an offer has more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Twice;

/// The challenges of these lines, in their order.
pub fn offers(lines: &[&str]) -> Vec<Offer> {
    let mut offers = Vec::new();
    for line in lines {
        offers.append(&mut Reader { text: line, at: 0, offers: Vec::new() }.read());
    }
    offers
}

/// A place of the text that does not fit the grammar.
struct Malformed;

struct Reader<'a> {
    text: &'a str,
    at: usize,
    offers: Vec<Offer>,
}

impl<'a> Reader<'a> {
    fn read(mut self) -> Vec<Offer> {
        loop {
            self.skip(|byte| matches!(byte, b' ' | b'\t' | b','));
            if self.peek().is_none() {
                return self.offers;
            }
            if self.element().is_err() {
                if let Some(offer) = self.offers.last_mut() {
                    offer.malformed = true;
                }
                self.skip_element();
            }
        }
    }

    /// A scheme with what belongs to it alone, or a parameter of the challenge before it.
    fn element(&mut self) -> Result<(), Malformed> {
        let name = self.take(is_token);
        if name.is_empty() {
            return Err(Malformed);
        }
        let after_name = self.at;
        self.skip_spaces();
        if self.peek() == Some(b'=') && !self.offers.is_empty() {
            self.at += 1;
            self.skip_spaces();
            let value = self.value()?;
            self.end_of_element()?;
            if let Some(offer) = self.offers.last_mut() {
                offer.parameters.push((name.to_ascii_lowercase(), value));
            }
            return Ok(());
        }
        self.at = after_name;
        self.offers.push(Offer { scheme: name.to_owned(), ..Offer::default() });
        match self.peek() {
            None | Some(b',') => return Ok(()),
            Some(b' ' | b'\t') => self.skip_spaces(),
            Some(_) => return Err(Malformed),
        }
        // What follows a scheme is a text of its own kind, or parameters, the first of them without a comma before it.
        let start = self.at;
        self.skip(is_token68);
        self.skip(|byte| byte == b'=');
        if self.at == start || self.end_of_element().is_err() {
            self.at = start;
        }
        Ok(())
    }

    fn end_of_element(&mut self) -> Result<(), Malformed> {
        self.skip_spaces();
        if matches!(self.peek(), None | Some(b',')) { Ok(()) } else { Err(Malformed) }
    }

    /// A quoted string, or whatever a vendor writes without quotes: a nonce in base64 is no token, and is sent so.
    fn value(&mut self) -> Result<String, Malformed> {
        if self.peek() == Some(b'"') {
            return self.quoted();
        }
        let value = self.take(|byte| byte > b' ' && !matches!(byte, b',' | b'"' | 0x7f));
        if value.is_empty() { Err(Malformed) } else { Ok(value.to_owned()) }
    }

    fn quoted(&mut self) -> Result<String, Malformed> {
        let mut value = String::new();
        let mut characters = self.text[self.at..].char_indices().skip(1);
        while let Some((index, character)) = characters.next() {
            match character {
                '"' => {
                    self.at += index + 1;
                    return Ok(value);
                }
                '\\' => value.extend(characters.next().map(|(_, character)| character)),
                character => value.push(character),
            }
        }
        self.at = self.text.len();
        Err(Malformed)
    }

    /// On to the next comma outside quotes.
    fn skip_element(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b',' => return,
                b'"' => _ = self.quoted(),
                _ => self.at += 1,
            }
        }
    }

    fn skip_spaces(&mut self) {
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
    }

    fn skip(&mut self, fits: impl Fn(u8) -> bool) {
        self.take(fits);
    }

    /// The bytes from here on that fit. They end between two characters: whoever fits a byte of a character that is not
    /// ASCII fits all of them.
    fn take(&mut self, fits: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| fits(**byte)).count();
        let taken = &self.text[self.at..self.at + length];
        self.at += length;
        taken
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn is_token68(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes what was read: `Scheme(name=value,name=value)`, with `!` after what is malformed.
    #[track_caller]
    fn check(lines: &[&str], expected: &str) {
        let write = |offer: &Offer| {
            let parameters: Vec<String> =
                offer.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let mark = if offer.malformed { "!" } else { "" };
            format!("{}({}){mark}", offer.scheme, parameters.join(","))
        };
        let read: Vec<String> = offers(lines).iter().map(write).collect();
        assert_eq!(read.join(" "), expected, "{lines:?}");
    }

    #[test]
    fn challenges_of_several_schemes_and_lines_are_told_apart() {
        check(&[], "");
        check(&["", " , "], "");
        check(&[r#"Digest realm="r", nonce=n"#], "Digest(realm=r,nonce=n)");
        check(&[r#"Basic realm="x""#, "Negotiate"], "Basic(realm=x) Negotiate()");
        // RFC 9110, 11.6.1.
        check(
            &[r#"Basic realm="simple", Newauth realm="apps", type=1, title="Login to \"apps\"""#],
            r#"Basic(realm=simple) Newauth(realm=apps,type=1,title=Login to "apps")"#,
        );
        check(
            &[r#"NTLM, Negotiate abc/+==, Digest realm="r""#],
            "NTLM() Negotiate() Digest(realm=r)",
        );
        check(&[r#"Digest ,, realm="r",, nonce="n","#], "Digest(realm=r,nonce=n)");
        check(&[r#",Digest  REALM = "r" ,	Nonce	=	n "#], "Digest(realm=r,nonce=n)");
        check(&[r#"Digest opaque="a, Digest b", nonce="n""#], "Digest(opaque=a, Digest b,nonce=n)");
        check(&[r#"Digest nonce=a/b==, qop=auth"#], "Digest(nonce=a/b==,qop=auth)");
        check(&[r#"Digest realm="é\é\\", x=é"#], r"Digest(realm=éé\,x=é)");
        check(&[r#"Digest realm="""#], "Digest(realm=)");
    }

    #[test]
    fn what_does_not_fit_spoils_its_own_challenge_only() {
        check(
            &[r#"Digest realm="r", =x, nonce="n", Basic realm="b""#],
            "Digest(realm=r,nonce=n)! Basic(realm=b)",
        );
        check(&[r#"Digest realm="r" nonce="n""#], "Digest()!");
        check(&[r#"Digest realm="a"b, Basic realm="c""#], "Digest()! Basic(realm=c)");
        check(&[r#"Digest realm="unclosed, nonce=n"#], "Digest()!");
        check(&[r#"Digest realm="unclosed\"#], "Digest()!");
        check(&["Digest realm, nonce=n"], "Digest(nonce=n)");
        check(&["Digest realm=r; nonce=n"], "Digest()!");
        check(&["Digest nonce= , realm=r"], "Digest(realm=r)");
        check(&["Digest realm=r, nonce= , x=y"], "Digest(realm=r,x=y)!");
        check(&["realm=r"], "realm()!");
        check(&["é", "=", "\"", "\"a\"", ";;"], "");
        check(&[r#"Basic="x", Digest realm=r"#], "Basic()! Digest(realm=r)");
        check(&[r#"Digest realm=r"#, "=x"], "Digest(realm=r)");
    }

    #[test]
    fn a_long_line_is_read_in_time_that_grows_with_its_length() {
        for piece in ["a ", "a=", "a,", "\"", "\\\"", "a b=\"", "D x=\"\\", "=,", "a a==, "] {
            let line = piece.repeat(64 * 1024 / piece.len());
            assert!(offers(&[&line]).len() <= line.len());
        }
    }

    proptest::proptest! {
        #[test]
        fn no_line_makes_the_reader_panic(line in "\\PC{0,60}", parts in "[a=,\"\\\\ \t/é]{0,60}") {
            offers(&[&line, &parts]);
        }
    }
}
