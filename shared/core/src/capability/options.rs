//! Choices for a field of an input: what the query behind its `x-chaster-options` answers, kept for a while.

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::fault::{Code, Fault};
use crate::json::{self, Object};
use crate::keys;
use crate::limits::{OPTIONS_BYTES_MAX, OPTIONS_MAX, OPTIONS_TTL, TEXT_BYTES_MAX};
use crate::ports::{Commit, Key, When, Write};
use crate::stored;
use crate::time::Timestamp;

use super::calls::Origin;
use super::calls::body::members;
use super::id::{Qualified, Slug};
use super::refusal::Refusal;
use super::schema::Schema;
use super::service::Capabilities;

/// Choices that were fetched.
#[derive(Debug, Clone)]
pub(super) struct Choices {
    /// JSON: `{"options": [...]}`.
    pub(super) json: Arc<str>,
    /// From when on they are old.
    until: Timestamp,
}

/// What is asked for choices, and whose field they are for.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    /// The query.
    pub(super) query: &'a Qualified,
    /// The extension whose field it is.
    pub(super) by: &'a Slug,
}

/// The body of a request for choices.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body<'a> {
    id: String,
    field: String,
    #[serde(borrow, default, deserialize_with = "given")]
    input: Option<&'a RawValue>,
    #[serde(default)]
    search: Option<String>,
}

/// An input of `null` is one that was given.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// One choice. Members of other names are left alone.
#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    value: &'a RawValue,
    #[serde(rename = "label")]
    _label: String,
    #[serde(rename = "description", default)]
    _description: Option<String>,
}

#[derive(Deserialize)]
struct Output<'a> {
    #[serde(borrow)]
    options: Vec<&'a RawValue>,
}

impl Capabilities {
    /// The choices for a field of a command's or query's input: the JSON `{"options": [{value, label, description?}]}`.
    ///
    /// The query behind them is asked at most once in [`OPTIONS_TTL`] for the same request of the same caller on the same
    /// lock; it leaves no invocation record (CH-016, CH-034, CH-052 to CH-053, CH-062 to CH-064).
    pub async fn options(&self, origin: &Origin, body: &[u8]) -> Result<Arc<str>, Refusal> {
        self.rates().take_options(origin.oid, &origin.lock, origin.chooser()).await?;
        let body: Body<'_> = members(body)?;
        if body.search.as_ref().is_some_and(|search| TEXT_BYTES_MAX < search.len()) {
            let text = format!("search has more than {TEXT_BYTES_MAX} bytes");
            return Err(Fault::new(Code::BadRequest, text).into());
        }
        let id = Qualified::parse(&body.id).ok_or(Refusal::InvalidCommandId)?;
        let found = self.find(origin, &id).await?;
        let compiled = &found.target.compiled;
        let capability = compiled.capability(&id).ok_or(Refusal::UnknownCommand)?;
        let availability = found.session.availability.get(&id);
        let invocable_by = &capability.declared.invocable_by;
        super::calls::allowed(origin.caller().kind, invocable_by, availability)?;
        let source = capability.options(&body.field).ok_or(Refusal::OptionsNotDeclared)?;
        let input = input_of(source.params.get(), &body).ok_or(Refusal::InvalidInput)?;
        let asked = Asked { query: &source.query, by: &found.target.extension.slug };
        self.choices(origin, asked, input).await
    }

    /// The choices that were kept, or those that the query answers now. Equal requests of one process wait for each other.
    async fn choices(
        &self,
        origin: &Origin,
        asked: Asked<'_>,
        input: String,
    ) -> Result<Arc<str>, Refusal> {
        let canonical = json::canonical(&input).unwrap_or_default();
        let parts = [&origin.name(), asked.query.as_str(), asked.by.as_str(), canonical.as_str()];
        let key = keys::choices(origin.oid, &origin.lock, &parts);
        let now = self.ports().clock.now();
        let choices = self.inner.options.try_refreshed(
            key.sort.clone() + &key.partition,
            |choices| now < choices.until,
            self.fetch(origin, asked, input, &key),
        );
        Ok(Arc::clone(&choices.await?.json))
    }

