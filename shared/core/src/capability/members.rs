//! The members of a JSON body, read one by one.

use serde_json::value::RawValue;

use crate::fault::{Code, Fault, Outcome};
use crate::json::{self, Object};

/// The members of a JSON object. What is not asked for is ignored; a member that is null is absent, but where an object
/// is asked for.
#[derive(Debug, Clone, Default)]
pub struct Members(Object);

impl Members {
    /// Reads an object; no bytes at all are one without members.
    pub fn read(bytes: &[u8]) -> Outcome<Self> {
        let bytes = bytes.trim_ascii();
        let refused =
            |fault| Fault::new(Code::InvalidJson, format!("the request body is refused: {fault}"));
        Ok(Self(Object::read(bytes).map_err(refused)?))
    }

    /// Refuses a member that is none of these, by its name.
    pub fn only(&self, known: &[&str]) -> Outcome<()> {
        match self.0.iter().find(|(name, _)| !known.contains(name)) {
            None => Ok(()),
            Some((name, _)) => {
                let shown = &name[..name.floor_char_boundary(100)];
                Err(bad(format!("unknown member {shown}")))
            }
        }
    }

    /// The text of a member as it stands there; `None`: it is absent.
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.0.get(name)
    }

    fn given(&self, name: &str) -> Option<&str> {
        self.0.get(name).filter(|raw| *raw != "null")
    }

    /// A text of at most so many characters.
    pub fn text(&self, name: &str, chars_max: usize) -> Outcome<Option<String>> {
        let Some(raw) = self.given(name) else { return Ok(None) };
        let text = json::text(raw).ok_or_else(|| bad(format!("{name} is not a text")))?;
        if chars_max < text.chars().count() {
            return Err(bad(format!("{name} is longer than {chars_max} characters")));
        }
        Ok(Some(text.into_owned()))
    }

    /// A text that must be there, of 1 to so many characters.
    pub fn require(&self, name: &str, chars_max: usize) -> Outcome<String> {
        match self.text(name, chars_max)? {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err(bad(format!("{name} is missing"))),
        }
    }

    /// A whole number of this range.
    pub fn number(&self, name: &str, least: i64, most: i64) -> Outcome<Option<i64>> {
        let Some(raw) = self.given(name) else { return Ok(None) };
        raw.parse()
            .ok()
            .filter(|number| (least..=most).contains(number))
            .map(Some)
            .ok_or_else(|| bad(format!("{name} is not a whole number from {least} to {most}")))
    }

    /// `true` or `false`.
    pub fn flag(&self, name: &str) -> Outcome<Option<bool>> {
        match self.given(name) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(bad(format!("{name} is neither true nor false"))),
        }
    }

    /// The members of an object, taken apart.
    pub fn members(&self, name: &str) -> Outcome<Option<Self>> {
        let Some(raw) = self.0.get(name) else { return Ok(None) };
        let refused = |fault| bad(format!("{name} is refused: {fault}"));
        Object::parse(raw).map(|object| Some(Self(object))).map_err(refused)
    }

    /// Names and texts of all members.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter()
    }

    /// An object byte for byte, of at most so many bytes.
    pub fn object(&self, name: &str, bytes_max: usize) -> Outcome<Option<Box<RawValue>>> {
        let Some(raw) = self.0.get(name) else { return Ok(None) };
        if !raw.starts_with('{') {
            return Err(bad(format!("{name} is not a JSON object")));
        }
        if bytes_max < raw.len() {
            let text = format!("{name} is larger than {bytes_max} bytes");
            return Err(Fault::new(Code::TooLarge, text));
        }
        let read = RawValue::from_string(raw.to_owned());
        read.map(Some).map_err(|_| bad(format!("{name} is not a JSON object")))
    }
}

fn bad(text: impl Into<String>) -> Fault {
    Fault::new(Code::BadRequest, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Members {
        Members::read(json.as_bytes()).unwrap()
    }

    #[test]
    fn a_body_is_one_object_or_nothing() {
        for good in ["", " ", "{}", " {\"a\":1} "] {
            assert!(Members::read(good.as_bytes()).is_ok(), "{good}");
        }
        for bad in ["[]", "{", "null", r#"{"a":1,"a":2}"#, "{} x"] {
            assert_eq!(Members::read(bad.as_bytes()).unwrap_err().code, Code::InvalidJson, "{bad}");
        }
    }

    #[test]
    fn members_are_read_by_their_kind_and_null_is_absent() {
        let body = read(r#"{"t":"xé","n":7,"f":false,"z":null,"o":{ "b":1.0e5, "a":[] }}"#);
        assert_eq!(body.text("t", 2), Ok(Some("xé".into())));
        assert!(body.text("t", 1).is_err() && body.text("n", 9).is_err());
        assert_eq!(body.number("n", 7, 7), Ok(Some(7)));
        assert!(body.number("n", 8, 9).is_err() && body.number("n", 1, 6).is_err());
        assert!(body.number("t", 0, 9).is_err());
        assert_eq!(body.flag("f"), Ok(Some(false)));
        assert!(body.flag("n").is_err());
        assert_eq!((body.text("z", 1), body.number("z", 0, 0)), (Ok(None), Ok(None)));
        assert!(body.require("z", 1).is_err() && body.require("x", 1).is_err());
        let object = body.object("o", 100).unwrap().unwrap();
        assert_eq!(object.get(), r#"{ "b":1.0e5, "a":[] }"#, "byte for byte");
        assert!(body.object("z", 9).is_err() && body.object("t", 9).is_err());
        assert!(body.only(&["t", "n", "f", "z", "o"]).is_ok());
        assert_eq!(body.only(&["t"]).unwrap_err().message, "unknown member n");
    }

    #[test]
    fn the_last_accepted_and_the_first_refused_size_of_an_object() {
        let body = read(r#"{"o":{"a":1}}"#);
        assert!(body.object("o", 7).unwrap().is_some());
        assert_eq!(body.object("o", 6).unwrap_err().code, Code::TooLarge);
    }
}
