//! Who calls. A caller is named by a word:
//!
//! - `user`: `user@example.com` with every permission in the organization; `operator`: without an organization;
//! - `key:a.b,c.d`: an API key with these permissions; `ext:NAME`: an extension, at depth 1, or `ext:NAME:DEPTH`;
//! - `delivered`: with the token of the last message that was delivered;
//! - `none`, `forged`, `expired`: no token, one with a wrong signature, one whose time is over.

use std::time::Duration;

use annex_core::auth;
use annex_core::extensions;
use annex_core::ids::{ExtensionName, Oid};
use annex_core::testkit::FixedKeyring;
use serde_json::Value;

use super::door::Call;
use super::world::World;

impl World {
    /// The token of a caller in an organization; empty for `none`.
    pub(crate) async fn token(&mut self, who: &str, org: &str) -> Result<String, String> {
        let name = format!("{who}@{org}");
        if let Some(token) = self.tokens.get(&name) {
            return Ok(token.clone());
        }
        let oid = self.bindings.fill(&format!("${{{org}}}"));
        match who.split_once(':') {
            None if who == "none" => Ok(String::new()),
            None if who == "delivered" => {
                self.extensions.last_token().ok_or_else(|| "no token was delivered".to_owned())
            }
            None if who == "forged" => {
                let token = self.sign_in(FixedKeyring::OPERATOR, &oid, "").await?;
                let (rest, signature) = token.rsplit_once('.').ok_or("a token has three parts")?;
                let first = if signature.starts_with('A') { 'B' } else { 'A' };
                Ok(format!("{rest}.{first}{}", &signature[1..]))
            }
            None if who == "expired" => {
                let token = self.sign_in(FixedKeyring::OPERATOR, &oid, "1").await?;
                self.clock.advance(Duration::from_secs(1));
                Ok(token)
            }
            // These are asked for anew, since hours may have passed.
            None if who == "operator" => self.sign_in(FixedKeyring::OPERATOR, "-", "").await,
            None if who == "user" => self.sign_in(FixedKeyring::OPERATOR, &oid, "").await,
            Some(("key", permissions)) => {
                let call = Call::new("POST", &format!("/v1/orgs/{oid}/keys"));
                let owner = self.sign_in(FixedKeyring::OPERATOR, &oid, "").await?;
                let form = [("key_name", who), ("perms", permissions)];
                let reply = self.send(call.token(owner).form(form)).await;
                let key = text(&reply.body, "api_key")?;
                let token = self.sign_in(&key, &oid, "86400").await?;
                self.tokens.insert(name, token.clone());
                Ok(token)
            }
            Some(("ext", extension)) => self.extension_token(&oid, extension).await,
            _ => Err(format!("nobody is called {who}")),
        }
    }

    async fn extension_token(&self, oid: &str, extension: &str) -> Result<String, String> {
        let (name, depth) = extension.split_once(':').unwrap_or((extension, "1"));
        let depth = depth.parse().map_err(|_| "a depth is a number")?;
        let name = ExtensionName::parse(name).map_err(|fault| fault.message)?;
        let oid = Oid::parse(oid).map_err(|fault| fault.message)?;
        let ports = &self.process.ports;
        let definition = extensions::require_definition(ports, &name).await;
        let subscription = extensions::require_subscription(ports, oid, &name).await;
        let definition = definition.map_err(|fault| fault.message)?;
        let subscription = subscription.map_err(|fault| fault.message)?;
        Ok(auth::extension_token(ports, oid, &definition, &subscription, depth))
    }

    async fn sign_in(&self, secret: &str, oid: &str, expiry: &str) -> Result<String, String> {
        let mut form = vec![("secret", secret), ("oid", oid)];
        if secret == FixedKeyring::OPERATOR {
            form.push(("uid", "user@example.com"));
        }
        if !expiry.is_empty() {
            form.push(("expiry", expiry));
        }
        let reply = self.send(Call::new("POST", "/jwt").form(form)).await;
        text(&reply.body, "jwt")
    }
}

fn text(body: &Value, member: &str) -> Result<String, String> {
    body[member].as_str().map(str::to_owned).ok_or_else(|| format!("no {member} in {body}"))
}
