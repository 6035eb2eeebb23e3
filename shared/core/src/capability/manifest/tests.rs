use super::*;
use crate::capability::model::{CommandKind, Invoker};
use crate::limits::*;

fn slug() -> Slug {
    Slug::parse("dice").unwrap()
}

fn accepted(body: &str) -> ManifestChange {
    read(&slug(), body.as_bytes()).unwrap_or_else(|fault| panic!("{fault}: {body:.300}"))
}

#[track_caller]
fn refused_with(body: &str, code: Code, text: &str) {
    let fault = read(&slug(), body.as_bytes()).map(|_| ());
    assert_eq!(fault, Err(Fault::new(code, text)), "{body:.300}");
}

#[track_caller]
fn bad(body: &str, text: &str) {
    refused_with(body, Code::BadRequest, text);
}

/// A command with what it needs, and more members.
fn command(id: &str, more: &str) -> String {
    format!(r#"{{"id":"{id}","title":"T","inputSchema":{{}},"invocableBy":["extension"]{more}}}"#)
}

fn commands(entries: &str) -> String {
    format!(r#"{{"commands":[{entries}]}}"#)
}

fn as_json(change: ManifestChange) -> String {
    serde_json::to_string(&change.apply(&Manifest::default()).unwrap()).unwrap()
}

#[test]
fn a_manifest_is_kept_as_it_was_sent() {
    let body = concat!(
        r#"{"commands":[{"id":"dice.roll","title":"Roll","description":"Rolls","#,
        r#""inputSchema":{"maximum":1.50,"x-more":"\u0061"},"outputSchema":true,"#,
        r#""invocableBy":["wearer","keyholder","extension"],"kind":"start"}],"#,
        r#""queries":[{"id":"dice.sides","title":"Sides","inputSchema":{},"invocableBy":[],"kind":"call"}],"#,
        r#""events":[{"type":"dice.rolled","title":"Rolled","payloadSchema":{},"hidden":true}],"#,
        r#""subscriptions":[{"type":"card.drawn","command":"dice.roll"},{"type":"lock.opened"}]}"#,
    );
    let sent = body.replace(r#""invocableBy":[],"kind":"call""#, r#""invocableBy":[]"#);
    assert_eq!(as_json(accepted(&sent)), body);
    assert_eq!(as_json(accepted(&sent.replacen('{', r#"{"slug":"dice","#, 1))), body);
}

#[test]
fn what_may_be_left_out_has_a_default() {
    let change = accepted(
        r#"{"commands":[{"id":"dice.roll","inputSchema":{},"invocableBy":["wearer"]}],
            "events":[{"type":"dice.rolled","payloadSchema":true}]}"#,
    );
    let (commands, events) = (change.commands.unwrap(), change.events.unwrap());
    assert_eq!(commands[0].title, "dice.roll");
    assert_eq!(commands[0].kind, CommandKind::Call);
    assert_eq!(commands[0].invocable_by, [Invoker::Wearer]);
    assert!(commands[0].description.is_none() && commands[0].output_schema.is_none());
    assert!(events[0].title.is_none() && !events[0].hidden);
    assert!(change.queries.is_none() && change.subscriptions.is_none());
}

#[test]
fn omitted_keeps_and_an_empty_list_clears() {
    let before = accepted(&format!(
        r#"{{"commands":[{}],"queries":[{}],"events":[{{"type":"dice.e","payloadSchema":{{}}}}],
            "subscriptions":[{{"type":"lock.opened"}}]}}"#,
        command("dice.a", ""),
        command("dice.b", ""),
    ));
    let before = before.apply(&Manifest::default()).unwrap();
    let check = |change: &str, counts: [usize; 4]| {
        let after = accepted(change).apply(&before).unwrap();
        let found = [
            after.commands.len(),
            after.queries.len(),
            after.events.len(),
            after.subscriptions.len(),
        ];
        assert_eq!(found, counts, "{change}");
    };
    check("{}", [1, 1, 1, 1]);
    check(r#"{"commands":[]}"#, [0, 1, 1, 1]);
    check(r#"{"queries":[],"events":[]}"#, [1, 0, 0, 1]);
    check(r#"{"subscriptions":[]}"#, [1, 1, 1, 0]);
    let two = format!("{},{}", command("dice.a", ""), command("dice.c", ""));
    check(&commands(&two), [2, 1, 1, 1]);
    let fault = accepted(&commands(&command("dice.b", ""))).apply(&before).map(|_| ());
    let text = "queries[0].id: stands there twice";
    assert_eq!(fault, Err(Fault::new(Code::BadRequest, text)));
    // An id may change its kind in one step.
    let moved = format!(r#"{{"commands":[{}],"queries":[]}}"#, command("dice.b", ""));
    check(&moved, [1, 0, 1, 1]);
}

#[test]
fn null_and_unknown_members_are_refused_with_their_place() {
    let null = "is null: leave it out, or give a value";
    for list in ["commands", "queries", "events", "subscriptions", "slug"] {
        bad(&format!(r#"{{"{list}":null}}"#), &format!("{list}: {null}"));
    }
    for list in ["commands", "queries", "events", "subscriptions"] {
        bad(&format!(r#"{{"{list}":{{}}}}"#), &format!("{list}: is not a list"));
        bad(&format!(r#"{{"{list}":[null]}}"#), &format!("{list}[0]: not a JSON object"));
        bad(&format!(r#"{{"{list}":[{{"a":1}}]}}"#), &format!("{list}[0].a: is not known"));
    }
    bad(r#"{"endpoint":"https://example.com"}"#, "endpoint: is not known");
    let long = "é".repeat(500);
    bad(&format!(r#"{{"{long}":1}}"#), &format!("{}: is not known", "é".repeat(40)));
    let outer = command("dice.a", r#","outputSchema":null"#);
    bad(&commands(&outer), &format!("commands[0].outputSchema: {null}"));
    let doubled = command("dice.a", r#","id":"dice.b""#);
    bad(&commands(&doubled), "commands[0]: the key \"id\" stands twice");
    bad(r#"{"commands":[],"commands":[]}"#, "the key \"commands\" stands twice");
    bad("[]", "not a JSON object");
    refused_with("", Code::InvalidJson, "the manifest is not valid JSON: the text ends early");
    refused_with("{]", Code::InvalidJson, "the manifest is not valid JSON at byte 1");
    refused_with(r#"{"slug":"card"}"#, Code::Forbidden, "slug: is not the extension of the token");
    bad(r#"{"slug":7}"#, "slug: is not a string");
}

#[test]
fn an_id_is_well_formed_in_the_own_namespace_and_unique() {
    // CH-007, CH-010, CH-011
    for (list, member) in [("commands", "id"), ("queries", "id"), ("events", "type")] {
        let place = format!("{list}[0].{member}");
        for (value, what) in [
            ("7", "is not a string"),
            ("\"not an id\"", "is not of the form <namespace>.<name>"),
            ("\"dice.Roll\"", "is not of the form <namespace>.<name>"),
            ("\"card.roll\"", "is not in the namespace \"dice\""),
            ("\"lock.roll\"", "is not in the namespace \"dice\""),
        ] {
            let body = format!(r#"{{"{list}":[{{"{member}":{value}}}]}}"#);
            bad(&body, &format!("{place}: {what}"));
        }
        bad(&format!(r#"{{"{list}":[{{}}]}}"#), &format!("{place}: is missing"));
    }
    let twice = format!("{},{}", command("dice.a", ""), command("dice.a", ""));
    bad(&commands(&twice), "commands[1].id: stands there twice");
    bad(
        &format!(r#"{{"queries":[{0}],"commands":[{0}]}}"#, command("dice.a", "")),
        "queries[0].id: stands there twice",
    );
    let event = r#"{"type":"dice.e","payloadSchema":{}}"#;
    bad(&format!(r#"{{"events":[{event},{event}]}}"#), "events[1].type: stands there twice");
    let text = r#"{"subscriptions":[{"type":"card.a","command":"dice.none"}]}"#;
    let change = read(&slug(), text.as_bytes()).unwrap();
    let fault = change.apply(&Manifest::default()).unwrap_err();
    assert_eq!(fault.message, "subscriptions[0].command: dice.none is not declared");
    let own = "subscriptions[0].command: is not in the namespace \"dice\"";
    bad(r#"{"subscriptions":[{"type":"card.a","command":"card.b"}]}"#, own);
    let twice = "subscriptions[1]: stands there twice";
    bad(r#"{"subscriptions":[{"type":"card.a"},{"type":"card.a"}]}"#, twice);
    accepted(r#"{"subscriptions":[{"type":"card.a"},{"type":"card.a","command":"dice.b"}]}"#);
    let calls = r#"{"type":"card.a","command":"dice.b"},{"type":"card.a","command":"dice.c"}"#;
    bad(&format!(r#"{{"subscriptions":[{calls}]}}"#), twice);
}

#[test]
fn members_of_a_capability_are_checked() {
    let check = |more: &str, what: &str| {
        bad(&commands(&command("dice.a", more)), &format!("commands[0].{what}"));
    };
    check(r#","kind":"other""#, "kind: is neither \"call\" nor \"start\"");
    check(r#","kind":7"#, "kind: is not a string");
    check(r#","description":7"#, "description: is not a string");
    let only = |member: &str| commands(&format!(r#"{{"id":"dice.a",{member}}}"#));
    bad(&only(r#""invocableBy":[]"#), "commands[0].inputSchema: is missing");
    bad(&only(r#""inputSchema":{}"#), "commands[0].invocableBy: is missing");
    let by = |value: &str| only(&format!(r#""inputSchema":{{}},"invocableBy":{value}"#));
    let words = "is none of \"wearer\", \"keyholder\", \"extension\"";
    bad(&by("\"wearer\""), "commands[0].invocableBy: is not a list");
    bad(&by(r#"["wearer","user"]"#), &format!("commands[0].invocableBy[1]: {words}"));
    bad(&by("[null]"), &format!("commands[0].invocableBy[0]: {words}"));
    bad(&by(r#"["wearer","wearer"]"#), "commands[0].invocableBy[1]: stands there twice");
    let kind = r#"{"queries":[{"id":"dice.a","kind":"call"}]}"#;
    bad(kind, "queries[0].kind: is not known");
    let hidden = r#"{"events":[{"type":"dice.e","payloadSchema":{},"hidden":1}]}"#;
    bad(hidden, "events[0].hidden: is neither true nor false");
    let payload = r#"{"events":[{"type":"dice.e"}]}"#;
    bad(payload, "events[0].payloadSchema: is missing");
}

#[test]
fn a_schema_and_its_options_are_checked_with_their_place() {
    let input = |schema: &str| {
        commands(&format!(r#"{{"id":"dice.a","invocableBy":[],"inputSchema":{schema}}}"#))
    };
    let output =
        |schema: &str| commands(&command("dice.a", &format!(r#","outputSchema":{schema}"#)));
    for (body, place) in [
        (&input as &dyn Fn(&str) -> String, "commands[0].inputSchema"),
        (&output, "commands[0].outputSchema"),
    ] {
        let remote = r#"{"items":{"$ref":"https://example.com/s"}}"#;
        let what = "\"https://example.com/s\" names no schema inside this one";
        bad(&body(remote), &format!("{place}/items/$ref: {what}"));
        let none = "is not a schema: neither an object nor true nor false";
        bad(&body("7"), &format!("{place}: {none}"));
    }
    bad(
        r##"{"events":[{"type":"dice.e","payloadSchema":{"$ref":"#"}}]}"##,
        "events[0].payloadSchema: a $ref leads back to itself without an end",
    );
    let options = r#"{"properties":{"n":{"x-chaster-options":{"query":"sides"}}}}"#;
    bad(
        &input(options),
        "commands[0].inputSchema/properties/n/x-chaster-options.query: is not the id of a query",
    );
    // There are no choices of an output.
    accepted(&output(options));
}

#[test]
fn a_manifest_has_limits() {
    let entries = |count: usize| {
        let entries: Vec<_> = (0..count).map(|n| command(&format!("dice.n{n}"), "")).collect();
        commands(&entries.join(","))
    };
    let most = accepted(&entries(MANIFEST_ENTRIES_MAX)).commands.unwrap();
    assert_eq!(most.len(), MANIFEST_ENTRIES_MAX);
    bad(&entries(MANIFEST_ENTRIES_MAX + 1), "commands: has more than 100 entries");
    let title = |chars: usize| {
        format!(
            r#"{{"events":[{{"type":"dice.e","payloadSchema":{{}},"title":"{}"}}]}}"#,
            "é".repeat(chars)
        )
    };
    accepted(&title(1));
    accepted(&title(MANIFEST_TITLE_CHARS_MAX));
    for chars in [0, MANIFEST_TITLE_CHARS_MAX + 1] {
        bad(&title(chars), "events[0].title: has not 1 to 60 characters");
    }
    let description = |chars: usize| {
        commands(&command("dice.a", &format!(r#","description":"{}""#, "é".repeat(chars))))
    };
    accepted(&description(MANIFEST_DESCRIPTION_CHARS_MAX));
    let long = "commands[0].description: has not 0 to 300 characters";
    bad(&description(MANIFEST_DESCRIPTION_CHARS_MAX + 1), long);
    let padded = |bytes: usize| format!("{{}}{}", " ".repeat(bytes - 2));
    accepted(&padded(MANIFEST_BYTES_MAX));
    let large = format!("a manifest has at most {MANIFEST_BYTES_MAX} bytes");
    refused_with(&padded(MANIFEST_BYTES_MAX + 1), Code::TooLarge, &large);
}

#[test]
fn all_schemas_of_a_manifest_together_have_limits() {
    let events = |count: usize, schema: &str| {
        let event = |n: usize| format!(r#"{{"type":"dice.e{n}","payloadSchema":{schema}}}"#);
        format!(r#"{{"events":[{}]}}"#, (0..count).map(event).collect::<Vec<_>>().join(","))
    };
    let most = MANIFEST_SCHEMA_PARTS_MAX / SCHEMA_PARTS_MAX;
    let schema = format!(r#"{{"prefixItems":[{}]}}"#, vec!["true"; SCHEMA_PARTS_MAX - 1].join(","));
    accepted(&events(most, &schema));
    let what = format!("brings the manifest over {MANIFEST_SCHEMA_PARTS_MAX} schemas");
    bad(&events(most + 1, &schema), &format!("events[{most}].payloadSchema: {what}"));
    // Each is between 64 and 256 KiB.
    let schema = r#"{"pattern":"^\\p{L}+ \\p{L}+ \\p{L}+ \\p{L}+$"}"#;
    let most = MANIFEST_PATTERN_BYTES_MAX / PATTERN_BYTES_MAX;
    accepted(&events(most, schema));
    let what = "brings the manifest over what its patterns may take";
    bad(&events(most + 1, schema), &format!("events[{most}].payloadSchema: {what}"));
}

#[test]
fn what_was_declared_before_counts_too() {
    let large = |id: &str| {
        let schema = format!(r#"{{"title":"{}"}}"#, "x".repeat(CAPABILITY_SCHEMA_BYTES_MAX - 20));
        format!(
            r#"[{{"id":"{id}","inputSchema":{schema},"outputSchema":{schema},"invocableBy":[]}}]"#
        )
    };
    let before = accepted(&format!(r#"{{"commands":{}}}"#, large("dice.a")));
    let before = before.apply(&Manifest::default()).unwrap();
    let after = accepted(&format!(r#"{{"queries":{}}}"#, large("dice.b"))).apply(&before);
    let text = format!(
        "with what was declared before, the manifest takes more than {MANIFEST_BYTES_MAX} bytes"
    );
    assert_eq!(after.map(|_| ()), Err(Fault::new(Code::BadRequest, text)));
}
