//! What holds for every URL that is called, whoever calls it: ports, host names, segments of a path.

use std::borrow::Cow;

use percent_encoding::percent_decode;

/// Longest URL as it is written, in characters (AL-142).
pub(crate) const URL_CHARS_MAX: usize = 4_096;

/// Longest host name, in bytes (RFC 1035).
const NAME_BYTES_MAX: usize = 253;

/// Longest part of a host name between two dots, in bytes (RFC 1035).
const LABEL_BYTES_MAX: usize = 63;

/// How often a segment is decoded before its dots are looked for. Servers behind servers decode twice.
const DECODINGS_MAX: usize = 4;

/// Ports that speak other protocols, which a crafted request must not reach: those browsers refuse (Fetch standard).
const BAD_PORTS: &[u16] = &[
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
    993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
];

/// Whether browsers refuse this port.
pub(crate) fn is_bad_port(port: u16) -> bool {
    BAD_PORTS.contains(&port)
}

/// Why a host name in lower case is none that the DNS could hold.
pub(crate) fn name_fault(name: &str) -> Option<&'static str> {
    if name.len() > NAME_BYTES_MAX {
        return Some("its host name is too long");
    }
    if name.ends_with('.') {
        return Some("its host name ends with a dot");
    }
    let plain = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
    let label = |label: &str| {
        !label.is_empty() && label.len() <= LABEL_BYTES_MAX && label.bytes().all(plain)
    };
    match name.split('.').all(label) {
        true => None,
        false => Some("its host is no host name"),
    }
}

/// User name, host and port of an http or https URL, as it is written.
pub(crate) fn authority(url: &str) -> &str {
    let rest = behind_slashes(url);
    &rest[..authority_end(rest)]
}

/// What follows the scheme and its slashes.
fn behind_slashes(url: &str) -> &str {
    let rest = url.split_once(':').map_or("", |(_scheme, rest)| rest);
    rest.trim_start_matches(['/', '\\'])
}

fn authority_end(rest: &str) -> usize {
    rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len())
}

/// Whether the path of an http or https URL has a segment `.` or `..`, or a segment that holds one once decoded
/// (AL-146 to AL-151). The URL is judged as it is written: a WHATWG parser resolves such segments before anyone sees
/// them.
///
/// A backslash parts segments like a slash, as it does for the parser, and so does a zero byte, where some servers end
/// a path. A segment that was encoded more than once is decoded as often.
pub(crate) fn has_dot_segment(url: &str) -> bool {
    // The parser drops these wherever they stand.
    let text: String = url.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    let rest = behind_slashes(&text);
    let path = &rest[authority_end(rest)..];
    // It also drops controls and spaces at the end of the whole URL.
    let path = match path.find(['?', '#']) {
        Some(end) => &path[..end],
        None => path.trim_end_matches(|c: char| c <= ' '),
    };
    path.split(['/', '\\']).any(|segment| holds_dots(segment.as_bytes()))
}

fn holds_dots(segment: &[u8]) -> bool {
    let mut decoded = Cow::Borrowed(segment);
    for _ in 0..DECODINGS_MAX {
        let next = Cow::<[u8]>::from(percent_decode(&decoded)).into_owned();
        if next == *decoded {
            break;
        }
        decoded = Cow::Owned(next);
    }
    let parts = |byte: &u8| matches!(byte, b'/' | b'\\' | 0);
    decoded.split(parts).any(|piece| matches!(piece, b"." | b".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: bool) {
        let url = format!("https://api.vendor.example{path}");
        assert_eq!(has_dot_segment(&url), expected, "{url:?}");
    }

    // covers: AL-146
    #[test]
    fn dot_segments_are_found_as_written() {
        check("/v1/../admin", true);
        check("/v1/./x", true);
        check("/..", true);
        check("/.", true);
        check("/v1/..?x", true);
        check("/v1/..#x", true);
        check("/v1\\..\\admin", true);
        check("\\..", true);
        check("/v1/.\t./x", true);
        check("/v1/.\r\n./x", true);
        check("/v1/.. ", true);
        check("/v1/..\u{1f}", true);
        assert!(has_dot_segment("https:\\\\h.example\\..\\x"));
        assert!(has_dot_segment("https:h.example/../x"));
        assert!(has_dot_segment(" \u{1}https://h.example/.."));
    }

    // covers: AL-147, AL-149
    #[test]
    fn encoded_dot_segments_are_found() {
        for path in ["/v1/%2e%2e/admin", "/v1/%2E./x", "/v1/.%2e", "/%2e/x"] {
            check(path, true);
        }
        for path in ["/v1/..%2Fadmin", "/v1/x%2f..", "/v1/x%2F..%2Fy", "/v1/.%2Fx", "/a%2F%2e%2Fb"]
        {
            check(path, true);
        }
        for path in ["/v1/..%5Cadmin", "/v1/..%00/x", "/v1/%252e%252e/x", "/v1/..%25252Fadmin"] {
            check(path, true);
        }
    }

    // covers: AL-150
    #[test]
    fn dots_inside_a_segment_are_text() {
        for path in ["/v1/report..pdf", "/v1/.../x", "/v1/..../x", "/v1/x../y", "/v1/..x/y"] {
            check(path, false);
        }
        for path in ["", "/", "/v1//x", "/v1/.git/config", "/v1/..;/x", "/v1/%00", "/100%", "/%2"] {
            check(path, false);
        }
        check("/v1/．．/x", false);
        check("/v1/%c0%ae%c0%ae/x", false);
        check("/v1/. ./x", false);
    }

    // covers: AL-151
    #[test]
    fn dots_behind_the_path_are_text() {
        check("?p=../x", false);
        check("/?p=/../x", false);
        check("/v1?path=/a/../b", false);
        check("#/../x", false);
        check("/#/..", false);
        check("/x? ..", false);
    }
}
