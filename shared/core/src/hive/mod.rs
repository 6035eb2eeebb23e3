//! Hives: an organization's named records, each a JSON object with metadata.

mod check;
mod records;
mod reseal;

use serde::Deserialize;

use crate::auth::permission;
use crate::fault::{Code, Fault, Outcome};
use crate::json::Object;
use crate::limits::{HIVE_DATA_BYTES_MAX, NAME_BYTES_MAX, TAGS_MAX};
use crate::model::UserMetadata;
use crate::orgs::read_text;

pub use check::check;
pub(crate) use records::open_data;
pub use records::{Change, Listing, Paging, Record, delete, get, list, rename, require, set};
pub(crate) use reseal::{resealed, sealed_with};

/// A hive: what kind of records it keeps, and who may touch them.
#[derive(Debug, PartialEq, Eq)]
pub struct Hive {
    /// Its name on the wire.
    pub name: &'static str,
    /// Whether its data can hold secrets, and is sealed at rest.
    pub sealed: bool,
    /// Permission to read records.
    pub get: &'static str,
    /// Permission to list records without their data.
    pub list: &'static str,
    /// Permission to write records.
    pub set: &'static str,
    /// Permission to delete records.
    pub del: &'static str,
}

/// Secrets: `{"secret": text}`.
pub const SECRET: &Hive = &Hive {
    name: "secret",
    sealed: true,
    get: permission::SECRET_GET,
    list: permission::SECRET_LIST,
    set: permission::SECRET_SET,
    del: permission::SECRET_DEL,
};

/// Configurations of extensions, by the extension's name. They may hold secrets in plain text.
pub const EXTENSION_CONFIG: &Hive = &Hive {
    name: "extension_config",
    sealed: true,
    get: permission::EXT_CONF_GET,
    list: permission::EXT_CONF_GET,
    set: permission::EXT_CONF_SET,
    del: permission::EXT_CONF_DEL,
};

/// Rules that match telemetry and call extensions.
pub const RULES: &Hive = &Hive {
    name: "dr-general",
    sealed: false,
    get: permission::DR_LIST,
    list: permission::DR_LIST,
    set: permission::DR_SET,
    del: permission::DR_DEL,
};

/// Telemetry adapters, with the secrets of their webhooks.
pub const CLOUD_SENSOR: &Hive = &Hive {
    name: "cloud_sensor",
    sealed: true,
    get: permission::CLOUDSENSOR_GET,
    list: permission::CLOUDSENSOR_GET,
    set: permission::CLOUDSENSOR_SET,
    del: permission::CLOUDSENSOR_DEL,
};

const fn other(name: &'static str) -> Hive {
    Hive {
        name,
        sealed: true,
        get: permission::HIVE_GET,
        list: permission::HIVE_GET,
        set: permission::HIVE_SET,
        del: permission::HIVE_DEL,
    }
}

/// Hives that extensions and people keep records in, and the platform gives no meaning to.
const OTHERS: &[Hive] = &[
    other("dr-managed"),
    other("dr-service"),
    other("external_adapter"),
    other("fp"),
    other("lookup"),
    other("note"),
    other("playbook"),
    other("query"),
    other("sop"),
    other("yara"),
];

impl Hive {
    /// The hive of this name.
    pub fn parse(name: &str) -> Outcome<&'static Self> {
        [SECRET, EXTENSION_CONFIG, RULES, CLOUD_SENSOR]
            .into_iter()
            .chain(OTHERS)
            .find(|hive| hive.name == name)
            .ok_or_else(|| Fault::new(Code::NotFound, "there is no such hive"))
    }
}

/// Refuses what cannot be the name of a record: 1 to [`NAME_BYTES_MAX`] bytes of any text without control characters.
pub fn check_name(name: &str) -> Outcome<()> {
    if name.is_empty() || NAME_BYTES_MAX < name.len() || name.chars().any(char::is_control) {
        return Err(Fault::new(
            Code::BadRequest,
            format!("a record name has 1 to {NAME_BYTES_MAX} bytes and no control characters"),
        ));
    }
    Ok(())
}

