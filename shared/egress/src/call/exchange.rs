//! A request completed by its auth and its signature, and sent.

use annex_core::limits::VENDOR_ANSWER_BYTES_MAX;
use jiff::Timestamp;
use tokio::time::Instant;

use super::prepare::{Prepared, is_set, sendable};
use super::{Call, CallFault};
use crate::auth::{Auth, aws, edgegrid, hawk, jwt, plain};
use crate::draft::{Additions, Draft, SentUrl};
use crate::sign::{self, Secrets};
use crate::vendor::{Answer, Outgoing};

/// How the platform names itself to vendors, unless the request does (AL-157).
const USER_AGENT: &str = "Aletheia-Apps/1";

impl Call {
    /// Sends a request that is ready, as often as its auth needs it, and gives the answer that counts.
    pub(super) async fn exchange(&self, request: &Prepared) -> Result<Answer, CallFault> {
        let at = (self.outside.now)();
        let nonces = &*self.outside.nonces;
        let draft = request.draft(&request.url, &request.headers);
        let additions = match &request.auth {
            Auth::None => Additions::default(),
            Auth::Basic { username, password } => plain::basic(username, password)?,
            Auth::Bearer { token } => plain::bearer(token),
            Auth::ApiKey { key, value, add_to } => plain::api_key(key, value, *add_to)?,
            Auth::Digest { username, password } => {
                return self.digest(request, username, password).await;
            }
            Auth::Aws(auth) => aws::build(auth, &draft, at)?,
            Auth::Hawk(auth) => {
                let (additions, artifacts) = hawk::build(auth, &draft, at, nonces)?;
                let answer = self.send(request, &request.headers, additions).await?;
                check_hawk(&artifacts, &answer)?;
                return Ok(answer);
            }
            Auth::Jwt(auth) => jwt::build(auth, at)?,
            Auth::EdgeGrid(auth) => {
                let signed = request.sign.as_ref().map(|sign| sign.header.as_str());
                edgegrid::build(auth, &draft, signed, at, nonces)?
            }
        };
        self.send(request, &request.headers, additions).await
    }

    /// Sends a request once, with what its auth adds and a signature over all of it.
    pub(super) async fn send(
        &self,
        request: &Prepared,
        headers: &[(String, String)],
        additions: Additions,
    ) -> Result<Answer, CallFault> {
        let outgoing = self.complete(request, headers, additions)?;
        self.check_running()?;
        self.count_request()?;
        let left = self.deadline.saturating_duration_since(Instant::now());
        let timeout = request.timeout.min(left);
        let answer = self.outside.transport.send(&self.tenant, outgoing, timeout).await?;
        if VENDOR_ANSWER_BYTES_MAX < answer.body.len() {
            let text = format!("response is larger than {VENDOR_ANSWER_BYTES_MAX} bytes");
            return Err(CallFault::refused(text));
        }
        Ok(answer)
    }

    /// The request as it goes out. What it derives from secrets is hidden from now on (AL-112).
    fn complete(
        &self,
        request: &Prepared,
        headers: &[(String, String)],
        additions: Additions,
    ) -> Result<Outgoing, CallFault> {
        self.hide_derived(&request.auth, &additions)?;
        let mut url = request.url.clone();
        self.add_query(&mut url, &additions.query)?;
        let mut headers = headers.to_vec();
        for (name, value) in &additions.headers {
            self.check_name(name)?;
            if is_set(&headers, name) {
                let text = format!("header {name} is set by both the request and its auth");
                return Err(CallFault::refused(text));
            }
            headers.push((name.clone(), sendable(name, value)?));
        }
        if let Some(sign) = &request.sign {
            let value = |name: &str| self.secrets.get(name).ok();
            let secrets = Secrets { tag: self.secrets.tag(), value: &value };
            let header = sign::signature(sign, &request.draft(&url, &headers), secrets)
                .map_err(|fault| CallFault::refused(fault.to_string()))?;
            self.hide("[auth:sign]", &header.1)?;
            headers.push(header);
        }
        if !is_set(&headers, "user-agent") {
            headers.push(("user-agent".to_owned(), USER_AGENT.to_owned()));
        }
        let method = request.method.http();
        Ok(Outgoing { method, url, headers, body: request.content.outgoing() })
    }

    fn hide_derived(&self, auth: &Auth, additions: &Additions) -> Result<(), CallFault> {
        let marker = auth.marker();
        let authorization = additions.headers.iter().filter(|(name, _)| name == "authorization");
        for (_name, value) in authorization {
            self.hide(&marker, value)?;
        }
        for value in &additions.derived {
            self.hide(&marker, value)?;
        }
        Ok(())
    }

    /// Parameters behind the URL's own query, which stays as it is (AL-267, AL-268). One that the URL has is refused
    /// (AL-159).
    fn add_query(
        &self,
        url: &mut SentUrl,
        parameters: &[(String, String)],
    ) -> Result<(), CallFault> {
        for (name, value) in parameters {
            let own = url.query().unwrap_or_default();
            if form_urlencoded::parse(own.as_bytes()).any(|(known, _)| known == name.as_str()) {
                let shown = self.shown(name);
                let text = format!("query parameter {shown} is set by both the URL and its auth");
                return Err(CallFault::refused(text));
            }
            let joint = match url.query() {
                None => "?",
                Some("") => "",
                Some(_) => "&",
            };
            let (name, value) = (aws::canonical::encode(name), aws::canonical::encode(value));
            url.target.extend([joint, &name, "=", &value]);
        }
        Ok(())
    }

    /// The wall clock.
    pub(super) fn now(&self) -> Timestamp {
        (self.outside.now)()
    }
}

impl Prepared {
    /// What an auth and a signature are built over.
    pub(super) fn draft<'a>(
        &'a self,
        url: &'a SentUrl,
        headers: &'a [(String, String)],
    ) -> Draft<'a> {
        Draft { method: self.method.as_str(), url, headers, body: self.content.bytes() }
    }
}

/// Checks what a Hawk server says of itself; a server that says nothing is believed (AL-338 to AL-344).
fn check_hawk(artifacts: &hawk::Artifacts, answer: &Answer) -> Result<(), CallFault> {
    let authorization = answer.values("server-authorization");
    if authorization.is_empty() {
        return Ok(());
    }
    let authorization = authorization.join(", ");
    let content_type = answer.values("content-type").first().copied();
    artifacts.check_answer(&authorization, content_type, &answer.body).map_err(CallFault::answered)
}
