//! Bodies of `application/x-www-form-urlencoded` (AL-239 to AL-242).

use form_urlencoded::Serializer;

/// The content type of what [`encode`] writes.
pub const CONTENT_TYPE: &str = "application/x-www-form-urlencoded";

/// The pairs as the URL standard serialises them: in their order, a name as often as it is given, a space as `+`, and
/// every byte but letters, digits and `*-._` percent-encoded in upper case.
pub fn encode(pairs: &[(String, String)]) -> String {
    Serializer::new(String::new()).extend_pairs(pairs).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pairs: &[(&str, &str)], expected: &str) {
        let pairs: Vec<_> = pairs.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect();
        assert_eq!(encode(&pairs), expected);
    }

    // covers: AL-239, AL-241
    #[test]
    fn pairs_keep_their_order_and_names_repeat() {
        check(&[("a", "1 2")], "a=1+2");
        check(&[("a", "1"), ("b", "2"), ("a", "2")], "a=1&b=2&a=2");
        check(&[("", "b"), ("a", ""), ("", "")], "=b&a=&=");
        check(&[], "");
    }

    #[test]
    fn what_a_form_means_by_itself_is_encoded() {
        check(&[("a&b=c", "%+\r\n")], "a%26b%3Dc=%25%2B%0D%0A");
        check(&[("*-._~", "é😀\0")], "*-._%7E=%C3%A9%F0%9F%98%80%00");
    }
}
