//! The hosts of the URLs that an install's configuration names at its manifest's `hostsFromConfig` (AL-198). They are
//! computed once, when the configuration is saved, shown to whoever approves them, and kept with the install.

use serde_json::Value;
use url::{Host, Url};

use super::pattern::Pattern;

/// Longest path, in bytes.
pub const CONFIG_PATH_BYTES_MAX: usize = 256;

/// Most hosts that a configuration names.
pub const CONFIG_HOSTS_MAX: usize = 100;

/// A path into a configuration: names and `*` with dots between them, as in `endpoints.*.url`. `*` stands for every item
/// of a list and every value of an object; a name is a member of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigPath {
    steps: Vec<String>,
}

/// Why the hosts of a configuration cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigHostFault {
    /// A path that is none: empty, with an empty step, or longer than [`CONFIG_PATH_BYTES_MAX`].
    #[error(
        "hostsFromConfig: expected names and * with dots between them, {CONFIG_PATH_BYTES_MAX} bytes at most"
    )]
    Path,
    /// What stands there is no text.
    #[error("{0}: expected a URL, since its host is approved with it")]
    NotText(String),
    /// What stands there is no URL whose host can be approved.
    #[error("{0}: expected an http or https URL with a host name and without credentials")]
    NotUrl(String),
    /// More than [`CONFIG_HOSTS_MAX`].
    #[error("the configuration names more than {CONFIG_HOSTS_MAX} hosts")]
    TooMany,
}

impl ConfigPath {
    /// Reads a path of `hostsFromConfig`.
    pub fn parse(text: &str) -> Result<Self, ConfigHostFault> {
        let steps: Vec<String> = text.split('.').map(str::to_owned).collect();
        let is_path =
            text.len() <= CONFIG_PATH_BYTES_MAX && steps.iter().all(|step| !step.is_empty());
        if is_path { Ok(Self { steps }) } else { Err(ConfigHostFault::Path) }
    }
}

/// The patterns of the hosts that a configuration names at these paths, each once, in their order; for
/// [`Hosts::parse`](super::Hosts::parse). What is absent, `null` or empty names none. A URL without a port names its
/// scheme's own.
pub fn named_in(config: &Value, paths: &[ConfigPath]) -> Result<Vec<String>, ConfigHostFault> {
    let mut found = Vec::new();
    for path in paths {
        visit(config, &path.steps, &mut String::new(), &mut found)?;
    }
    Ok(found)
}

fn visit(
    value: &Value,
    steps: &[String],
    place: &mut String,
    found: &mut Vec<String>,
) -> Result<(), ConfigHostFault> {
    let Some((step, steps)) = steps.split_first() else { return add(value, place, found) };
    let mut into = |name: &str, inner: &Value| {
        let end = place.len();
        if !place.is_empty() {
            place.push('.');
        }
        place.push_str(name);
        let visited = visit(inner, steps, place, found);
        place.truncate(end);
        visited
    };
    match value {
        Value::Array(items) if step == "*" => {
            items.iter().enumerate().try_for_each(|(index, item)| into(&index.to_string(), item))
        }
        Value::Object(members) if step == "*" => {
            members.iter().try_for_each(|(name, inner)| into(name, inner))
        }
        Value::Object(members) => members.get(step).map_or(Ok(()), |inner| into(step, inner)),
        // Whether a configuration has the right shape is for its schema to say.
        _ => Ok(()),
    }
}

fn add(value: &Value, place: &str, found: &mut Vec<String>) -> Result<(), ConfigHostFault> {
    let text = match value {
        Value::Null => return Ok(()),
        Value::String(text) if text.is_empty() => return Ok(()),
        Value::String(text) => text,
        _ => return Err(ConfigHostFault::NotText(place.to_owned())),
    };
    let pattern = pattern_of(text).ok_or_else(|| ConfigHostFault::NotUrl(place.to_owned()))?;
    if found.contains(&pattern) {
        return Ok(());
    }
    if found.len() == CONFIG_HOSTS_MAX {
        return Err(ConfigHostFault::TooMany);
    }
    found.push(pattern);
    Ok(())
}

