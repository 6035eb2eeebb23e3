//! Reads a `server-authorization` header as strictly as the library most Hawk servers use.

/// Longest header that is read, in bytes.
const HEADER_BYTES_MAX: usize = 4_096;

/// What an answer's header says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerAuthorization {
    /// The MAC, in base64.
    pub mac: Option<String>,
    /// The hash of the answer's payload, in base64.
    pub hash: Option<String>,
    /// Text of the application.
    pub ext: Option<String>,
}

/// Reads a header; none where it is not `Hawk` with `mac`, `hash` and `ext`, each once at most and not empty.
pub fn parse(header: &str) -> Option<ServerAuthorization> {
    if header.len() > HEADER_BYTES_MAX {
        return None;
    }
    let (scheme, mut rest) = header.split_at(header.find(is_space)?);
    if !scheme.eq_ignore_ascii_case("hawk") {
        return None;
    }
    rest = rest.trim_start_matches(is_space);
    let mut read = ServerAuthorization::default();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (name, value, after) = attribute(rest)?;
        let place = match name {
            "mac" => &mut read.mac,
            "hash" => &mut read.hash,
            "ext" => &mut read.ext,
            _ => return None,
        };
        if place.replace(value.to_owned()).is_some() {
            return None;
        }
        rest = after;
    }
    Some(read)
}

/// One `name="value"`, and what follows its comma. A comma may end the header.
fn attribute(text: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = text.split_once("=\"")?;
    let (value, rest) = rest.split_once('"')?;
    if value.is_empty() || !value.chars().all(is_permitted) {
        return None;
    }
    let rest = rest.trim_start_matches(is_space);
    match rest.strip_prefix(',') {
        Some(rest) => Some((name, value, rest.trim_start_matches(is_space))),
        None => rest.is_empty().then_some((name, value, rest)),
    }
}

/// What a Hawk attribute may hold: printable ASCII without a quote and a backslash (AL-336).
pub fn is_permitted(character: char) -> bool {
    matches!(character, ' '..='~') && !matches!(character, '"' | '\\')
}

fn is_space(character: char) -> bool {
    character.is_ascii_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(header: &str, expected: Option<(&str, &str, &str)>) {
        let read = parse(header).map(|read| {
            let text = |value: Option<String>| value.unwrap_or_default();
            (text(read.mac), text(read.hash), text(read.ext))
        });
        let expected =
            expected.map(|(mac, hash, ext)| (mac.to_owned(), hash.to_owned(), ext.to_owned()));
        assert_eq!(read, expected, "{header}");
    }

    #[test]
    fn a_server_authorization_is_read_strictly() {
        check(r#"Hawk mac="m", hash="h", ext="e""#, Some(("m", "h", "e")));
        check(r#"hAWK   ext="a b"  ,  mac="m=+/" ,"#, Some(("m=+/", "", "a b")));
        check(r#"Hawk mac="m",hash="h""#, Some(("m", "h", "")));
        check(r#"Hawk hash="h""#, Some(("", "h", "")));
        for unreadable in [
            "",
            " ",
            "Hawk",
            "Hawk ",
            r#"Hawk mac"#,
            r#"Hawk mac=m"#,
            r#"Hawk mac="m"#,
            r#"Hawk mac="""#,
            r#"Hawk mac ="m""#,
            r#"Hawk mac="m" hash="h""#,
            r#"Hawk mac="m";"#,
            r#"Hawk mac="m",,"#,
            r#"Hawk ,mac="m""#,
            r#"Hawk mac="m", mac="m""#,
            r#"Hawk mac="m", id="i""#,
            r#"Hawk MAC="m""#,
            r#"Hawk mac="a\b""#,
            r#"Hawk mac="é""#,
            r#"Basic mac="m""#,
            r#"mac="m""#,
        ] {
            check(unreadable, None);
        }
    }

    #[test]
    fn a_header_over_the_limit_is_not_read() {
        let header = |bytes: usize| format!(r#"Hawk mac="{}""#, "m".repeat(bytes - 11));
        assert!(parse(&header(HEADER_BYTES_MAX)).is_some());
        assert!(parse(&header(HEADER_BYTES_MAX + 1)).is_none());
    }

    proptest::proptest! {
        #[test]
        fn no_header_makes_the_reader_panic(any in "\\PC{0,40}", near in "Hawk [a-z=\",é ]{0,40}") {
            parse(&any);
            parse(&near);
        }
    }
}
