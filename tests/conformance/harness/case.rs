//! What a case file holds. Unknown members are an error.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// One case: a world, what is done in it, and what must then be the case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// A sentence about behaviour.
    pub(crate) name: String,
    /// The clauses that it checks.
    pub(crate) clauses: Vec<String>,
    /// Why, where the example does not show it.
    #[serde(default)]
    #[expect(dead_code, reason = "for readers of the case files")]
    pub(crate) why: String,
    /// The organizations; `A` unless given. `B@11:30`: one whose daily update is due at that time.
    #[serde(default = "one_org")]
    pub(crate) orgs: Vec<String>,
    /// The extension `demo`.
    #[serde(default)]
    pub(crate) demo: Extension,
    /// Other extensions, by name.
    #[serde(default)]
    pub(crate) others: BTreeMap<String, Extension>,
    /// Secrets of organization `A`, by name.
    #[serde(default)]
    pub(crate) secrets: BTreeMap<String, String>,
    /// Configuration of `demo` in organization `A`.
    #[serde(default)]
    pub(crate) config: Option<Value>,
    /// What is done, in order.
    pub(crate) steps: Vec<Step>,
    /// What was delivered after the last step that says so.
    #[serde(default)]
    pub(crate) deliveries: Deliveries,
    /// Errors of the organizations: a list for `A`, or lists by organization. `[component, text]`, and the count.
    #[serde(default)]
    pub(crate) errors: Option<Value>,
    /// Usage of organization `A`, by SKU.
    #[serde(default)]
    pub(crate) usage: BTreeMap<String, u64>,
    /// Bounds of every sleep between attempts, in seconds; not looked at unless given.
    #[serde(default)]
    pub(crate) sleeps: Option<Vec<[f64; 2]>>,
    /// Dead letters.
    #[serde(default)]
    pub(crate) dead: usize,
    /// Organizations of which nothing is left; the others have their errors and usage.
    #[serde(default)]
    pub(crate) gone: Vec<String>,
}

impl Case {
    /// Whether the extension `demo` asks to be called later.
    pub(crate) fn sheds_load(&self) -> bool {
        self.demo.answers.values().flatten().any(|answer| answer == 429)
    }

    /// The names of the organizations.
    pub(crate) fn org_names(&self) -> impl Iterator<Item = &str> {
        self.orgs.iter().map(|org| org.split('@').next().unwrap_or(org))
    }

    /// Those that are there at the end.
    pub(crate) fn left(&self) -> impl Iterator<Item = &str> {
        self.org_names().filter(|org| !self.gone.iter().any(|gone| gone == org))
    }
}

fn one_org() -> Vec<String> {
    vec!["A".to_owned()]
}

/// An extension and how it answers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Extension {
    /// What it advertises.
    #[serde(default)]
    pub(crate) schema: Schema,
    /// Its answers: lists by action, `event:NAME`, `schema`, `validate`, `report`. The last of a list is repeated.
    #[serde(default)]
    pub(crate) answers: BTreeMap<String, Vec<Value>>,
    /// Shared secret.
    #[serde(default)]
    pub(crate) secret: Option<String>,
    /// Permissions of its definition; `sensor.get` unless given.
    #[serde(default)]
    pub(crate) permissions: Option<Vec<String>>,
    /// Events of its definition.
    #[serde(default)]
    pub(crate) events: Option<Vec<String>>,
    /// Organizations that are subscribed; all unless given.
    #[serde(default)]
    pub(crate) subscribed: Option<Vec<String>>,
}

/// A schema in short: see `schema.rs`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Schema {
    /// Actions by name; `run` with a string `msg`, and `next`, unless given.
    #[serde(default)]
    pub(crate) actions: Option<BTreeMap<String, Action>>,
    /// Fields of the configuration.
    #[serde(default)]
    pub(crate) config: BTreeMap<String, Value>,
    /// Events.
    #[serde(default)]
    pub(crate) events: Vec<String>,
}

/// An action in short.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Action {
    /// A data type, or the whole element, by name.
    #[serde(default)]
    pub(crate) fields: BTreeMap<String, Value>,
    /// Sets of names.
    #[serde(default)]
    pub(crate) requirements: Vec<Vec<String>>,
    /// Absent where it is not given: the default is the platform's to know.
    #[serde(default)]
    pub(crate) is_impersonated: Option<bool>,
    /// For the web application only.
    #[serde(default)]
    pub(crate) is_user_facing: Option<bool>,
}

