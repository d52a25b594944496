use super::*;
use crate::tool::Risk;

const SMALL: &str = "provider: { kind: ollama, model: m }";

#[test]
fn a_provider_is_all_it_takes_and_nothing_dangerous_is_on() {
    let config = AgentConfig::parse(SMALL).unwrap();
    assert_eq!(config.tools.fs, FsAccess::Read);
    assert!(config.tools.shell.is_none() && config.tools.http.is_none());
    assert_eq!(config.confirm.from, Risk::Destructive);
    assert_eq!((config.limits.rounds, config.limits.tokens), (10, 0));
    assert_eq!(config.memory.strategy, Strategy::Summary);
}

#[test]
fn one_provider_or_a_list_of_them() {
    let one = AgentConfig::parse(SMALL).unwrap();
    assert_eq!(one.providers.iter().count(), 1);
    let chain = "providers: [{ kind: openai, model: a }, { kind: ollama, model: b }]";
    let chain = AgentConfig::parse(chain).unwrap();
    let models: Vec<_> = chain.providers.iter().map(|p| p.model.as_str()).collect();
    assert_eq!(models, ["a", "b"]);
    for text in ["providers: []", "{}", "provider: 7"] {
        assert!(AgentConfig::parse(text).is_err(), "{text}");
    }
    let both = format!("{SMALL}\nproviders: [{{ kind: ollama, model: m }}]");
    assert!(AgentConfig::parse(&both).is_err());
}

#[test]
fn a_key_that_does_not_exist_is_told() {
    for text in [
        "provider: {kind: ollama, model: m, modle: x}",
        &format!("{SMALL}\ntool: {{}}"),
    ] {
        let error = AgentConfig::parse(text).unwrap_err().to_string();
        assert!(error.contains("unknown field"), "{error}");
    }
}

#[test]
fn values_that_make_no_sense_are_told_with_their_key() {
    for (more, key) in [
        ("name: '../x'", "name"),
        ("tools: {timeout_seconds: -1}", "tools.timeout_seconds"),
        ("tools: {timeout_seconds: .nan}", "tools.timeout_seconds"),
        ("tools: {shell: {allow: []}}", "tools.shell.allow"),
        ("limits: {money: 1}", "limits.money"),
        ("memory: {turns: 0}", "memory.turns"),
        ("confirm: {rules: [{reason: x}]}", "confirm.rules"),
        ("confirm: {rules: [{allow: a, deny: b}]}", "confirm.rules"),
    ] {
        let error = AgentConfig::parse(&format!("{SMALL}\n{more}")).unwrap_err();
        assert!(error.to_string().starts_with(key), "{more}: {error}");
    }
}

#[test]
fn hostile_yaml_ends_with_an_error() {
    let deep = format!("system: {}", "[".repeat(50_000));
    let long = format!("system: {}", "x".repeat(MAX_FILE));
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for n in 1..12 {
        let list = vec![format!("*a{}", n - 1); 10].join(",");
        bomb.push_str(&format!("a{n}: &a{n} [{list}]\n"));
    }
    for text in [
        "",
        "[]",
        "\0",
        "provider: &a {kind: *a}",
        &deep,
        &long,
        &bomb,
    ] {
        assert!(AgentConfig::parse(text).is_err());
    }
}
