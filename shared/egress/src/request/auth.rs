//! The fields of each auth, those of Hoppscotch (AL-259 to AL-262).

use annex_core::strict::{Fields, Value};

use crate::auth::{
    AddTo, Auth, AwsAuth, EdgeGridAuth, HawkAlgorithm, HawkAuth, JwtAlgorithm, JwtAuth,
};

/// Largest timestamp that a test may give Hawk, in seconds: the last second of the year 9999.
const SECONDS_MAX: i64 = 253_402_300_799;

/// Most bytes of a body that EdgeGrid may be asked to hash: more than any body has.
const MAX_BODY_SIZE_MAX: i64 = 1 << 40;

#[derive(Clone, Copy)]
enum AuthType {
    None,
    Basic,
    Bearer,
    ApiKey,
    Digest,
    Aws,
    Hawk,
    Jwt,
    EdgeGrid,
}

const TYPES: &[(&str, AuthType)] = &[
    ("none", AuthType::None),
    ("basic", AuthType::Basic),
    ("bearer", AuthType::Bearer),
    ("api-key", AuthType::ApiKey),
    ("digest", AuthType::Digest),
    ("aws-signature", AuthType::Aws),
    ("hawk", AuthType::Hawk),
    ("jwt", AuthType::Jwt),
    ("akamai-eg", AuthType::EdgeGrid),
];

pub(super) fn read(auth: Value<'_>) -> Option<Auth> {
    auth.object(|auth| {
        let kind = auth.required("authType", |it| it.word(TYPES))?;
        match kind {
            AuthType::None => Some(Auth::None),
            AuthType::Basic => basic(auth),
            AuthType::Bearer => {
                auth.required("token", |it| it.any_text()).map(|token| Auth::Bearer { token })
            }
            AuthType::ApiKey => api_key(auth),
            AuthType::Digest => digest(auth),
            AuthType::Aws => aws(auth),
            AuthType::Hawk => hawk(auth),
            AuthType::Jwt => jwt(auth),
            AuthType::EdgeGrid => edge_grid(auth),
        }
    })
}

fn add_to(auth: &mut Fields<'_>) -> Option<AddTo> {
    let places = [("HEADERS", AddTo::Headers), ("QUERY_PARAMS", AddTo::QueryParams)];
    auth.optional("addTo", |it| it.word(&places)).map(Option::unwrap_or_default)
}

/// A text that may be left out, which an empty one stands for too.
fn text(auth: &mut Fields<'_>, name: &'static str) -> Option<Option<String>> {
    let text = auth.optional(name, |it| it.any_text())?;
    Some(text.filter(|text| !text.is_empty()))
}

fn basic(auth: &mut Fields<'_>) -> Option<Auth> {
    let username = auth.required("username", |it| it.any_text());
    let password = auth.required("password", |it| it.any_text());
    Some(Auth::Basic { username: username?, password: password? })
}

fn digest(auth: &mut Fields<'_>) -> Option<Auth> {
    let username = auth.required("username", |it| it.any_text());
    let password = auth.required("password", |it| it.any_text());
    Some(Auth::Digest { username: username?, password: password? })
}

fn api_key(auth: &mut Fields<'_>) -> Option<Auth> {
    let key = auth.required("key", |it| it.any_text());
    let value = auth.required("value", |it| it.any_text());
    let add_to = add_to(auth);
    Some(Auth::ApiKey { key: key?, value: value?, add_to: add_to? })
}

fn aws(auth: &mut Fields<'_>) -> Option<Auth> {
    let access_key = auth.required("accessKey", |it| it.any_text());
    let secret_key = auth.required("secretKey", |it| it.any_text());
    let region = auth.required("region", |it| it.any_text());
    let service_name = auth.required("serviceName", |it| it.any_text());
    let service_token = text(auth, "serviceToken");
    let add_to = add_to(auth);
    Some(Auth::Aws(AwsAuth {
        access_key: access_key?,
        secret_key: secret_key?,
        region: region?,
        service_name: service_name?,
        service_token: service_token?,
        add_to: add_to?,
    }))
}

