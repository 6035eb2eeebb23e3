//! stub
use super::id::{LockId, Slug};
use super::refusal::Refusal;
use crate::ids::Oid;
use crate::ports::Ports;
/// x
pub struct Rates;
#[allow(missing_docs, unused, clippy::all)]
impl Rates {
    pub fn new(_: Ports) -> Self {
        Self
    }
    pub async fn take(&self, _: Oid, _: &LockId, _: &Slug) -> Result<(), Refusal> {
        Ok(())
    }
    pub async fn take_user(&self, _: Oid, _: &LockId) -> Result<(), Refusal> {
        Ok(())
    }
    pub async fn charge(&self, _: Oid, _: &LockId, _: &Slug) -> Result<(), Refusal> {
        Ok(())
    }
    pub async fn take_options(&self, _: Oid, _: &LockId, _: &str) -> Result<(), Refusal> {
        Ok(())
    }
}
