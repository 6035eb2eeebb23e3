//! What an extension does on a lock with the platform's own means: lock actions, and the operations of tasks, penalties,
//! hygiene openings, verification pictures and the pillory.
//!
//! The platform keeps no timer and no tasks of its own: an operation is checked, and kept as a visible line of the
//! lock's history, which every extension on the lock is told of. Of lock actions it also keeps whether time stands still.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::fault::{Code, Fault, Outcome};
use crate::limits::{ACTION_TIME_MAX, LINE_DESCRIPTION_CHARS_MAX, LINE_TITLE_CHARS_MAX};
use crate::ports::{Committed, Ports, When};
use crate::time::Timestamp;

use super::history::{self, HistoryLine, Role};
use super::locks::{self, put_lock, require_active};
use super::members::Members;
use super::model::{Invoker, Session};
use super::outbox::{self, Change};
use super::refusal::Refusal;
use super::sessions;

/// The type of the line of a pillory.
const PILLORY: &str = "pillory";

/// An operation that was read from a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    kind: &'static str,
    title: &'static str,
    description: String,
    payload: Value,
    actor: Option<Invoker>,
    freeze: Option<Freeze>,
}

/// What an action does to a lock's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Freeze {
    On,
    Off,
    Toggle,
}

impl Operation {
    fn new(kind: &'static str, title: &'static str, payload: Value) -> Self {
        let description = String::new();
        Self { kind, title, description, payload, actor: None, freeze: None }
    }

    fn freezing(kind: &'static str, freeze: Freeze) -> Self {
        Self { freeze: Some(freeze), ..Self::new(kind, "", json!({})) }
    }

    fn by(self, actor: Invoker) -> Self {
        Self { actor: Some(actor), ..self }
    }

    /// Reads a lock action: `{action: {name, params?}}`.
    pub fn action(body: &Members) -> Outcome<Self> {
        let action = body.members("action")?.ok_or_else(|| bad("action is missing"))?;
        let name = action.require("name", LINE_TITLE_CHARS_MAX)?;
        Ok(match name.as_str() {
            "add_time" => {
                Self::new("time_added", "Time was added", json!({"duration": seconds(&action)?}))
            }
            "remove_time" => Self::new(
                "time_removed",
                "Time was taken away",
                json!({"duration": seconds(&action)?}),
            ),
            "freeze" => Self::freezing("freeze", Freeze::On),
            "unfreeze" => Self::freezing("unfreeze", Freeze::Off),
            "toggle_freeze" => Self::freezing("toggle_freeze", Freeze::Toggle),
            "pillory" => {
                let params = action.members("params")?.ok_or_else(|| bad("params is missing"))?;
                let duration = duration(&params, "duration")?;
                let reason = params.text("reason", LINE_DESCRIPTION_CHARS_MAX)?.unwrap_or_default();
                let payload = json!({"duration": duration, "reason": reason});
                let operation = Self::new(PILLORY, "Put into the pillory", payload);
                Self { description: reason, ..operation }
            }
            "set_display_remaining_time" => {
                let shown = action.flag("params")?.ok_or_else(|| bad("params is missing"))?;
                let title = if shown {
                    "The remaining time is shown"
                } else {
                    "The remaining time is hidden"
                };
                Self::new("display_remaining_time", title, json!({"displayRemainingTime": shown}))
            }
            _ => return Err(bad("action.name is no action of a lock")),
        })
    }

    /// Reads `tasks/assign`: `{task: {task, points, verificationRequired?, duration?}, actor}`.
    pub fn assign_task(body: &Members) -> Outcome<Self> {
        let task = body.members("task")?.ok_or_else(|| bad("task is missing"))?;
        let text = task.require("task", LINE_DESCRIPTION_CHARS_MAX)?;
        let points =
            task.number("points", 0, 1_000_000)?.ok_or_else(|| bad("points is missing"))?;
        let verification = task.flag("verificationRequired")?.unwrap_or(false);
        let most = most_seconds();
        let payload = json!({"task": {
            "task": text, "points": points, "verificationRequired": verification,
            "duration": task.number("duration", 0, most)?,
        }});
        let operation = Self::new("task_assigned", "A task was assigned", payload).by(actor(body)?);
        Ok(Self { description: text, ..operation })
    }

