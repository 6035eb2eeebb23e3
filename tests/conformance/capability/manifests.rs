//! What the partners of the cases declare.

use serde_json::{Value, json};

/// A command or a query that takes anything and that everybody may call.
pub(crate) fn capability(id: &str) -> Value {
    json!({
        "id": id, "title": id, "inputSchema": {},
        "invocableBy": ["wearer", "keyholder", "extension"],
    })
}

/// A command or a query with another schema for its input.
pub(crate) fn taking(id: &str, schema: Value) -> Value {
    let mut found = capability(id);
    found["inputSchema"] = schema;
    found
}

/// A command or a query that these may call.
pub(crate) fn for_callers(id: &str, callers: &[&str]) -> Value {
    let mut found = capability(id);
    found["invocableBy"] = json!(callers);
    found
}

/// An event that takes a payload with a number `n`.
pub(crate) fn event(id: &str, hidden: bool) -> Value {
    let schema = json!({
        "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"],
    });
    json!({ "type": id, "title": id, "payloadSchema": schema, "hidden": hidden })
}

/// An extension that calls, and is called back: `run`, the query `get`, and the events `done` and, hidden, `quiet`.
pub(crate) fn caller(slug: &str) -> Value {
    let id = |name: &str| format!("{slug}.{name}");
    json!({
        "commands": [capability(&id("run"))],
        "queries": [capability(&id("get"))],
        "events": [event(&id("done"), false), event(&id("quiet"), true)],
        "subscriptions": [],
    })
}

/// An extension with one of everything:
///
/// - commands `run` (anything, by all), `other` (the same), `worn` (by the wearer), `own` (by extensions), `typed` (a
///   number `n`), `begin` (of kind start), `deep` (anything), `choose` (with choices for `color`, a plain `size`, and
///   `broken`, whose query is not declared);
/// - queries `get` and `colors`; events `done` and, hidden, `quiet`.
pub(crate) fn target(slug: &str) -> Value {
    let id = |name: &str| format!("{slug}.{name}");
    let mut begin = capability(&id("begin"));
    begin["kind"] = json!("start");
    let typed = json!({ "type": "object", "properties": { "n": { "type": "number" } } });
    let choose = json!({
        "type": "object",
        "properties": {
            "color": { "type": "string", "x-chaster-options": { "query": id("colors") } },
            "size": { "type": "number" },
            "broken": { "type": "string", "x-chaster-options": { "query": id("nothing") } },
        },
    });
    let mut checked = capability(&id("checked"));
    checked["outputSchema"] = json!({ "type": "object", "required": ["ok"] });
    json!({
        "commands": [
            capability(&id("run")), capability(&id("other")), for_callers(&id("worn"), &["wearer"]),
            for_callers(&id("own"), &["extension"]), taking(&id("typed"), typed), begin,
            taking(&id("choose"), choose), checked,
        ],
        "queries": [capability(&id("get")), capability(&id("colors"))],
        "events": [event(&id("done"), false), event(&id("quiet"), true)],
        "subscriptions": [],
    })
}
