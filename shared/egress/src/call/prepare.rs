//! A request made ready: host approved, secrets filled, body encoded; nothing sent yet.

use std::time::Duration;

use crate::auth::Auth;
use crate::auth::fields::Text;
use crate::draft::SentUrl;
use crate::hosts;
use crate::placeholder::Place;
use crate::request::{HttpRequest, KeySource, Method, SignRequest};
use crate::sign::Sign;
use crate::url_rules;
use crate::vendor::RESERVED_HEADERS;

use super::content::Content;
use super::{Call, CallFault};

/// Characters of a name that an error shows.
const NAME_CHARS_SHOWN: usize = 100;

/// A request as it will be sent, but for what its auth and its signature add.
pub(super) struct Prepared {
    pub(super) method: Method,
    pub(super) url: SentUrl,
    pub(super) headers: Vec<(String, String)>,
    pub(super) content: Content,
    pub(super) auth: Auth,
    pub(super) sign: Option<Sign>,
    pub(super) timeout: Duration,
}

impl Call {
    /// Makes a request ready, or refuses it.
    pub(super) async fn prepare(&self, request: &HttpRequest) -> Result<Prepared, CallFault> {
        let filled = self.secrets.fill_url(&request.url)?;
        self.hide_host(&request.url, &filled)?;
        let url = hosts::approve(&filled, &self.hosts, self.allow_private_networks)
            .map_err(|refusal| CallFault::refused(refusal.to_string()))?;
        let mut headers = self.headers(&request.headers)?;
        let auth = self.filled_auth(&request.auth)?;
        let sign = request.sign.as_ref().map(|sign| self.sign(sign)).transpose()?;
        let (content, content_type) = self.content(request.body.as_ref()).await?;
        if let Some(content_type) = content_type
            && !is_set(&headers, "content-type")
        {
            headers.push(("content-type".to_owned(), content_type));
        }
        let covers_body = sign.is_some() || covers_body(&auth);
        let content = if covers_body { content.at_hand().await? } else { content };
        let (method, timeout) = (request.method, request.timeout);
        Ok(Prepared { method, url, headers, content, auth, sign, timeout })
    }

    /// Hides a host that is made of a secret where a URL's parser spells it otherwise: a number as an address, letters in
    /// Punycode. Errors name the host.
    fn hide_host(&self, url: &str, filled: &str) -> Result<(), CallFault> {
        let authority = url_rules::authority(url);
        let Some((_, secret)) = authority.split_once("{{secret:") else { return Ok(()) };
        if !self.secrets.holds_tag(secret) {
            return Ok(());
        }
        let parsed = url::Url::parse(filled).ok();
        let Some(host) = parsed.as_ref().and_then(url::Url::host_str) else { return Ok(()) };
        let written = percent_encoding::percent_decode_str(url_rules::authority(filled));
        if written.decode_utf8_lossy().to_ascii_lowercase().contains(host) {
            return Ok(());
        }
        let name = secret.split(':').next().unwrap_or_default();
        self.hide(&format!("[secret:{name}]"), host.trim_matches(['[', ']']))
    }

    /// Headers with lower-case names and filled values (AL-153, AL-154).
    fn headers(&self, asked: &[(String, String)]) -> Result<Vec<(String, String)>, CallFault> {
        let mut headers: Vec<(String, String)> = Vec::with_capacity(asked.len());
        for (name, value) in asked {
            self.secrets.keep_out(name, Place::HeaderName)?;
            let name = name.to_ascii_lowercase();
            self.check_name(&name)?;
            if is_set(&headers, &name) {
                return Err(CallFault::refused(format!("header {name} is set twice")));
            }
            let value = self.secrets.fill(value, Place::HeaderValue)?;
            headers.push((name, value.into_owned()));
        }
        for (name, value) in &mut headers {
            *value = sendable(name, value)?;
        }
        Ok(headers)
    }