/// Refuses data that is too large for a record.
fn check_size(data: &str) -> Outcome<()> {
    if HIVE_DATA_BYTES_MAX < data.len() {
        return Err(Fault::new(
            Code::TooLarge,
            format!(
                "the data of a record is {} bytes, more than {HIVE_DATA_BYTES_MAX}",
                data.len()
            ),
        ));
    }
    Ok(())
}

/// Reads user metadata as clients send it. A block without `enabled` means disabled, as real clients know; unknown
/// members are ignored, since clients send some that have no meaning here.
pub fn read_metadata(json: &str) -> Outcome<UserMetadata> {
    #[derive(Deserialize)]
    struct Sent {
        enabled: Option<bool>,
        tags: Option<Vec<String>>,
        comment: Option<String>,
        expiry: Option<i64>,
    }
    let refused = |why: &dyn std::fmt::Display| {
        Fault::new(Code::BadRequest, format!("usr_mtd cannot be read: {why}"))
    };
    // By itself the derived reader would take a list of values for the object.
    Object::parse(json).map_err(|fault| refused(&fault))?;
    let sent: Sent = serde_json::from_str(json).map_err(|error| refused(&error))?;
    let tags = sent.tags.unwrap_or_default();
    if TAGS_MAX < tags.len() {
        return Err(Fault::new(Code::BadRequest, format!("more than {TAGS_MAX} tags")));
    }
    if tags.iter().any(|tag| tag.is_empty() || NAME_BYTES_MAX < tag.len()) {
        return Err(Fault::new(Code::BadRequest, format!("a tag has 1 to {NAME_BYTES_MAX} bytes")));
    }
    let expiry = sent.expiry.unwrap_or(0);
    if expiry < 0 {
        return Err(Fault::new(Code::BadRequest, "expiry is negative"));
    }
    Ok(UserMetadata {
        enabled: sent.enabled.unwrap_or(false),
        tags,
        comment: read_text("comment", sent.comment.as_deref().unwrap_or(""))?,
        expiry,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hive_is_found_by_its_name_and_no_other() {
        for name in ["secret", "extension_config", "dr-general", "cloud_sensor", "lookup"] {
            assert_eq!(Hive::parse(name).unwrap().name, name);
        }
        assert_eq!(Hive::parse("nope").unwrap_err().code, Code::NotFound);
    }

    #[test]
    fn a_record_name_is_any_short_text_on_one_line() {
        for good in ["a/b c", "é#", &"x".repeat(NAME_BYTES_MAX)] {
            assert_eq!(check_name(good), Ok(()));
        }
        for bad in ["", "a\0", "a\nb", &"x".repeat(NAME_BYTES_MAX + 1)] {
            assert!(check_name(bad).is_err());
        }
    }

    #[test]
    fn metadata_without_enabled_is_disabled_and_null_is_absent() {
        let plain = UserMetadata { enabled: false, ..UserMetadata::default() };
        assert_eq!(read_metadata("{}"), Ok(plain.clone()));
        let nulls = r#"{"enabled":null,"tags":null,"comment":null,"expiry":null,"ui_actions":[]}"#;
        assert_eq!(read_metadata(nulls), Ok(plain));
        assert_eq!(
            read_metadata(r#"{"enabled":true,"tags":["a"],"comment":"c","expiry":5}"#),
            Ok(UserMetadata {
                enabled: true,
                tags: vec!["a".into()],
                comment: "c".into(),
                expiry: 5
            })
        );
    }

    #[test]
    fn metadata_out_of_bounds_is_refused() {
        let tags = |n: usize| format!(r#"{{"tags":[{}]}}"#, vec![r#""t""#; n].join(","));
        assert!(read_metadata(&tags(TAGS_MAX)).is_ok());
        for bad in [
            tags(TAGS_MAX + 1).as_str(),
            r#"{"tags":[""]}"#,
            r#"{"expiry":-1}"#,
            r#"{"expiry":1e30}"#,
            r#"{"enabled":"yes"}"#,
            r#"[true,["a"],"c",5]"#,
            "",
            "nope",
        ] {
            assert_eq!(
                read_metadata(bad).map_err(|fault| fault.code),
                Err(Code::BadRequest),
                "{bad}"
            );
        }
    }
}
