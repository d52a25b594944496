use super::*;
use crate::tool::{FnTool, Registry, Risk};
use serde_json::json;
use std::sync::Arc;

fn tools() -> Arc<ToolSet> {
    let tool = |name: &str, schema: Value| {
        let spec = ToolSpec::new(name, "", Risk::Safe, schema);
        Arc::new(FnTool::new(spec, async |_| Ok(vec![]))) as Arc<dyn crate::tool::Tool>
    };
    let registry = Registry::new();
    let text = json!({ "type": "string" });
    registry
        .add(vec![
            tool("fs.read", json!({ "required": ["path"], "properties": { "path": text, "lines": { "type": ["integer", "null"] } } })),
            tool("fs.write", json!({ "required": ["path", "content"], "properties": { "path": text, "content": text } })),
            tool("db.read", json!({ "properties": {} })),
            tool("mcp__x__echo", json!({ "required": ["n"], "properties": { "n": { "type": "integer" } } })),
        ])
        .unwrap();
    registry.snapshot()
}

fn args(line: &str) -> Value {
    match parse(line, &tools()) {
        Slash::Tool { args, .. } => args,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn a_line_is_read_as_the_tool_wants_it() {
    assert_eq!(args("/fs.read a b.txt"), json!({ "path": "a b.txt" }));
    assert_eq!(
        args("/fs.read path=a.txt lines=3"),
        json!({ "path": "a.txt", "lines": 3 })
    );
    assert_eq!(args("/fs.read {\"path\": \"x\"}"), json!({ "path": "x" }));
    assert_eq!(
        args("/write a.txt two words"),
        json!({ "path": "a.txt", "content": "two words" })
    );
    assert_eq!(args("/echo 7"), json!({ "n": 7 }));
    assert_eq!(args("/echo seven"), json!({ "n": "seven" }));
    assert_eq!(args("/fs.read"), json!({}));
}

#[test]
fn a_short_name_that_two_tools_share_is_unknown_with_both_named() {
    let Slash::Unknown(text) = parse("/read a.txt", &tools()) else {
        panic!("which one was meant?");
    };
    assert!(
        text.contains("/fs.read") && text.contains("/db.read"),
        "{text}"
    );
}

#[test]
fn an_unknown_command_says_what_exists() {
    let Slash::Unknown(text) = parse("/fs.reed x", &tools()) else {
        panic!();
    };
    assert!(text.contains("Did you mean /fs.read"), "{text}");
    assert!(text.contains("/help") && text.contains("/write"), "{text}");
}

#[test]
fn named_values_go_on_to_the_next_name_and_quotes_keep_them_together() {
    let both = json!({ "path": "b.txt", "content": "hello world" });
    for line in [
        "/write path=b.txt content=hello world",
        "/write content=hello world path=b.txt",
        "/write path=\"b.txt\" content='hello world'",
        "/write b.txt content=hello world",
        "/write b.txt \"hello world\"",
    ] {
        assert_eq!(args(line), both, "{line}");
    }
    assert_eq!(
        args("/write path=\"my file.txt\" content=\"say \\\"hi\\\" path=x\""),
        json!({ "path": "my file.txt", "content": "say \"hi\" path=x" })
    );
    assert_eq!(
        args("/fs.read \"a b.txt\" lines=3"),
        json!({ "path": "a b.txt", "lines": 3 })
    );
    // A name that has its value already is a part of the text.
    assert_eq!(
        args("/write a.sh set path=/usr/bin"),
        json!({ "path": "a.sh", "content": "set path=/usr/bin" })
    );
    assert_eq!(
        args("/write a.txt it's \"quoted\" and x=1"),
        json!({ "path": "a.txt", "content": "it's \"quoted\" and x=1" })
    );
    assert_eq!(
        args("/write a.txt \"never closed"),
        json!({ "path": "a.txt", "content": "\"never closed" })
    );
    assert_eq!(
        args("/write a.txt \"two\" words"),
        json!({ "path": "a.txt", "content": "\"two\" words" })
    );
    assert_eq!(
        args("/write path= content=x"),
        json!({ "path": "", "content": "x" })
    );
}

#[test]
fn any_line_is_read_to_its_end() {
    for line in [
        "/write \"",
        "/write '' '",
        "/write = = =",
        "/write path==x",
        "/write 天 \"天\"天 '",
        "/echo \\",
    ] {
        parse(line, &tools());
    }
}

#[test]
fn only_a_single_slash_is_a_command() {
    for line in ["hello", "a /read b", ""] {
        assert_eq!(typed(line), Typed::Words(line));
    }
    assert_eq!(typed("//etc is a folder"), Typed::Words("/etc is a folder"));
    assert_eq!(typed("  /reset "), Typed::Command("/reset"));
    assert_eq!(parse("/", &tools()), Slash::Help);
    assert_eq!(parse("  /reset ", &tools()), Slash::Reset);
}
