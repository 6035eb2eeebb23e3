//! Rates of extensions on locks, of locks, and of choices.

use serde_json::{Value, json};

use super::manifests;
use super::partners::Answer;
use super::scene::{LOCK, Scene, check, limited, record};
use super::{Case, bare, case};
use crate::harness::door::Reply;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("CH-041 CH-033 CH-037", "the 121st call of a minute is refused", the_121st),
        case("CH-037 CH-038", "queries count as commands do", queries),
        case("CH-037 CH-039", "emitted events count as commands do", events),
        case("CH-037 CH-038 CH-039", "what is refused later on counts too", refused_too),
        case("CH-040 CH-046", "what counts for an extension counts for its lock", both),
        case("CH-042 CH-050 CH-051", "a block lasts five minutes, from the call on", block),
        case("CH-042", "a block outlives the process, and another one knows of it", restarts),
        case("CH-043", "a block is of one lock", one_lock),
        case("CH-044", "a block is of one extension", one_extension),
        case("CH-045", "a block adds one visible line to the history", one_line),
        case("CH-046 CH-047 CH-049", "the 301st of a lock is refused until the minute ends", lock),
        case("CH-046", "what people do counts for the lock", people),
        case("CH-048 CH-049", "each bucket names itself, with whole seconds", buckets),
        case("CH-052 CH-051", "the 61st request for choices of a minute is refused", choices),
        case("CH-052", "choices from the cache count too", cached_choices),
        case("CH-053", "choices are counted for each caller", by_caller),
        case("CH-052", "choices count in no other bucket, and calls not in theirs", own_bucket),
        case("CH-054 CH-051", "lock actions count", actions),
        case("CH-055", "operations of five kinds count, 24 of each", operations),
        case("CH-041", "what a minute holds is gone in the next", next_minute),
        bare(
            "CH-041",
            "reading records, events and sessions counts nothing",
            |backend| async move {
                reads(Scene::new(backend).await).await;
            },
        ),
    ]
}

/// Lets a partner do so many things on [`LOCK`] that pass.
async fn pass(scene: &Scene, slug: &str, what: &str, body: &Value, times: usize) {
    for time in 0..times {
        let reply = scene.ask(slug, what, body).await;
        assert!(reply.status.is_success(), "{time}: {} {}", reply.status, reply.body);
    }
}

async fn call(scene: &Scene) -> Reply {
    scene.command("a", "b.run", json!({})).await
}

fn event() -> Value {
    json!({ "type": "a.quiet", "payload": { "n": 1 } })
}

async fn the_121st(scene: Scene) {
    pass(&scene, "a", "POST /commands/b.run", &json!({}), 120).await;
    assert_eq!(scene.partners.received("b.run").len(), 120);
    limited(&call(&scene).await, "extension", 300);
    limited(&call(&scene).await, "extension", 300);
    assert_eq!(scene.partners.received("b.run").len(), 120);
}

async fn queries(scene: Scene) {
    pass(&scene, "a", "POST /commands/b.run", &json!({}), 60).await;
    pass(&scene, "a", "POST /queries/b.get", &json!({}), 60).await;
    limited(&scene.query("a", "b.get", json!({})).await, "extension", 300);
}

async fn events(scene: Scene) {
    pass(&scene, "a", "POST /commands/b.run", &json!({}), 60).await;
    pass(&scene, "a", "POST /events", &event(), 60).await;
    limited(&scene.emit("a", event()).await, "extension", 300);
}

async fn refused_too(scene: Scene) {
    for n in 0..40 {
        assert_eq!(scene.command("a", "no%20id", json!({})).await.status, 400, "{n}");
        assert_eq!(scene.query("a", "b.none", json!({ "input": 1 })).await.status, 404, "{n}");
        assert_eq!(scene.emit("a", json!({ "type": "lock.x" })).await.status, 403, "{n}");
    }
    limited(&call(&scene).await, "extension", 300);
}

/// `a`, `c` and `d` on [`LOCK`], beside `b`.
async fn crowd(mut scene: Scene) -> Scene {
    for slug in ["c", "d"] {
        scene.join(slug, &manifests::caller(slug)).await;
        scene.install(slug, LOCK).await;
    }
    scene.calm().await;
    scene
}

async fn both(scene: Scene) {
    let scene = crowd(scene).await;
    let run = "POST /commands/b.run";
    pass(&scene, "a", run, &json!({}), 120).await;
    pass(&scene, "c", run, &json!({}), 120).await;
    // 60 are left of 300.
    pass(&scene, "d", run, &json!({}), 60).await;
    limited(&scene.command("d", "b.run", json!({})).await, "lock", 60);
}

