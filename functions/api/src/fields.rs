//! Fields: what a form, a query or a JSON object carries, as texts under names.

use annex_core::fault::{Code, Fault, Outcome};
use annex_core::json::{self, Object};
use annex_core::limits::{FIELD_BYTES_MAX, FIELDS_MAX};

/// Texts under names. A list is a name that stands more than once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// Adds the fields of a form (`application/x-www-form-urlencoded`).
    pub(crate) fn add_form(&mut self, body: &[u8]) -> Outcome<()> {
        for pair in body.split(|&byte| byte == b'&') {
            if pair.is_empty() {
                continue;
            }
            let (name, value) = match pair.iter().position(|&byte| byte == b'=') {
                Some(at) => (&pair[..at], &pair[at + 1..]),
                None => (pair, &pair[pair.len()..]),
            };
            self.add(decode(name)?, decode(value)?)?;
        }
        Ok(())
    }

    /// Adds the fields of a query that are not there yet: what the body says comes first.
    pub(crate) fn add_query(&mut self, query: &str) -> Outcome<()> {
        let mut more = Self::default();
        more.add_form(query.as_bytes())?;
        more.0.retain(|(name, _)| !self.0.iter().any(|(known, _)| known == name));
        for (name, value) in more.0 {
            self.add(name, value)?;
        }
        Ok(())
    }

    /// Adds the members of a JSON object: a text as it is, a list of texts as a name that stands more than once, and
    /// anything else as its JSON text, unchanged. A member that is null is absent. An empty body has no members.
    pub(crate) fn add_json(&mut self, body: &[u8]) -> Outcome<()> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let refused =
            |fault| Fault::new(Code::InvalidJson, format!("the request body is refused: {fault}"));
        let object = Object::read(body).map_err(refused)?;
        for (name, raw) in object.iter() {
            if raw == "null" {
                continue;
            }
            let texts: Option<Vec<_>> = match raw.starts_with('[') {
                true => json::elements(raw).map(json::text).collect(),
                false => None,
            };
            match texts {
                Some(texts) => {
                    for text in texts {
                        self.add(name.to_owned(), text.into_owned())?;
                    }
                }
                None => {
                    let value = json::text(raw).map_or_else(|| raw.to_owned(), Into::into);
                    self.add(name.to_owned(), value)?;
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, name: String, value: String) -> Outcome<()> {
        if FIELDS_MAX <= self.0.len() {
            return Err(bad(format!("the request has more than {FIELDS_MAX} fields")));
        }
        if FIELD_BYTES_MAX < value.len() {
            let text = format!("a field of the request is larger than {FIELD_BYTES_MAX} bytes");
            return Err(Fault::new(Code::TooLarge, text));
        }
        self.0.push((name, value));
        Ok(())
    }

    /// Every value under a name.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value under a name; refused where the name stands more than once.
    pub fn get(&self, name: &str) -> Outcome<Option<&str>> {
        let mut values = self.all(name);
        let first = values.next();
        match values.next() {
            None => Ok(first),
            Some(_) => Err(bad(format!("the field {name} stands more than once"))),
        }
    }

    /// The value under a name; refused where there is none, or an empty one.
    pub fn require(&self, name: &str) -> Outcome<&str> {
        match self.get(name)? {
            Some(value) if !value.is_empty() => Ok(value),
            _ => Err(bad(format!("the field {name} is missing"))),
        }
    }

    /// Takes the value under a name out.
    pub fn take(&mut self, name: &str) -> Outcome<Option<String>> {
        self.get(name)?;
        let at = self.0.iter().position(|(known, _)| known == name);
        Ok(at.map(|at| self.0.swap_remove(at).1))
    }

    /// The number under a name, from 0 to `most`: larger ones are cut to that.
    pub(crate) fn number(&self, name: &str, most: usize) -> Outcome<Option<usize>> {
        let Some(text) = self.get(name)?.filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        match text.bytes().all(|byte| byte.is_ascii_digit()) {
            // Too many digits for a number are more than `most`.
            true => Ok(Some(text.parse().unwrap_or(usize::MAX).min(most))),
            false => Err(bad(format!("{name} is not a whole number"))),
        }
    }

    /// Whether the value under a name is `true` or `1`.
    pub(crate) fn flag(&self, name: &str) -> Outcome<bool> {
        Ok(matches!(self.get(name)?, Some("true" | "1")))
    }
}

/// A part of a form decoded: `+` is a space, `%` begins two hex digits or stands for itself.
fn decode(part: &[u8]) -> Outcome<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, after @ ..]) if digit(*high).is_some() && digit(*low).is_some() => {
                bytes.push(digit(*high).unwrap_or(0) << 4 | digit(*low).unwrap_or(0));
                rest = after;
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| bad("a field of the request is not valid UTF-8"))
}

const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