    /// What another process has fetched, or what the query answers.
    async fn fetch(
        &self,
        origin: &Origin,
        asked: Asked<'_>,
        input: String,
        key: &Key,
    ) -> Result<Choices, Refusal> {
        let ports = self.ports();
        if let Some(item) = ports.store.get(key).await?
            && let Some(until) = item.expires_at
        {
            let json: Box<RawValue> = stored::read(&item, "choices")?;
            return Ok(Choices { json: json.get().into(), until });
        }
        let output = self.ask(origin, asked, input).await.map_err(|refusal| match refusal {
            // The platform's own troubles are not the query's.
            Refusal::Other(_) => refusal,
            _ => Refusal::OptionsUnavailable,
        })?;
        if !are_choices(&output) {
            return Err(Refusal::OptionsUnavailable);
        }
        let until = ports.clock.now().plus(OPTIONS_TTL);
        let data = output.clone().into_bytes();
        let write =
            Write::Put { key: key.clone(), data, expires_at: Some(until), when: When::Always };
        ports.store.commit(Commit { writes: vec![write], ..Commit::default() }).await?;
        Ok(Choices { json: output.into(), until })
    }
}

/// The input of the query: its parameters, and what the caller has filled in and searches for.
fn input_of(params: &str, body: &Body<'_>) -> Option<String> {
    let mut input = Object::parse(params).ok()?;
    if let Some(filled) = body.input {
        input.insert("input", filled.get()).ok()?;
    }
    if let Some(search) = &body.search {
        input.insert_text("search", search);
    }
    // What no query takes is the caller's doing, and not the query's.
    let input = input.to_json();
    any_schema().accepts(input.as_bytes()).then_some(input)
}

/// What any input must fit: its size, its depth, its numbers, each key once.
fn any_schema() -> &'static Schema {
    static ANY: LazyLock<Schema> = LazyLock::new(|| Schema::compile("true").expect("it is one"));
    &ANY
}

/// Whether an output holds choices as they should be (CH-062, CH-063).
fn are_choices(output: &str) -> bool {
    if OPTIONS_BYTES_MAX < output.len() {
        return false;
    }
    // By themselves the derived readers would take lists of values for objects.
    let Ok(found) = members::<Output<'_>>(output.as_bytes()) else { return false };
    let is_choice = |choice: &&RawValue| {
        members::<Choice<'_>>(choice.get().as_bytes())
            .is_ok_and(|choice| !choice.value.get().starts_with(['{', '[']))
    };
    found.options.len() <= OPTIONS_MAX && found.options.iter().all(is_choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An output of so many choices, made to have so many bytes.
    fn choices(count: usize, bytes: usize) -> String {
        let choice = r#"{"value":1,"label":"x"}"#;
        let text = format!(r#"{{"options":[{}]}}"#, vec![choice; count].join(","));
        text.replacen('x', &"x".repeat(1 + bytes.saturating_sub(text.len())), 1)
    }

    #[test]
    fn up_to_200_choices_in_32_kib_are_taken() {
        let check = |output: &str, fits: bool| assert_eq!(are_choices(output), fits);
        check(&choices(0, 0), true);
        // CH-062
        check(&choices(200, 0), true);
        check(&choices(201, 0), false);
        // CH-063
        assert_eq!(choices(1, OPTIONS_BYTES_MAX).len(), OPTIONS_BYTES_MAX);
        check(&choices(1, OPTIONS_BYTES_MAX), true);
        check(&choices(1, OPTIONS_BYTES_MAX + 1), false);
    }

    #[test]
    fn a_choice_has_a_value_that_is_no_container_and_a_label() {
        let check = |choice: &str, fits: bool| {
            assert_eq!(are_choices(&format!(r#"{{"options":[{choice}]}}"#)), fits, "{choice}");
        };
        for value in ["1", "1e400", "null", "true", r#""a""#] {
            check(&format!(r#"{{"value":{value},"label":"a"}}"#), true);
        }
        check(r#"{"value":1,"label":"a","description":"b","icon":2}"#, true);
        check(r#"{"value":[],"label":"a"}"#, false);
        check(r#"{"value":{},"label":"a"}"#, false);
        check(r#"{"label":"a"}"#, false);
        check(r#"{"value":1}"#, false);
        check(r#"{"value":1,"label":1}"#, false);
        check(r#"[1,"a"]"#, false);
        for output in ["null", "{}", "[]", "[[]]", r#"[[{"value":1,"label":"a"}]]"#] {
            assert!(!are_choices(output), "{output}");
        }
    }
}
