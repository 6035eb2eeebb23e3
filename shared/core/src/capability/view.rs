//! Sessions and locks as the contract shows them.

use serde::Serialize;
use serde_json::value::RawValue;

use super::id::LockId;
use super::model::{Lock, LockStatus, Session};

/// A session with its lock. What the contract's sessions have beside that, and this platform has nothing of, has the
/// value that says so.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionView<'a> {
    #[serde(rename = "_id")]
    id: &'a str,
    session_id: &'a str,
    /// Where a search goes on behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pagination_id: Option<&'a str>,
    slug: &'a str,
    config: &'a RawValue,
    data: &'a RawValue,
    metadata: &'a RawValue,
    mode: &'static str,
    regularity: u32,
    nb_actions_remaining: i32,
    next_action_date: Option<&'static str>,
    user_data: Option<&'static str>,
    text_config: &'static str,
    display_name: &'a str,
    summary: &'static str,
    subtitle: &'static str,
    icon: &'static str,
    is_partner: bool,
    created_at: String,
    updated_at: String,
    lock: LockView<'a>,
}

/// A lock.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LockView<'a> {
    #[serde(rename = "_id")]
    id: &'a LockId,
    lock_id: &'a LockId,
    status: LockStatus,
    is_frozen: bool,
    has_keyholder: bool,
    created_at: String,
    updated_at: String,
}

impl<'a> LockView<'a> {
    /// Of the lock of this id.
    pub fn new(id: &'a LockId, lock: &Lock) -> Self {
        Self {
            id,
            lock_id: id,
            status: lock.status,
            is_frozen: lock.frozen,
            has_keyholder: lock.has_keyholder,
            created_at: lock.created_at.to_string(),
            updated_at: lock.updated_at.to_string(),
        }
    }
}

impl<'a> SessionView<'a> {
    /// Of a session on this lock.
    pub fn new(session: &'a Session, lock: &Lock) -> Self {
        Self {
            id: &session.id,
            session_id: &session.id,
            pagination_id: None,
            slug: session.extension.as_str(),
            config: &session.config,
            data: &session.data,
            metadata: &session.metadata,
            mode: "unlimited",
            regularity: 0,
            nb_actions_remaining: -1,
            next_action_date: None,
            user_data: None,
            text_config: "",
            display_name: session.extension.as_str(),
            summary: "",
            subtitle: "",
            icon: "",
            is_partner: true,
            created_at: session.created_at.to_string(),
            updated_at: session.updated_at.to_string(),
            lock: LockView::new(&session.lock, lock),
        }
    }
}
