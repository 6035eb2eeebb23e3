//! The two or three requests of a digest auth (AL-281 to AL-311).

use super::prepare::{Prepared, is_set};
use super::{Call, CallFault};
use crate::auth::digest::cookies::Jar;
use crate::auth::digest::{Challenge, Choice, Digest, choose, wants_third};
use crate::draft::Additions;
use crate::vendor::Answer;

/// The status of an answer that may hold a challenge.
const UNAUTHORIZED: u16 = 401;

impl Call {
    /// Asks without credentials, and answers the vendor's challenge: once, and once more where its nonce was stale.
    pub(super) async fn digest(
        &self,
        request: &Prepared,
        username: &str,
        password: &str,
    ) -> Result<Answer, CallFault> {
        refuse_own_authorization(request)?;
        let digest = Digest::new(username, password);
        let mut cookies = Jar::default();
        let first = self.send(request, &request.headers, Additions::default()).await?;
        let Some(challenge) = challenge(&first)? else { return Ok(first) };
        let second = self.answer(request, &digest, &challenge, &mut cookies, &first).await?;
        if second.status != UNAUTHORIZED {
            return Ok(second);
        }
        match wants_third(&challenge, &texts(&lines(&second))) {
            Some(fresh) => self.answer(request, &digest, &fresh, &mut cookies, &second).await,
            None => Ok(second),
        }
    }

    /// The same request with the answer to a challenge, and with the cookies that came with it.
    async fn answer(
        &self,
        request: &Prepared,
        digest: &Digest,
        challenge: &Challenge,
        cookies: &mut Jar,
        challenged: &Answer,
    ) -> Result<Answer, CallFault> {
        let target = &request.url.target;
        let at = self.now();
        cookies.receive(&challenged.values("set-cookie"), target, at);
        let mut headers = request.headers.clone();
        let own = headers.iter_mut().find(|(name, _)| name == "cookie");
        let sent = cookies.header(own.as_ref().map(|(_, value)| value.as_str()), target, at);
        match (own, sent) {
            (Some((_, value)), Some(sent)) => *value = sent,
            (None, Some(sent)) => headers.push(("cookie".to_owned(), sent)),
            (_, None) => {}
        }
        let draft = request.draft(&request.url, &headers);
        let mut additions = digest.respond(challenge, &draft, &*self.outside.nonces);
        for (_name, value) in &mut additions.headers {
            *value = as_sent(value);
        }
        self.send(request, &headers, additions).await
    }
}

/// The challenge of an answer that is to be answered; none where the answer stands (AL-282).
fn challenge(answer: &Answer) -> Result<Option<Box<Challenge>>, CallFault> {
    if answer.status != UNAUTHORIZED {
        return Ok(None);
    }
    match choose(&texts(&lines(answer))) {
        Choice::Answer(challenge) => Ok(Some(challenge)),
        Choice::NotDigest => Ok(None),
        Choice::Error(fault) => Err(fault.into()),
    }
}

/// The challenges of an answer. A header has a character for each byte (ISO 8859-1); what a vendor wrote as UTF-8 is read as
/// that, since it is hashed as that (RFC 7616, 4).
fn lines(answer: &Answer) -> Vec<String> {
    let read = |value: &&str| {
        let bytes: Option<Vec<u8>> = value.chars().map(|c| u8::try_from(c).ok()).collect();
        bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| (*value).to_owned())
    };
    answer.values("www-authenticate").iter().map(read).collect()
}

fn texts(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).collect()
}

/// A header's value with a character for each byte of its UTF-8, which is how it is sent.
fn as_sent(value: &str) -> String {
    value.bytes().map(char::from).collect()
}

/// The header that answers the challenge must be free from the start (AL-310, AL-311).
fn refuse_own_authorization(request: &Prepared) -> Result<(), CallFault> {
    if is_set(&request.headers, "authorization") {
        let text = "header authorization is set by both the request and its auth";
        return Err(CallFault::refused(text));
    }
    match &request.sign {
        Some(sign) if sign.header == "authorization" => {
            Err(CallFault::refused("sign: header authorization is set already"))
        }
        _ => Ok(()),
    }
}
