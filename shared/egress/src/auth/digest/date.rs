//! The dates of cookies (RFC 6265, 5.1.1): a reader that finds a time, a day, a month and a year in nearly any text.

/// First year of a date that counts (RFC 6265, 5.1.1).
const YEAR_MIN: u32 = 1601;

/// Names of months, as far as they are looked at.
const MONTHS: &[&str] =
    &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The time a text names, in seconds since 1970; none where it names none.
pub fn parse(text: &str) -> Option<i64> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for word in text.split(is_delimiter) {
        // Each word is the first of these that is still missing and that it can be.
        let _ = take(&mut time, || time_of(word))
            || take(&mut day, || number(word, 1..=2).map(|(day, _)| day))
            || take(&mut month, || month_of(word))
            || take(&mut year, || number(word, 2..=4).map(|(year, _)| year));
    }
    let year = match year? {
        year @ 70..=99 => year + 1900,
        year @ 0..=69 => year + 2000,
        year => year,
    };
    let (month, day, (hour, minute, second)) = (month?, day?, time?);
    let exists = YEAR_MIN <= year
        && (1..=days_of_month(year, month)).contains(&day)
        && hour <= 23
        && minute <= 59
        && second <= 59;
    let seconds = i64::from(hour * 3600 + minute * 60 + second);
    exists.then(|| days_since_1970(year, month, day) * 86_400 + seconds)
}

/// Fills a place that is empty; says whether it did.
fn take<T>(place: &mut Option<T>, read: impl FnOnce() -> Option<T>) -> bool {
    if place.is_some() {
        return false;
    }
    *place = read();
    place.is_some()
}

fn is_delimiter(character: char) -> bool {
    matches!(character, '\t' | ' '..='/' | ';'..='@' | '['..='`' | '{'..='~')
}

/// The number that a word begins with, where it has as many digits as it may, and the rest of the word.
fn number(word: &str, digits: std::ops::RangeInclusive<usize>) -> Option<(u32, &str)> {
    let count = word.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = word.split_at(count);
    if digits.contains(&count) { Some((number.parse().ok()?, rest)) } else { None }
}

/// Hours, minutes and seconds, with colons between them. What follows is not looked at.
fn time_of(word: &str) -> Option<(u32, u32, u32)> {
    let (hour, rest) = number(word, 1..=2)?;
    let (minute, rest) = number(rest.strip_prefix(':')?, 1..=2)?;
    let (second, _) = number(rest.strip_prefix(':')?, 1..=2)?;
    Some((hour, minute, second))
}

/// From 1 on.
fn month_of(word: &str) -> Option<u32> {
    let name = word.get(..3)?.to_ascii_lowercase();
    (1..).zip(MONTHS).find(|(_, month)| **month == name).map(|(month, _)| month)
}

fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of_month(year: u32, month: u32) -> u32 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Of a date of the Gregorian calendar.
fn days_since_1970(year: u32, month: u32, day: u32) -> i64 {
    let before = year - 1;
    let years = before * 365 + before / 4 - before / 100 + before / 400;
    let months: u32 = (1..month).map(|month| days_of_month(year, month)).sum();
    // 719,162 days lie before 1970-01-01.
    i64::from(years + months + day - 1) - 719_162
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: AL-299
    #[test]
    fn dates_are_found_in_what_vendors_write() {
        // The three forms of RFC 9110, 5.6.7, all of one moment.
        let cases: &[(&str, Option<i64>)] = &[
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
            ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("31 Dec 1969 23:59:59", Some(-1)),
            ("1 Jan 69 0:0:0", Some(3_124_224_000)),
            ("1 Jan 70 0:0:0", Some(0)),
            ("1 Jan 1601 00:00:00", Some(-11_644_473_600)),
            ("1 Jan 1600 00:00:00", None),
            ("31 Dec 9999 23:59:59", Some(253_402_300_799)),
            ("29 Feb 2024 00:00:00", Some(1_709_164_800)),
            ("29 Feb 2023 00:00:00", None),
            ("29 Feb 2100 00:00:00", None),
            ("29 Feb 2000 00:00:00", Some(951_782_400)),
            ("31 Apr 2024 00:00:00", None),
            ("0 Apr 2024 00:00:00", None),
            ("1 Apr 2024 24:00:00", None),
            ("1 Apr 2024 23:60:00", None),
            ("1 Apr 2024 23:59:60", None),
            ("1 Apr 2024 23:59:59x", Some(1_712_015_999)),
            ("1 Apr 2024 23:59", None),
            ("1 Apr 20240 23:59:59", None),
            ("1 Apr 111111111111111111111 23:59:59", None),
            ("1 Äpr 2024 23:59:59", None),
            ("1é April 2024 1:2:3", Some(1_711_933_323)),
            ("whenever", None),
            ("", None),
        ];
        for (text, seconds) in cases {
            assert_eq!(parse(text), *seconds, "{text}");
        }
    }

    #[test]
    fn days_are_counted_as_the_library_of_dates_counts_them() {
        for day in (-130_000..130_000).step_by(97) {
            let at = jiff::Timestamp::from_second(day * 86_400).unwrap();
            let text = at.strftime("%d %b %Y %H:%M:%S").to_string();
            assert_eq!(parse(&text), Some(day * 86_400), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,40}", near in "[0-9a-z:é ]{0,40}") {
            parse(&text);
            parse(&near);
        }
    }
}
