//! What passes through: bytes.

use annex_tests::extension::Extension;
use annex_tests::platform::World;

#[tokio::test]
async fn a_call_is_answered() {
    let extension = Extension::echo().await;
    let (_world, tenant) = World::with(&extension).await;
    let answer = tenant.call("ext", "echo", r#"{"text":"a"}"#).await;
    assert_eq!(answer.text(), r#"{"data":{"text":"a"}}"#);
}
