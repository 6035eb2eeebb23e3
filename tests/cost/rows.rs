//! The scenarios: one for each row of the cost table, and what else is worth a line.

use std::time::Duration;

use annex_core::call::CallSettings;
use annex_core::call::Calls;
use annex_core::extensions::subscribe;
use annex_core::ids::{ExtensionName, Oid};
use annex_core::limits::CALLS_PER_EXTENSION_MAX;
use annex_core::orgs;
use annex_core::ports::{Clock as _, Commit, Committed, Ports, Scan, When, Write};
use annex_core::testkit::Inline;
use annex_core::time::Timestamp;
use anyhow::{Context as _, ensure};
use axum::http::StatusCode;

use crate::bill::Bill;
use crate::capabilities;
use crate::process::in_memory;
use crate::receiver::FAN;
use crate::stack::{EXTENSION, Stack};

/// A row of the table, with its targets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) scenario: &'static str,
    /// Data requests.
    pub(crate) requests: &'static str,
    /// Write units.
    pub(crate) write_units: &'static str,
}

const fn row(scenario: &'static str, requests: &'static str, write_units: &'static str) -> Row {
    Row { scenario, requests, write_units }
}

/// The rows of the table.
pub(crate) const ROWS: [Row; 12] = [
    row("synchronous success, warm", "2", "2"),
    row("same key again", "1", "1"),
    row("refused by schema, or by a lease that is empty", "0", "0"),
    row("three fast attempts, then success", "2", "2"),
    row("100 continuations in one answer", "10 sends", "0 more"),
    row("one level of a long chain", "at most 3", "2"),
    row("daily update of 1,000 installs", "at most 100 sends + 0.3 per install", "2 per install"),
    row("idle hour", "queue polls only", "0"),
    row("command warm", "–", "at most 3"),
    row("rate-limited", "–", "at most 1"),
    row("options from cache", "–", "0"),
    row("event to two subscribers", "–", "–"),
];

/// Installs of the daily update.
pub(crate) const INSTALLS: usize = 1_000;

/// The bills of [`ROWS`], in their order.
pub(crate) async fn table() -> anyhow::Result<Vec<Bill>> {
    let mut bills = Vec::new();
    for row in ROWS {
        eprintln!("-- {}", row.scenario);
        let mut stack = Stack::new().await?;
        let bill = match row.scenario {
            "synchronous success, warm" => success(&mut stack, "scan").await,
            "same key again" => same_key(&mut stack).await,
            "refused by schema, or by a lease that is empty" => refused(&mut stack).await,
            "three fast attempts, then success" => success(&mut stack, "flaky").await,
            "100 continuations in one answer" => continuations(&mut stack).await,
            "one level of a long chain" => level(&mut stack).await,
            "daily update of 1,000 installs" => daily(&mut stack).await,
            "idle hour" => idle(&mut stack).await,
            "command warm" => capabilities::command(&mut stack).await,
            "rate-limited" => capabilities::rate_limited(&mut stack).await,
            "options from cache" => capabilities::options(&mut stack).await,
            "event to two subscribers" => capabilities::event(&mut stack).await,
            other => unreachable!("no scenario is called {other}"),
        };
        bills.push(bill.with_context(|| row.scenario)?);
    }
    Ok(bills)
}

/// Bills beside the table.
pub(crate) async fn extras() -> anyhow::Result<Vec<(&'static str, Bill)>> {
    let mut stack = Stack::new().await?;
    let first = first_refusal(&mut stack).await?;
    let mut stack = Stack::new().await?;
    stack.clock.advance(Duration::from_secs(600));
    let cold = success(&mut stack, "scan").await?;
    Ok(vec![
        ("first refusal within a minute, which files an error", first),
        ("synchronous success after ten minutes: every cache is old", cold),
    ])
}

/// What a scenario came to, when it left this many messages.
pub(crate) fn bill(stack: &mut Stack, messages: usize) -> anyhow::Result<Bill> {
    let left = stack.messages();
    ensure!(left == messages, "{left} messages wait, not {messages}");
    Ok(Bill::of(&stack.observe()))
}

async fn success(stack: &mut Stack, action: &str) -> anyhow::Result<Bill> {
    let (status, body) = stack.call(action, None).await?;
    ensure!(status == StatusCode::OK && body["data"]["verdict"] == "clean", "{status}: {body}");
    bill(stack, 0)
}

async fn same_key(stack: &mut Stack) -> anyhow::Result<Bill> {
    let first = stack.call("scan", Some("order-4711")).await?;
    stack.observe();
    let second = stack.call("scan", Some("order-4711")).await?;
    ensure!(first == second && first.0 == StatusCode::OK, "{first:?}, then {second:?}");
    bill(stack, 0)
}

