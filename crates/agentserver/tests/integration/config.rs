//! `organism.yaml`: what is wrong in it, and on which line.

use agentserver::Organism;
use agentserver::config::{ConfigError, OrganismFile};

fn build(text: &str) -> Result<Organism, ConfigError> {
    OrganismFile::<agentserver::config::Compiled>::parse(text)?.build(|_, schemas, listener| {
        Ok(schemas.into_iter().fold(listener, |listener, schema| {
            listener.on_schema(schema, |_, _| async { Ok(()) })
        }))
    })
}

fn problems(text: &str) -> Vec<(u64, String)> {
    let ConfigError(problems) = build(text).expect_err(text);
    problems
        .into_iter()
        .map(|problem| (problem.line, problem.message))
        .collect()
}

const WHOLE: &str = include_str!("whole.yaml");

#[test]
fn a_file_with_every_key_makes_an_organism() {
    let organism = build(WHOLE).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(organism.name(), "whole");
    assert!(organism.payload_type("urn:example", "Thought").is_some());
    let settings = OrganismFile::<agentserver::config::Compiled>::parse(WHOLE)
        .unwrap()
        .settings();
    assert_eq!(
        (settings.xml.bytes, settings.core.depth, settings.admission),
        (65536, 8, 100)
    );
}

#[test]
fn an_unknown_key_is_an_error_on_its_line() {
    for (line, text) in [
        (2, "listeners: []\nlisteers: []\n"),
        (3, "listeners:\n  - name: a\n    peer: [b]\n"),
        (4, "listeners:\n  - name: a\n    limits:\n      byte: 3\n"),
        (4, "listeners: []\nlimits:\n  bytes: 3\n  hop: 3\n"),
        (3, "listeners: []\ngateways:\n  - nam: a\n    peers: []\n"),
    ] {
        let found = problems(text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, line, "{found:?} in\n{text}");
    }
}

#[test]
fn every_dangling_name_is_told_with_its_line() {
    let text = "\
listeners:
  - name: a
    peers: [b, c]
    accepts: [Nothing]
  - name: b
    peers:
      - d
  - name: B
gateways:
  - name: web
    peers: [e]
";
    let found = problems(text);
    let told: Vec<_> = found
        .iter()
        .map(|(line, message)| (*line, &**message))
        .collect();
    assert_eq!(
        told,
        [
            (3, "the peer \"c\" does not exist"),
            (4, "the payload \"Nothing\" does not exist"),
            (7, "the peer \"d\" does not exist"),
            (8, "the name \"B\" is taken"),
            (11, "the peer \"e\" does not exist"),
        ]
    );
}

#[test]
fn what_cannot_work_is_told_with_its_line() {
    for (line, text) in [
        (2, "listeners:\n  - name: system\n"),
        (2, "listeners:\n  - name: a b\n"),
        (2, "listeners:\n  - name: a\n    concurrency: 0\n"),
        (2, "listeners:\n  - name: a\n    timeout_seconds: -1\n"),
        (3, "listeners: []\npayloads:\n  - name: <x>\n"),
        (
            3,
            "listeners: []\npayloads:\n  - name: P\n    fields: [{name: n, type: integer, example: one}]\n",
        ),
        (
            3,
            "listeners: []\npayloads:\n  - name: P\n    fields: [{name: n, fields: [{name: m}]}]\n",
        ),
        (4, "listeners: []\npayloads:\n  - name: P\n  - name: P\n"),
        (3, "listeners:\n  - name: a\n    agent: perhaps\n"),
        (3, "listeners: []\nlimits:\n  nudge_seconds: -3\n"),
        (1, "listeners: nothing\n"),
        (2, "listeners: []\nlisteners: []\n"),
    ] {
        let found = problems(text);
        assert_eq!(found[0].0, line, "{found:?} in\n{text}");
    }
}

#[test]
fn hostile_yaml_is_refused() {
    let deep = "listeners: ".to_owned() + &"[".repeat(100_000);
    let huge = "#".repeat((1 << 20) + 1);
    let mut laughs = String::from("a0: &a0 [x, x]\n");
    for n in 1..40 {
        laughs.push_str(&format!("a{n}: &a{n} [*a{}, *a{}]\n", n - 1, n - 1));
    }
    for text in [
        &deep,
        &huge,
        &laughs,
        "",
        "\u{0}",
        "listeners: [",
        "- a\n- b\n",
        "&a *a",
        "%YAML 9.9\n---\n",
    ] {
        assert!(build(text).is_err(), "{}", &text[..text.len().min(40)]);
    }
}

#[test]
fn a_payload_of_a_file_can_be_all_that_a_struct_can() {
    let text = "\
payloads:
  - name: Order
    type: choice
    fields:
      - name: Buy
        type: record
        fields:
          - {name: id, type: uint32, attribute: true}
          - {name: count, type: uint8, default: 1, description: How many.}
          - {name: speed, type: enum, values: [slow, fast], default: slow}
          - {name: notes, type: map, optional: true}
          - {name: prices, type: map, of: record, optional: true, fields: [{name: sum, type: int16}]}
      - {name: Nothing, type: record}
listeners: []
";
    let organism = build(text).unwrap_or_else(|error| panic!("{error}"));
    let order = organism.payload_type("", "Order").unwrap();
    let limits = agentserver::xml::Limits::default();
    let json = |xml: &str| {
        let payload = agentserver::payload::Canonical::parse(xml, &limits).unwrap();
        order
            .check(&payload)
            .map(|()| order.xml_to_json(&payload).unwrap())
    };
    assert_eq!(
        json("<Order><Buy id='7'><prices><entry><key>a</key><value><sum>-3</sum></value></entry></prices></Buy></Order>")
            .unwrap(),
        serde_json::json!({ "Buy": { "id": 7, "count": 1, "speed": "slow", "prices": { "a": { "sum": -3 } } } })
    );
    assert!(json("<Order><Buy id='-1'/></Order>").is_err());
    for (line, field) in [
        (3, "{name: n, type: uint8, default: 300}"),
        (3, "{name: n, type: record, attribute: true}"),
        (3, "{name: n, many: true, attribute: true}"),
        (3, "{name: n, type: enum}"),
        (3, "{name: n, values: [a]}"),
        (3, "{name: n, of: integer}"),
        (3, "{name: n, type: map, of: map}"),
        (3, "{name: n, type: choice}"),
        (3, "{name: n, many: true, default: 1}"),
    ] {
        let text = format!("listeners: []\npayloads:\n  - name: P\n    fields: [{field}]\n");
        let found = problems(&text);
        assert_eq!((found.len(), found[0].0), (1, line), "{found:?} in\n{text}");
    }
}
