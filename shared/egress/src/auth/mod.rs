//! A vendor's authentication, built by the host over the final request (AL-258 to AL-384).
//!
//! Every string of an [`Auth`] is filled by the time it comes here: no placeholder is read any more.

pub mod aws;
pub mod digest;
pub mod edgegrid;
pub(crate) mod fields;
pub mod hawk;
pub mod jwt;
pub mod plain;

/// An auth that cannot be built. The text is the one the caller gets, before redaction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AuthFault(pub String);

impl AuthFault {
    /// A fault with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Where an auth puts what it adds (AL-262).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AddTo {
    /// In a header.
    #[default]
    Headers,
    /// In parameters that follow the URL's query.
    QueryParams,
}

/// An auth with its fields, those of Hoppscotch (AL-259). An optional text that is empty counts as absent, as Hoppscotch
/// writes every field of an auth.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Auth {
    /// The request as it is.
    #[default]
    None,
    /// RFC 7617.
    Basic {
        /// Without a colon (AL-277).
        username: String,
        /// Any text.
        password: String,
    },
    /// RFC 6750.
    Bearer {
        /// Any text.
        token: String,
    },
    /// A key in a header or in the query.
    ApiKey {
        /// The header's or the parameter's name.
        key: String,
        /// The key.
        value: String,
        /// Where it goes.
        add_to: AddTo,
    },
    /// RFC 7616 and RFC 2069.
    Digest {
        /// Any text.
        username: String,
        /// Any text.
        password: String,
    },
    /// AWS Signature Version 4.
    Aws(AwsAuth),
    /// Hawk 1.
    Hawk(HawkAuth),
    /// A JSON Web Token.
    Jwt(Box<JwtAuth>),
    /// Akamai EdgeGrid.
    EdgeGrid(Box<EdgeGridAuth>),
}

/// The fields of `aws-signature` (AL-313).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct AwsAuth {
    /// The access key's id.
    pub access_key: String,
    /// The secret access key.
    pub secret_key: String,
    /// Such as `us-east-1`.
    pub region: String,
    /// Such as `s3`.
    pub service_name: String,
    /// The session token.
    pub service_token: Option<String>,
    /// In the headers, or presigned.
    pub add_to: AddTo,
}

/// The hash under a Hawk MAC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HawkAlgorithm {
    /// SHA-1.
    Sha1,
    /// SHA-256.
    #[default]
    Sha256,
}

/// The fields of `hawk` (AL-327).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HawkAuth {
    /// The credential's id.
    pub auth_id: String,
    /// The credential's key.
    pub auth_key: String,
    /// The hash.
    pub algorithm: HawkAlgorithm,
    /// Whether the body is hashed into the MAC.
    pub include_payload_hash: bool,
    /// Text of the application.
    pub ext: Option<String>,
    /// The application's id.
    pub app: Option<String>,
    /// Who delegated; only with `app`.
    pub dlg: Option<String>,
    /// For tests; fresh otherwise.
    pub nonce: Option<String>,
    /// Seconds since 1970, for tests; the clock's otherwise.
    pub timestamp: Option<i64>,
}

/// How a JSON Web Token is signed (RFC 7518).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JwtAlgorithm {
    /// HMAC with SHA-256.
    #[default]
    Hs256,
    /// HMAC with SHA-384.
    Hs384,
    /// HMAC with SHA-512.
    Hs512,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// ECDSA on P-521 with SHA-512.
    Es512,
}

/// The fields of `jwt` (AL-346).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct JwtAuth {
    /// How it is signed.
    pub algorithm: JwtAlgorithm,
    /// The key of `HS…`; empty where it is not given.
    pub secret: String,
    /// The PEM key of the others; empty where it is not given.
    pub private_key: String,
    /// Whether `secret` is base64.
    pub is_secret_base64_encoded: bool,
    /// The claims: the text of a JSON object.
    pub payload: String,
    /// Further members of the token's header: the text of a JSON object.
    pub jwt_headers: String,
    /// Where the token goes.
    pub add_to: AddTo,
    /// Before the token in the header; `Bearer ` where it is not given.
    pub header_prefix: Option<String>,
    /// The parameter's name; `token` where it is not given.
    pub param_name: Option<String>,
}

/// The fields of `akamai-eg` (AL-364).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EdgeGridAuth {
    /// The access token.
    pub access_token: String,
    /// The client token.
    pub client_token: String,
    /// The client secret.
    pub client_secret: String,
    /// The API client's host.
    pub host: Option<String>,
    /// Header names, separated by commas.
    pub headers_to_sign: Option<String>,
    /// Bytes of a body that are hashed; 131,072 where it is not given.
    pub max_body_size: Option<u64>,
    /// For tests; a fresh UUID otherwise.
    pub nonce: Option<String>,
    /// `yyyyMMddTHH:mm:ss+0000`, for tests; the clock's otherwise.
    pub timestamp: Option<String>,
}
