//! The canonical form of a request: the text that AWS writes down again at the other end, byte for byte.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

/// All but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The same, for a path that keeps its slashes.
const RESERVED_IN_PATH: &AsciiSet = &RESERVED.remove(b'/');

/// How a path is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathRule {
    /// S3: decoded, then encoded once; segments stay as they are.
    Decoded,
    /// The other services: dot segments and empty segments are resolved, and what was sent is encoded again.
    Normalized,
    /// As [`PathRule::Normalized`], with the segments as they are. No request of ours is signed so; the published tests
    /// have it.
    AsSent,
}

/// A text, percent-encoded but for the unreserved characters: how parameters of a signature are sent and signed.
pub fn encode(text: &str) -> String {
    encode_bytes(text.as_bytes())
}

fn encode_bytes(bytes: &[u8]) -> String {
    percent_encode(bytes, RESERVED).to_string()
}

/// The canonical path of the path that is sent.
pub fn path(sent: &str, rule: PathRule) -> String {
    let bytes = match rule {
        PathRule::Decoded => percent_decode_str(sent).collect(),
        PathRule::Normalized => normalize(sent).into_bytes(),
        PathRule::AsSent => sent.as_bytes().to_vec(),
    };
    let path = percent_encode(&bytes, RESERVED_IN_PATH).to_string();
    if path.is_empty() { "/".to_owned() } else { path }
}

/// The path without empty, `.` and `..` segments. One that ends with such a segment ends with a slash.
fn normalize(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => _ = kept.pop(),
            segment => kept.push(segment),
        }
    }
    let is_folder = matches!(path.rsplit('/').next(), Some("" | "." | ".."));
    let mut normal = kept.iter().fold(String::new(), |path, segment| path + "/" + segment);
    if is_folder {
        normal.push('/');
    }
    normal
}

/// The canonical query: the parameters of the query that is sent, and those the signature adds (not encoded yet), sorted.
/// A `+` of the sent query is a space (AL-325).
pub fn query(sent: &str, added: &[(String, String)]) -> String {
    let mut pairs: Vec<(String, String)> = parameters(sent)
        .map(|(name, value)| (encode_bytes(&name), encode_bytes(&value)))
        .chain(added.iter().map(|(name, value)| (encode(name), encode(value))))
        .collect();
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

/// The names and values of a query, decoded.
pub fn parameters(query: &str) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    query.split('&').filter(|piece| !piece.is_empty()).map(|piece| {
        let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
        (decode(name), decode(value))
    })
}

fn decode(text: &str) -> Vec<u8> {
    percent_decode_str(&text.replace('+', " ")).collect()
}

/// The headers that a signature covers, sorted, each name once.
#[derive(Debug, Default)]
pub struct SignedHeaders {
    lines: BTreeMap<String, String>,
}

impl SignedHeaders {
    /// Of these headers; the values of a name that is there more than once are joined in their order.
    pub fn new<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut lines: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in headers {
            let value = tidy(value);
            lines
                .entry(name.to_ascii_lowercase())
                .and_modify(|line| *line = format!("{line},{value}"))
                .or_insert(value);
        }
        Self { lines }
    }

    /// Their names, as `SignedHeaders` lists them.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.lines.keys().map(String::as_str).collect();
        names.join(";")
    }
}

/// A value without outer white space, runs of spaces being one space. A tab inside stays: AWS's rules name spaces only.
/// The line breaks of a folded value, which the published tests have, are spaces.
fn tidy(value: &str) -> String {
    let value = value.replace(['\r', '\n'], " ");
    let words: Vec<&str> =
        value.trim_matches([' ', '\t']).split(' ').filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// The canonical request of these parts.
pub fn request(
    method: &str,
    canonical_path: &str,
    canonical_query: &str,
    headers: &SignedHeaders,
    payload_hash: &str,
) -> String {
    let mut text = format!("{method}\n{canonical_path}\n{canonical_query}\n");
    for (name, value) in &headers.lines {
        text.push_str(&format!("{name}:{value}\n"));
    }
    text + "\n" + &headers.names() + "\n" + payload_hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_written_as_their_service_reads_them() {
        let cases = [
            // S3 decodes what was sent: one encoding, and nothing resolved.
            (PathRule::Decoded, "/a%20b", "/a%20b"),
            (PathRule::Decoded, "/%7Euser", "/~user"),
            (PathRule::Decoded, "/a%2Bb+c", "/a%2Bb%2Bc"),
            (PathRule::Decoded, "/a%2fb", "/a/b"),
            (PathRule::Decoded, "//a//b/", "//a//b/"),
            (PathRule::Decoded, "/a:b", "/a%3Ab"),
            (PathRule::Decoded, "/%E9%zz", "/%E9%25zz"),
            (PathRule::Decoded, "", "/"),
            // The other services encode what was sent again.
            (PathRule::Normalized, "/a%20b", "/a%2520b"),
            (PathRule::Normalized, "/a:b", "/a%3Ab"),
            (PathRule::Normalized, "/a//b", "/a/b"),
            (PathRule::Normalized, "//a//", "/a/"),
            (PathRule::Normalized, "/a/./b/../c", "/a/c"),
            (PathRule::Normalized, "/a/..", "/"),
            (PathRule::Normalized, "/..", "/"),
            (PathRule::Normalized, "", "/"),
            (PathRule::AsSent, "/a//./b/..", "/a//./b/.."),
        ];
        for (rule, sent, canonical) in cases {
            assert_eq!(path(sent, rule), canonical, "{rule:?} {sent}");
        }
    }

    #[test]
    fn queries_are_decoded_encoded_and_sorted() {
        let cases = [
            ("", ""),
            ("b=2&a=1", "a=1&b=2"),
            ("a=2&a=1&a", "a=&a=1&a=2"),
            ("a=1&&b=2&", "a=1&b=2"),
            ("=x", "=x"),
            ("a=b=c", "a=b%3Dc"),
            ("p=/x%2fy", "p=%2Fx%2Fy"),
            ("a=%7e%20", "a=~%20"),
            // A raw plus sign is a space, an encoded one is itself.
            ("a=x+y&b=x%2By", "a=x%20y&b=x%2By"),
            ("é=%E1%88%B4", "%C3%A9=%E1%88%B4"),
            ("a-b=1&a=2", "a=2&a-b=1"),
        ];
        for (sent, canonical) in cases {
            assert_eq!(query(sent, &[]), canonical, "{sent}");
        }
        let added = [("X-Amz-Date".to_owned(), "a/b c".to_owned())];
        assert_eq!(query("a=1&A=2", &added), "A=2&X-Amz-Date=a%2Fb%20c&a=1");
    }

    #[test]
    fn headers_are_sorted_joined_and_tidied() {
        let headers = [
            ("X-B", "  b   c "),
            ("host", "h"),
            ("x-a", "1"),
            ("X-A", "2\n  3"),
            ("x-tab", "a\t\tb\t"),
            ("x-empty", ""),
        ];
        let headers = SignedHeaders::new(headers);
        assert_eq!(headers.names(), "host;x-a;x-b;x-empty;x-tab");
        assert_eq!(
            request("GET", "/", "", &headers, "hash"),
            "GET\n/\n\nhost:h\nx-a:1,2 3\nx-b:b c\nx-empty:\nx-tab:a\t\tb\n\n\
             host;x-a;x-b;x-empty;x-tab\nhash"
        );
    }
}