async fn block(scene: Scene) {
    pass(&scene, "a", "POST /commands/b.run", &json!({}), 120).await;
    scene.pass_millis(1_500);
    limited(&call(&scene).await, "extension", 300);
    scene.pass(60);
    limited(&call(&scene).await, "extension", 240);
    scene.pass_millis(239_000);
    // 4 minutes and 59 seconds.
    limited(&call(&scene).await, "extension", 1);
    scene.pass_millis(999);
    limited(&call(&scene).await, "extension", 1);
    scene.pass_millis(1);
    check(&call(&scene).await, 201, record(json!({})));
    pass(&scene, "a", "POST /commands/b.run", &json!({}), 119).await;
    // Over it once more: another block.
    limited(&call(&scene).await, "extension", 300);
    assert_eq!(scene.lines("b", "extension_blocked").await.len(), 2);
}

async fn restarts(mut scene: Scene) {
    pass(&scene, "a", "POST /commands/b.run", &json!({}), 120).await;
    let another = scene.another();
    let call_of_a = scene.request("a", "POST /commands/b.run", &json!({}));
    let request = || call_of_a.clone();
    limited(&request().send(another.router()).await, "extension", 300);
    scene.pass(100);
    limited(&call(&scene).await, "extension", 200);
    let other = scene.another();
    limited(&request().send(other.router()).await, "extension", 200);
    scene.world.restart();
    limited(&call(&scene).await, "extension", 200);
    scene.pass(200);
    check(&call(&scene).await, 201, record(json!({})));
    check(&request().send(another.router()).await, 201, record(json!({})));
}

async fn one_lock(mut scene: Scene) {
    scene.install("a", "l2").await;
    scene.install("b", "l2").await;
    scene.next_minute();
    pass(&scene, "a", "POST /commands/b.run", &json!({}), 120).await;
    limited(&call(&scene).await, "extension", 300);
    let reply = scene.ask_on("l2", "a", "POST /commands/b.run", &json!({})).await;
    check(&reply, 201, record(json!({ "lockId": "l2" })));
}

async fn one_extension(scene: Scene) {
    pass(&scene, "a", "POST /commands/b.run", &json!({}), 120).await;
    limited(&call(&scene).await, "extension", 300);
    // Who is blocked may still be called.
    let reply = scene.command("b", "a.run", json!({})).await;
    let caller = json!({ "type": "extension", "slug": "b" });
    check(&reply, 201, record(json!({ "capability": "a.run", "caller": caller })));
}

async fn one_line(scene: Scene) {
    pass(&scene, "a", "POST /commands/b.run", &json!({}), 120).await;
    assert_eq!(scene.lines("b", "extension_blocked").await, [Value::Null; 0]);
    for _ in 0..5 {
        limited(&call(&scene).await, "extension", 300);
    }
    let lines = scene.lines("b", "extension_blocked").await;
    let [line] = &lines[..] else { panic!("one line, not {lines:?}") };
    assert_eq!(line["extension"], "a");
    assert_eq!(line["lock"], LOCK);
    assert_eq!(line["prefix"], "default");
}

async fn lock(scene: Scene) {
    let scene = crowd(scene).await;
    for slug in ["a", "c", "d"] {
        pass(&scene, slug, "POST /commands/b.run", &json!({}), 100).await;
    }
    scene.pass_millis(20_500);
    for slug in ["a", "b", "c", "d"] {
        limited(&scene.command(slug, "b.run", json!({})).await, "lock", 40);
    }
    assert_eq!(scene.lines("b", "extension_blocked").await, [Value::Null; 0]);
    scene.pass_millis(39_499);
    limited(&call(&scene).await, "lock", 1);
    scene.pass_millis(1);
    for slug in ["a", "c", "d"] {
        pass(&scene, slug, "POST /commands/b.run", &json!({}), 1).await;
    }
}

async fn people(mut scene: Scene) {
    for _ in 0..299 {
        let reply = scene.person("wearer", "commands/b.none", json!({})).await;
        assert_eq!(reply.status, 404, "{}", reply.body);
    }
    check(&call(&scene).await, 201, record(json!({})));
    limited(&scene.person("wearer", "commands/b.run", json!({})).await, "lock", 60);
    limited(&scene.person("wearer", "queries/b.get", json!({})).await, "lock", 60);
    limited(&call(&scene).await, "lock", 60);
}

async fn buckets(scene: Scene) {
    choosing(&scene);
    let scene = crowd(scene).await;
    scene.pass_millis(10_001);
    for slug in ["a", "c"] {
        pass(&scene, slug, "POST /commands/b.run", &json!({}), 120).await;
    }
    pass(&scene, "d", "POST /commands/b.run", &json!({}), 60).await;
    pass(&scene, "a", "POST /options", &colors(), 60).await;
    // Where both are full, it is the extension's that is named.
    limited(&call(&scene).await, "extension", 300);
    limited(&scene.command("d", "b.run", json!({})).await, "lock", 50);
    limited(&scene.options("a", colors()).await, "options", 50);
}

