//! The message of a record, composed for one attempt: secrets resolved, token made, bytes ready to sign.

use std::sync::Arc;

use crate::auth;
use crate::delivery::message::{Empty, OrgPart, Part, render};
use crate::fault::{Code, Fault, Outcome};
use crate::json::{self, Object};
use crate::model::Subscription;
use crate::redact::Redactor;
use crate::schema::{self, ExtensionSchema};
use crate::seal;

use super::Calls;
use super::install::{self, Extension, Secrets};
use super::payload::raw;
use super::record::{Kind, Origin, Record};

/// What a record's delivery works with.
#[derive(Clone)]
pub(super) struct Install {
    pub(super) extension: Arc<Extension>,
    pub(super) subscription: Subscription,
    pub(super) schema: Arc<ExtensionSchema>,
}

/// A message, and the secret values that the extension has by then.
pub(super) struct Composed {
    pub(super) json: Vec<u8>,
    pub(super) secrets: Secrets,
    /// The token in it; empty: none.
    token: String,
}

impl Composed {
    /// Hides the secrets in data that are answered.
    pub(super) fn redactor(&self) -> Redactor {
        Redactor::new(self.hidden())
    }

    /// Hides them in errors, and the token as well: an extension may quote the whole message.
    pub(super) fn error_redactor(&self) -> Redactor {
        Redactor::new(self.hidden().chain([("token".to_owned(), self.token.clone())]))
    }

    fn hidden(&self) -> impl Iterator<Item = (String, String)> {
        self.secrets.iter().map(|(name, value)| (name.clone(), value.to_string()))
    }
}

impl Calls {
    /// Composes the message of a record.
    pub(super) async fn compose(&self, record: &Record, install: &Install) -> Outcome<Composed> {
        let mut secrets = Secrets::new();
        let ports = self.ports();
        let (oid, name) = (record.oid, &record.extension);
        if record.kind == Kind::ErrorReport {
            let error = record.data.load(ports, oid, name).await?;
            let error: String = serde_json::from_str(&error).unwrap_or_default();
            let json = render(&record.key, Part::ErrorReport { error: &error, oid });
            return Ok(Composed { json, secrets, token: String::new() });
        }
        let config =
            install::config(ports, oid, name, &install.schema.config, &mut secrets).await?;
        let token = self.token(record, install).await?;
        let org = OrgPart { oid, jwt: &token, ident: &record.ident };
        let json = match &record.kind {
            Kind::Request { action, investigation } => {
                let data = self.data_of(record, install, action, &mut secrets).await?;
                let part = Part::Request {
                    org,
                    action,
                    data: &data,
                    config: &config,
                    resource_state: Empty {},
                    inv_id: investigation,
                };
                render(&record.key, part)
            }
            Kind::Event { event } => {
                let data = raw("{}");
                render(
                    &record.key,
                    Part::Event { org, event_name: event, data: &data, config: &config },
                )
            }
            Kind::ErrorReport => unreachable!("composed above"),
        };
        for name in &record.secrets {
            install::known(ports, oid, name, &mut secrets).await?;
        }
        Ok(Composed { json, secrets, token })
    }

    /// The data of a request. A continuation's state is the extension's own and is passed as it is: a reference to a
    /// secret in it is not resolved.
    async fn data_of(
        &self,
        record: &Record,
        install: &Install,
        action: &str,
        secrets: &mut Secrets,
    ) -> Outcome<Box<serde_json::value::RawValue>> {
        let ports = self.ports();
        let text = record.data.load(ports, record.oid, &record.extension).await?;
        if record.origin == Origin::Continuation {
            return Ok(raw(&json::go_safe(&text)));
        }
        let schema = install.schema.action(action).ok_or_else(|| unknown_action(action))?;
        // A reference is this text or an escaped spelling of it; most requests have neither.
        if text.contains("hive") || text.contains('\\') {
            let mut object = Object::parse(&text)
                .map_err(|fault| Fault::new(Code::InvalidJson, format!("data: {fault}")))?;
            install::fill(ports, record.oid, &schema.parameters, &mut object, secrets).await?;
            return Ok(raw(&json::go_safe(&object.to_json())));
        }
        Ok(raw(&json::go_safe(&text)))
    }

    /// The token that the extension gets: its own, or the caller's where the action is impersonated (LC-133, LC-135).
    async fn token(&self, record: &Record, install: &Install) -> Outcome<String> {
        let ports = self.ports();
        let Some(sealed) = &record.impersonator else {
            let definition = &install.extension.definition;
            return Ok(auth::extension_token(
                ports,
                record.oid,
                definition,
                &install.subscription,
                record.depth,
            ));
        };
        let binding = ["impersonator", &record.oid.to_string()];
        let token = seal::open_text(&*ports.keyring, &binding, sealed)?;
        // A call that waited long may outlive the token of its user.
        self.check_impersonator(record.oid, &token).await?;
        Ok(token.to_string())
    }

    /// Whether a user token is present, valid and of this organization. Its permissions are not looked at (LC-138).
    pub(super) async fn check_impersonator(
        &self,
        oid: crate::ids::Oid,
        token: &str,
    ) -> Outcome<()> {
        let refused = |text: &str| Fault::new(Code::ImpersonationRefused, text);
        let caller = match auth::verify(self.ports(), token).await {
            Ok(caller) => caller,
            Err(fault) if fault.code == Code::Unauthenticated => {
                return Err(refused("impersonated action needs a valid user token"));
            }
            Err(fault) => return Err(fault),
        };
        if caller.oid != Some(oid) || matches!(caller.kind, auth::CallerKind::Extension { .. }) {
            return Err(refused("impersonated action needs a user token of this organization"));
        }
        Ok(())
    }
}

/// LC-146.
pub(super) fn unknown_action(action: &str) -> Fault {
    Fault::new(Code::SchemaRefused, format!("unknown request action: {}", schema::shown(action)))
}
