//! The key ring in Secrets Manager.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use annex_core::keyring::RootKeys;
use annex_core::ports::{Clock, KeyUse, Keyring, Outage, SymmetricKey};
use annex_core::time::Timestamp;
use zeroize::Zeroizing;

use crate::Clients;
use crate::outage::outage;

/// The [`RootKeys`] of a secret's text, kept in memory. `Debug` shows no key.
pub struct SecretKeyring {
    client: aws_sdk_secretsmanager::Client,
    secret: String,
    clock: Arc<dyn Clock>,
    ring: RwLock<Ring>,
}

struct Ring {
    keys: RootKeys,
    read_at: Timestamp,
}

impl SecretKeyring {
    /// Reads the ring from the secret of this name or ARN. Fails where it cannot be read, or is no ring.
    pub async fn load(
        clients: &Clients,
        secret: impl Into<String>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Outage> {
        let (client, secret) = (clients.secrets.clone(), secret.into());
        let read_at = clock.steady();
        let keys = read(&client, &secret).await?;
        Ok(Self { client, secret, clock, ring: RwLock::new(Ring { keys, read_at }) })
    }

    /// Reads the ring again where that was last done `age` ago or longer, so that a rotated one is learned without a
    /// restart. A ring that is refused leaves the one that is there.
    pub async fn refresh_if_older_than(&self, age: Duration) -> Result<(), Outage> {
        let now = self.clock.steady();
        // A clock that was set back tells nothing about the ring's age.
        let is_fresh = self.with(|ring| ring.read_at <= now && now.since(ring.read_at) < age);
        if is_fresh {
            return Ok(());
        }
        let keys = read(&self.client, &self.secret).await?;
        *self.ring.write().unwrap_or_else(PoisonError::into_inner) = Ring { keys, read_at: now };
        Ok(())
    }

    fn with<T>(&self, look: impl FnOnce(&Ring) -> T) -> T {
        look(&self.ring.read().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn read(client: &aws_sdk_secretsmanager::Client, secret: &str) -> Result<RootKeys, Outage> {
    let answer = client
        .get_secret_value()
        .secret_id(secret)
        .send()
        .await
        .map_err(|error| outage("the key ring cannot be read", error))?;
    let text = answer.secret_string.map(Zeroizing::new);
    let text = text.ok_or_else(|| Outage::new("the secret of the key ring is no text"))?;
    RootKeys::parse(&text).map_err(|fault| Outage::caused("the secret is no key ring", fault))
}

impl Keyring for SecretKeyring {
    fn current(&self) -> u32 {
        self.with(|ring| ring.keys.current())
    }

    fn key_ids(&self) -> Vec<u32> {
        self.with(|ring| ring.keys.key_ids())
    }

    fn key(&self, id: u32, usage: KeyUse) -> Option<SymmetricKey> {
        self.with(|ring| ring.keys.key(id, usage))
    }

    fn is_operator(&self, secret: &str) -> bool {
        self.with(|ring| ring.keys.is_operator(secret))
    }
}

impl fmt::Debug for SecretKeyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with(|ring| f.debug_tuple("SecretKeyring").field(&ring.keys).finish())
    }
}