async fn refuse(stack: &mut Stack) -> anyhow::Result<()> {
    let (status, body) = stack.call_with("scan", r#"{"depth":3}"#, None).await?;
    ensure!(status == StatusCode::BAD_REQUEST, "{status}: {body}");
    Ok(())
}

async fn first_refusal(stack: &mut Stack) -> anyhow::Result<Bill> {
    refuse(stack).await?;
    bill(stack, 0)
}

/// One call of each kind: the schema refuses it, and all places of its extension are taken.
async fn refused(stack: &mut Stack) -> anyhow::Result<Bill> {
    refuse(stack).await?;
    // A few at a time: an emulator takes no thousand connections at once.
    let mut hanging = Vec::new();
    while hanging.len() < CALLS_PER_EXTENSION_MAX {
        let few = (CALLS_PER_EXTENSION_MAX - hanging.len()).min(16);
        hanging.extend(stack.hang(few));
        stack.until_all_hang(few).await;
    }
    stack.observe();
    refuse_busy(stack).await?;
    for hanging in hanging {
        hanging.abort();
        let _aborted = hanging.await;
    }
    refuse(stack).await?;
    bill(stack, 0)
}

async fn refuse_busy(stack: &mut Stack) -> anyhow::Result<()> {
    let (status, body) = stack.call("scan", None).await?;
    ensure!(body["code"] == "busy", "{status}: {body}");
    Ok(())
}

/// What the continuations add: the call without them is taken off.
async fn continuations(stack: &mut Stack) -> anyhow::Result<Bill> {
    let without = success(stack, "scan").await?;
    let (status, body) = stack.call("fan", None).await?;
    ensure!(status == StatusCode::OK && body["data"]["parts"] == FAN, "{status}: {body}");
    Ok(bill(stack, FAN)?.without(&without))
}

/// The dearest level of a chain of 99 that ask for the next one.
async fn level(stack: &mut Stack) -> anyhow::Result<Bill> {
    let (status, body) = stack.call("step", None).await?;
    ensure!(status == StatusCode::OK, "{status}: {body}");
    // The process that goes on with chains has not seen the extension yet.
    stack.step().await?;
    stack.observe();
    let mut levels = Vec::new();
    for _ in 2..=99 {
        stack.step().await?;
        levels.push(bill(stack, 1)?);
    }
    let dearest =
        levels.into_iter().reduce(|one, other| if one.is_dearer(&other) { one } else { other });
    stack.purge();
    dearest.context("a chain has levels")
}

async fn daily(stack: &mut Stack) -> anyhow::Result<Bill> {
    installs(stack).await?;
    // The process of the schedule has been asleep since yesterday.
    stack.clock.advance(Duration::from_secs(86_400));
    let midnight = Timestamp::from_secs((stack.clock.now().day() + 1) * 86_400);
    stack.clock.advance(midnight.since(stack.clock.now()));
    stack.observe();
    stack.invoked();
    stack.daily.fresh().await;
    let sent = daily::Daily::new(stack.daily.calls.clone()).run_day(midnight).await?;
    ensure!(sent == INSTALLS, "{sent} updates");
    stack.settle().await?;
    bill(stack, 0)
}

/// Subscribes organizations to the extension. They are made in memory and copied, which is faster.
async fn installs(stack: &Stack) -> anyhow::Result<()> {
    let (extension, of) = (ExtensionName::parse(EXTENSION), &stack.resume.calls);
    let extension = extension.map_err(|fault| anyhow::anyhow!(fault.message))?;
    let definition = annex_core::keys::definition(&extension);
    let ports = in_memory(&stack.resume, stack.clock.clone());
    let item = of.ports().store.get(&definition).await?.context("the extension is there")?;
    put(
        &ports,
        vec![Write::Put { key: definition, data: item.data, expires_at: None, when: When::Absent }],
    )
    .await?;
    let calls = Calls::new(ports.clone(), std::sync::Arc::new(Inline), CallSettings::default());
    for number in 1..INSTALLS {
        // Anything that looks like a random id.
        let bits = u128::try_from(number)?.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let oid = Oid::new(uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid());
        let made = orgs::create(&ports, &format!("customer-{number}"), "", Some(oid)).await;
        made.map_err(|fault| anyhow::anyhow!(fault.message))?;
        let made = subscribe(&ports, &calls, oid, &extension, "user@example.com").await;
        made.map_err(|fault| anyhow::anyhow!(fault.message))?;
    }
    for prefix in ["org", "installs#"] {
        let mut scan = Scan::prefix(prefix);
        loop {
            let page = ports.store.scan(scan.clone()).await?;
            let write = |(key, item): (_, annex_core::ports::Item)| Write::Put {
                key,
                data: item.data,
                expires_at: None,
                when: When::Absent,
            };
            let writes: Vec<Write> = page.items.into_iter().map(write).collect();
            for writes in writes.chunks(100) {
                put(of.ports(), writes.to_vec()).await?;
            }
            match page.next {
                Some(next) => scan.cursor = Some(next),
                None => break,
            }
        }
    }
    Ok(())
}

async fn put(ports: &Ports, writes: Vec<Write>) -> anyhow::Result<()> {
    let committed = ports.store.commit(Commit { writes, ..Commit::default() }).await?;
    ensure!(committed == Committed::Done, "{committed:?}");
    Ok(())
}

async fn idle(stack: &mut Stack) -> anyhow::Result<Bill> {
    for _ in 0..60 {
        stack.clock.advance(Duration::from_secs(60));
        // Whatever a process might do by itself, it does now.
        tokio::task::yield_now().await;
    }
    stack.settle().await?;
    bill(stack, 0)
}
