//! The answer to a challenge.

use aws_lc_rs::digest;
use md5::Digest as _;

use super::Digest;
use super::challenge::{Challenge, Hash, Qop};
use crate::draft::{Additions, Draft, Nonces};

/// The count of a nonce's uses: each request answers a challenge of its own (AL-304).
const NONCE_COUNT: &str = "00000001";

impl Digest {
    /// The header that answers a challenge for a request (AL-283). A username that is not printable ASCII is sent as
    /// `username*` (AL-294), and hashed where the challenge asks for it (AL-293).
    pub fn respond(
        &self,
        challenge: &Challenge,
        draft: &Draft<'_>,
        nonces: &dyn Nonces,
    ) -> Additions {
        let cnonce = nonces.cnonce();
        let response = self.response(challenge, draft, &cnonce);
        let mut header = Header(String::from("Digest "));
        let mut derived = vec![response.clone()];
        if challenge.userhash {
            let hashed = self.hashed_username(challenge);
            header.quoted("username", &hashed);
            derived.push(hashed);
        } else if self.username.chars().all(|character| matches!(character, ' '..='~')) {
            header.quoted("username", &self.username);
        } else {
            header.plain("username*", &format!("UTF-8''{}", extended(&self.username)));
        }
        header.quoted("realm", &challenge.realm);
        header.quoted("uri", &draft.url.target);
        if let Some(algorithm) = &challenge.algorithm {
            header.plain("algorithm", algorithm);
        }
        header.quoted("nonce", &challenge.nonce);
        if let Some(qop) = challenge.qop {
            header.plain("nc", NONCE_COUNT);
            header.quoted("cnonce", &cnonce);
            header.plain("qop", qop.as_str());
        } else if challenge.session {
            // Without it no server could know what the session's key was made of.
            header.quoted("cnonce", &cnonce);
        }
        header.quoted("response", &response);
        if let Some(opaque) = &challenge.opaque {
            header.quoted("opaque", opaque);
        }
        if challenge.userhash {
            header.plain("userhash", "true");
        }
        Additions {
            headers: vec![("authorization".to_owned(), header.0)],
            query: Vec::new(),
            derived,
        }
    }

    /// RFC 7616, 3.4.1 to 3.4.3; RFC 2069 where the challenge offers no protection.
    fn response(&self, challenge: &Challenge, draft: &Draft<'_>, cnonce: &str) -> String {
        let Challenge { realm, nonce, hash, .. } = challenge;
        let mut secret = hash.hex(&[&self.username, realm, &self.password]);
        if challenge.session {
            secret = hash.hex(&[&secret, nonce, cnonce]);
        }
        let target = &draft.url.target;
        let request = match challenge.qop {
            Some(Qop::AuthInt) => {
                let body = hash.hex_of(draft.body_bytes());
                hash.hex(&[draft.method, target, &body])
            }
            Some(Qop::Auth) | None => hash.hex(&[draft.method, target]),
        };
        match challenge.qop {
            Some(qop) => hash.hex(&[&secret, nonce, NONCE_COUNT, cnonce, qop.as_str(), &request]),
            None => hash.hex(&[&secret, nonce, &request]),
        }
    }

    fn hashed_username(&self, challenge: &Challenge) -> String {
        challenge.hash.hex(&[&self.username, &challenge.realm])
    }
}

impl Hash {
    /// Of these parts with colons between them, in lower-case hex.
    fn hex(self, parts: &[&str]) -> String {
        self.hex_of(parts.join(":").as_bytes())
    }

    fn hex_of(self, bytes: &[u8]) -> String {
        match self {
            Self::Md5 => hex::encode(md5::Md5::digest(bytes)),
            Self::Sha256 => hex::encode(digest::digest(&digest::SHA256, bytes)),
            Self::Sha512_256 => hex::encode(digest::digest(&digest::SHA512_256, bytes)),
        }
    }
}

/// A header's value while it is written.
struct Header(String);

impl Header {
    fn quoted(&mut self, name: &str, text: &str) {
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        self.plain(name, &format!("\"{text}\""));
    }

    fn plain(&mut self, name: &str, text: &str) {
        if !self.0.ends_with(' ') {
            self.0.push_str(", ");
        }
        self.0.push_str(&format!("{name}={text}"));
    }
}

/// A text as RFC 8187 writes it: percent-encoded but for its `attr-char`.
fn extended(text: &str) -> String {
    let mut written = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
            written.push(char::from(byte));
        } else {
            written.push_str(&format!("%{byte:02X}"));
        }
    }
    written
}
