//! The permissions: words that tokens, API keys and extension definitions carry. One table.

use crate::fault::{Code, Fault, Outcome};
use crate::limits::{PERMISSION_BYTES_MAX, PERMISSIONS_MAX};

macro_rules! permissions {
    ($($(#[doc = $doc:literal])+ $name:ident = $word:literal;)*) => {
        $($(#[doc = $doc])+ pub const $name: &str = $word;)*

        /// Every permission the platform checks, in the order of the table.
        pub const ALL: &[&str] = &[$($name,)*];
    };
}

permissions! {
    /// Read the organization: its name, its URLs.
    ORG_GET = "org.get";
    /// Change the organization: its name, its description.
    ORG_CONF_SET = "org.conf.set";
    /// Read the organization's errors.
    ORG_ERRORS_GET = "org.errors.get";
    /// Dismiss the organization's errors.
    ORG_ERRORS_DEL = "org.errors.del";
    /// Read what the organization used.
    USAGE_GET = "usage.get";
    /// List, create and delete API keys. Nobody grants what they do not hold.
    APIKEY_CTRL = "apikey.ctrl";
    /// Call an extension, and read its schema.
    EXT_REQUEST = "ext.request";
    /// Subscribe to extensions, unsubscribe, and re-key.
    EXT_SUB = "ext.sub";
    /// List the organization's subscriptions.
    EXT_LIST = "ext.list";
    /// Read invocation records.
    INVOCATION_GET = "invocation.get";
    /// Read extension configurations.
    EXT_CONF_GET = "ext.conf.get";
    /// Write extension configurations.
    EXT_CONF_SET = "ext.conf.set";
    /// Delete extension configurations.
    EXT_CONF_DEL = "ext.conf.del";
    /// Read secrets, values included.
    SECRET_GET = "secret.get";
    /// Write secrets.
    SECRET_SET = "secret.set";
    /// Delete secrets.
    SECRET_DEL = "secret.del";
    /// List the names and the metadata of secrets.
    SECRET_LIST = "secret.list";
    /// Read rules.
    DR_LIST = "dr.list";
    /// Write rules.
    DR_SET = "dr.set";
    /// Delete rules.
    DR_DEL = "dr.del";
    /// Read telemetry adapters.
    CLOUDSENSOR_GET = "cloudsensor.get";
    /// Write telemetry adapters.
    CLOUDSENSOR_SET = "cloudsensor.set";
    /// Delete telemetry adapters.
    CLOUDSENSOR_DEL = "cloudsensor.del";
    /// Read the records of every other hive.
    HIVE_GET = "hive.get";
    /// Write the records of every other hive.
    HIVE_SET = "hive.set";
    /// Delete the records of every other hive.
    HIVE_DEL = "hive.del";
    /// List installation keys.
    IKEY_LIST = "ikey.list";
    /// Create installation keys.
    IKEY_SET = "ikey.set";
    /// Delete installation keys.
    IKEY_DEL = "ikey.del";
    /// Read and search telemetry events.
    INSIGHT_EVT_GET = "insight.evt.get";
}

/// Reads a list of permissions: words that the platform need not know, since definitions and keys that were made for
/// another platform keep theirs, or `*`. Doubles are dropped.
pub fn read_list<'a>(words: impl IntoIterator<Item = &'a str>) -> Outcome<Vec<String>> {
    let mut list: Vec<String> = Vec::new();
    for word in words {
        if !is_permission(word) {
            return Err(Fault::new(
                Code::BadRequest,
                format!(
                    "a permission is * or 1 to {PERMISSION_BYTES_MAX} letters, digits, dots, dashes or underscores"
                ),
            ));
        }
        if !list.iter().any(|known| known == word) {
            list.push(word.to_owned());
        }
    }
    if PERMISSIONS_MAX < list.len() {
        return Err(Fault::new(
            Code::BadRequest,
            format!("more than {PERMISSIONS_MAX} permissions"),
        ));
    }
    Ok(list)
}

fn is_permission(word: &str) -> bool {
    word == "*"
        || (!word.is_empty()
            && word.len() <= PERMISSION_BYTES_MAX
            && word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_permission_of_the_table_is_well_formed_and_stands_there_once() {
        assert_eq!(read_list(ALL.iter().copied()).map(|list| list.len()), Ok(ALL.len()));
    }

    #[test]
    fn a_list_keeps_unknown_words_drops_doubles_and_refuses_what_is_no_word() {
        let read = |words: &[&str]| read_list(words.iter().copied()).map_err(|fault| fault.code);
        assert_eq!(read(&["*"]), Ok(vec!["*".into()]));
        assert_eq!(read(&["sensor.list", "a", "a"]), Ok(vec!["sensor.list".into(), "a".into()]));
        for bad in ["", "a b", "a,b", "**", "é", &"x".repeat(PERMISSION_BYTES_MAX + 1)] {
            assert_eq!(read(&[bad]), Err(Code::BadRequest), "{bad}");
        }
        assert!(read(&["x".repeat(PERMISSION_BYTES_MAX).as_str()]).is_ok());
    }

    #[test]
    fn the_last_accepted_and_the_first_refused_number_of_permissions() {
        let words: Vec<String> = (0..=PERMISSIONS_MAX).map(|n| format!("p{n}")).collect();
        assert!(read_list(words[1..].iter().map(String::as_str)).is_ok());
        assert!(read_list(words.iter().map(String::as_str)).is_err());
    }
}