    /// `tasks/start-timer`, which has no body.
    pub fn start_task_timer() -> Self {
        Self::new("task_timer_started", "The timer of the task was started", json!({}))
    }

    /// Reads `tasks/complete`: `{actor, isCompleted}`.
    pub fn complete_task(body: &Members) -> Outcome<Self> {
        let done = body.flag("isCompleted")?.ok_or_else(|| bad("isCompleted is missing"))?;
        let (kind, title) = match done {
            true => ("task_completed", "The task was completed"),
            false => ("task_failed", "The task was not completed"),
        };
        Ok(Self::new(kind, title, json!({"isCompleted": done})).by(actor(body)?))
    }

    /// Reads `penalties/increment`: `{habitName, count?}`.
    pub fn increment_penalty(body: &Members) -> Outcome<Self> {
        let count = body.number("count", 1, 1_000_000)?.unwrap_or(1);
        let payload = json!({"habitName": habit(body)?, "count": count});
        Ok(Self::new("penalty_incremented", "A habit was counted", payload))
    }

    /// Reads `penalties/time-limit/create`: `{habitName}`.
    pub fn create_time_limit(body: &Members) -> Outcome<Self> {
        let payload = json!({"habitName": habit(body)?});
        Ok(Self::new("penalty_time_limit_created", "A time limit for a habit began", payload))
    }

    /// Reads `penalties/time-limit/cancel`: `{habitName}`.
    pub fn cancel_time_limit(body: &Members) -> Outcome<Self> {
        let payload = json!({"habitName": habit(body)?});
        Ok(Self::new(
            "penalty_time_limit_cancelled",
            "A time limit for a habit was cancelled",
            payload,
        ))
    }

    /// Reads `temporary-opening/open`: `{actor}`.
    pub fn open_temporarily(body: &Members) -> Outcome<Self> {
        let title = "A temporary opening began";
        Ok(Self::new("temporary_opening_opened", title, json!({})).by(actor(body)?))
    }

    /// Reads `verification-picture/request`: `{actor}`.
    pub fn request_verification(body: &Members) -> Outcome<Self> {
        let title = "A verification picture was requested";
        Ok(Self::new("verification_picture_requested", title, json!({})).by(actor(body)?))
    }

    fn line(&self, ports: &Ports, session: &Session, frozen: Option<bool>) -> HistoryLine {
        let (kind, title) = match frozen {
            None => (self.kind, self.title),
            Some(true) => ("lock_frozen", "The lock was frozen"),
            Some(false) => ("lock_unfrozen", "The lock was unfrozen"),
        };
        let line = HistoryLine::new(ports, kind, title, Some(&session.extension));
        HistoryLine {
            payload: outbox::raw(&self.payload),
            role: self.actor.map_or(Role::Extension, Role::from),
            description: self.description.clone(),
            ..line
        }
    }
}

fn most_seconds() -> i64 {
    i64::try_from(ACTION_TIME_MAX.as_secs()).unwrap_or(i64::MAX)
}

fn duration(params: &Members, name: &str) -> Outcome<i64> {
    let found = params.number(name, 1, most_seconds())?;
    found.ok_or_else(|| bad(&format!("{name} is missing")))
}

fn seconds(action: &Members) -> Outcome<i64> {
    duration(action, "params")
}

fn actor(body: &Members) -> Outcome<Invoker> {
    let actor = Invoker::parse(&body.require("actor", LINE_TITLE_CHARS_MAX)?);
    actor.ok_or_else(|| bad("actor is none of wearer, keyholder, extension"))
}

fn habit(body: &Members) -> Outcome<String> {
    let name = body.require("habitName", 20)?;
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_');
    match name.bytes().all(fits) {
        true => Ok(name),
        false => Err(bad("habitName has other characters than a-z, 0-9, - and _")),
    }
}

fn bad(text: &str) -> Fault {
    Fault::new(Code::BadRequest, text)
}

