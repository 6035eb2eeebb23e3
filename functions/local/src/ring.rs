//! The key ring of a running platform: a changed file is picked up without a restart.

use std::fs::Metadata;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use annex_core::key_check;
use annex_core::ports::{Keyring as _, Ports};
use annex_embedded::{RootKeyring, read_ring};
use tokio::sync::watch;

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What tells one state of the file from another. A replaced file has another number.
#[derive(PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
    number: u64,
}

impl Stamp {
    fn of(found: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self { modified: found.modified().ok(), bytes: found.len(), number: found.ino() }
    }

    fn now(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|found| Self::of(&found))
    }
}

/// Takes over the ring of `path` whenever the file changes, until it is to stop. A file that is no ring, or whose ring
/// does not open what the store has sealed, changes nothing: the platform goes on with the ring that it has.
pub(crate) async fn follow(ring: Arc<RootKeyring>, ports: Ports, mut stop: watch::Receiver<bool>) {
    let Some(path) = ring.file().map(Path::to_owned) else { return };
    // What changed between the start and now is found by the first look.
    let mut seen = None;
    loop {
        let now = Stamp::now(&path);
        if now != seen {
            take_over(&ring, &ports, &path).await;
            seen = now;
        }
        tokio::select! {
            () = ports.clock.sleep(LOOK_EVERY) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

async fn take_over(ring: &RootKeyring, ports: &Ports, path: &Path) {
    let keys = match read_ring(path) {
        Ok(keys) => keys,
        Err(error) => {
            tracing::error!("the key ring stays as it was: {error}");
            return;
        }
    };
    let ids = keys.key_ids();
    if (keys.current(), &ids) == (ring.current(), &ring.key_ids()) {
        return;
    }
    let candidate = Arc::new(RootKeyring::from(keys.clone()));
    match key_check::is_same(&Ports { keyring: candidate, ..ports.clone() }).await {
        Ok(true) => {
            tracing::info!(current = keys.current(), ?ids, "the key ring has changed");
            ring.replace(keys);
        }
        Ok(false) => tracing::error!(
            "the key ring stays as it was: {} does not open what the store has sealed",
            path.display()
        ),
        Err(error) => {
            tracing::error!(source = ?error.source, "the key ring stays as it was: {error}")
        }
    }
}
