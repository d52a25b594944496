//! `organism graph`: listeners and whom they may send to, as a picture.

use super::config::{File, load};
use super::kinds::Memories;
use super::{FileArgument, GraphArguments};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write;

const WIDTH: usize = 170;
const HEIGHT: usize = 44;
const BETWEEN: usize = 90;
const MARGIN: usize = 30;

pub fn run(arguments: &GraphArguments) -> Result<(), String> {
    let GraphArguments {
        file: FileArgument { file },
        output,
    } = arguments;
    let (file, _) = load(file, &Memories::default()).map_err(|error| error.to_string())?;
    let picture = svg(&file);
    match output {
        None => {
            print!("{picture}");
            Ok(())
        }
        Some(path) => {
            std::fs::write(path, picture).map_err(|error| format!("{}: {error}", path.display()))
        }
    }
}

struct Node<'a> {
    name: &'a str,
    class: &'static str,
    peers: Vec<String>,
    description: &'a str,
}

/// The picture of a file.
pub fn svg(file: &File) -> String {
    let nodes = nodes(file);
    let places = places(&nodes);
    let columns = places.values().map(|(x, _)| *x).max().unwrap_or(0) + 1;
    let rows = places.values().map(|(_, y)| *y).max().unwrap_or(0) + 1;
    let width = 2 * MARGIN + columns * WIDTH + (columns - 1) * BETWEEN;
    let height = 2 * MARGIN + rows * HEIGHT + (rows - 1) * MARGIN + MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\">\n<title>{}</title>\n{STYLE}",
        escape(&file.organism),
    );
    for node in &nodes {
        for peer in &node.peers {
            if let (Some(from), Some(to)) = (places.get(&key(node.name)), places.get(peer)) {
                put(
                    &mut out,
                    format_args!("<path class=\"edge\" d=\"{}\"/>\n", edge(*from, *to)),
                );
            }
        }
    }
    for node in &nodes {
        if let Some(place) = places.get(&key(node.name)) {
            let (x, y) = corner(*place);
            let (middle, base) = (x + WIDTH / 2, y + HEIGHT / 2 + 5);
            let (name, class, about) = (escape(node.name), node.class, escape(node.description));
            put(
                &mut out,
                format_args!(
                    "<g class=\"{class}\"><title>{about}</title>\
                     <rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"8\"/>\
                     <text x=\"{middle}\" y=\"{base}\">{name}</text></g>\n"
                ),
            );
        }
    }
    out.push_str("</svg>\n");
    out
}

const STYLE: &str = "<style>\
rect{fill:#fff;stroke:#333;stroke-width:1.5}\
.agent rect{fill:#e8f0ff;stroke:#1f4fa3}\
.gateway rect{fill:#fff4d6;stroke:#8a6100}\
.system rect{fill:#eee;stroke:#777}\
text{font:14px sans-serif;text-anchor:middle;fill:#111}\
.edge{fill:none;stroke:#555;stroke-width:1.5;marker-end:url(#arrow)}\
</style>\n\
<defs><marker id=\"arrow\" viewBox=\"0 0 10 10\" refX=\"10\" refY=\"5\" markerWidth=\"8\" markerHeight=\"8\" \
orient=\"auto-start-reverse\"><path d=\"M0 0L10 5L0 10z\" fill=\"#555\"/></marker></defs>\n";

/// Gateways first, then listeners, then the pump's own that someone may use.
fn nodes(file: &File) -> Vec<Node<'_>> {
    let gateways = file.gateways.iter().map(|gateway| Node {
        name: &gateway.name.value,
        class: "gateway",
        peers: gateway.peers.iter().map(|peer| key(&peer.value)).collect(),
        description: &gateway.description,
    });
    let listeners = file.listeners.iter().map(|listener| Node {
        name: &listener.name.value,
        class: if listener.agent { "agent" } else { "tool" },
        peers: listener.peers.iter().map(|peer| key(&peer.value)).collect(),
        description: &listener.description,
    });
    let mut nodes: Vec<_> = gateways.chain(listeners).collect();
    for name in ["todo-until", "todo-complete"] {
        if nodes
            .iter()
            .any(|node| node.peers.iter().any(|peer| peer == name))
        {
            nodes.push(Node {
                name,
                class: "system",
                peers: Vec::new(),
                description: "",
            });
        }
    }
    nodes
}

/// A column for each step away from where conversations begin.
fn places(nodes: &[Node<'_>]) -> HashMap<String, (usize, usize)> {
    let mut columns: BTreeMap<String, usize> = BTreeMap::new();
    let gateways = nodes.iter().filter(|node| node.class == "gateway");
    let mut waiting: VecDeque<(String, usize)> = gateways.map(|node| (key(node.name), 0)).collect();
    let mut others = nodes.iter().map(|node| key(node.name));
    loop {
        while let Some((name, column)) = waiting.pop_front() {
            if columns.contains_key(&name) {
                continue;
            }
            let node = nodes.iter().find(|node| key(node.name) == name);
            waiting.extend(
                node.iter()
                    .flat_map(|node| &node.peers)
                    .map(|peer| (peer.clone(), column + 1)),
            );
            columns.insert(name, column);
        }
        // Whoever no gateway reaches begins in the second column.
        match others.find(|name| !columns.contains_key(name)) {
            Some(name) => waiting.push_back((name, 1)),
            None => break,
        }
    }
    let mut rows = HashMap::new();
    nodes
        .iter()
        .map(|node| {
            let name = key(node.name);
            let column = columns.get(&name).copied().unwrap_or(0);
            let row = rows.entry(column).or_insert(0usize);
            *row += 1;
            (name, (column, *row - 1))
        })
        .collect()
}

fn corner((column, row): (usize, usize)) -> (usize, usize) {
    (
        MARGIN + column * (WIDTH + BETWEEN),
        MARGIN + row * (HEIGHT + MARGIN),
    )
}

/// To the right through the gap; back, down or onto itself around the outside.
fn edge(from: (usize, usize), to: (usize, usize)) -> String {
    let ((x, y), (to_x, to_y)) = (corner(from), corner(to));
    let (middle, to_middle) = (y + HEIGHT / 2, to_y + HEIGHT / 2);
    if to.0 > from.0 {
        let (start, bend) = (x + WIDTH, BETWEEN / 2);
        return format!(
            "M{start} {middle}C{} {middle} {} {to_middle} {to_x} {to_middle}",
            start + bend,
            to_x - bend
        );
    }
    let (start, end) = (x + WIDTH / 3, to_x + 2 * WIDTH / 3);
    let (bottom, to_bottom) = (y + HEIGHT, to_y + HEIGHT);
    let low = bottom.max(to_bottom) + MARGIN;
    format!("M{start} {bottom}C{start} {low} {end} {low} {end} {to_bottom}")
}

fn key(name: &str) -> String {
    name.to_lowercase()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Writing to a `String` cannot fail.
fn put(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(arguments);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_and_every_peer_is_in_the_picture() {
        let file = File::parse(
            "organism: <test>\nlisteners:\n  - {name: a.b, agent: true, peers: [c, A.B, todo-until]}\n  \
             - {name: c, peers: [a.b]}\n  - {name: alone}\ngateways:\n  - {name: console, peers: [a.b]}\n",
        );
        let picture = svg(&file.unwrap());
        assert_eq!(picture.matches("<rect").count(), 5);
        assert_eq!(picture.matches("class=\"edge\"").count(), 5);
        assert!(picture.contains("<title>&lt;test&gt;</title>"));
        assert!(
            agentserver::xml::canonicalize(&picture, &agentserver::xml::Limits::default()).is_ok()
        );
    }
}
