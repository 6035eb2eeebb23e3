//! Blobs in an S3 bucket, whose lifecycle rule removes the expired ones later.

use std::sync::Arc;
use std::time::Duration;

use annex_core::keys::digest_bytes;
use annex_core::ports::{Blobs, Clock, Outage};
use annex_core::time::Timestamp;
use async_trait::async_trait;
use aws_sdk_s3::error::SdkError;
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_sdk_s3::presigning::PresigningConfig;
use aws_sdk_s3::primitives::ByteStream;
use bytes::Bytes;

use crate::Clients;
use crate::outage::outage;

/// The metadata that holds when a blob expires: milliseconds since the epoch.
const EXPIRES: &str = "expires-ms";

/// Longest name of an object, in bytes (S3 takes 1,024).
const NAME_BYTES_MAX: usize = 1_000;

/// Blobs of one bucket.
#[derive(Clone)]
pub struct S3Blobs {
    s3: aws_sdk_s3::Client,
    bucket: String,
    clock: Arc<dyn Clock>,
}

impl S3Blobs {
    /// The blobs of this bucket.
    pub fn new(clients: &Clients, bucket: impl Into<String>, clock: Arc<dyn Clock>) -> Self {
        Self { s3: clients.s3.clone(), bucket: bucket.into(), clock }
    }

    /// A URL that gives the blob of `key`, as JSON, to whoever has it, for `ttl`; the credentials of the process may
    /// end sooner. Sends nothing.
    pub async fn link(&self, key: &str, ttl: Duration) -> Result<String, Outage> {
        let failed = |error| Outage::caused("a link to a blob cannot be made", error);
        let valid = PresigningConfig::expires_in(ttl).map_err(failed)?;
        let request = self.s3.get_object().bucket(&self.bucket).key(name(key));
        let signed = request.response_content_type("application/json").presigned(valid).await;
        Ok(signed
            .map_err(|error| outage("a link to a blob cannot be made", error))?
            .uri()
            .to_owned())
    }
}

/// The name of a key's object: different for each key, without a character that means something in a path. A key whose
/// name would be too long is known by its digest.
fn name(key: &str) -> String {
    let mut name = String::with_capacity(key.len() + 16);
    for &byte in key.as_bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            name.push(char::from(byte));
        } else {
            name.push('.');
            name.push_str(&hex::encode([byte]));
        }
    }
    // No encoded key has a hyphen behind a full stop.
    if name.is_empty() || NAME_BYTES_MAX < name.len() {
        name = format!(".-{}", hex::encode(digest_bytes(&[key.as_bytes()])));
    }
    name
}

#[async_trait]
impl Blobs for S3Blobs {
    async fn put(&self, key: &str, bytes: Bytes, expires_at: Timestamp) -> Result<(), Outage> {
        let request = self.s3.put_object().bucket(&self.bucket).key(name(key));
        request
            .metadata(EXPIRES, expires_at.millis().to_string())
            .body(ByteStream::from(bytes))
            .send()
            .await
            .map_err(|error| outage("a blob cannot be put", error))?;
        Ok(())
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, Outage> {
        let request = self.s3.get_object().bucket(&self.bucket).key(name(key));
        let answer = match request.send().await {
            Err(SdkError::ServiceError(error))
                if matches!(error.err(), GetObjectError::NoSuchKey(_)) =>
            {
                return Ok(None);
            }
            answer => answer.map_err(|error| outage("a blob cannot be read", error))?,
        };
        let expires = answer.metadata().and_then(|metadata| metadata.get(EXPIRES));
        let expires: Option<i64> = expires.and_then(|millis| millis.parse().ok());
        let expires = expires.ok_or_else(|| Outage::new("a blob without its expiry"))?;
        if Timestamp::from_millis(expires) <= self.clock.now() {
            return Ok(None);
        }
        let bytes = answer.body.collect().await;
        let failed = |error| Outage::caused("a blob cannot be read whole", error);
        Ok(Some(bytes.map_err(failed)?.into_bytes()))
    }

    async fn delete(&self, key: &str) -> Result<(), Outage> {
        let request = self.s3.delete_object().bucket(&self.bucket).key(name(key));
        request.send().await.map_err(|error| outage("a blob cannot be deleted", error))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_of_any_text_have_different_plain_names() {
        let long = "k".repeat(NAME_BYTES_MAX);
        let keys = ["", "a", "A", "/", "..", "a/b", "a.2fb", "%2f", "é", "\0", ".-", &long];
        let longer = [format!("{long}a"), format!("{long}b")];
        let keys = keys.iter().copied().chain(longer.iter().map(String::as_str));
        let names: Vec<String> = keys.map(name).collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        assert!(names.iter().all(|name| !name.is_empty() && name.bytes().all(plain)));
        assert!(names.iter().all(|name| name.len() <= NAME_BYTES_MAX));
        assert_eq!(name("org/1"), "org.2f1");
    }
}
