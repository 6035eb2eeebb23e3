//! A new shared secret for an extension, with a time in which the old one verifies as well.

use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use zeroize::Zeroizing;

use crate::fault::{Code, Fault, Outcome};
use crate::ids::ExtensionName;
use crate::limits::SECRET_OVERLAP_MAX;
use crate::model::{Definition, PreviousSecret};
use crate::ports::{Committed, Outage, Ports, When};
use crate::time::Timestamp;

use super::definitions::{load, open_secret, put, sealed_secret, secret, unknown};

/// A rotation as the operator asks for it.
pub struct Rotation {
    /// The new secret, unchecked.
    pub secret: Zeroizing<String>,
    /// How long the old one verifies as well; at most [`SECRET_OVERLAP_MAX`]. Zero: not at all.
    pub overlap: Duration,
    /// Whether to begin although a rotation is under way: the oldest secret is worth nothing from then on.
    pub force: bool,
}

/// Makes `rotation.secret` the shared secret of an extension, from the next call on. The one before verifies until the
/// overlap ends. While a rotation is under way another one is [`Code::RotationUnderWay`].
pub async fn rotate_secret(
    ports: &Ports,
    name: &ExtensionName,
    rotation: Rotation,
) -> Outcome<Definition> {
    if SECRET_OVERLAP_MAX < rotation.overlap {
        let text = format!("the overlap is longer than {} s", SECRET_OVERLAP_MAX.as_secs());
        return Err(Fault::new(Code::BadRequest, text));
    }
    loop {
        let (mut definition, item) = load(ports, name).await?.ok_or_else(|| unknown(name))?;
        let now = ports.clock.now();
        if let Some(previous) = previous_of(&definition, now).filter(|_| !rotation.force) {
            let text = format!("the secret before verifies until {}", previous.until);
            return Err(Fault::new(Code::RotationUnderWay, text));
        }
        let current = secret(ports, &definition)?;
        if verify_slices_are_equal(current.as_bytes(), rotation.secret.as_bytes()).is_ok() {
            return Err(Fault::new(Code::BadRequest, "this is the secret already"));
        }
        let new = sealed_secret(ports, name, &rotation.secret)?;
        let old = std::mem::replace(&mut definition.secret, new);
        let until = now.plus(rotation.overlap);
        definition.previous_secret = (now < until).then_some(PreviousSecret { secret: old, until });
        definition.updated_at = now;
        if put(ports, &definition, When::Revision(item.revision)).await? == Committed::Done {
            return Ok(definition);
        }
        // Somebody else changed the definition meanwhile: look again.
    }
}

/// Ends the overlap of a rotation now: the secret before is worth nothing from the next call on. Where none is under
/// way nothing changes.
pub async fn finish_rotation(ports: &Ports, name: &ExtensionName) -> Outcome<Definition> {
    loop {
        let (mut definition, item) = load(ports, name).await?.ok_or_else(|| unknown(name))?;
        if definition.previous_secret.take().is_none() {
            return Ok(definition);
        }
        definition.updated_at = ports.clock.now();
        if put(ports, &definition, When::Revision(item.revision)).await? == Committed::Done {
            return Ok(definition);
        }
    }
}

/// The secret before that still verifies.
pub fn previous_of(definition: &Definition, now: Timestamp) -> Option<&PreviousSecret> {
    definition.previous_secret.as_ref().filter(|previous| now < previous.until)
}

/// The same, opened, and until when it verifies.
pub fn previous_secret(
    ports: &Ports,
    definition: &Definition,
) -> Result<Option<(Zeroizing<String>, Timestamp)>, Outage> {
    previous_of(definition, ports.clock.now())
        .map(|found| Ok((open_secret(ports, &definition.name, &found.secret)?, found.until)))
        .transpose()
}