fn hawk(auth: &mut Fields<'_>) -> Option<Auth> {
    let algorithms = [("sha256", HawkAlgorithm::Sha256), ("sha1", HawkAlgorithm::Sha1)];
    let auth_id = auth.required("authId", |it| it.any_text());
    let auth_key = auth.required("authKey", |it| it.any_text());
    let algorithm = auth.optional("algorithm", |it| it.word(&algorithms));
    let include_payload_hash = auth.optional("includePayloadHash", |it| it.flag());
    let ext = text(auth, "ext");
    let app = text(auth, "app");
    let dlg = text(auth, "dlg");
    let nonce = text(auth, "nonce");
    let timestamp = auth.optional("timestamp", |it| it.whole(0..=SECONDS_MAX));
    Some(Auth::Hawk(HawkAuth {
        auth_id: auth_id?,
        auth_key: auth_key?,
        algorithm: algorithm?.unwrap_or_default(),
        include_payload_hash: include_payload_hash?.unwrap_or_default(),
        ext: ext?,
        app: app?,
        dlg: dlg?,
        nonce: nonce?,
        timestamp: timestamp?,
    }))
}

fn jwt(auth: &mut Fields<'_>) -> Option<Auth> {
    use JwtAlgorithm as It;
    let algorithms = [
        ("HS256", It::Hs256),
        ("HS384", It::Hs384),
        ("HS512", It::Hs512),
        ("RS256", It::Rs256),
        ("RS384", It::Rs384),
        ("RS512", It::Rs512),
        ("PS256", It::Ps256),
        ("PS384", It::Ps384),
        ("PS512", It::Ps512),
        ("ES256", It::Es256),
        ("ES384", It::Es384),
        ("ES512", It::Es512),
    ];
    let object = |it: Value<'_>| {
        let raw = it.raw();
        it.any_object().map(|_object| raw.to_owned())
    };
    let algorithm = auth.optional("algorithm", |it| it.word(&algorithms));
    let secret = auth.optional("secret", |it| it.any_text());
    let private_key = auth.optional("privateKey", |it| it.any_text());
    let is_secret_base64_encoded = auth.optional("isSecretBase64Encoded", |it| it.flag());
    let payload = auth.optional("payload", object);
    let jwt_headers = auth.optional("jwtHeaders", object);
    let add_to = add_to(auth);
    let header_prefix = auth.optional("headerPrefix", |it| it.any_text());
    let param_name = text(auth, "paramName");
    let no_members = || "{}".to_owned();
    Some(Auth::Jwt(Box::new(JwtAuth {
        algorithm: algorithm?.unwrap_or_default(),
        secret: secret?.unwrap_or_default(),
        private_key: private_key?.unwrap_or_default(),
        is_secret_base64_encoded: is_secret_base64_encoded?.unwrap_or_default(),
        payload: payload?.unwrap_or_else(no_members),
        jwt_headers: jwt_headers?.unwrap_or_else(no_members),
        add_to: add_to?,
        header_prefix: header_prefix?,
        param_name: param_name?,
    })))
}

fn edge_grid(auth: &mut Fields<'_>) -> Option<Auth> {
    let access_token = auth.required("accessToken", |it| it.any_text());
    let client_token = auth.required("clientToken", |it| it.any_text());
    let client_secret = auth.required("clientSecret", |it| it.any_text());
    let host = text(auth, "host");
    let headers_to_sign = text(auth, "headersToSign");
    let max_body_size = auth.optional("maxBodySize", |it| it.whole(0..=MAX_BODY_SIZE_MAX));
    let nonce = text(auth, "nonce");
    let timestamp = text(auth, "timestamp");
    Some(Auth::EdgeGrid(Box::new(EdgeGridAuth {
        access_token: access_token?,
        client_token: client_token?,
        client_secret: client_secret?,
        host: host?,
        headers_to_sign: headers_to_sign?,
        max_body_size: max_body_size?.map(i64::unsigned_abs),
        nonce: nonce?,
        timestamp: timestamp?,
    })))
}