/// Deliveries that are expected: all of them in order, or their number.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Deliveries {
    /// So many.
    Count(usize),
    /// These.
    List(Vec<Value>),
    /// So many, and these at some places of them.
    Some(Places),
}

/// Some of many deliveries.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Places {
    /// All of them.
    pub(crate) count: usize,
    /// Those that are looked at, by their place, counted from 0.
    pub(crate) at: BTreeMap<String, Value>,
}

impl Default for Deliveries {
    fn default() -> Self {
        Self::Count(0)
    }
}

/// One step: a verb, its details, and what it must answer.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Step {
    /// Requests this action of an extension.
    pub(crate) call: Option<String>,
    /// Sends this request: `METHOD /path`.
    pub(crate) http: Option<String>,
    /// An event comes in that a rule answers by calling this action.
    pub(crate) rule: Option<String>,
    /// Lets so many seconds pass, and whatever comes due in them happen.
    pub(crate) wait: Option<f64>,
    /// Lets everything happen that is still to come.
    pub(crate) settle: Option<bool>,
    /// Runs the schedule of the daily update for so many hours.
    pub(crate) daily_hours: Option<u32>,
    /// Publishes every continuation again that was published so far.
    pub(crate) publish_again: Option<bool>,
    /// Delivers every queue message again that was taken so far.
    pub(crate) redeliver: Option<bool>,
    /// The process ends and starts again: its caches are empty.
    pub(crate) restart: Option<bool>,
    /// The wall clock jumps by so many seconds.
    pub(crate) jump_s: Option<i64>,
    /// The extension changes: its schema, its answers.
    pub(crate) change: Option<Extension>,
    /// The store refuses writes from now on, or no more.
    pub(crate) disk_full: Option<bool>,

    /// Of which extension; `demo` unless given.
    pub(crate) extension: Option<String>,
    /// In which organization; `A` unless given.
    pub(crate) org: Option<String>,
    /// As whom; see `callers.rs`.
    #[serde(rename = "as")]
    pub(crate) caller: Option<String>,
    /// The data, as it stands here.
    pub(crate) data: Option<Box<RawValue>>,
    /// The data as text, where it is no JSON.
    pub(crate) text: Option<String>,
    /// Data that is generated.
    pub(crate) generate: Option<Generate>,
    /// Sends the data as `gzdata`.
    pub(crate) packed: Option<bool>,
    /// `Idempotency-Key`.
    pub(crate) key: Option<String>,
    /// Whose token an impersonated action gets; see `callers.rs`.
    pub(crate) impersonate: Option<String>,
    /// `Prefer`.
    pub(crate) prefer: Option<String>,
    /// An investigation.
    pub(crate) investigation: Option<String>,
    /// Fields of a form.
    pub(crate) form: Option<BTreeMap<String, String>>,
    /// A JSON body.
    pub(crate) json: Option<Value>,
    /// Does it so many times at once; every answer must be one of `any_of`.
    pub(crate) times: Option<usize>,

    /// Status 200 and this data.
    pub(crate) ok: Option<Value>,
    /// `[status, code, text]`.
    pub(crate) fails: Option<(u16, String, String)>,
    /// Status 202 and this status of the record; binds `id`.
    pub(crate) accepted: Option<String>,
    /// Status and body.
    pub(crate) answer: Option<Answer>,
    /// Answers of which each must be one.
    pub(crate) any_of: Option<Vec<Answer>>,
    /// What was delivered since the last step that says so.
    pub(crate) deliveries: Option<Deliveries>,
}

/// An HTTP answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    /// Its status.
    pub(crate) status: u16,
    /// Its whole body.
    pub(crate) body: Value,
}

/// Large data: an object whose field `field` holds `text` `count` times.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Generate {
    /// The field.
    pub(crate) field: String,
    /// What is repeated.
    pub(crate) text: String,
    /// How often.
    pub(crate) count: usize,
    /// Around the repeated text.
    #[serde(default)]
    pub(crate) raw: bool,
}

/// Reads the cases of a file.
pub(crate) fn read(text: &str) -> Result<Vec<Case>, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}
