//! Hive records: what configurations, secrets and rules are to the API.

use http::Method;
use serde_json::{Value, json};

use super::client::{Answer, Call};
use super::error::Error;
use super::output;
use super::session::Session;

/// A hive of the organization.
pub struct Hive<'a> {
    session: &'a Session,
    name: &'static str,
}

impl<'a> Hive<'a> {
    /// The hive with this name.
    pub fn new(session: &'a Session, name: &'static str) -> Self {
        Self { session, name }
    }

    fn call(&self, method: Method, rest: &[&str]) -> Result<Call<'a>, Error> {
        let oid = self.session.oid()?;
        let path: Vec<_> = ["hive", self.name, oid].iter().chain(rest).copied().collect();
        Ok(self.session.v1(method, &path, oid))
    }

    /// Every record by its key; without data where only `metadata` is asked for.
    pub async fn list(&self, metadata: bool) -> Result<Answer, Error> {
        let query: &[_] = if metadata { &[("mtd_only", "true")] } else { &[] };
        self.call(Method::GET, &[])?.query(query).send("listing records").await
    }

    /// One record.
    pub async fn get(&self, key: &str) -> Result<Answer, Error> {
        self.call(Method::GET, &[key, "data"])?.send("reading the record").await
    }

    /// Writes the data of a record. What is set beside the data stays as it is where the record exists and `enabled`
    /// says nothing; a new record is enabled unless `enabled` says otherwise.
    pub async fn set(&self, key: &str, data: &str, enabled: Option<bool>) -> Result<Answer, Error> {
        let mut metadata = match self
            .call(Method::GET, &[key, "mtd"])?
            .send("reading the record")
            .await
        {
            Ok(found) => {
                let found: Value = serde_json::from_slice(&found.body).unwrap_or_default();
                found.get("usr_mtd").filter(|m| m.is_object()).cloned().unwrap_or_else(|| json!({}))
            }
            Err(error) if error.is_missing_record() => json!({ "enabled": true }),
            Err(error) => return Err(error),
        };
        if let Some(enabled) = enabled {
            metadata["enabled"] = enabled.into();
        }
        let fields = [("data", data), ("usr_mtd", &*metadata.to_string())];
        self.call(Method::POST, &[key, "data"])?.form(&fields).send("writing the record").await
    }

    /// Asks whether data could be written, without writing it.
    pub async fn validate(&self, key: &str, data: &str) -> Result<Answer, Error> {
        let call = self.call(Method::POST, &[key, "validate"])?;
        call.form(&[("data", data)]).send("checking the record").await
    }

    /// Removes a record.
    pub async fn delete(&self, key: &str) -> Result<Answer, Error> {
        self.call(Method::DELETE, &[key])?.send("deleting the record").await
    }
}

/// The rows of a listing: the key, and what stands beside the data.
pub fn table(value: &Value, title: &'static str, none: &str) -> String {
    let mut rows = output::rows(value);
    for row in &mut rows {
        output::lift(row, "usr_mtd", &["enabled", "tags"]);
        output::lift(row, "sys_mtd", &["last_mod"]);
    }
    let columns =
        [(title, "name"), ("ENABLED", "enabled"), ("TAGS", "tags"), ("CHANGED", "last_mod")];
    output::table(&rows, &columns, none)
}

/// The data of a record, for people.
pub fn data(value: &Value) -> String {
    pretty(value.get("data").unwrap_or(&Value::Null))
}

/// JSON for people.
pub fn pretty(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string());
    output::printable(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_show_what_stands_beside_the_data() {
        let record = json!({
            "data": null,
            "usr_mtd": {"enabled": true, "tags": ["a", "b"], "expiry": 0, "comment": ""},
            "sys_mtd": {"last_mod": 1_700_000_000_000_i64, "etag": "e"},
        });
        assert_eq!(
            table(&json!({"k": record, "bare": {}}), "SECRET", "no secrets"),
            "SECRET  ENABLED  TAGS  CHANGED\n\
             k       true     a, b  2023-11-14T22:13:20.000Z\n\
             bare"
        );
        assert_eq!(table(&json!({}), "SECRET", "no secrets"), "no secrets");
    }
}
