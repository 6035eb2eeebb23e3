//! The cookies that a 401 sets and the answer to its challenge carries back (AL-295 to AL-302), by RFC 6265.
//!
//! Every request of the exchange goes to the same URL, so the domain and the security of a cookie are read, and not looked
//! at when it is sent: the vendor that set it gets it back.

use std::collections::HashSet;

use jiff::Timestamp;

use super::date;

/// Most cookies that are kept in one exchange; what a vendor sets beyond them is not carried.
pub const COOKIES_MAX: usize = 100;

/// What a `set-cookie` header says (RFC 6265, 5.2). Of an attribute that is there twice, the last counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetCookie {
    /// Not empty.
    pub name: String,
    /// As the vendor wrote it (AL-298).
    pub value: String,
    /// Seconds since 1970 of `Expires`.
    pub expires: Option<i64>,
    /// Seconds of `Max-Age`.
    pub max_age: Option<i64>,
    /// `Path`, where it begins with a slash.
    pub path: Option<String>,
    /// `Domain` in lower case, without the dot it may begin with.
    pub domain: Option<String>,
    /// Whether `Secure` is there.
    pub secure: bool,
}

/// Reads a header; none where it names no cookie, or holds a control character, which no header of ours may.
pub fn parse(header: &str) -> Option<SetCookie> {
    if header.contains(|character: char| character.is_ascii_control() && character != '\t') {
        return None;
    }
    let mut pieces = header.split(';');
    let (name, value) = pieces.next()?.split_once('=')?;
    let (name, value) = (trim(name), trim(value));
    if name.is_empty() {
        return None;
    }
    let mut cookie =
        SetCookie { name: name.to_owned(), value: value.to_owned(), ..SetCookie::default() };
    for piece in pieces {
        let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
        cookie.read_attribute(&trim(name).to_ascii_lowercase(), trim(value));
    }
    Some(cookie)
}

impl SetCookie {
    fn read_attribute(&mut self, name: &str, value: &str) {
        match name {
            "expires" => self.expires = date::parse(value).or(self.expires),
            "max-age" => self.max_age = seconds(value).or(self.max_age),
            "path" => self.path = value.starts_with('/').then(|| value.to_owned()),
            "domain" if !value.is_empty() => {
                let domain = value.strip_prefix('.').unwrap_or(value);
                self.domain = Some(domain.to_ascii_lowercase());
            }
            "secure" => self.secure = true,
            _ => {}
        }
    }

    /// When it expires, in seconds since 1970, if it was received at a time; never where it does not say. `Max-Age` wins
    /// (AL-300).
    fn expiry(&self, received: i64) -> Option<i64> {
        match self.max_age {
            Some(age) if age <= 0 => Some(i64::MIN),
            Some(age) => Some(received.saturating_add(age)),
            None => self.expires,
        }
    }
}

fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// The number of a `Max-Age`; none where it is not one, so that the attribute is ignored. What is too large is the largest.
fn seconds(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let largest = if text.starts_with('-') { i64::MIN } else { i64::MAX };
    Some(text.parse().unwrap_or(largest))
}

/// A cookie that was received and is not deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// As received.
    pub cookie: SetCookie,
    /// Where it is sent: its own path, or the folder of the request that it answered.
    pub path: String,
    /// Seconds since 1970.
    expiry: Option<i64>,
}

/// The cookies of one exchange.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Jar {
    kept: Vec<Kept>,
}

impl Jar {
    /// Takes the `set-cookie` headers of an answer, in their order. `target` is the path and query that was asked.
    pub fn receive(&mut self, headers: &[&str], target: &str, at: Timestamp) {
        for cookie in headers.iter().filter_map(|header| parse(header)) {
            self.keep(cookie, target, at);
        }
    }

    /// Keeps a cookie in the place of one with the same name, domain and path; deletes that where the new one has expired
    /// (AL-301).
    pub fn keep(&mut self, cookie: SetCookie, target: &str, at: Timestamp) {
        let path = cookie.path.clone().unwrap_or_else(|| folder(path_of(target)).to_owned());
        let expiry = cookie.expiry(at.as_second());
        let place = self.kept.iter().position(|kept| {
            kept.cookie.name == cookie.name
                && kept.cookie.domain == cookie.domain
                && kept.path == path
        });
        let new = Kept { cookie, path, expiry };
        match place {
            Some(place) if new.has_expired(at) => _ = self.kept.remove(place),
            Some(place) => self.kept[place] = new,
            None if !new.has_expired(at) && self.kept.len() < COOKIES_MAX => self.kept.push(new),
            None => {}
        }
    }

