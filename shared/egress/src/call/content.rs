//! The body of a request, filled and encoded, and the documents that it is made of.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, StreamExt as _};

use super::{Call, CallFault, DOCUMENT_READS_PER_CALL_MAX};
use crate::form;
use crate::multipart::{self, Segment};
use crate::placeholder::Place;
use crate::request::{Body, Part, PartContent};
use crate::vendor::{ByteStream, OpenBody, OutgoingBody};

/// Largest body, in bytes, that a signature over it can hold documents in: it is read into memory then. A larger one can
/// only be sent unsigned.
pub(super) const SIGNED_BYTES_MAX: u64 = 64 << 20;

/// One of a tenant's documents, as a call may read it.
#[derive(Clone)]
pub struct Document {
    /// Its media type.
    pub content_type: String,
    /// Its file name.
    pub filename: String,
    /// In bytes.
    pub length: u64,
    /// Opens it from its start.
    pub open: OpenBody,
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document").field("length", &self.length).finish_non_exhaustive()
    }
}

/// The documents of a call's tenant.
///
/// **Contract.** Only a clean document that the call's token allows is found; anything else is one text, so that a call
/// learns nothing about documents that are not its own (AL-244, AL-248).
#[async_trait]
pub trait Documents: Send + Sync {
    /// The document with this id; or why there is none, such as `document not available`.
    async fn find(&self, id: &str) -> Result<Document, String>;
}

/// What is sent behind the head.
#[derive(Clone)]
pub(super) enum Content {
    None,
    Bytes(Bytes),
    Stream { length: u64, open: OpenBody },
}

impl Content {
    pub(super) fn outgoing(&self) -> OutgoingBody {
        match self {
            Self::None => OutgoingBody::None,
            Self::Bytes(bytes) => OutgoingBody::Bytes(bytes.clone()),
            Self::Stream { length, open } => {
                OutgoingBody::Stream { length: *length, open: Arc::clone(open) }
            }
        }
    }

    /// The bytes, where they are at hand.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::None | Self::Stream { .. } => None,
        }
    }

    /// The content with its bytes at hand, as a signature over them needs it.
    pub(super) async fn at_hand(self) -> Result<Self, CallFault> {
        let Self::Stream { length, open } = self else { return Ok(self) };
        if SIGNED_BYTES_MAX < length {
            let text = format!("a body over {SIGNED_BYTES_MAX} bytes cannot be signed");
            return Err(CallFault::refused(text));
        }
        let unread = || CallFault::refused("document not available");
        let mut bytes = BytesMut::new();
        let mut stream = open();
        while let Some(piece) = stream.next().await {
            bytes.extend_from_slice(&piece.map_err(|_fault| unread())?);
            if length < bytes.len() as u64 {
                return Err(unread());
            }
        }
        if length == bytes.len() as u64 { Ok(Self::Bytes(bytes.freeze())) } else { Err(unread()) }
    }
}

impl Call {
    /// Fills and encodes a body; and the content type that it has where the request names none (AL-158).
    pub(super) async fn content(
        &self,
        body: Option<&Body>,
    ) -> Result<(Content, Option<String>), CallFault> {
        let Some(body) = body else { return Ok((Content::None, None)) };
        let secrets = &self.secrets;
        let text = |text: &str| Content::Bytes(Bytes::copy_from_slice(text.as_bytes()));
        let json = || Some("application/json".to_owned());
        Ok(match body {
            Body::Text(body) => (text(&secrets.fill(body, Place::Body)?), None),
            Body::Json(value) => (text(&secrets.fill_json(value, Place::Body)?), json()),
            Body::JsonText(body) => (text(&secrets.fill_json_text(body)?), json()),
            Body::Form(pairs) => {
                let mut filled = Vec::with_capacity(pairs.len());
                for (name, value) in pairs {
                    let name = secrets.fill(name, Place::Body)?.into_owned();
                    filled.push((name, secrets.fill(value, Place::Body)?.into_owned()));
                }
                let content_type = "application/x-www-form-urlencoded".to_owned();
                (text(&form::encode(&filled)), Some(content_type))
            }
            Body::Bytes(bytes) => {
                secrets.keep_out_bytes(bytes, Place::Base64Body)?;
                (Content::Bytes(Bytes::copy_from_slice(bytes)), None)
            }
            Body::Document(id) => {
                let document = self.document(id).await?;
                let Document { content_type, length, open, .. } = document;
                (Content::Stream { length, open }, Some(content_type))
            }
            Body::Multipart(parts) => self.multipart(parts).await?,
        })
    }

