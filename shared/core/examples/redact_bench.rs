//! Measures how fast a call's redaction list passes over a text: prints one JSON line with MiB/s for 1, 16 and 64
//! secrets over 1 MiB that holds none of them.
//!
//! With the argument `all` it prints more lines before: texts with secrets in them, parsed JSON, hostile texts, and
//! what it takes to build a list.

use std::time::{Duration, Instant};

use annex_core::redact::RedactionList;

const TEXT_BYTES: usize = 1 << 20;

/// How long each figure is measured.
const TIME: Duration = Duration::from_millis(400);

fn main() {
    let text = answers(TEXT_BYTES);
    if std::env::args().any(|argument| argument == "all") {
        more(&text);
    }
    let figures = [1, 16, 64].map(|count| {
        let rate = mib_s(&list(&secrets(count)), &text);
        format!("\"redaction_mib_s_{count}\":{rate:.0}")
    });
    println!("{{{}}}", figures.join(","));
}

/// The best of some rounds: what else the machine does only makes them slower.
fn mib_s(list: &RedactionList, text: &str) -> f64 {
    let best = best(|| list.hide(text).len());
    text.len() as f64 / f64::from(1 << 20) / best.as_secs_f64()
}

fn best(mut round: impl FnMut() -> usize) -> Duration {
    std::hint::black_box(round());
    let start = Instant::now();
    let mut best = Duration::MAX;
    while start.elapsed() < TIME {
        let begin = Instant::now();
        std::hint::black_box(round());
        best = best.min(begin.elapsed());
    }
    best
}

fn list(secrets: &[(String, String)]) -> RedactionList {
    let list = RedactionList::new(secrets.iter().cloned(), "w3Kp9xV2mQ8rT1zL5nB7cA");
    // What it would otherwise do at the first text.
    std::hint::black_box(list.hide(""));
    list
}

fn more(text: &str) {
    for count in [1, 16, 64] {
        let secrets = secrets(count);
        let built = best(|| usize::from(list(&secrets).hide("x").len() == 1));
        println!("{count:3} secrets: built in {:.0} us", built.as_secs_f64() * 1e6);
        let list = list(&secrets);
        let line = |name: &str, text: &str| {
            println!("{count:3} secrets: {name:28} {:6.0} MiB/s", mib_s(&list, text));
        };
        line("no hit", text);
        for distance in [65_536, 4_096, 256] {
            line(&format!("a hit each {distance} bytes"), &with_hits(text, &secrets, distance));
        }
        let value = &secrets[0].1;
        line("nothing but hits", &value.repeat(TEXT_BYTES / value.len()));
        line("nothing but half a secret", &value[..20].repeat(TEXT_BYTES / 20));
        line("one byte again and again", &"a".repeat(TEXT_BYTES));
        for (name, text) in
            [("parsed", text), ("parsed, with escapes", &text.replace(" the ", "\\n"))]
        {
            let parsed = best(|| list.hide_parsed(text).len());
            let rate = text.len() as f64 / f64::from(1 << 20) / parsed.as_secs_f64();
            println!("{count:3} secrets: {name:28} {rate:6.0} MiB/s");
        }
    }
}

/// Numbers that only look random: the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn text(&mut self, alphabet: &[u8], length: usize) -> String {
        (0..length).map(|_| char::from(alphabet[self.next() as usize % alphabet.len()])).collect()
    }
}

const ALPHANUMERIC: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const HEX: &[u8] = b"0123456789abcdef";

/// API keys of several makes, a passphrase with quotes and spaces, a base64 key, and a PIN.
fn secrets(count: usize) -> Vec<(String, String)> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let value = |index: usize, random: &mut Random| match index % 16 {
        1 => format!("sk_live_{}", random.text(ALPHANUMERIC, 32)),
        2 => random.text(HEX, 64),
        3 => format!("{}=", random.text(BASE64, 43)),
        4 => format!("whsec_{}", random.text(BASE64, 32)),
        5 => format!(
            "{} \"{}\" & {}",
            random.text(ALPHANUMERIC, 8),
            random.text(ALPHANUMERIC, 6),
            random.text(ALPHANUMERIC, 8)
        ),
        6 => format!("p@ss/{}?%{}", random.text(ALPHANUMERIC, 9), random.text(ALPHANUMERIC, 4)),
        7 => random.text(b"0123456789", 6),
        8 => format!("AKIA{}", random.text(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)),
        9 => random.text(BASE64, 40),
        10 => format!("xoxb-{}-{}", random.text(b"0123456789", 12), random.text(ALPHANUMERIC, 24)),
        11 => random.text(ALPHANUMERIC, 12),
        length => random.text(ALPHANUMERIC, 32 + 2 * length),
    };
    (0..count).map(|index| (format!("secret{index}"), value(index, &mut random))).collect()
}

/// What vendors answer: objects with ids, names, addresses, times, numbers, tokens and some prose.
fn answers(bytes: usize) -> String {
    const WORDS: &[&str] = &[
        "account",
        "screening",
        "the",
        "payment",
        "was",
        "retried",
        "after",
        "a",
        "timeout",
        "and",
        "both",
        "attempts",
        "went",
        "through",
        "café",
        "naïve",
        "review",
        "pending",
        "customer",
        "invoice",
        "address",
        "of",
        "passed",
    ];
    let mut random = Random(0x0123_4567_89ab_cdef);
    let mut out = String::from("{\"data\":[");
    while out.len() < bytes {
        let prose: Vec<&str> =
            (0..12).map(|_| WORDS[random.next() as usize % WORDS.len()]).collect();
        out.push_str(&format!(
            "{{\"id\":\"acct_{}\",\"object\":\"customer\",\"created\":{},\"livemode\":true,\"email\":\"{}@mail.example\",\
             \"url\":\"https://api.vendor.example/v1/customers/{}?expand=sources&limit=100\",\"balance\":-{}.{:02},\
             \"description\":\"{}\",\"etag\":\"{}\",\"avatar\":\"{}\",\"tags\":[\"new\",null,\"tier-{}\"]}},\n  ",
            random.text(ALPHANUMERIC, 24),
            1_760_000_000 + random.next() % 10_000_000,
            random.text(b"abcdefghijklmnopqrstuvwxyz", 9),
            random.next(),
            random.next() % 100_000,
            random.next() % 100,
            prose.join(" "),
            random.text(HEX, 40),
            random.text(BASE64, 88),
            random.next() % 9,
        ));
    }
    out.push_str("null]}");
    out
}

/// The text with a secret about each so many bytes, inside the prose.
fn with_hits(text: &str, secrets: &[(String, String)], distance: usize) -> String {
    let mut out = String::new();
    let mut rest = text;
    let mut values = secrets.iter().map(|(_, value)| value.replace('"', "\\\"")).cycle();
    while distance < rest.len() {
        let (before, after) = rest.split_at(rest.floor_char_boundary(distance));
        let cut = after.find("\"description\":\"").map_or(0, |at| at + 15);
        out.push_str(before);
        out.push_str(&after[..cut]);
        out.extend(values.next());
        rest = &after[cut..];
    }
    out.push_str(rest);
    out
}
