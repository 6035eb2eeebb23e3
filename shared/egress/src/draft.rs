//! The final request that an auth and a signature are built over, and what they add to it.

/// Where a request goes, as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentUrl {
    /// `https`, or `http` where private networks are allowed.
    pub scheme: Scheme,
    /// The host name in lower case, or an address; one of IPv6 in brackets.
    pub host: String,
    /// The port, where it is not the scheme's own.
    pub port: Option<u16>,
    /// Path and query, exactly as they are sent.
    pub target: String,
}

/// How a URL is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Without TLS.
    Http,
    /// With TLS.
    Https,
}

impl Scheme {
    /// The name of the scheme, in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port of a URL that names none.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl SentUrl {
    /// The value of the host header: the host, and the port where it is not the scheme's own.
    pub fn host_header(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }

    /// The port that is connected to.
    pub fn port_or_default(&self) -> u16 {
        self.port.unwrap_or_else(|| self.scheme.default_port())
    }

    /// The path, up to the query.
    pub fn path(&self) -> &str {
        self.target.split_once('?').map_or(self.target.as_str(), |(path, _query)| path)
    }

    /// The query without its question mark; none where there is no question mark.
    pub fn query(&self) -> Option<&str> {
        self.target.split_once('?').map(|(_path, query)| query)
    }
}

impl std::fmt::Display for SentUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}{}", self.scheme.as_str(), self.host_header(), self.target)
    }
}

/// The final request: secrets filled, host approved, body encoded (AL-263, AL-264).
#[derive(Debug, Clone, Copy)]
pub struct Draft<'a> {
    /// In upper case.
    pub method: &'a str,
    /// Where it goes.
    pub url: &'a SentUrl,
    /// Names in lower case, in the order of the request, the body's `content-type` among them; without `user-agent`
    /// and `content-length`, which are added after everything else.
    pub headers: &'a [(String, String)],
    /// The exact bytes that will be sent; none for a request without a body.
    pub body: Option<&'a [u8]>,
}

impl<'a> Draft<'a> {
    /// The value of the header with this lower-case name.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The bytes of the body, none being no bytes.
    pub fn body_bytes(&self) -> &'a [u8] {
        self.body.unwrap_or_default()
    }
}

/// What an auth adds to a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Additions {
    /// Headers, with lower-case names.
    pub headers: Vec<(String, String)>,
    /// Parameters that follow the URL's own query, each name and value not encoded yet.
    pub query: Vec<(String, String)>,
    /// Values derived from secrets, beside the added headers' own, which are hidden as `[auth:TYPE]` (AL-112).
    pub derived: Vec<String>,
}

/// Random values of a request, which a test may fix.
pub trait Nonces: Send + Sync {
    /// A nonce of Hawk: a few letters and digits.
    fn hawk(&self) -> String;
    /// The client's nonce of Digest.
    fn cnonce(&self) -> String;
    /// The nonce of EdgeGrid, a UUID.
    fn uuid(&self) -> String;
    /// The boundary of a multipart body: at most 70 characters of RFC 2046's `bcharsnospace`.
    fn boundary(&self) -> String;
}