    async fn document(&self, id: &str) -> Result<Document, CallFault> {
        self.secrets.keep_out(id, Place::DocumentId)?;
        let Some(documents) = &self.outside.documents else {
            return Err(CallFault::refused("documents are not available to this call"));
        };
        if DOCUMENT_READS_PER_CALL_MAX <= self.document_reads.fetch_add(1, Ordering::AcqRel) {
            let text =
                format!("document read limit of {DOCUMENT_READS_PER_CALL_MAX} per call reached");
            return Err(CallFault::refused(text));
        }
        documents.find(id).await.map_err(CallFault::refused)
    }

    async fn multipart(&self, parts: &[Part]) -> Result<(Content, Option<String>), CallFault> {
        let mut documents = Vec::new();
        let mut filled = Vec::with_capacity(parts.len());
        for part in parts {
            filled.push(self.part(part, &mut documents).await?);
        }
        let encoded: Vec<_> = filled.iter().map(|part| part.encoded(&documents)).collect();
        let form = multipart::encode(&encoded, &*self.outside.nonces);
        let content_type = form.content_type();
        Ok((content_of(form.segments, &documents), Some(content_type)))
    }

    /// One part: its value filled, and every other text free of the tag (AL-095 to AL-097).
    async fn part<'p>(
        &self,
        part: &'p Part,
        documents: &mut Vec<Document>,
    ) -> Result<FilledPart<'p>, CallFault> {
        let secrets = &self.secrets;
        secrets.keep_out(&part.name, Place::PartName)?;
        let name = &part.name;
        match &part.content {
            PartContent::Text { value, content_type } => {
                let content_type = content_type.as_deref();
                secrets.keep_out(content_type.unwrap_or_default(), Place::PartContentType)?;
                let value = secrets.fill(value, Place::PartValue)?.into_owned();
                Ok(FilledPart::Text { name, value, content_type })
            }
            PartContent::Document { id, filename } => {
                let filename = filename.as_deref();
                secrets.keep_out(filename.unwrap_or_default(), Place::PartFileName)?;
                documents.push(self.document(id).await?);
                Ok(FilledPart::Document { name, filename, index: documents.len() - 1 })
            }
        }
    }
}

enum FilledPart<'p> {
    Text { name: &'p str, value: String, content_type: Option<&'p str> },
    Document { name: &'p str, filename: Option<&'p str>, index: usize },
}

impl FilledPart<'_> {
    fn encoded<'a>(&'a self, documents: &'a [Document]) -> multipart::Part<'a> {
        match self {
            Self::Text { name, value, content_type } => {
                multipart::Part::Text { name, value, content_type: *content_type }
            }
            Self::Document { name, filename, index } => {
                let document = &documents[*index];
                multipart::Part::Document {
                    name,
                    filename: filename.unwrap_or(&document.filename),
                    content_type: &document.content_type,
                    index: *index,
                }
            }
        }
    }
}

/// The segments one behind the other: in memory, unless there is a document among them.
fn content_of(segments: Vec<Segment>, documents: &[Document]) -> Content {
    let mut pieces = Vec::with_capacity(segments.len());
    let mut length = 0u64;
    for segment in segments {
        let (size, piece) = match segment {
            Segment::Bytes(bytes) => (bytes.len() as u64, Piece::Bytes(bytes)),
            Segment::Document(index) => {
                let document = &documents[index];
                (document.length, Piece::Document(Arc::clone(&document.open)))
            }
        };
        length = length.saturating_add(size);
        pieces.push(piece);
    }
    if documents.is_empty() {
        let whole = pieces.iter().fold(BytesMut::new(), |mut whole, piece| {
            if let Piece::Bytes(bytes) = piece {
                whole.extend_from_slice(bytes);
            }
            whole
        });
        return Content::Bytes(whole.freeze());
    }
    let open = move || -> ByteStream {
        let streams: Vec<_> = pieces.iter().map(Piece::stream).collect();
        Box::pin(stream::iter(streams).flatten())
    };
    Content::Stream { length, open: Arc::new(open) }
}

enum Piece {
    Bytes(Bytes),
    Document(OpenBody),
}

impl Piece {
    fn stream(&self) -> ByteStream {
        match self {
            Self::Bytes(bytes) => {
                let bytes = bytes.clone();
                Box::pin(stream::once(async move { Ok(bytes) }))
            }
            Self::Document(open) => open(),
        }
    }
}
