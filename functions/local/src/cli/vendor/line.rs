//! A line of input: a request, the install it is made for, and what a test fixes.

use annex_core::json;
use annex_core::strict::{self, Fields, RequestFault, Value};
use annex_egress::hmac::decode_base64;
use annex_egress::hosts::Hosts;
use annex_egress::placeholder::Secrets;
use annex_egress::vendor::Answer;
use bytes::Bytes;
use jiff::Timestamp;

/// Elements of any list of a line.
const ELEMENTS_MAX: usize = 1_000;

/// Characters of the call's tag.
const TAG_CHARS_MAX: usize = 256;

/// One line.
pub(super) struct Line {
    /// The `http_request`, as it is spelled.
    pub(super) request: String,
    pub(super) hosts: Hosts,
    pub(super) secrets: Secrets,
    /// The time of the call, where it is fixed.
    pub(super) at: Option<Timestamp>,
    /// Nonces that are used one after the other, where they are fixed.
    pub(super) nonces: Option<Vec<String>>,
    /// What vendors answer, one after the other, where nothing is sent.
    pub(super) answers: Option<Vec<Answer>>,
}

impl Line {
    pub(super) fn read(line: &[u8]) -> Result<Self, RequestFault> {
        strict::read(line, |line| {
            let request = line.required("request", |it| Some(it.raw().to_owned()));
            let install = line.optional("install", |it| it.object(install));
            let at = line.optional("at", at);
            let nonces = line.optional("random", random);
            let answers = line.optional("answers", |it| it.elements(ELEMENTS_MAX, answer));
            let (hosts, secrets) = install?.unwrap_or_default();
            let (request, at) = (request?, at?);
            Some(Self { request, hosts, secrets, at, nonces: nonces?, answers: answers? })
        })
    }
}

fn install(install: &mut Fields<'_>) -> Option<(Hosts, Secrets)> {
    let patterns = install.optional("hosts", |it| it.elements(ELEMENTS_MAX, |it| it.any_text()));
    let values = install.optional("secrets", |it| it.each_member(ELEMENTS_MAX, |it| it.any_text()));
    let tag = install.optional("tag", |it| it.text(0..=TAG_CHARS_MAX));
    let hosts = Hosts::parse(&patterns?.unwrap_or_default());
    let secrets = Secrets::new(values?.unwrap_or_default(), tag?.unwrap_or_default());
    match hosts {
        Ok(hosts) => Some((hosts, secrets)),
        Err(fault) => {
            install.problem("hosts", &fault.to_string());
            None
        }
    }
}

fn at(value: Value<'_>) -> Option<Timestamp> {
    let text = json::text(value.raw());
    match text.and_then(|text| text.parse().ok()) {
        Some(at) => Some(at),
        None => value.problem("expected a time like 2026-01-02T03:04:05Z"),
    }
}

/// A seed, or the nonces themselves: text or a number, or a list of them.
fn random(value: Value<'_>) -> Option<Vec<String>> {
    let one = |value: Value<'_>| match json::text(value.raw()) {
        Some(text) => Some(text.into_owned()),
        None if value.raw().starts_with(|first: char| first == '-' || first.is_ascii_digit()) => {
            Some(value.raw().to_owned())
        }
        None => value.problem("expected a text or a number"),
    };
    if value.is_array() {
        value.elements(ELEMENTS_MAX, one)
    } else {
        one(value).map(|one| vec![one])
    }
}

fn answer(value: Value<'_>) -> Option<Answer> {
    value.object(|answer| {
        let status = answer.required("status", |it| it.whole(100..=999));
        let headers =
            answer.optional("headers", |it| it.elements(ELEMENTS_MAX, |pair| pair.pair()));
        let text = answer.optional("body", |it| it.any_text());
        let base64 = answer.optional("bodyBase64", |it| {
            let text = json::text(it.raw());
            match text.and_then(|text| decode_base64(&text)) {
                Some(bytes) => Some(bytes),
                None => it.problem("expected base64"),
            }
        });
        let (text, base64) = (text?, base64?);
        if text.is_some() && base64.is_some() {
            answer.problem("bodyBase64", "stands beside body");
            return None;
        }
        let lower = |(name, value): (String, String)| (name.to_ascii_lowercase(), value);
        let headers = headers?.unwrap_or_default().into_iter().map(lower).collect();
        let body = base64.or(text.map(String::into_bytes)).unwrap_or_default();
        let status = u16::try_from(status?).ok()?;
        Some(Answer { status, headers, body: Bytes::from(body) })
    })
}
