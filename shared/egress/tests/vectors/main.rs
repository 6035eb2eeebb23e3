//! Published vectors, made by others. They lie beside the repository, and are read where they are: a set that is not
//! there has no cases.

mod akamai_edgegrid;
mod aws_sigv4;
mod cookies;
mod forms;
mod hawk;
mod hmac;
mod http_digest;
mod jwt;
mod set;
mod standard_webhooks;
mod url;
mod url_policy;

use std::fs::File;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;

/// The cases of a set.
fn cases(set: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors");
    let Ok(file) = File::open(folder.join(set).join("open.json.gz")) else { return Vec::new() };
    let set: Value = serde_json::from_reader(GzDecoder::new(file)).expect("it is JSON");
    set["cases"].as_array().expect("a set has cases").clone()
}

/// The text of a member.
#[track_caller]
fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} of {value} is text"))
}
