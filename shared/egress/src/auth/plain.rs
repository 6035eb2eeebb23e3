//! The auths that are a credential in its place: `basic`, `bearer` and `api-key` (AL-276 to AL-280).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{AddTo, AuthFault};
use crate::draft::Additions;

/// `authorization: Basic …`. A user name with a colon is refused: the vendor would read another one (RFC 7617).
pub fn basic(username: &str, password: &str) -> Result<Additions, AuthFault> {
    if username.contains(':') {
        return Err(AuthFault::new("basic auth: the username holds a colon"));
    }
    let credentials = STANDARD.encode(format!("{username}:{password}"));
    Ok(Additions {
        headers: vec![("authorization".to_owned(), format!("Basic {credentials}"))],
        query: Vec::new(),
        derived: vec![credentials],
    })
}

/// `authorization: Bearer …`
pub fn bearer(token: &str) -> Additions {
    let header = ("authorization".to_owned(), format!("Bearer {token}"));
    Additions { headers: vec![header], ..Additions::default() }
}

/// The header or the query parameter `key`.
pub fn api_key(key: &str, value: &str, add_to: AddTo) -> Result<Additions, AuthFault> {
    if key.is_empty() {
        return Err(AuthFault::new("api-key auth: the key is empty"));
    }
    let mut additions = Additions::default();
    match add_to {
        AddTo::Headers => additions.headers.push((key.to_ascii_lowercase(), value.to_owned())),
        AddTo::QueryParams => additions.query.push((key.to_owned(), value.to_owned())),
    }
    Ok(additions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &str, value: &str, derived: &[&str]) -> Additions {
        Additions {
            headers: vec![(name.into(), value.into())],
            query: vec![],
            derived: derived.iter().map(|&text| text.into()).collect(),
        }
    }

    // covers: AL-276, AL-277
    #[test]
    fn basic_is_the_base64_of_both() {
        let acme = header("authorization", "Basic YWNtZTpwdw==", &["YWNtZTpwdw=="]);
        assert_eq!(basic("acme", "pw"), Ok(acme));
        // RFC 7617, sections 2 and 2.1.
        let aladdin = "QWxhZGRpbjpvcGVuIHNlc2FtZQ==";
        let expected = header("authorization", &format!("Basic {aladdin}"), &[aladdin]);
        assert_eq!(basic("Aladdin", "open sesame"), Ok(expected));
        let expected = header("authorization", "Basic dGVzdDoxMjPCow==", &["dGVzdDoxMjPCow=="]);
        assert_eq!(basic("test", "123£"), Ok(expected));
        let refused = AuthFault::new("basic auth: the username holds a colon");
        assert_eq!(basic("a:b", "pw"), Err(refused));
        assert!(basic("a", "p:w").is_ok());
    }

    // covers: AL-278
    #[test]
    fn bearer_is_the_token() {
        assert_eq!(bearer("t"), header("authorization", "Bearer t", &[]));
    }

    // covers: AL-279, AL-280
    #[test]
    fn api_key_goes_where_it_is_asked_for() {
        assert_eq!(api_key("X-K", "v", AddTo::Headers), Ok(header("x-k", "v", &[])));
        let query = Additions { query: vec![("k".into(), "v".into())], ..Additions::default() };
        assert_eq!(api_key("k", "v", AddTo::QueryParams), Ok(query));
        assert!(api_key("", "v", AddTo::Headers).is_err());
    }
}
