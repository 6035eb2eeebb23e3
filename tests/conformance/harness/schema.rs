//! Schemas in short: a data type stands for a field, and what is left out is what extensions leave out.

use serde_json::{Map, Value, json};

use super::case::{Action, Schema};

/// The `data` of the answer to a schema request.
pub(crate) fn expand(schema: &Schema) -> Value {
    let actions: Map<String, Value> = match &schema.actions {
        Some(actions) => {
            actions.iter().map(|(name, found)| (name.clone(), action(found))).collect()
        }
        None => default_actions(),
    };
    json!({
        "config_schema": { "fields": fields(&schema.config), "requirements": null },
        "request_schema": actions,
        "required_events": schema.events,
    })
}

fn default_actions() -> Map<String, Value> {
    let mut run = Action::default();
    run.fields.insert("msg".to_owned(), json!("string"));
    Map::from_iter([
        ("run".to_owned(), action(&run)),
        ("next".to_owned(), action(&Action::default())),
    ])
}

fn action(short: &Action) -> Value {
    let mut action = json!({
        "short_description": "",
        "parameters": { "fields": fields(&short.fields), "requirements": short.requirements },
        "response": null,
    });
    for (name, value) in
        [("is_impersonated", short.is_impersonated), ("is_user_facing", short.is_user_facing)]
    {
        if let Some(value) = value {
            action[name] = value.into();
        }
    }
    action
}

fn fields(short: &std::collections::BTreeMap<String, Value>) -> Value {
    let field = |value: &Value| match value {
        Value::String(data_type) => json!({ "data_type": data_type, "default_value": null }),
        whole => whole.clone(),
    };
    Value::Object(short.iter().map(|(name, value)| (name.clone(), field(value))).collect())
}
