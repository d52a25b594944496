//! The picture. It holds no script and no address, and all text is escaped.

use super::layout::{HEIGHT, Layout, Route, layout, text_width};
use super::{Edge, Graph, Node};
use std::fmt::Write;

/// The picture in a style, which may be none.
pub fn picture(graph: &Graph, style: &str) -> String {
    let layout = layout(graph);
    let Layout { width, height, .. } = layout;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">\n<title>{}</title>\n{style}{ARROW}",
        escape(&graph.name),
    );
    for (edge, route) in graph.edges.iter().zip(&layout.routes) {
        put_edge(graph, edge, route, &mut out);
    }
    for (node, area) in graph.nodes.iter().zip(&layout.boxes) {
        put_node(node, (area.x, area.y, area.width), &mut out);
    }
    out.push_str("</svg>\n");
    out
}

pub const STYLE: &str = "<style>\
rect{fill:#fff;stroke:#333;stroke-width:1.5}\
.agent rect{fill:#e8f0ff;stroke:#1f4fa3}\
.gateway rect{fill:#fff4d6;stroke:#8a6100}\
.system rect{fill:#eee;stroke:#777}\
text{font:14px sans-serif;text-anchor:middle;fill:#111}\
.edge path{fill:none;stroke:#555;stroke-width:1.5;marker-end:url(#arrow)}\
.edge text{font-size:12px;fill:#333}\
.edge rect{fill:#fff;stroke:none}\
</style>\n";

const ARROW: &str = "\
<defs><marker id=\"arrow\" viewBox=\"0 0 10 10\" refX=\"10\" refY=\"5\" markerWidth=\"8\" markerHeight=\"8\" \
orient=\"auto-start-reverse\"><path d=\"M0 0L10 5L0 10z\" fill=\"#555\"/></marker></defs>\n";

fn put_edge(graph: &Graph, edge: &Edge, route: &Route, out: &mut String) {
    let mut path = String::new();
    for (place, (x, y)) in route.points.iter().enumerate() {
        let before = place.checked_sub(1).map(|place| route.points[place]);
        match before {
            None => put(&mut path, format_args!("M{x:.1} {y:.1}")),
            Some((from_x, from_y)) if place % 2 == 0 => {
                let middle = (from_x + x) / 2.0;
                put(
                    &mut path,
                    format_args!("C{middle:.1} {from_y:.1} {middle:.1} {y:.1} {x:.1} {y:.1}"),
                );
            }
            // A line of no length has no direction for the arrow.
            Some(before) if before == (*x, *y) => {}
            Some(_) => put(&mut path, format_args!("L{x:.1} {y:.1}")),
        }
    }
    let (from, to) = (&graph.nodes[edge.from].name, &graph.nodes[edge.to].name);
    let about = format!("{from} to {to}: {}", edge.payloads.join(", "));
    put(
        out,
        format_args!(
            "<g class=\"edge\" data-from=\"{}\" data-to=\"{}\"><title>{}</title><path d=\"{path}\"/>",
            escape(from),
            escape(to),
            escape(&about)
        ),
    );
    let label = edge.label();
    if !label.is_empty() {
        let (x, y) = route.label;
        let width = text_width(&label);
        put(
            out,
            format_args!(
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"16\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                x - width / 2.0,
                y - 8.0,
                y + 4.0,
                escape(&label)
            ),
        );
    }
    out.push_str("</g>\n");
}

fn put_node(node: &Node, (x, y, width): (f64, f64, f64), out: &mut String) {
    let (middle, base) = (x + width / 2.0, y + HEIGHT / 2.0 + 5.0);
    let (name, class, about) = (
        escape(&node.name),
        node.kind.class(),
        escape(&node.description),
    );
    put(
        out,
        format_args!(
            "<g class=\"node {class}\" data-name=\"{name}\"><title>{about}</title>\
             <rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" rx=\"8\"/>\
             <text x=\"{middle:.1}\" y=\"{base:.1}\">{name}</text></g>\n"
        ),
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Writing to a `String` cannot fail.
fn put(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(arguments);
}

#[cfg(test)]
mod tests {
    use super::super::super::config::File;
    use super::*;

    #[test]
    fn everyone_every_peer_and_every_payload_is_in_the_picture() {
        let file = File::parse(
            "organism: <test>\npayloads: [{name: Ask}]\nlisteners:\n  \
             - {name: a.b, agent: true, peers: [c, A.B, todo-until], accepts: [Ask], kind: {rust: echo}}\n  \
             - {name: c, peers: [a.b], accepts: [Ask], kind: {rust: echo}}\n  - {name: alone}\n\
             gateways:\n  - {name: console, peers: [a.b]}\n",
        );
        let graph = Graph::of(&file.unwrap());
        let picture = picture(&graph, STYLE);
        assert_eq!(picture.matches("class=\"node").count(), 5);
        assert_eq!(picture.matches("class=\"edge\"").count(), 5);
        assert_eq!(picture.matches(">Ask</text>").count(), 4);
        assert!(picture.contains(">TodoUntil</text>"));
        assert!(picture.contains("<title>&lt;test&gt;</title>"));
        let limits = agentserver::xml::Limits::default();
        assert!(agentserver::xml::canonicalize(&picture, &limits).is_ok());
    }
}