/// Does an operation on the lock of a session. A keyholder that the lock does not have is [`Refusal::InvalidActor`]
/// (CH-024), a lock that has ended [`Refusal::CommandUnavailable`] (CH-021).
pub async fn perform(
    ports: &Ports,
    session: &Session,
    operation: &Operation,
) -> Result<(), Refusal> {
    let at = (session.oid, &session.lock);
    loop {
        let (mut lock, item) = locks::require(ports, at.0, at.1).await?;
        if lock.sessions.get(&session.extension) != Some(&session.id) {
            return Err(sessions::unknown(&session.id).into());
        }
        if operation.actor == Some(Invoker::Keyholder) && !lock.has_keyholder {
            return Err(Refusal::InvalidActor);
        }
        require_active(&lock)?;
        let freezes = operation.freeze.map(|freeze| match freeze {
            Freeze::On => true,
            Freeze::Off => false,
            Freeze::Toggle => !lock.frozen,
        });
        let mut change = Change::default();
        if let Some(now_frozen) = freezes
            && now_frozen != lock.frozen
        {
            lock.frozen = now_frozen;
            lock.updated_at = ports.clock.now();
            change.writes.push(put_lock(at.0, at.1, &lock, When::Revision(item.revision)));
        }
        let line = operation.line(ports, session, freezes);
        history::add(ports, &mut change, at, &lock, &line).await?;
        if change.commit(ports).await? == Committed::Done {
            return Ok(());
        }
    }
}

/// Adds a line of an extension's own to the history of its lock: `{title, description?, role?, icon?, color?}`.
pub async fn log(ports: &Ports, session: &Session, body: &Members) -> Result<HistoryLine, Refusal> {
    let role = body.text("role", LINE_TITLE_CHARS_MAX)?;
    let role = match role {
        None => Role::Extension,
        // What administrators did is the organization's and the platform's to say.
        Some(word) => Role::parse(&word)
            .filter(|role| *role != Role::Admin)
            .ok_or_else(|| bad("role is none of wearer, user, keyholder, extension"))?,
    };
    let title = body.require("title", LINE_TITLE_CHARS_MAX)?;
    let line = HistoryLine {
        role,
        description: body.text("description", LINE_DESCRIPTION_CHARS_MAX)?.unwrap_or_default(),
        icon: body.text("icon", LINE_TITLE_CHARS_MAX)?,
        color: body.text("color", LINE_TITLE_CHARS_MAX)?,
        prefix: session.extension.to_string(),
        ..HistoryLine::new(ports, "custom", &title, Some(&session.extension))
    };
    let (lock, _) = locks::require(ports, session.oid, &session.lock).await?;
    if role == Role::Keyholder && !lock.has_keyholder {
        return Err(Refusal::InvalidActor);
    }
    let mut change = Change::default();
    history::add(ports, &mut change, (session.oid, &session.lock), &lock, &line).await?;
    change.commit(ports).await?;
    Ok(line)
}

/// A pillory that has not ended. Nobody votes on this platform.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Vote {
    #[serde(rename = "_id")]
    id: String,
    nb_votes: u32,
    total_duration_added: u32,
    vote_ends_at: String,
    reason: String,
    created_at: String,
}

/// The pillories of a session's lock that have not ended, newest first, of the lines that one search looks at.
pub async fn pillories(ports: &Ports, session: &Session) -> Outcome<Vec<Vote>> {
    let search = history::Search {
        kind: Some(PILLORY.to_owned()),
        limit: crate::limits::LINES_PER_PAGE_MAX,
        ..history::Search::default()
    };
    let found = history::search(ports, session.oid, &session.lock, search).await?;
    let now = ports.clock.now();
    Ok(found.lines.iter().filter_map(|line| vote(line, now)).collect())
}

fn vote(line: &HistoryLine, now: Timestamp) -> Option<Vote> {
    let payload: Value = serde_json::from_str(RawValue::get(&line.payload)).ok()?;
    let duration = std::time::Duration::from_secs(payload["duration"].as_u64()?);
    let ends = line.created_at.plus(duration);
    (now < ends).then(|| Vote {
        id: line.id.clone(),
        nb_votes: 0,
        total_duration_added: 0,
        vote_ends_at: ends.to_string(),
        reason: payload["reason"].as_str().unwrap_or_default().to_owned(),
        created_at: line.created_at.to_string(),
    })
}
