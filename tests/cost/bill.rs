//! What a scenario is billed.

use std::collections::BTreeMap;

use annex_aws::tap::{Tally, Tap};

use crate::stack::Observed;

/// Where the prices are from.
pub(crate) const PRICES_OF: &str = "us-east-1, on demand, without free tiers, noted on 2026-11-30";

/// A price: what is billed, and how many dollars a million of it are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Price {
    pub(crate) what: &'static str,
    pub(crate) dollars_per_million: f64,
}

const fn price(what: &'static str, dollars_per_million: f64) -> Price {
    Price { what, dollars_per_million }
}

pub(crate) const WRITE_UNIT: Price = price("DynamoDB write request unit (1 KB)", 0.625);
pub(crate) const READ_UNIT: Price = price("DynamoDB read request unit (4 KB, consistent)", 0.125);
pub(crate) const SQS: Price = price("SQS request, standard queue (64 KB)", 0.40);
pub(crate) const SECRETS: Price = price("Secrets Manager request", 5.00);
pub(crate) const S3_WRITE: Price = price("S3 PUT", 5.00);
pub(crate) const S3_READ: Price = price("S3 GET", 0.40);
pub(crate) const HTTP: Price = price("HTTP API request (512 KB)", 1.00);
pub(crate) const LAMBDA: Price = price("Lambda request", 0.20);
/// 30 ms of 256 MB on arm64, at $0.0000133334 for a GB-second.
pub(crate) const DURATION: Price = price("Lambda duration, assumed: 30 ms at 256 MB, arm64", 0.10);

/// All of them, as they are printed.
pub(crate) const PRICES: [Price; 9] =
    [WRITE_UNIT, READ_UNIT, SQS, SECRETS, S3_WRITE, S3_READ, HTTP, LAMBDA, DURATION];

/// Bytes of one billed request of SQS.
const SQS_STEP: usize = 64 << 10;

/// Messages of one batch, as event sources receive and delete them.
const BATCH: usize = 10;

/// What a scenario came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Bill {
    /// Requests by service and operation.
    pub(crate) operations: BTreeMap<String, Tally>,
    /// SQS requests as they are billed: what was sent, and the receives and deletes that follow from it.
    pub(crate) sqs_sent: u64,
    pub(crate) sqs_taken: u64,
    /// Requests that came in by HTTP.
    pub(crate) http: u64,
    /// Invocations of functions, those by messages that were sent included.
    pub(crate) invocations: u64,
}

impl Bill {
    /// The bill of what was observed.
    pub(crate) fn of(observed: &Observed) -> Self {
        let steps = |bytes: usize| bytes.div_ceil(SQS_STEP).max(1) as u64;
        let sends = observed.seen.iter().filter(|seen| !seen.sent.is_empty());
        let sqs_sent =
            sends.map(|seen| steps(seen.sent.iter().map(|sent| sent.body.len()).sum())).sum();
        // What comes due in one queue at the same time is received together, up to a batch: a receive and a delete.
        let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for caused in &observed.caused {
            groups.entry(caused.due).or_default().push(caused.bytes);
        }
        let batches = groups.values().flat_map(|sizes| sizes.chunks(BATCH));
        let (mut sqs_taken, mut batch_count) = (0, 0);
        for sizes in batches {
            sqs_taken += steps(sizes.iter().sum()) + 1;
            batch_count += 1;
        }
        Self {
            operations: Tap::sum(&observed.seen),
            sqs_sent,
            sqs_taken,
            http: observed.http,
            invocations: observed.http + observed.invocations + batch_count,
        }
    }

    fn sum<T: std::iter::Sum>(&self, of: impl Fn(&str, &Tally) -> T) -> T {
        self.operations.iter().map(|(name, tally)| of(name, tally)).sum()
    }

    pub(crate) fn requests(&self) -> u64 {
        self.sum(|_, tally| tally.requests)
    }

    /// Requests that send messages.
    pub(crate) fn sends(&self) -> u64 {
        self.sum(|name, tally| if name.starts_with("sqs Send") { tally.requests } else { 0 })
    }

    pub(crate) fn write_units(&self) -> u64 {
        self.sum(|_, tally| tally.write_units)
    }

    pub(crate) fn read_units(&self) -> f64 {
        // The sum of no fractions is minus zero.
        0.0 + self.sum::<f64>(|_, tally| tally.read_units)
    }

    /// Bytes of the bodies that were sent to the services.
    pub(crate) fn bytes(&self) -> u64 {
        self.sum(|_, tally| tally.request_bytes)
    }

    /// Dollars for a million times this, for the data: tables, queues, secrets, blobs.
    pub(crate) fn data_dollars(&self) -> f64 {
        let count = |start: &str| {
            self.sum(|name, tally| if name.starts_with(start) { tally.requests } else { 0 })
        };
        rounded(
            WRITE_UNIT.times(self.write_units() as f64)
                + READ_UNIT.times(self.read_units())
                + SQS.times((self.sqs_sent + self.sqs_taken) as f64)
                + SECRETS.times(count("secretsmanager") as f64)
                + S3_WRITE.times(count("s3 PUT") as f64)
                + S3_READ.times(count("s3 GET") as f64),
        )
    }

    /// Dollars for a million times this, for the ways in: HTTP requests and invocations.
    pub(crate) fn entry_dollars(&self) -> f64 {
        rounded(HTTP.times(self.http as f64) + LAMBDA.times(self.invocations as f64))
    }

    /// Dollars for the time of a million times this, as assumed.
    pub(crate) fn duration_dollars(&self) -> f64 {
        rounded(DURATION.times(self.invocations as f64))
    }

    /// Whether it comes to more than another one.
    pub(crate) fn is_dearer(&self, other: &Self) -> bool {
        let key = |bill: &Self| (bill.requests(), bill.write_units(), bill.bytes());
        key(other) < key(self)
            || (key(other) == key(self) && other.read_units() < self.read_units())
    }

    /// What is left when another one is taken off.
    pub(crate) fn without(mut self, other: &Self) -> Self {
        for (name, less) in &other.operations {
            let Some(tally) = self.operations.get_mut(name) else { continue };
            tally.requests = tally.requests.saturating_sub(less.requests);
            tally.messages = tally.messages.saturating_sub(less.messages);
            tally.write_units = tally.write_units.saturating_sub(less.write_units);
            tally.read_units = (tally.read_units - less.read_units).max(0.0);
            tally.request_bytes = tally.request_bytes.saturating_sub(less.request_bytes);
            tally.response_bytes = tally.response_bytes.saturating_sub(less.response_bytes);
        }
        self.operations.retain(|_, tally| 0 < tally.requests || 0 < tally.write_units);
        self.sqs_sent = self.sqs_sent.saturating_sub(other.sqs_sent);
        self.sqs_taken = self.sqs_taken.saturating_sub(other.sqs_taken);
        self.http = self.http.saturating_sub(other.http);
        self.invocations = self.invocations.saturating_sub(other.invocations);
        self
    }
}

impl Price {
    fn times(self, count: f64) -> f64 {
        self.dollars_per_million * count
    }
}

/// To a hundredth of a cent: what is below that is the noise of binary fractions.
fn rounded(dollars: f64) -> f64 {
    (dollars * 1e4).round() / 1e4
}