/// The pattern of a URL's host alone: a name that a pattern could be wider than, such as `*.example.com`, has none.
fn pattern_of(text: &str) -> Option<String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let has_credentials = !url.username().is_empty() || url.password().is_some();
    let is_wild = matches!(url.host(), Some(Host::Domain(name)) if name.contains('*'));
    if has_credentials || is_wild {
        return None;
    }
    let host = url.host_str()?;
    let pattern = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    Pattern::parse(&pattern).map(|_readable| pattern)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hosts::{Hosts, approve};

    fn paths(texts: &[&str]) -> Vec<ConfigPath> {
        texts.iter().map(|text| ConfigPath::parse(text).unwrap()).collect()
    }

    #[track_caller]
    fn check(config: &Value, at: &[&str], expected: Result<&[&str], &str>) {
        let found = named_in(config, &paths(at)).map_err(|fault| fault.to_string());
        let expected = expected.map(|hosts| hosts.iter().map(ToString::to_string).collect());
        assert_eq!(found, expected.map_err(str::to_owned), "{config}");
    }

    // covers: AL-198
    #[test]
    fn a_host_is_approved_by_the_configuration_at_the_named_place_alone() {
        let config =
            json!({"baseUrl": "https://tenant.example/api", "other": "https://other.example/"});
        let mut patterns = vec!["api.vendor.example".to_owned()];
        patterns.extend(named_in(&config, &paths(&["baseUrl"])).unwrap());
        let hosts = Hosts::parse(&patterns).unwrap();
        for (url, is_approved) in [
            ("https://api.vendor.example/", true),
            ("https://tenant.example/elsewhere", true),
            ("https://tenant.example:8443/", false),
            ("https://x.tenant.example/", false),
            ("https://other.example/", false),
        ] {
            assert_eq!(approve(url, &hosts, false).is_ok(), is_approved, "{url}");
        }
    }

    #[test]
    fn stars_stand_for_items_and_values() {
        let config = json!({
            "endpoints": [{"url": "https://A.example:8443/x"}, {"url": "http://b.example"}, {"name": "none"}, 7],
            "regions": {"eu": {"url": "https://b.example/"}, "us": {"url": "https://c.example:443/"}},
            "direct": ["https://d.example/?q", "", null],
        });
        check(&config, &["endpoints.*.url"], Ok(&["a.example:8443", "b.example"]));
        check(
            &config,
            &["regions.*.url", "endpoints.*.url"],
            Ok(&["b.example", "c.example", "a.example:8443"]),
        );
        check(&config, &["direct.*"], Ok(&["d.example"]));
        check(&config, &["*.*.url"], Ok(&["a.example:8443", "b.example", "c.example"]));
        check(&config, &["endpoints.0.url", "absent", "direct.0", "endpoints.*.url.*"], Ok(&[]));
        check(&json!({"*": "https://x.example/"}), &["*"], Ok(&["x.example"]));
        check(&json!("https://x.example/"), &["a"], Ok(&[]));
    }

    #[test]
    fn what_is_no_url_is_refused_with_its_place() {
        let not_url =
            "a.0.u: expected an http or https URL with a host name and without credentials";
        for url in [
            "tenant.example",
            "ftp://tenant.example/",
            "https://u:p@tenant.example/",
            "https://u@tenant.example/",
            "https://*.example.com/",
            "https://{{secret:host}}/",
            "mailto:a@b.example",
            "https://a..b/",
        ] {
            check(&json!({"a": [{"u": url}]}), &["a.*.u"], Err(not_url));
        }
        for value in [json!(7), json!(false), json!(["https://x.example/"]), json!({})] {
            let what = "a.0.u: expected a URL, since its host is approved with it";
            check(&json!({"a": [{"u": value}]}), &["a.*.u"], Err(what));
        }
        check(&json!({"a": "https://10.0.0.1:8443/"}), &["a"], Ok(&["10.0.0.1:8443"]));
        check(&json!({"a": "https://[::1]/"}), &["a"], Ok(&["[::1]"]));
    }

    #[test]
    fn the_last_accepted_and_the_first_refused() {
        for text in ["", ".", "a.", ".a", "a..b", &"x".repeat(CONFIG_PATH_BYTES_MAX + 1)] {
            assert_eq!(ConfigPath::parse(text), Err(ConfigHostFault::Path), "{text:.20}");
        }
        assert!(ConfigPath::parse(&"x".repeat(CONFIG_PATH_BYTES_MAX)).is_ok());
        let many = |count: usize| {
            let urls: Vec<String> = (0..count).map(|n| format!("https://h{n}.example/")).collect();
            json!({ "urls": [urls, urls] })
        };
        let named = |count| named_in(&many(count), &paths(&["urls.*.*"]));
        assert_eq!(named(CONFIG_HOSTS_MAX).map(|hosts| hosts.len()), Ok(CONFIG_HOSTS_MAX));
        assert_eq!(named(CONFIG_HOSTS_MAX + 1), Err(ConfigHostFault::TooMany));
    }
}