fn colors() -> Value {
    json!({ "id": "b.choose", "field": "color" })
}

/// A scene in which `b` has choices.
fn choosing(scene: &Scene) {
    let choices = json!({ "options": [{ "value": 1, "label": "one" }] });
    scene.partners.answer("b.colors", Answer::output(&choices));
}

async fn choices(scene: Scene) {
    choosing(&scene);
    for n in 0..60 {
        let mut body = colors();
        body["search"] = json!(n.to_string());
        pass(&scene, "a", "POST /options", &body, 1).await;
    }
    assert_eq!(scene.partners.received("b.colors").len(), 60);
    limited(&scene.options("a", colors()).await, "options", 60);
    scene.pass_millis(59_001);
    limited(&scene.options("a", colors()).await, "options", 1);
    scene.pass_millis(999);
    pass(&scene, "a", "POST /options", &colors(), 60).await;
    limited(&scene.options("a", colors()).await, "options", 60);
}

async fn cached_choices(scene: Scene) {
    choosing(&scene);
    pass(&scene, "a", "POST /options", &colors(), 60).await;
    assert_eq!(scene.partners.received("b.colors").len(), 1);
    limited(&scene.options("a", colors()).await, "options", 60);
    // Not over several processes either.
    let reply = scene.request("a", "POST /options", &colors()).send(scene.another().router()).await;
    limited(&reply, "options", 60);
}

async fn by_caller(mut scene: Scene) {
    choosing(&scene);
    scene.join("c", &manifests::caller("c")).await;
    scene.install("c", LOCK).await;
    scene.install("a", "l2").await;
    scene.install("b", "l2").await;
    scene.next_minute();
    pass(&scene, "a", "POST /options", &colors(), 60).await;
    limited(&scene.options("a", colors()).await, "options", 60);
    pass(&scene, "c", "POST /options", &colors(), 60).await;
    limited(&scene.options("c", colors()).await, "options", 60);
    let reply = scene.ask_on("l2", "a", "POST /options", &colors()).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
}

async fn own_bucket(scene: Scene) {
    choosing(&scene);
    pass(&scene, "a", "POST /options", &colors(), 60).await;
    pass(&scene, "a", "POST /commands/b.run", &json!({}), 120).await;
    limited(&scene.options("a", colors()).await, "options", 60);
    limited(&call(&scene).await, "extension", 300);
    scene.next_minute();
    // A block is none of choices.
    pass(&scene, "a", "POST /options", &colors(), 60).await;
}

async fn actions(scene: Scene) {
    let add = json!({ "action": { "name": "add_time", "params": 60 } });
    pass(&scene, "a", "POST /action", &add, 120).await;
    limited(&scene.ask("a", "POST /action", &add).await, "extension", 300);
    limited(&call(&scene).await, "extension", 300);
    scene.pass(300);
    pass(&scene, "a", "POST /action", &add, 1).await;
}

async fn operations(scene: Scene) {
    let task = json!({ "task": { "task": "rest", "points": 1 }, "actor": "extension" });
    let five = [
        ("POST /tasks/assign", task),
        ("POST /penalties/increment", json!({ "habitName": "rest" })),
        ("POST /temporary-opening/open", json!({ "actor": "extension" })),
        ("POST /verification-picture/request", json!({ "actor": "extension" })),
        ("GET /pillory/status", json!({})),
    ];
    for (what, body) in &five {
        pass(&scene, "a", what, body, 24).await;
    }
    for (what, body) in &five {
        limited(&scene.ask("a", what, body).await, "extension", 300);
    }
}

async fn next_minute(scene: Scene) {
    scene.pass_millis(59_999);
    pass(&scene, "a", "POST /commands/b.run", &json!({}), 120).await;
    scene.pass_millis(1);
    pass(&scene, "a", "POST /commands/b.run", &json!({}), 120).await;
    limited(&call(&scene).await, "extension", 300);
}

async fn reads(scene: Scene) {
    let made = call(&scene).await;
    let id = made.body["id"].as_str().expect("a record has an id").to_owned();
    for _ in 0..61 {
        for what in ["GET /events", "GET ", "GET /capabilities", &format!("GET /invocations/{id}")]
        {
            pass(&scene, "a", what, &json!({}), 1).await;
        }
        pass(&scene, "a", "POST /logs/search", &json!({}), 1).await;
    }
    pass(&scene, "a", "POST /commands/b.run", &json!({}), 119).await;
    limited(&call(&scene).await, "extension", 300);
}
