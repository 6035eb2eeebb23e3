//! Measures commits per second and processor time per commit, with every commit synced to disk.
//!
//! `cargo run --profile fast -p annex-embedded --example store_bench -- [commits] [in flight] [bytes of a record] [folder]`

use std::sync::Arc;
use std::time::{Duration, Instant};

use annex_core::ports::{
    Clock, Commit, Handler, Hold, Ids, Key, Message, Outgoing, QueueName, Store, Undone, When,
    Write,
};
use annex_core::time::Timestamp;
use annex_embedded::{ConsumerOptions, Embedded, Options, SystemClock};
use annex_entropy::SystemIds;
use tokio::sync::watch;
use uuid::Uuid;

/// The start of a call: a record with an expiry, and a held message.
fn start(key: &Key, id: Uuid, bytes: usize, expires_at: Timestamp) -> Commit {
    let body = format!("{{\"call\":\"{id}\"}}");
    Commit {
        writes: vec![Write::Put {
            key: key.clone(),
            data: vec![b'x'; bytes / 2],
            expires_at: Some(expires_at),
            when: When::Absent,
        }],
        holds: vec![Hold {
            id,
            send: Outgoing { queue: QueueName::Resume, body, delay: Duration::from_secs(390) },
        }],
        ..Commit::default()
    }
}

/// The end of a call: the finished record, a counter, and the held message released.
fn finish(key: &Key, id: Uuid, bytes: usize, expires_at: Timestamp) -> Commit {
    Commit {
        writes: vec![
            Write::Put {
                key: key.clone(),
                data: vec![b'y'; bytes],
                expires_at: Some(expires_at),
                when: When::Revision(1),
            },
            Write::Tally {
                key: Key::new("usage#org", "hour"),
                data: Vec::new(),
                add: vec![("calls".to_owned(), 1)],
                expires_at: Some(expires_at),
            },
        ],
        released: vec![id],
        ..Commit::default()
    }
}

/// Counts what it is handed.
struct Counter(watch::Sender<usize>);

#[async_trait::async_trait]
impl Handler for Counter {
    async fn handle(&self, batch: Vec<Message>) -> Vec<Undone> {
        self.0.send_modify(|count| *count += batch.len());
        Vec::new()
    }
}

/// Sends messages, and receives them meanwhile.
async fn messages(
    store: &Arc<Embedded>,
    count: usize,
    in_flight: usize,
) -> Result<(), Box<dyn std::error::Error>> {
    let (began, time) = (Instant::now(), processor_time());
    let (counter, mut counted) = watch::channel(0);
    let (stop, stopped) = watch::channel(false);
    let options =
        ConsumerOptions { batch_size: 1, batches_in_flight: in_flight, ..Default::default() };
    let handler = Arc::new(Counter(counter));
    let consume = store.clone().consume(QueueName::Dispatch, handler, options, stopped);
    let consumer = tokio::spawn(consume);
    let each = count / in_flight;
    let senders: Vec<_> = (0..in_flight)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                for _ in 0..each {
                    let send = Outgoing {
                        queue: QueueName::Dispatch,
                        body: "x".repeat(200),
                        delay: Duration::ZERO,
                    };
                    store.commit(Commit { sends: vec![send], ..Commit::default() }).await?;
                }
                Ok::<_, annex_core::ports::Outage>(())
            })
        })
        .collect();
    for sender in senders {
        sender.await??;
    }
    counted.wait_for(|count| each * in_flight <= *count).await?;
    let (took, used) = (began.elapsed(), processor_time() - time);
    let done = (each * in_flight) as f64;
    println!("{:.0} messages/s, sent and received", done / took.as_secs_f64());
    println!("{:.1} us of processor time per message", used.as_secs_f64() * 1e6 / done);
    stop.send_replace(true);
    consumer.await?;
    Ok(())
}

/// Processor time of all threads of this process that live.
fn processor_time() -> Duration {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Duration::ZERO };
    let nanoseconds = threads.flatten().filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let commits: usize = args.next().map_or(Ok(40_000), |text| text.parse())?;
    let in_flight: usize = args.next().map_or(Ok(64), |text| text.parse())?;
    let bytes: usize = args.next().map_or(Ok(1000), |text| text.parse())?;
    let temporary = tempfile::tempdir()?;
    let dir = args.next().map_or(temporary.path().to_owned(), Into::into);

    let clock = Arc::new(SystemClock::start());
    let began = Instant::now();
    let store = Embedded::open(&dir, clock.clone(), &Options::default())?;
    println!("opened in {:?}", began.elapsed());

    let (began, time) = (Instant::now(), processor_time());
    let expires_at = clock.now().plus(Duration::from_secs(30 * 86_400));
    let each = commits / 2 / in_flight;
    let tasks: Vec<_> = (0..in_flight)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut slowest = Duration::ZERO;
                for _ in 0..each {
                    let id = SystemIds.uuid();
                    let key = Key::new(format!("call#{:016x}", SystemIds.random()), "record");
                    let began = Instant::now();
                    store.commit(start(&key, id, bytes, expires_at)).await?;
                    store.commit(finish(&key, id, bytes, expires_at)).await?;
                    slowest = slowest.max(began.elapsed() / 2);
                }
                Ok::<_, annex_core::ports::Outage>(slowest)
            })
        })
        .collect();
    let mut slowest = Duration::ZERO;
    for task in tasks {
        slowest = slowest.max(task.await??);
    }
    let (took, used) = (began.elapsed(), processor_time() - time);
    let done = each * in_flight * 2;
    println!("{done} commits, {in_flight} in flight, in {took:?}, slowest {slowest:?}");
    println!("{:.0} commits/s", done as f64 / took.as_secs_f64());
    println!("{:.1} us of processor time per commit", used.as_secs_f64() * 1e6 / done as f64);

    messages(&store, commits / 2, in_flight).await?;

    let began = Instant::now();
    store.close();
    println!("closed in {:?}", began.elapsed());
    Ok(())
}
