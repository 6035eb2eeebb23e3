//! What every command has: a client, an organization, and a way to print.

use http::Method;
use serde_json::Value;

use super::client::{Answer, Call, Client, NO_ORG};
use super::error::Error;
use super::output::{self, Column, Format};

/// The surroundings of one command.
pub struct Session {
    /// The connection to the platform.
    pub client: Client,
    /// The organization that the command is about, where one is named.
    pub oid: Option<String>,
    /// The form of the output.
    pub format: Format,
}

impl Session {
    /// The organization that the command is about.
    pub fn oid(&self) -> Result<&str, Error> {
        self.oid.as_deref().ok_or_else(|| {
            Error::Usage(
                "no organization: set ANNEX_OID or pass --oid; `annex org list` shows them".into(),
            )
        })
    }

    /// Starts a call below `/v1/orgs/{oid}` of the organization.
    pub fn org(&self, method: Method, segments: &[&str]) -> Result<Call<'_>, Error> {
        let oid = self.oid()?;
        let path: Vec<_> = ["v1", "orgs", oid].iter().chain(segments).copied().collect();
        Ok(self.client.call(method, &path, Some(oid)))
    }

    /// Starts a call below `/v1` for the organization, or as nobody's where none is named.
    pub fn any(&self, method: Method, segments: &[&str]) -> Call<'_> {
        self.v1(method, segments, self.oid.as_deref().unwrap_or(NO_ORG))
    }

    /// Starts a call below `/v1` for no organization: as the operator, where the key is the root key.
    pub fn operator(&self, method: Method, segments: &[&str]) -> Call<'_> {
        self.v1(method, segments, NO_ORG)
    }

    /// Starts a call below `/v1` for an organization.
    pub fn v1(&self, method: Method, segments: &[&str], oid: &str) -> Call<'_> {
        let path: Vec<_> = ["v1"].iter().chain(segments).copied().collect();
        self.client.call(method, &path, Some(oid))
    }

    /// Prints a list, below these titles; `list` finds it in the answer.
    pub fn print_rows(
        &self,
        answer: &Answer,
        list: impl FnOnce(&Value) -> &Value,
        columns: &[Column],
        none: &str,
    ) -> Result<(), Error> {
        self.print_with(answer, |value| output::table(&output::rows(list(value)), columns, none))
    }

    /// Prints an object, a member a line.
    pub fn print_record(&self, answer: &Answer) -> Result<(), Error> {
        self.print_with(answer, output::record)
    }

    /// Prints a sentence in place of an answer that only says that it was done.
    pub fn print_done(&self, answer: &Answer, sentence: &str) -> Result<(), Error> {
        self.print_with(answer, |_| output::printable(sentence))
    }

    /// Prints nothing but the text at `pointer` (RFC 6901) of an answer, so that it can be passed on.
    pub fn print_member(&self, answer: &Answer, pointer: &str) -> Result<(), Error> {
        let value: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let text = value.pointer(pointer).and_then(Value::as_str).ok_or_else(|| {
            Error::Local(format!("the platform answered without {}", pointer.trim_matches('/')))
        })?;
        output::line(&output::printable(text))
    }

    /// Prints an answer the way `render` shows it, or as it came.
    pub fn print_with(
        &self,
        answer: &Answer,
        render: impl FnOnce(&Value) -> String,
    ) -> Result<(), Error> {
        if self.format == Format::Json {
            return output::raw(&answer.body);
        }
        match serde_json::from_slice(&answer.body) {
            Ok(value) => output::line(&render(&value)),
            // What cannot be read, such as a lone surrogate that an extension sent, can still be shown.
            Err(_) => output::line(&output::printable(&String::from_utf8_lossy(&answer.body))),
        }
    }
}
