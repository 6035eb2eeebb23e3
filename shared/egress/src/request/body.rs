//! The seven bodies of a request (AL-160, AL-161, AL-234 to AL-257).

use annex_core::strict::{Fields, Value};

use crate::multipart::is_media_type;

/// Fields of a form (AL-240).
const FORM_FIELDS_MAX: usize = 100;

/// Parts of a multipart body (AL-250).
const PARTS_MAX: usize = 20;

/// Characters of a document's id.
const DOCUMENT_ID_CHARS_MAX: usize = 200;

/// Why a part's content type is refused (AL-255).
const NO_MEDIA_TYPE: &str = "expected a media type like text/plain, without control characters";

/// What is sent, with its placeholders not filled yet.
#[derive(Clone, PartialEq, Eq)]
pub enum Body {
    /// The text as it is.
    Text(String),
    /// A JSON value, written without white space.
    Json(String),
    /// A JSON text, byte for byte. Not checked yet: it may hold placeholders.
    JsonText(String),
    /// Names and values, in order.
    Form(Vec<(String, String)>),
    /// Bytes.
    Bytes(Vec<u8>),
    /// One of the tenant's documents.
    Document(String),
    /// Parts, in order.
    Multipart(Vec<Part>),
}

/// A part of a multipart body.
#[derive(Clone, PartialEq, Eq)]
pub struct Part {
    /// The field's name.
    pub name: String,
    /// What it holds.
    pub content: PartContent,
}

/// What a part holds.
#[derive(Clone, PartialEq, Eq)]
pub enum PartContent {
    /// A text, whose placeholders are filled.
    Text {
        /// The text.
        value: String,
        /// Its media type, where one is given.
        content_type: Option<String>,
    },
    /// A document.
    Document {
        /// Its id.
        id: String,
        /// The file name in place of the document's own.
        filename: Option<String>,
    },
}

pub(super) fn read(body: Value<'_>) -> Option<Body> {
    if body.is_text() {
        return body.any_text().map(Body::Text);
    }
    body.object(fields)
}

fn fields(body: &mut Fields<'_>) -> Option<Body> {
    const KINDS: [&str; 6] = ["json", "jsonText", "form", "base64", "document", "multipart"];
    let json = body.optional("json", |it| Some(Body::Json(it.raw().to_owned())));
    let json_text = body.optional("jsonText", |it| it.any_text().map(Body::JsonText));
    let form = body.optional("form", |it| form(it).map(Body::Form));
    let base64 = body.optional("base64", |it| base64(it).map(Body::Bytes));
    let document = body.optional("document", |it| document(it).map(Body::Document));
    let multipart = body.optional("multipart", |it| {
        it.elements(PARTS_MAX, |it| it.object(part)).map(Body::Multipart)
    });
    let given = KINDS.iter().filter(|kind| body.has(kind)).count();
    if given != 1 {
        body.problem_here(
            "expected a string, or an object with exactly one of json, jsonText, \
                           form, base64, document, multipart",
        );
        return None;
    }
    [json, json_text, form, base64, document, multipart].into_iter().find_map(Option::flatten)
}

/// Fields by name, or as pairs whose names may repeat.
fn form(value: Value<'_>) -> Option<Vec<(String, String)>> {
    if !value.is_array() {
        return value.each_member(FORM_FIELDS_MAX, |it| it.any_text());
    }
    value.elements(FORM_FIELDS_MAX, |pair| {
        if pair.raw().is_empty() || !pair.is_array() {
            return pair.problem("expected a [name, value] pair");
        }
        let texts = pair.elements(2, |it| it.any_text())?;
        <[String; 2]>::try_from(texts).ok().map(<(String, String)>::from)
    })
}

/// Bytes in base64, of either alphabet, padded or not.
pub(crate) fn base64(value: Value<'_>) -> Option<Vec<u8>> {
    let text = annex_core::json::text(value.raw());
    match text.map(|text| crate::hmac::decode_base64(&text)) {
        Some(Some(bytes)) => Some(bytes),
        Some(None) => value.problem("expected base64"),
        None => value.problem("expected a string"),
    }
}

fn document(value: Value<'_>) -> Option<String> {
    value.text(1..=DOCUMENT_ID_CHARS_MAX)
}

fn part(part: &mut Fields<'_>) -> Option<Part> {
    let name = part.required("name", |it| it.any_text());
    if !part.has("document") {
        let value = part.required("value", |it| it.any_text());
        let content_type = part.optional("contentType", |it| {
            let text = annex_core::json::text(it.raw()).map(std::borrow::Cow::into_owned);
            match text.filter(|text| is_media_type(text)) {
                Some(text) => Some(text),
                None => it.problem(NO_MEDIA_TYPE),
            }
        });
        let content = PartContent::Text { value: value?, content_type: content_type? };
        return Some(Part { name: name?, content });
    }
    let id = part.required("document", document);
    let filename = part.optional("filename", |it| it.any_text());
    Some(Part { name: name?, content: PartContent::Document { id: id?, filename: filename? } })
}
