//! What passes through: bytes, from the caller to the extension, back, and into the record.

use std::io::Write as _;

use annex_core::limits::{JSON_DEPTH_MAX, REQUEST_BYTES_MAX};
use annex_tests::client::{Answer, FORM, encode};
use annex_tests::extension::{Extension, Message, Reply, SECRET};
use annex_tests::platform::{Tenant, World};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Calls `echo` with packed data.
async fn packed(tenant: &Tenant, gzdata: &str) -> Answer {
    let fields = [("oid", tenant.oid.as_str()), ("action", "echo"), ("gzdata", gzdata)];
    tenant.form("POST", "/v1/extension/request/ext", &fields).await
}

/// Calls `echo` with these data, which must reach the extension, the answer and the record byte for byte.
async fn check_passes(world: (&Tenant, &Extension), data: &str) {
    let (tenant, extension) = world;
    let answer = tenant.call("ext", "echo", data).await;
    assert_eq!(answer.text(), format!(r#"{{"data":{data}}}"#));
    let seen = extension.requests("echo").pop().unwrap();
    assert_eq!(seen.data(), data);
    assert!(seen.is_signed_with(SECRET), "the signature is over other bytes: {}", seen.json);
    check_head(&seen);
    let id = answer.header("annex-invocation-id").unwrap();
    let record = tenant.get(&format!("/v1/invocations/{id}")).await.text();
    assert!(record.contains(&format!(r#""data":{data},"created_at""#)), "{record}");
}

/// What every receiver relies on: one lower-case `gzip` member, a signature in lower-case hex.
fn check_head(message: &Message) {
    assert_eq!(message.head[0], "POST /hook HTTP/1.1");
    assert_eq!(message.header("content-encoding"), Some("gzip"));
    assert_eq!(message.header("content-type"), Some("application/json"));
    assert_eq!(message.wire[..2], [0x1f, 0x8b]);
    let signature = message.header("lc-ext-sig").unwrap();
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    assert!(signature.len() == 64 && signature.bytes().all(is_hex), "{signature}");
    assert_eq!(message.value["version"], 20_221_218);
}

// covers: LC-013, LC-014, LC-015, LC-016, LC-018, LC-019, LC-021, LC-027
#[tokio::test]
async fn data_reach_the_extension_the_answer_and_the_record_byte_for_byte() {
    let extension = Extension::echo().await;
    let (_world, tenant) = World::with(&extension).await;
    let digits = "7".repeat(400);
    for data in [
        // An escape beside the character it stands for; keys in no order.
        r#"{"any":{"zebra":1,"alpha":"\u00e9é","m":{"z":1,"a":2}}}"#,
        r#"{"any":{ "odd" :  [ 1 , 2 ] }}"#,
        r#"{"json":[1152921506151679042,-0,0.1000,1.0e400,1.0E-7000,0.0e0]}"#,
        &format!(r#"{{"json":[{digits},-{digits},0.{digits}]}}"#),
        r#"{"json":[18446744073709551616,9007199254740993,-9223372036854775809]}"#,
        r#"{}"#,
        r#"{"any":{}}"#,
        r#"{"any":{"a":{},"b":[],"":"","\u0000":null}}"#,
        r#"{"text":""}"#,
        r#"{"text":"\ud83d\ude00😀\/\u2028<&>"}"#,
        r#"{"any":{"doubled":1,"doubled":2}}"#,
    ] {
        check_passes((&tenant, &extension), data).await;
    }
}

#[tokio::test]
async fn an_exponent_without_a_point_gets_one_and_keeps_its_value() {
    // Extensions in Go refuse the other spelling.
    let extension = Extension::echo().await;
    let (_world, tenant) = World::with(&extension).await;
    let answer = tenant.call("ext", "echo", r#"{"any":{"n":1e400}}"#).await;
    assert_eq!(answer.text(), r#"{"data":{"any":{"n":1.0e400}}}"#);
    assert_eq!(extension.requests("echo")[0].data(), r#"{"any":{"n":1.0e400}}"#);
}

#[tokio::test]
async fn an_answer_of_any_json_comes_back_byte_for_byte() {
    for data in [
        "0",
        "-0",
        "1e400",
        "\"\"",
        "false",
        "[]",
        "[1152921506151679042]",
        r#"{"b":1,"a":1E5}"#,
        r#"{"doubled":1,"doubled":2}"#,
        r#""\u00e9é""#,
        " [ 1 ] ",
    ] {
        let extension = Extension::start(move |_| async move { Reply::data(data) }).await;
        let (_world, tenant) = World::with(&extension).await;
        let answer = tenant.call("ext", "echo", "{}").await;
        assert_eq!((answer.status, answer.text()), (200, format!(r#"{{"data":{}}}"#, data.trim())));
    }
}

#[tokio::test]
async fn data_that_are_no_object_are_refused_and_delivered_to_nobody() {
    let extension = Extension::echo().await;
    let (_world, tenant) = World::with(&extension).await;
    for (data, text) in [
        ("null", "data: not a JSON object"),
        ("\"\"", "data: not a JSON object"),
        ("[]", "data: not a JSON object"),
        ("{", "data: not valid JSON: the text ends early"),
        (r#"{"json":[NaN]}"#, "data: not valid JSON at byte 9"),
        (r#"{"json":[Infinity]}"#, "data: not valid JSON at byte 9"),
        (r#"{"number":01}"#, "data: not valid JSON at byte 11"),
        (r#"{"text":'a'}"#, "data: not valid JSON at byte 8"),
        (r#"{"text":"a"}x"#, "data: not valid JSON at byte 12"),
        (r#"{"text":"\ud800"}"#, "data: a lone surrogate escape at byte 9"),
        (r#"{"any":{"a":"\udc00x"}}"#, "data: a lone surrogate escape at byte 13"),
        (r#"{"text":"a","text":"b"}"#, "data: the key \"text\" stands twice"),
        (r#"{"text":"a","te\u0078t":"b"}"#, "data: the key \"text\" stands twice"),
    ] {
        let fault = tenant.call("ext", "echo", data).await.fault();
        assert_eq!(fault, (400, "invalid-json".to_owned(), text.to_owned()), "{data}");
        // What breaks the call is filed, once.
        assert!(
            tenant.errors().await.contains(&("ext.echo".to_owned(), text.to_owned())),
            "{data}"
        );
    }
    assert_eq!(extension.requests("echo").len(), 0);
}

#[tokio::test]
async fn json_is_taken_64_levels_deep_and_refused_one_deeper() {
    let extension = Extension::start(|_| async { Reply::data("{}") }).await;
    let (_world, tenant) = World::with(&extension).await;
    let nested = |levels: usize| {
        let inner = levels - 2;
        format!(r#"{{"any":{{"a":{}{}}}}}"#, "[".repeat(inner), "]".repeat(inner))
    };
    let deepest = nested(JSON_DEPTH_MAX);
    tenant.call("ext", "echo", &deepest).await.ok();
    assert_eq!(extension.requests("echo")[0].data(), deepest);
    for levels in [JSON_DEPTH_MAX + 1, 100_000] {
        let (status, code, text) = tenant.call("ext", "echo", &nested(levels)).await.fault();
        assert_eq!((status, code.as_str()), (400, "invalid-json"));
        assert!(text.starts_with("data: nested deeper than 64 levels"), "{text}");
    }
    assert_eq!(extension.requests("echo").len(), 1);
}

#[tokio::test]
async fn an_answer_is_taken_64_levels_deep_and_refused_one_deeper() {
    for (levels, expected) in [(JSON_DEPTH_MAX, 200), (JSON_DEPTH_MAX + 1, 502), (1_000_000, 502)] {
        // The answer's own object is the first level.
        let data = "[".repeat(levels - 1) + &"]".repeat(levels - 1);
        let extension = Extension::start(move |_| {
            let data = data.clone();
            async move { Reply::data(&data) }
        });
        let extension = extension.await;
        let (_world, tenant) = World::with(&extension).await;
        let answer = tenant.call("ext", "echo", "{}").await;
        assert_eq!(answer.status, expected, "{levels}");
        if expected == 502 {
            let (_, code, text) = answer.fault();
            assert_eq!(code, "bad-answer");
            assert!(text.starts_with("answer cannot be read: nested deeper"), "{text}");
        }
    }
}

#[tokio::test]
async fn gzdata_of_one_or_more_members_is_unpacked_and_passes_byte_for_byte() {
    let extension = Extension::echo().await;
    let (_world, tenant) = World::with(&extension).await;
    let data = r#"{"any":{"z":1152921506151679042,"a":"é"}}"#;
    let (one, two) = data.as_bytes().split_at(11);
    let members = [gzip(one), gzip(b""), gzip(two)].concat();
    for wire in [gzip(data.as_bytes()), members] {
        let answer = packed(&tenant, &STANDARD.encode(wire)).await;
        assert_eq!(answer.text(), format!(r#"{{"data":{data}}}"#));
        assert_eq!(extension.requests("echo").pop().unwrap().data(), data);
    }
}

#[tokio::test]
async fn gzdata_that_is_damaged_is_refused_and_delivered_to_nobody() {
    let extension = Extension::echo().await;
    let (_world, tenant) = World::with(&extension).await;
    let whole = gzip(br#"{"text":"a"}"#);
    let damaged = "gzdata is not gzip, is cut off, or has bytes after its end";
    let mut wrong_sum = whole.clone();
    let sum = wrong_sum.len() - 8;
    wrong_sum[sum] ^= 1;
    let mut wrong_size = whole.clone();
    *wrong_size.last_mut().unwrap() ^= 1;
    let mut cases: Vec<(String, &str)> =
        (1..whole.len()).map(|length| (STANDARD.encode(&whole[..length]), damaged)).collect();
    for wire in [
        wrong_sum,
        wrong_size,
        [&whole[..], b"trailing"].concat(),
        [&whole[..], &[0; 16]].concat(),
        [&whole[..], &whole[..10]].concat(),
        br#"{"text":"a"}"#.to_vec(),
    ] {
        cases.push((STANDARD.encode(wire), damaged));
    }
    for text in ["%%%", "AAAA=AAA", "H4sI\u{e9}", "{}", "===="] {
        cases.push((text.to_owned(), "gzdata is not base64"));
    }
    for (gzdata, expected) in cases {
        let (status, code, text) = packed(&tenant, &gzdata).await.fault();
        assert_eq!(
            (status, code.as_str(), text.as_str()),
            (400, "bad-request", expected),
            "{gzdata}"
        );
    }
    assert_eq!(extension.seen().iter().filter(|m| m.action() == "echo").count(), 0);
}

#[tokio::test]
async fn a_gzip_bomb_is_refused_at_the_limit_of_what_it_unpacks_to() {
    let extension = Extension::echo().await;
    let (_world, tenant) = World::with(&extension).await;
    let padded = |size: usize| {
        let text = r#"{"text":"a"}"#;
        gzip(format!("{text}{}", " ".repeat(size - text.len())).as_bytes())
    };
    packed(&tenant, &STANDARD.encode(padded(REQUEST_BYTES_MAX))).await.ok();
    let text = format!("gzdata decodes to more than {REQUEST_BYTES_MAX} bytes");
    let one_more = padded(REQUEST_BYTES_MAX + 1);
    // 200 MB in a few hundred kilobytes, in one member and in many.
    let huge = gzip(&vec![b' '; 200_000_000]);
    let many = gzip(&vec![b' '; 1_000_000]).repeat(200);
    for wire in [one_more, huge, many] {
        let fault = packed(&tenant, &STANDARD.encode(wire)).await.fault();
        assert_eq!(fault, (413, "too-large".to_owned(), text.clone()));
    }
    assert_eq!(extension.requests("echo").len(), 1);
}

#[tokio::test]
async fn data_of_the_largest_size_pass_and_one_byte_more_is_refused() {
    let extension = Extension::echo().await;
    let (_world, tenant) = World::with(&extension).await;
    let of_size = |size: usize| format!(r#"{{"text":"{}"}}"#, "x".repeat(size - 11));
    let answer = tenant.call("ext", "echo", &of_size(REQUEST_BYTES_MAX)).await;
    assert_eq!(answer.status, 200);
    // {"data":…}
    assert_eq!(answer.body.len(), REQUEST_BYTES_MAX + 9);
    let (status, code, _) =
        tenant.call("ext", "echo", &of_size(REQUEST_BYTES_MAX + 1)).await.fault();
    assert_eq!((status, code.as_str()), (413, "too-large"));
}

#[tokio::test]
async fn a_form_is_decoded_once_and_what_is_not_utf_8_is_refused() {
    let extension = Extension::echo().await;
    let (_world, tenant) = World::with(&extension).await;
    let send = async |data: &str| {
        let body = format!("oid={}&action=echo&data={data}", tenant.oid);
        tenant.send("POST", "/v1/extension/request/ext", &[("content-type", FORM)], body).await
    };
    let text = encode(r#"{"text":"%2F%25+ é"}"#);
    assert_eq!(send(&text).await.text(), r#"{"data":{"text":"%2F%25+ é"}}"#);
    for bad in ["%7B%22text%22%3A%22%FF%22%7D", "%C3", "%ED%A0%80", "%C0%80"] {
        let (status, code, _) = send(bad).await.fault();
        assert_eq!((status, code.as_str()), (400, "bad-request"), "{bad}");
    }
    assert_eq!(extension.requests("echo").len(), 1);
}
