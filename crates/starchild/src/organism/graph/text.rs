//! The graph for programs that draw: Mermaid and Graphviz.

use super::{Graph, NodeKind};
use std::fmt::Write;

pub fn mermaid(graph: &Graph) -> String {
    // Mermaid has its own escapes, by number.
    let text = |text: &str| -> String {
        let plain = |c: char| c.is_alphanumeric() || " ._-,…".contains(c);
        let one = |c: char| match plain(c) {
            true => c.to_string(),
            false => format!("#{};", u32::from(c)),
        };
        text.chars().map(one).collect()
    };
    let mut out = String::from("flowchart LR\n");
    for (place, node) in graph.nodes.iter().enumerate() {
        let name = text(&node.name);
        let line = match node.kind {
            NodeKind::Gateway => format!("  n{place}([\"{name}\"])\n"),
            NodeKind::Agent => format!("  n{place}{{{{\"{name}\"}}}}\n"),
            NodeKind::Tool => format!("  n{place}[\"{name}\"]\n"),
            NodeKind::System => format!("  n{place}[(\"{name}\")]\n"),
        };
        out.push_str(&line);
    }
    for edge in &graph.edges {
        let arrow = match edge.payloads.is_empty() {
            true => "-->".to_owned(),
            false => format!("-->|\"{}\"|", text(&edge.payloads.join(", "))),
        };
        let _ = writeln!(out, "  n{} {arrow} n{}", edge.from, edge.to);
    }
    out
}

pub fn dot(graph: &Graph) -> String {
    let quoted = |text: &str| {
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        format!("\"{}\"", text.replace(['\n', '\r'], " "))
    };
    let mut out = format!(
        "digraph {} {{\n  rankdir=LR;\n  node [shape=box];\n",
        quoted(&graph.name)
    );
    for (place, node) in graph.nodes.iter().enumerate() {
        let shape = match node.kind {
            NodeKind::Gateway => "oval",
            NodeKind::Agent => "hexagon",
            NodeKind::Tool => "box",
            NodeKind::System => "cylinder",
        };
        let (name, about) = (quoted(&node.name), quoted(&node.description));
        let _ = writeln!(
            out,
            "  n{place} [label={name}, shape={shape}, tooltip={about}];"
        );
    }
    for edge in &graph.edges {
        let label = quoted(&edge.payloads.join(", "));
        let _ = writeln!(out, "  n{} -> n{} [label={label}];", edge.from, edge.to);
    }
    out.push_str("}\n");
    out
}
