use super::*;

const EVENT: &str = r#"{"event":{"FILE_PATH":"C:\\Windows\\evil.EXE","PID":9999,"BIG":123456789012345678901234567890,"RATE":1.50,"OK":true,"NONE":null,"EMPTY":"","LIST":[{"IP":"10.0.0.1"},{"IP":"10.0.0.2"}],"TAGS":["x","y"]},"routing":{"event_type":"NEW_PROCESS","hostname":"h1","event_time":1700000000000}}"#;

fn rule(detect: &str) -> Result<Rule, String> {
    Rule::parse(&format!(r#"{{"detect":{detect},"respond":[]}}"#))
}

#[track_caller]
fn check(detect: &str, expected: bool) {
    let event = Node::parse(EVENT).expect("valid");
    assert_eq!(rule(detect).expect("a rule").matches(&event), expected, "{detect}");
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    assert_eq!(Rule::parse(text).map(|_| ()), Err(expected.to_owned()));
}

#[test]
fn is_compares_values_of_one_type() {
    check(r#"{"op":"is","path":"event/PID","value":9999}"#, true);
    check(r#"{"op":"is","path":"event/PID","value":9999.0}"#, true);
    check(r#"{"op":"is","path":"event/PID","value":9998}"#, false);
    check(r#"{"op":"is","path":"event/PID","value":"9999"}"#, false);
    check(r#"{"op":"is","path":"event/BIG","value":123456789012345678901234567890}"#, true);
    check(r#"{"op":"is","path":"event/BIG","value":123456789012345678901234567891}"#, false);
    check(r#"{"op":"is","path":"event/RATE","value":1.5}"#, true);
    check(r#"{"op":"is","path":"event/OK","value":true}"#, true);
    check(r#"{"op":"is","path":"event/OK","value":false}"#, false);
    check(r#"{"op":"is","path":"event/NONE","value":null}"#, true);
    check(r#"{"op":"is","path":"event/MISSING","value":null}"#, false);
    check(r#"{"op":"is","path":"event/TAGS","value":"y"}"#, true);
    check(r#"{"op":"is","path":"event/TAGS","value":"z"}"#, false);
    check(r#"{"op":"is","path":"routing/hostname","value":"h1"}"#, true);
    check(r#"{"op":"is","path":"routing/hostname","value":"H1"}"#, false);
    check(r#"{"op":"is","path":"routing/hostname","value":"H1","case sensitive":false}"#, true);
}

#[test]
fn exists_looks_for_any_value() {
    check(r#"{"op":"exists","path":"event/PID"}"#, true);
    check(r#"{"op":"exists","path":"event/NONE"}"#, true);
    check(r#"{"op":"exists","path":"event/NONE","truthy":true}"#, false);
    check(r#"{"op":"exists","path":"event/EMPTY","truthy":true}"#, false);
    check(r#"{"op":"exists","path":"event/PID","truthy":true}"#, true);
    check(r#"{"op":"exists","path":"event/MISSING"}"#, false);
    check(r#"{"op":"exists","path":"event/*/IP"}"#, true);
    check(r#"{"op":"exists","path":"event/?/?/IP"}"#, true);
    check(r#"{"op":"exists","path":"?/hostname"}"#, true);
}

#[test]
fn text_operators_compare_texts() {
    check(r#"{"op":"contains","path":"event/FILE_PATH","value":"evil"}"#, true);
    check(r#"{"op":"contains","path":"event/FILE_PATH","value":"EVIL"}"#, false);
    check(
        r#"{"op":"contains","path":"event/FILE_PATH","value":"EVIL","case sensitive":false}"#,
        true,
    );
    check(r#"{"op":"contains","path":"event/FILE_PATH","value":"\\","count":2}"#, true);
    check(r#"{"op":"contains","path":"event/FILE_PATH","value":"\\","count":3}"#, false);
    check(r#"{"op":"contains","path":"event/PID","value":"99"}"#, true);
    check(r#"{"op":"contains","path":"event/OK","value":"true"}"#, false);
    check(r#"{"op":"starts with","path":"event/FILE_PATH","value":"C:\\"}"#, true);
    check(r#"{"op":"starts with","path":"event/FILE_PATH","value":"c:\\"}"#, false);
    check(
        r#"{"op":"starts with","path":"event/FILE_PATH","value":"c:\\","case sensitive":false}"#,
        true,
    );
    check(r#"{"op":"ends with","path":"event/FILE_PATH","value":".EXE"}"#, true);
    check(r#"{"op":"ends with","path":"event/FILE_PATH","value":".exe"}"#, false);
    check(r#"{"op":"matches","path":"event/FILE_PATH","re":"^C:.*\\.EXE$"}"#, true);
    check(r#"{"op":"matches","path":"event/FILE_PATH","re":"\\.exe$"}"#, false);
    check(
        r#"{"op":"matches","path":"event/FILE_PATH","re":"\\.exe$","case sensitive":false}"#,
        true,
    );
    check(r#"{"op":"matches","path":"event/LIST/IP","re":"\\.2$"}"#, true);
}

#[test]
fn and_or_not_combine() {
    let yes = r#"{"op":"exists","path":"event"}"#;
    let no = r#"{"op":"exists","path":"nothing"}"#;
    check(&format!(r#"{{"op":"and","rules":[{yes},{yes}]}}"#), true);
    check(&format!(r#"{{"op":"and","rules":[{yes},{no}]}}"#), false);
    check(&format!(r#"{{"op":"or","rules":[{no},{yes}]}}"#), true);
    check(&format!(r#"{{"op":"or","rules":[{no},{no}]}}"#), false);
    check(&format!(r#"{{"op":"or","not":true,"rules":[{no},{no}]}}"#), true);
    check(&format!(r#"{{"op":"not","rule":{no}}}"#), true);
    check(&format!(r#"{{"op":"not","rule":{yes}}}"#), false);
    check(r#"{"op":"is","not":true,"path":"event/PID","value":1}"#, true);
    check(r#"{"op":"is","not":false,"path":"event/PID","value":9999}"#, true);
}

#[test]
fn event_types_limit_a_rule_also_when_it_is_turned_round() {
    check(r#"{"event":"NEW_PROCESS","op":"exists","path":"event"}"#, true);
    check(r#"{"event":"DNS_REQUEST","op":"exists","path":"event"}"#, false);
    check(r#"{"event":"DNS_REQUEST","op":"exists","path":"nothing","not":true}"#, false);
    check(r#"{"events":["DNS_REQUEST","NEW_PROCESS"],"op":"exists","path":"event"}"#, true);
    check(r#"{"events":["DNS_REQUEST"],"op":"exists","path":"event"}"#, false);
}

#[test]
fn bad_rules_are_refused_by_their_path() {
    let detect = |detect: &str, expected: &str| {
        refused(&format!(r#"{{"detect":{detect},"respond":[]}}"#), expected);
    };
    refused("[]", "the rule: is not an object, a list");
    refused(r#"{"respond":[]}"#, "detect: is missing");
    refused(r#"{"detect":{"op":"exists","path":"a"}}"#, "respond: is missing");
    refused(r#"{"detect":{"op":"exists","path":"a"},"respond":[],"x":1}"#, "x: is not supported");
    refused(r#"{"detect":1,"detect":2,"respond":[]}"#, "detect: stands there twice");
    detect("{}", "detect.op: is missing");
    detect(r#"{"op":1}"#, "detect.op: is not a string, a number");
    detect(
        r#"{"op":"and","rules":[{"op":"exists","path":"a"},{"op":"x"}]}"#,
        "detect.rules[1].op: unknown operator x",
    );
    detect(r#"{"op":"and","rules":[]}"#, "detect.rules: is empty");
    detect(r#"{"op":"or","rules":{}}"#, "detect.rules: is not a list, an object");
    detect(r#"{"op":"not"}"#, "detect.rule: is missing");
    detect(r#"{"op":"not","rule":{"op":"y"}}"#, "detect.rule.op: unknown operator y");
    detect(r#"{"op":"is","path":"a"}"#, "detect.value: is missing");
    detect(
        r#"{"op":"is","path":"a","value":[]}"#,
        "detect.value: is not a string, number, boolean or null",
    );
    detect(r#"{"op":"contains","path":"a","value":""}"#, "detect.value: is empty");
    detect(
        r#"{"op":"contains","path":"a","value":"x","count":0}"#,
        "detect.count: is not a whole number from 1 to 1000000",
    );
    detect(r#"{"op":"is","path":"","value":1}"#, "detect.path: a path has no empty components");
    detect(r#"{"op":"exists","path":"a","value":1}"#, "detect.value: is not supported");
    detect(r#"{"op":"exists","path":"a","times":[]}"#, "detect.times: is not supported");
    detect(r#"{"op":"exists","path":"a","not":1}"#, "detect.not: is not a boolean, a number");
    detect(
        r#"{"op":"matches","path":"a","re":"("}"#,
        "detect.re: bad regular expression: unclosed group",
    );
    detect(
        r#"{"op":"matches","path":"a","re":"(\\w{100}){100}"}"#,
        "detect.re: the regular expression is too big",
    );
}

#[test]
fn rules_are_bounded() {
    let nested = |levels: usize| {
        r#"{"op":"not","rule":"#.repeat(levels - 1)
            + r#"{"op":"exists","path":"a"}"#
            + &"}".repeat(levels - 1)
    };
    // The record itself is a level of JSON.
    assert!(rule(&nested(63)).is_ok());
    assert_eq!(
        rule(&nested(64)).map(|_| ()),
        Err("JSON is nested more than 64 levels deep".to_owned())
    );
    let wide = |count: usize, one: &str| {
        format!(r#"{{"op":"or","rules":[{}]}}"#, vec![one; count].join(","))
    };
    let exists = r#"{"op":"exists","path":"a"}"#;
    assert!(rule(&wide(199, exists)).is_ok());
    assert_eq!(
        rule(&wide(200, exists)).map(|_| ()),
        Err("detect.rules[199]: a rule has at most 200 operators".to_owned())
    );
    let matches = r#"{"op":"matches","path":"a","re":"a"}"#;
    assert!(rule(&wide(10, matches)).is_ok());
    assert_eq!(
        rule(&wide(11, matches)).map(|_| ()),
        Err("detect.rules[10].re: a rule has at most 10 regular expressions".to_owned())
    );
    let long =
        |bytes: usize| format!(r#"{{"op":"matches","path":"a","re":"{}"}}"#, "a".repeat(bytes));
    assert!(rule(&long(1024)).is_ok());
    assert_eq!(
        rule(&long(1025)).map(|_| ()),
        Err("detect.re: a regular expression has at most 1024 bytes".to_owned())
    );
    let responses = |count: usize| {
        let report = vec![r#"{"action":"report","name":"r"}"#; count].join(",");
        format!(r#"{{"detect":{exists},"respond":[{report}]}}"#)
    };
    assert!(Rule::parse(&responses(20)).is_ok());
    refused(&responses(21), "respond: a rule has at most 20 responses");
}

#[test]
fn responses_that_are_not_supported_are_refused_by_name() {
    let respond = |respond: &str, expected: &str| {
        refused(
            &format!(r#"{{"detect":{{"op":"exists","path":"a"}},"respond":[{respond}]}}"#),
            expected,
        );
    };
    respond(r#"{"action":"add tag","tag":"x"}"#, "respond[0].action: add tag is not supported");
    respond(r#"{"action":"report"}"#, "respond[0].name: is missing");
    respond(
        r#"{"action":"extension request","extension action":"a"}"#,
        "respond[0].extension name: is missing",
    );
    respond(
        r#"{"action":"extension request","extension name":"e"}"#,
        "respond[0].extension action: is missing",
    );
    respond(
        r#"{"action":"extension request","extension name":"e","extension action":"a","extension request":[]}"#,
        "respond[0].extension request: is not an object, a list",
    );
    respond(
        r#"{"action":"extension request","extension name":"e","extension action":"a","extension request":{"k":"{{ f }}"}}"#,
        "respond[0].extension request.k: a template holds a field path (.event.NAME) or a text in \
         quotes; functions and control structures are not supported",
    );
    respond(
        r#"{"action":"extension request","extension name":"e","extension action":"a","based on report":true}"#,
        "respond[0].based on report: there is no report action before it",
    );
    respond(
        r#"{"action":"report","name":"r","suppression":{}}"#,
        "respond[0].suppression: is not supported",
    );
}

fn each(rules: &[(String, Rule)]) -> impl Iterator<Item = (&str, &Rule)> {
    rules.iter().map(|(name, rule)| (name.as_str(), rule))
}

fn named(name: &str, respond: &str) -> (String, Rule) {
    let text = format!(
        r#"{{"detect":{{"event":"NEW_PROCESS","op":"exists","path":"event"}},"respond":{respond}}}"#
    );
    (name.to_owned(), Rule::parse(&text).expect("a rule"))
}

// LC-127: the three keys of the action document make a request for that action with that data.
#[test]
fn a_matching_rule_requests_the_action_with_its_data() {
    let rules = [
        named(
            "first",
            r#"[{"action":"report","name":"seen {{ .detect.event.PID }}","metadata":{"n":1.0}},
                {"action":"extension request","extension name":"my-extension",
                 "extension action":"list_sensors","extension request":{"selector":"*"}},
                {"action":"extension request","extension name":"dumper","extension action":"dump",
                 "extension request":{"pid":"event.PID","host":"{{ .routing.hostname }}","x":"event.NO"}}]"#,
        ),
        named(
            "second",
            r#"[{"action":"report","name":"seen {{ .detect.event.PID }}","metadata":{"n":1.0}},
                {"action":"extension request","extension name":"e","extension action":"a",
                 "based on report":true,
                 "extension request":{"cat":"cat","n":"detect_mtd.n","big":"detect.event.BIG"}}]"#,
        ),
        named(
            "third",
            r#"[{"action":"extension request","extension name":"e","extension action":"a"}]"#,
        ),
    ];
    let call = |rule: &str, index, extension: &str, action: &str, data: &str| RuleCall {
        rule: rule.to_owned(),
        index,
        extension: ExtensionName::parse(extension).expect("a name"),
        action: action.to_owned(),
        data: data.to_owned(),
    };
    let expected = vec![
        call("first", 1, "my-extension", "list_sensors", r#"{"selector":"*"}"#),
        call("first", 2, "dumper", "dump", r#"{"pid":9999,"host":"h1"}"#),
        call(
            "second",
            1,
            "e",
            "a",
            r#"{"cat":"seen 9999","n":1.0,"big":123456789012345678901234567890}"#,
        ),
        call("third", 0, "e", "a", "{}"),
    ];
    assert_eq!(actions(each(&rules), EVENT), (expected, true));
    let other = EVENT.replace("NEW_PROCESS", "DNS_REQUEST");
    assert_eq!(actions(each(&rules), &other), (Vec::new(), true));
    assert_eq!(actions(each(&rules), "not json"), (Vec::new(), true));
}

#[test]
fn rules_that_cost_too_much_for_one_event_do_not_match_and_are_reported() {
    let search = r#"{"op":"exists","path":"*/nothing"}"#;
    let costly = vec![search; 199].join(",");
    let rule =
        Rule::parse(&format!(r#"{{"detect":{{"op":"or","rules":[{costly}]}},"respond":[]}}"#))
            .expect("a rule");
    let rules: Vec<_> = (0..10).map(|n| (n.to_string(), rule.clone())).collect();
    let event = format!(r#"{{"event":[{}],"routing":{{}}}}"#, vec!["[]"; 10_000].join(","));
    assert_eq!(actions(each(&rules), &event), (Vec::new(), false));
}
