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
        Some(Slash::Tool { args, .. }) => args,
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
    let Some(Slash::Unknown(text)) = parse("/read a.txt", &tools()) else {
        panic!("which one was meant?");
    };
    assert!(
        text.contains("/fs.read") && text.contains("/db.read"),
        "{text}"
    );
}

#[test]
fn an_unknown_command_says_what_exists() {
    let Some(Slash::Unknown(text)) = parse("/fs.reed x", &tools()) else {
        panic!();
    };
    assert!(text.contains("Did you mean /fs.read"), "{text}");
    assert!(text.contains("/help") && text.contains("/write"), "{text}");
}

#[test]
fn other_lines_are_for_the_model() {
    for line in ["hello", "//etc is a folder", "a /read b", ""] {
        assert_eq!(parse(line, &tools()), None, "{line}");
    }
    assert_eq!(parse("/", &tools()), Some(Slash::Help));
    assert_eq!(parse("  /reset ", &tools()), Some(Slash::Reset));
}
