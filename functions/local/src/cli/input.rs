//! What commands read: JSON from an argument, a file or standard input, and secret values.

use std::fs::File;
use std::io::{self, IsTerminal, Read};

use serde::de::IgnoredAny;

use super::error::Error;

/// Most that is read from a file or from standard input, in bytes: what the platform takes in one field.
const INPUT_BYTES_MAX: u64 = 10 << 20;

/// The JSON text of a `JSON|@FILE|-` argument, as it was written.
pub fn json(argument: &str) -> Result<String, Error> {
    let text = match argument {
        "-" => text(io::stdin().lock(), "standard input")?,
        _ => match argument.strip_prefix('@') {
            Some(path) => file(path)?,
            None => argument.to_owned(),
        },
    };
    // The text is sent as it is. Reading it here only spares a round trip for a typing error.
    serde_json::from_str::<IgnoredAny>(&text)
        .map_err(|error| Error::Usage(format!("the data is not JSON: {error}")))?;
    Ok(text)
}

/// The text of a file; `-` is standard input.
pub fn file(path: &str) -> Result<String, Error> {
    if path == "-" {
        return text(io::stdin().lock(), "standard input");
    }
    let file = File::open(path).map_err(|error| Error::Usage(format!("{path}: {error}")))?;
    text(file, path)
}

/// A secret value: typed at a prompt that does not show it, or else from standard input without its last line end.
///
/// Secret values are no arguments: those are seen by every process of the machine and kept in the shell's history.
pub fn secret(prompt: &str) -> Result<String, Error> {
    let value = if io::stdin().is_terminal() {
        let terminal = console::Term::stderr();
        terminal.write_str(&format!("{prompt}: "))?;
        terminal.read_secure_line()?
    } else {
        without_line_end(text(io::stdin().lock(), "standard input")?)
    };
    if value.is_empty() {
        Err(Error::Usage(format!("{prompt}: nothing was given")))
    } else {
        Ok(value)
    }
}

/// `value` without one line end at its end: `echo` and editors add it, nobody means it.
pub fn without_line_end(mut value: String) -> String {
    if value.ends_with('\n') {
        value.pop();
        if value.ends_with('\r') {
            value.pop();
        }
    }
    value
}

/// Reads at most [`INPUT_BYTES_MAX`] bytes of UTF-8 text.
fn text(source: impl Read, name: &str) -> Result<String, Error> {
    let mut text = String::new();
    source
        .take(INPUT_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(|error| Error::Usage(format!("{name}: {error}")))?;
    if INPUT_BYTES_MAX < text.len() as u64 {
        return Err(Error::Usage(format!("{name}: more than {INPUT_BYTES_MAX} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(argument: &str, expected: Result<&str, &str>) {
        let found = json(argument).map_err(|error| error.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn json_arguments_keep_every_byte() {
        check(
            r#"{"n": 1e400, "b":123456789012345678901}"#,
            Ok(r#"{"n": 1e400, "b":123456789012345678901}"#),
        );
    }

    #[test]
    fn what_is_not_json_is_refused_before_it_is_sent() {
        check("{a:1}", Err("the data is not JSON: key must be a string at line 1 column 2"));
        check("@/nowhere", Err("/nowhere: No such file or directory (os error 2)"));
    }

    #[test]
    fn text_is_read_up_to_its_limit() {
        let at = vec![b'a'; INPUT_BYTES_MAX as usize];
        assert_eq!(text(&*at, "in").unwrap().len(), at.len());
        let past = vec![b'a'; INPUT_BYTES_MAX as usize + 1];
        assert_eq!(text(&*past, "in").unwrap_err().to_string(), "in: more than 10485760 bytes");
    }

    #[test]
    fn one_line_end_is_dropped() {
        let check = |given: &str, kept: &str| assert_eq!(without_line_end(given.into()), kept);
        check("v", "v");
        check("v\n", "v");
        check("v\r\n", "v");
        check("v\n\n", "v\n");
    }
}
