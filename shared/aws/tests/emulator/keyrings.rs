//! The key ring: read once, and learned anew where it was rotated.

use std::time::Duration;

use annex_aws::SecretKeyring;
use annex_aws::testing::{ROOT_KEY, is_available};
use annex_core::keyring::RootKeys;
use annex_core::ports::{KeyUse, Keyring as _};

use crate::bench::Bench;

const FIVE_MINUTES: Duration = Duration::from_secs(300);

async fn set(bench: &Bench, text: &str) {
    let request = bench.sandbox.clients.secrets.put_secret_value();
    request.secret_id(&bench.sandbox.secret).secret_string(text).send().await.unwrap();
}

#[tokio::test]
async fn a_rotated_ring_is_learned_after_five_minutes_and_a_broken_one_changes_nothing() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let secret = bench.sandbox.secret.clone();
    let ring = SecretKeyring::load(&bench.clients, secret, bench.clock.clone()).await.unwrap();
    let one = RootKeys::parse(ROOT_KEY).unwrap();
    assert_eq!((ring.current(), ring.key(1, KeyUse::Seal)), (1, one.key(1, KeyUse::Seal)));
    assert!(ring.is_operator(ROOT_KEY) && !ring.is_operator("x"));
    let two = one.added(&[7; 32]).and_then(|(ring, id)| ring.promoted(id)).unwrap();
    set(&bench, &two.text()).await;
    bench.clock.advance(FIVE_MINUTES - Duration::from_millis(1));
    ring.refresh_if_older_than(FIVE_MINUTES).await.unwrap();
    assert_eq!(ring.current(), 1);
    bench.clock.advance(Duration::from_millis(1));
    ring.refresh_if_older_than(FIVE_MINUTES).await.unwrap();
    assert_eq!((ring.current(), ring.key(2, KeyUse::Token)), (2, two.key(2, KeyUse::Token)));
    assert_eq!(ring.key(1, KeyUse::Seal), one.key(1, KeyUse::Seal));
    set(&bench, "{}").await;
    bench.clock.advance(FIVE_MINUTES);
    assert!(ring.refresh_if_older_than(FIVE_MINUTES).await.is_err());
    assert_eq!(ring.current(), 2);
    assert_eq!(bench.requests(), ["secretsmanager GetSecretValue"; 3]);
    assert_eq!(format!("{ring:?}"), "SecretKeyring(RootKeys { current: 2, ids: [1, 2] })");
}

#[tokio::test]
async fn a_secret_that_is_missing_or_no_ring_is_an_outage_that_shows_nothing_of_it() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let load = |secret: String| {
        let (clients, clock) = (bench.clients.clone(), bench.clock.clone());
        async move { SecretKeyring::load(&clients, secret, clock).await.unwrap_err() }
    };
    let missing = load("missing".to_owned()).await.what;
    assert!(
        missing.starts_with("the key ring cannot be read: ResourceNotFoundException"),
        "{missing}"
    );
    set(&bench, "super-secret-text").await;
    let broken = load(bench.sandbox.secret.clone()).await;
    assert!(!format!("{broken:?}").contains("super-secret"));
    assert_eq!(broken.what, "the secret is no key ring");
}
