//! What all auths have in common: a name, texts to be filled, credentials to be hidden.

use super::{Auth, AwsAuth, EdgeGridAuth, HawkAuth, JwtAuth};

impl Auth {
    /// The name that the contract has for it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic { .. } => "basic",
            Self::Bearer { .. } => "bearer",
            Self::ApiKey { .. } => "api-key",
            Self::Digest { .. } => "digest",
            Self::Aws(_) => "aws-signature",
            Self::Hawk(_) => "hawk",
            Self::Jwt(_) => "jwt",
            Self::EdgeGrid(_) => "akamai-eg",
        }
    }

    /// How a value derived for it reads once it is hidden (AL-132).
    pub fn marker(&self) -> String {
        format!("[auth:{}]", self.type_name())
    }

    /// Every text field (AL-261), and the objects of a JWT, whose texts are JSON.
    pub(crate) fn texts(&mut self) -> Vec<Text<'_>> {
        let mut texts = Vec::new();
        match self {
            Self::None => {}
            Self::Basic { username, password } | Self::Digest { username, password } => {
                texts.extend([username, password].map(Text::Plain));
            }
            Self::Bearer { token } => texts.push(Text::Plain(token)),
            Self::ApiKey { key, value, add_to: _ } => {
                texts.extend([key, value].map(Text::Plain));
            }
            Self::Aws(auth) => {
                let AwsAuth { access_key, secret_key, region, service_name, .. } = auth;
                let required = [access_key, secret_key, region, service_name];
                texts.extend(required.map(Text::Plain));
                texts.extend(auth.service_token.iter_mut().map(Text::Plain));
            }
            Self::Hawk(auth) => {
                let HawkAuth { auth_id, auth_key, ext, app, dlg, nonce, .. } = auth;
                texts.extend([auth_id, auth_key].map(Text::Plain));
                texts.extend([ext, app, dlg, nonce].into_iter().flatten().map(Text::Plain));
            }
            Self::Jwt(auth) => {
                let auth = &mut **auth;
                let JwtAuth { secret, private_key, payload, jwt_headers, .. } = auth;
                texts.extend([secret, private_key].map(Text::Plain));
                texts.extend([payload, jwt_headers].map(Text::Json));
                texts.extend(auth.header_prefix.iter_mut().map(Text::Plain));
                texts.extend(auth.param_name.iter_mut().map(Text::Plain));
            }
            Self::EdgeGrid(auth) => {
                let auth = &mut **auth;
                let EdgeGridAuth { access_token, client_token, client_secret, .. } = auth;
                texts.extend([access_token, client_token, client_secret].map(Text::Plain));
                texts.extend(auth.host.iter_mut().map(Text::Plain));
                texts.extend(auth.headers_to_sign.iter_mut().map(Text::Plain));
                texts.extend(auth.nonce.iter_mut().map(Text::Plain));
                texts.extend(auth.timestamp.iter_mut().map(Text::Plain));
            }
        }
        texts
    }

    /// The fields that are credentials: hidden even where the module wrote them as text (AL-118).
    pub fn credentials(&self) -> Vec<&str> {
        match self {
            Self::None => vec![],
            Self::Basic { password, .. } | Self::Digest { password, .. } => vec![password],
            Self::Bearer { token } => vec![token],
            Self::ApiKey { value, .. } => vec![value],
            Self::Aws(auth) => {
                let mut credentials = vec![auth.access_key.as_str(), &auth.secret_key];
                credentials.extend(auth.service_token.as_deref());
                credentials
            }
            Self::Hawk(auth) => vec![&auth.auth_key],
            Self::Jwt(auth) => vec![&auth.secret, &auth.private_key],
            Self::EdgeGrid(auth) => {
                vec![&auth.access_token, &auth.client_token, &auth.client_secret]
            }
        }
    }
}

/// A text of an auth that may hold placeholders.
pub(crate) enum Text<'a> {
    /// Filled as it is.
    Plain(&'a mut String),
    /// A JSON text, filled inside its strings.
    Json(&'a mut String),
}