    /// The cookies for a path at a time: those with longer paths first, then in the order they came.
    pub fn matching(&self, target: &str, at: Timestamp) -> Vec<&Kept> {
        let path = path_of(target);
        let fits = |kept: &&Kept| !kept.has_expired(at) && matches(path, &kept.path);
        let mut fitting: Vec<&Kept> = self.kept.iter().filter(fits).collect();
        fitting.sort_by_key(|kept| std::cmp::Reverse(kept.path.len()));
        fitting
    }

    /// The `cookie` header of the next request: the request's own, then what was set and has a name that it does not send
    /// yet (AL-296, AL-297). None where there is nothing to send.
    pub fn header<'a>(&self, own: Option<&'a str>, target: &str, at: Timestamp) -> Option<String> {
        let own = own.filter(|own| !trim(own).is_empty());
        let name_of = |pair: &'a str| pair.split_once('=').map_or(pair, |(name, _)| name);
        // Of a header that can be as long as a request.
        let sent: HashSet<&str> =
            own.unwrap_or_default().split(';').map(|pair| trim(name_of(pair))).collect();
        let pairs = self
            .matching(target, at)
            .into_iter()
            .map(|kept| &kept.cookie)
            .filter(|cookie| !sent.contains(cookie.name.as_str()))
            .map(|cookie| format!("{}={}", cookie.name, cookie.value));
        let all: Vec<String> = own.map(str::to_owned).into_iter().chain(pairs).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

impl Kept {
    fn has_expired(&self, at: Timestamp) -> bool {
        self.expiry.is_some_and(|expiry| expiry <= at.as_second())
    }
}

fn path_of(target: &str) -> &str {
    target.split('?').next().unwrap_or_default()
}

/// The path of a cookie that names none (RFC 6265, 5.1.4).
fn folder(path: &str) -> &str {
    match path.rfind('/') {
        Some(last) if path.starts_with('/') && last != 0 => &path[..last],
        _ => "/",
    }
}

/// Whether a request's path lies in a cookie's (RFC 6265, 5.1.4; AL-302).
fn matches(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.is_empty() || folder.ends_with('/') || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-01T00:00:00Z.
    const NOW: i64 = 1_767_225_600;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// What the next request to `/v1/x` carries.
    #[track_caller]
    fn check(own: Option<&str>, set: &[&str], expected: Option<&str>) {
        let mut jar = Jar::default();
        jar.receive(set, "/v1/x?q=/y", at(NOW));
        let header = jar.header(own, "/v1/x?q=/y", at(NOW));
        assert_eq!(header.as_deref(), expected, "{own:?} {set:?}");
    }

    // covers: AL-295, AL-296, AL-297
    #[test]
    fn cookies_follow_the_requests_own_and_take_no_name_of_it() {
        // AL-295.
        check(None, &[], None);
        check(None, &["a=1; Path=/; HttpOnly"], Some("a=1"));
        check(None, &["a=1", "b=2"], Some("a=1; b=2"));
        // AL-296.
        check(Some("z=9"), &["a=1"], Some("z=9; a=1"));
        check(Some("z=9"), &[], Some("z=9"));
        check(Some(""), &["a=1"], Some("a=1"));
        check(Some(" "), &[], None);
        // AL-297.
        check(Some("a=0"), &["a=1"], Some("a=0"));
        check(Some("y=1; a =0 ;z"), &["a=1", "z=2", "b=3"], Some("y=1; a =0 ;z; b=3"));
        check(Some("A=0"), &["a=1"], Some("A=0; a=1"));
    }

    // covers: AL-298
    #[test]
    fn values_are_carried_as_they_were_written() {
        for value in ["\"b c\"", "%20%3B", "b=c==", "", "a,b", "é", "a\tb"] {
            check(None, &[&format!("a={value}")], Some(&format!("a={value}")));
        }
        check(None, &["  a =  1  ; Secure"], Some("a=1"));
        for nothing in ["", "a", "=1", " =1", ";a=1", "a=1\r\nb: c", "a\u{7f}=1"] {
            check(None, &[nothing], None);
        }
    }

    // covers: AL-299, AL-300, AL-301
    #[test]
    fn cookies_that_have_expired_are_not_carried() {
        // AL-299.
        check(None, &["a=1; Expires=Thu, 01 Jan 2026 00:00:00 GMT"], None);
        check(None, &["a=1; Expires=Thu, 01 Jan 2026 00:00:01 GMT"], Some("a=1"));
        check(None, &["a=1; Expires=whenever"], Some("a=1"));
        check(None, &["a=1; Max-Age=-1"], None);
        check(None, &["a=1; Max-Age=1"], Some("a=1"));
        // AL-300.
        check(None, &["a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], Some("a=1"));
        check(None, &["a=1; Max-Age=0; Expires=Thu, 01 Jan 2099 00:00:00 GMT"], None);
        check(None, &["a=1; Max-Age=soon; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], None);
        // AL-301.
        check(None, &["a=1", "a=; max-AGE=0"], None);
        check(None, &["a=; Max-Age=0", "a=2"], Some("a=2"));
        check(None, &["a=1; Path=/", "a=; Max-Age=0; Path=/other"], Some("a=1"));
        // No number is too large.
        for age in ["99999999999999999999", "9223372036854775807"] {
            check(None, &[&format!("a=1; Max-Age={age}")], Some("a=1"));
            check(None, &[&format!("a=1; Max-Age=-{age}")], None);
        }
        // A cookie of the first answer may expire before the third request.
        let mut jar = Jar::default();
        jar.receive(&["a=1; Max-Age=10"], "/", at(NOW));
        assert_eq!(jar.header(None, "/", at(NOW + 9)).as_deref(), Some("a=1"));
        assert_eq!(jar.header(None, "/", at(NOW + 10)), None);
    }

    // covers: AL-302
    #[test]
    fn cookies_of_another_path_are_not_carried() {
        for path in ["/", "/v1", "/v1/", "/v1/x", "", "v2"] {
            check(None, &[&format!("a=1; Path={path}")], Some("a=1"));
        }
        for path in ["/other", "/v", "/v1/x/", "/v1/x/y", "/V1", "/y"] {
            check(None, &[&format!("a=1; Path={path}")], None);
        }
        check(None, &["a=1; Path=/other; Path=/v1"], Some("a=1"));
        check(None, &["a=1; Path=/", "b=2; Path=/v1/x"], Some("b=2; a=1"));
    }

    // covers: AL-305
    #[test]
    fn both_answers_cookies_are_carried_and_their_number_is_bounded() {
        let mut jar = Jar::default();
        jar.receive(&["a=1", "c=1"], "/x", at(NOW));
        jar.receive(&["b=2", "c=2"], "/x", at(NOW));
        assert_eq!(jar.header(None, "/x", at(NOW)).as_deref(), Some("a=1; c=2; b=2"));

        let many: Vec<String> = (0..=COOKIES_MAX).map(|number| format!("n{number}=v")).collect();
        let lines: Vec<&str> = many.iter().map(String::as_str).collect();
        for (count, kept) in [(COOKIES_MAX, COOKIES_MAX), (COOKIES_MAX + 1, COOKIES_MAX)] {
            let mut jar = Jar::default();
            jar.receive(&lines[..count], "/x", at(NOW));
            assert_eq!(jar.matching("/x", at(NOW)).len(), kept);
        }
    }

    // It would take minutes if it were read for each cookie again.
    #[test]
    fn longest_cookie_of_a_request_is_read_once() {
        let own = "a=1; ".repeat(1 << 20);
        let set: Vec<String> = (0..COOKIES_MAX).map(|number| format!("n{number}=v")).collect();
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let mut jar = Jar::default();
        jar.receive(&set, "/", at(NOW));
        let header = jar.header(Some(&own), "/", at(NOW)).unwrap();
        assert!(header.starts_with(&own) && header.ends_with("; n99=v"));
    }

    proptest::proptest! {
        #[test]
        fn no_header_makes_the_reader_panic(header in "\\PC{0,60}", path in "\\PC{0,20}") {
            let mut jar = Jar::default();
            jar.receive(&[&header], &path, at(NOW));
            jar.header(Some(&header), &path, at(NOW));
        }
    }
}