    /// The auth with its texts filled; its credentials are hidden from now on.
    fn filled_auth(&self, auth: &Auth) -> Result<Auth, CallFault> {
        let mut auth = auth.clone();
        for text in auth.texts() {
            match text {
                Text::Plain(text) => *text = self.secrets.fill(text, Place::Auth)?.into_owned(),
                Text::Json(text) => *text = self.secrets.fill_json(text, Place::Auth)?,
            }
        }
        let marker = auth.marker();
        for credential in auth.credentials() {
            self.hide(&marker, credential)?;
        }
        Ok(auth)
    }

    /// The signature with its key resolved. Its header is refused here where it could not be set.
    fn sign(&self, sign: &SignRequest) -> Result<Sign, CallFault> {
        self.secrets.keep_out(&sign.header, Place::SignHeader)?;
        let header = sign.header.to_ascii_lowercase();
        self.check_name(&header)?;
        Ok(Sign {
            header,
            algorithm: sign.algorithm,
            key: zeroize::Zeroizing::new(self.key(&sign.key)?.to_owned()),
            key_encoding: sign.key_encoding,
            encoding: sign.encoding,
            prefix: sign.prefix.clone(),
            suffix: sign.suffix.clone(),
        })
    }

    /// Refuses a lower-case name that is no header name, and those that the host alone sets (AL-154, AL-155, AL-270).
    pub(super) fn check_name(&self, name: &str) -> Result<(), CallFault> {
        if http::HeaderName::from_lowercase(name.as_bytes()).is_err() {
            let text = format!("{:?} is not a header name", self.shown(name));
            return Err(CallFault::refused(text));
        }
        match RESERVED_HEADERS.iter().any(|reserved| reserved == name) {
            true => Err(CallFault::refused(format!("header {name} is set by the host alone"))),
            false => Ok(()),
        }
    }

    /// Hides a value from now on. One that is too much to hide is refused, and with it what it was made for.
    pub(super) fn hide(&self, marker: &str, value: &str) -> Result<(), CallFault> {
        if !self.redactions.has_room(value) {
            return Err(CallFault::refused("the call has more credentials than can be hidden"));
        }
        self.redactions.add(marker, value);
        Ok(())
    }

    /// The beginning of a text that may hold secrets. They are hidden before it is cut or escaped: what is left of one then
    /// would not be known as one.
    pub(super) fn shown(&self, text: &str) -> String {
        self.redactions.hide(text).chars().take(NAME_CHARS_SHOWN).collect()
    }

    /// The text of a key: a secret's value by its name, or as it was written.
    pub(super) fn key<'k>(&'k self, key: &'k KeySource) -> Result<&'k str, CallFault> {
        match key {
            KeySource::Secret(name) => Ok(self.secrets.get(name)?),
            KeySource::Text(text) => {
                self.secrets.keep_out(text, Place::SignKey)?;
                Ok(text)
            }
        }
    }
}

/// Whether the auth covers the bytes of the body, or may come to do so.
fn covers_body(auth: &Auth) -> bool {
    match auth {
        Auth::None | Auth::Basic { .. } | Auth::Bearer { .. } | Auth::ApiKey { .. } => false,
        Auth::Jwt(_) => false,
        // Sent up to three times, and hashed where the vendor asks for it.
        Auth::Digest { .. } | Auth::Aws(_) | Auth::EdgeGrid(_) => true,
        Auth::Hawk(auth) => auth.include_payload_hash,
    }
}

pub(super) fn is_set(headers: &[(String, String)], name: &str) -> bool {
    headers.iter().any(|(known, _)| known == name)
}

/// A value as it is sent: without white space around it, as Fetch has it. One that HTTP cannot carry is refused.
pub(super) fn sendable(name: &str, value: &str) -> Result<String, CallFault> {
    let value = value.trim_matches([' ', '\t', '\r', '\n']);
    let fits = |c: char| c == '\t' || (!c.is_ascii_control() && u32::from(c) <= 0xFF);
    match value.chars().all(fits) {
        true => Ok(value.to_owned()),
        false => {
            let text = format!("header {name} has a value that HTTP cannot carry");
            Err(CallFault::refused(text))
        }
    }
}