fn bad(text: impl Into<String>) -> Fault {
    Fault::new(Code::BadRequest, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(fields: &Fields) -> Vec<(&str, &str)> {
        fields.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    fn form(body: &str, expected: &[(&str, &str)]) {
        let mut fields = Fields::default();
        fields.add_form(body.as_bytes()).unwrap();
        assert_eq!(pairs(&fields), expected, "{body}");
    }

    fn json(body: &str, expected: Result<&[(&str, &str)], Code>) {
        let mut fields = Fields::default();
        let outcome = fields.add_json(body.as_bytes()).map(|()| pairs(&fields));
        assert_eq!(outcome.map_err(|fault| fault.code), expected.map(<[_]>::to_vec), "{body}");
    }

    #[test]
    fn a_form_is_decoded_as_clients_encode_it() {
        form("", &[]);
        form("&&", &[]);
        form("a=1&b=%C3%A9+x&a=2", &[("a", "1"), ("b", "é x"), ("a", "2")]);
        form("a&b=&=c", &[("a", ""), ("b", ""), ("", "c")]);
        form("a=b=c%3D%26", &[("a", "b=c=&")]);
        form("a=100%&b=%zz&c=%4", &[("a", "100%"), ("b", "%zz"), ("c", "%4")]);
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let refused = |body: &[u8]| Fields::default().add_form(body).unwrap_err().message;
        assert_eq!(refused(b"a=%ff"), "a field of the request is not valid UTF-8");
        assert_eq!(refused(b"a=\xff"), "a field of the request is not valid UTF-8");
    }

    #[test]
    fn a_json_body_gives_texts_lists_and_the_rest_unchanged() {
        json(
            r#"{"a":"x\u00e9","b":{"n":1.0e5, "z":[]},"c":["p","q"],"d":[1,"x"],"e":null,"f":12345678901234567890123,"g":true,"h":[]}"#,
            Ok(&[
                ("a", "xé"),
                ("b", r#"{"n":1.0e5, "z":[]}"#),
                ("c", "p"),
                ("c", "q"),
                ("d", r#"[1,"x"]"#),
                ("f", "12345678901234567890123"),
                ("g", "true"),
            ]),
        );
        json(" ", Ok(&[]));
        for bad in ["[]", "{", r#"{"a":1,"a":2}"#, r#"{"a":"\ud800"}"#, "nope"] {
            json(bad, Err(Code::InvalidJson));
        }
    }

    #[test]
    fn the_query_gives_what_the_body_does_not() {
        let mut fields = Fields::default();
        fields.add_form(b"a=1").unwrap();
        fields.add_query("a=2&b=3&b=4").unwrap();
        assert_eq!(pairs(&fields), [("a", "1"), ("b", "3"), ("b", "4")]);
    }

    #[test]
    fn a_name_that_stands_twice_is_refused_where_one_is_meant() {
        let mut fields = Fields::default();
        fields.add_form(b"a=1&a=2&b=&c=3").unwrap();
        assert_eq!(fields.get("a").unwrap_err().message, "the field a stands more than once");
        assert_eq!(fields.all("a").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(fields.get("x"), Ok(None));
        assert_eq!(fields.require("b").unwrap_err().message, "the field b is missing");
        assert_eq!(fields.take("c"), Ok(Some("3".into())));
        assert_eq!(fields.take("c"), Ok(None));
    }

    #[test]
    fn the_last_accepted_and_the_first_refused_number_and_size_of_fields() {
        let many = |n: usize| Fields::default().add_form(vec!["a=1"; n].join("&").as_bytes());
        assert_eq!(many(FIELDS_MAX), Ok(()));
        assert_eq!(many(FIELDS_MAX + 1).unwrap_err().code, Code::BadRequest);
        let sized =
            |n: usize| Fields::default().add_form(format!("a={}", "x".repeat(n)).as_bytes());
        assert_eq!(sized(FIELD_BYTES_MAX), Ok(()));
        assert_eq!(sized(FIELD_BYTES_MAX + 1).unwrap_err().code, Code::TooLarge);
    }

    #[test]
    fn numbers_are_bounded_and_flags_are_true_or_not() {
        let mut fields = Fields::default();
        fields.add_form(b"a=7&b=99999999999999999999999&c=-1&d=1e3&e=&f=true&g=no").unwrap();
        assert_eq!(fields.number("a", 50), Ok(Some(7)));
        assert_eq!(fields.number("b", 50), Ok(Some(50)));
        assert_eq!(fields.number("e", 50), Ok(None));
        assert_eq!(fields.number("x", 50), Ok(None));
        assert!(fields.number("c", 50).is_err() && fields.number("d", 50).is_err());
        assert_eq!(
            (fields.flag("f"), fields.flag("g"), fields.flag("x")),
            (Ok(true), Ok(false), Ok(false))
        );
    }
}
