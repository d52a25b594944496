//! Where boxes and edges are. Boxes stand in columns. An edge runs straight
//! through a column, in a lane that no box of the column is in, and bends only
//! between columns, where there are no boxes: so it never runs behind one.

use super::Graph;
use dagre::graph::GraphOptions;
use dagre::{EdgeLabel, LayoutOptions, NodeLabel, RankDir};

pub const HEIGHT: f64 = 44.0;
/// Between a box and its own loop.
const LOOP: f64 = 18.0;
const MARGIN: f64 = 30.0;

/// A picture's geometry.
pub struct Layout {
    pub width: f64,
    pub height: f64,
    pub boxes: Vec<Area>,
    pub routes: Vec<Route>,
}

/// A box.
#[derive(Debug, Clone, Copy)]
pub struct Area {
    pub x: f64,
    pub y: f64,
    pub width: f64,
}

impl Area {
    fn middle(&self) -> (f64, f64) {
        (self.x + self.width / 2.0, self.y + HEIGHT / 2.0)
    }
}

/// The way of an edge: from the first to the second point straight, from the
/// second to the third in a bend, and so on in turn.
#[derive(Debug, Clone)]
pub struct Route {
    pub points: Vec<(f64, f64)>,
    /// The middle of its label.
    pub label: (f64, f64),
}

/// The width that a text needs.
pub fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 7.5
}

pub fn layout(graph: &Graph) -> Layout {
    let mut drawn = dagre::graph::Graph::with_options(GraphOptions {
        directed: true,
        multigraph: true,
        compound: false,
    });
    for (place, node) in graph.nodes.iter().enumerate() {
        let label = NodeLabel {
            width: (text_width(&node.name) + 32.0).max(120.0),
            height: HEIGHT,
            ..NodeLabel::default()
        };
        drawn.set_node(place.to_string(), Some(label));
    }
    for (place, edge) in graph.edges.iter().enumerate() {
        if edge.from != edge.to {
            let label = EdgeLabel {
                width: text_width(&edge.label()) + 12.0,
                height: 20.0,
                labelpos: dagre::layout::types::LabelPos::Center,
                ..EdgeLabel::default()
            };
            let (from, to) = (edge.from.to_string(), edge.to.to_string());
            drawn.set_edge(from, to, Some(label), Some(&place.to_string()));
        }
    }
    let options = LayoutOptions {
        rankdir: RankDir::LR,
        nodesep: 36.0,
        edgesep: 24.0,
        ranksep: 56.0,
        marginx: MARGIN,
        marginy: MARGIN,
        ..LayoutOptions::default()
    };
    if !graph.nodes.is_empty() {
        dagre::layout(&mut drawn, Some(options));
    }
    let boxes: Vec<_> = (0..graph.nodes.len())
        .map(|place| match drawn.node(&place.to_string()) {
            Some(node) => Area {
                x: node.x.unwrap_or(0.0) - node.width / 2.0,
                y: node.y.unwrap_or(0.0) - HEIGHT / 2.0,
                width: node.width,
            },
            None => Area {
                x: 0.0,
                y: 0.0,
                width: 0.0,
            },
        })
        .collect();
    let routes: Vec<_> = graph
        .edges
        .iter()
        .enumerate()
        .map(|(place, edge)| {
            let (from, to) = (boxes[edge.from], boxes[edge.to]);
            if edge.from == edge.to {
                return own_loop(from);
            }
            let (one, other) = (edge.from.to_string(), edge.to.to_string());
            let found = drawn.edge(&one, &other, Some(&place.to_string()));
            let points = found.map(|edge| &edge.points[..]).unwrap_or_default();
            // The first and the last are where it leaves and meets the boxes.
            let between = points
                .get(1..points.len().saturating_sub(1))
                .unwrap_or_default();
            let between: Vec<_> = between.iter().map(|point| (point.x, point.y)).collect();
            let label = found.and_then(|edge| Some((edge.x?, edge.y?)));
            route(&boxes, from, to, &between, label)
        })
        .collect();
    let points = routes.iter().flat_map(|route| &route.points);
    let right = boxes.iter().map(|area| area.x + area.width);
    let bottom = boxes.iter().map(|area| area.y + HEIGHT);
    Layout {
        width: right
            .chain(points.clone().map(|(x, _)| *x))
            .fold(0.0, f64::max)
            + MARGIN,
        height: bottom.chain(points.map(|(_, y)| *y)).fold(0.0, f64::max) + MARGIN,
        boxes,
        routes,
    }
}

/// How far the column around `x` reaches to each side.
fn reach(boxes: &[Area], x: f64) -> f64 {
    let here = boxes
        .iter()
        .filter(|area| (area.middle().0 - x).abs() < 1.0);
    here.map(|area| area.width / 2.0).fold(0.0, f64::max)
}

fn route(
    boxes: &[Area],
    from: Area,
    to: Area,
    between: &[(f64, f64)],
    label: Option<(f64, f64)>,
) -> Route {
    let (start, end) = (from.middle(), to.middle());
    let next = between.first().map_or(end.0, |point| point.0);
    let side = if next < start.0 { -1.0 } else { 1.0 };
    let mut points = vec![
        (start.0 + side * from.width / 2.0, start.1),
        (start.0 + side * reach(boxes, start.0), start.1),
    ];
    for (x, y) in between {
        let reach = reach(boxes, *x);
        points.push((x - side * reach, *y));
        points.push((x + side * reach, *y));
    }
    points.push((end.0 - side * reach(boxes, end.0), end.1));
    points.push((end.0 - side * to.width / 2.0, end.1));
    let middle = || between.get(between.len() / 2).copied();
    Route {
        label: label.or_else(middle).unwrap_or(start),
        points,
    }
}

/// Above the box; half of what separates it from the next.
fn own_loop(area: Area) -> Route {
    let (left, right) = (area.x + area.width * 0.35, area.x + area.width * 0.65);
    let top = area.y - LOOP / 2.0;
    Route {
        points: vec![(left, area.y), (left, top), (right, top), (right, area.y)],
        label: ((left + right) / 2.0, top - 4.0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Edge, Graph, Node, NodeKind};
    use super::*;

    fn graph(nodes: usize, edges: &[(usize, usize)]) -> Graph {
        Graph {
            name: "test".into(),
            nodes: (0..nodes)
                .map(|place| Node {
                    name: format!("listener-{}", "x".repeat(place * 3 % 17)),
                    kind: NodeKind::Tool,
                    description: String::new(),
                })
                .collect(),
            edges: edges
                .iter()
                .map(|(from, to)| Edge {
                    from: *from,
                    to: *to,
                    payloads: vec!["Payload".repeat(from % 3 + 1)],
                })
                .collect(),
        }
    }

    /// Points along the way, close to each other.
    fn along(route: &Route) -> Vec<(f64, f64)> {
        let mut found = Vec::new();
        for (place, pair) in route.points.windows(2).enumerate() {
            let ((x, y), (to_x, to_y)) = (pair[0], pair[1]);
            for step in 0..=40 {
                let t = f64::from(step) / 40.0;
                // A bend rises as a cubic with both handles half-way does.
                let rise = if place % 2 == 1 {
                    t * t * (3.0 - 2.0 * t)
                } else {
                    t
                };
                found.push((x + (to_x - x) * t, y + (to_y - y) * rise));
            }
        }
        found
    }

    fn assert_free(graph: &Graph) {
        let layout = layout(graph);
        for (route, edge) in layout.routes.iter().zip(&graph.edges) {
            for (x, y) in along(route) {
                assert!(x >= 0.0 && y >= 0.0 && x <= layout.width && y <= layout.height);
                let behind = layout.boxes.iter().position(|area| {
                    x > area.x + 0.5
                        && x < area.x + area.width - 0.5
                        && y > area.y + 0.5
                        && y < area.y + HEIGHT - 0.5
                });
                assert_eq!(behind, None, "{} -> {} at {x}, {y}", edge.from, edge.to);
            }
        }
        for (place, one) in layout.boxes.iter().enumerate() {
            for other in &layout.boxes[..place] {
                let apart = one.x + one.width <= other.x
                    || other.x + other.width <= one.x
                    || one.y + HEIGHT <= other.y
                    || other.y + HEIGHT <= one.y;
                assert!(apart, "boxes lie on each other");
            }
        }
    }

    #[test]
    fn no_edge_runs_behind_a_box() {
        assert_free(&graph(0, &[]));
        assert_free(&graph(1, &[(0, 0)]));
        assert_free(&graph(3, &[(0, 1), (1, 2), (0, 2), (2, 0), (1, 0), (1, 1)]));
        // The same numbers every time.
        let mut seed = 7u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(seed >> 33).unwrap_or(0) % below
        };
        for round in 0..60 {
            let nodes = 2 + round % 12;
            let mut edges: Vec<_> = (0..nodes * 2)
                .map(|_| (random(nodes), random(nodes)))
                .collect();
            edges.sort_unstable();
            edges.dedup();
            assert_free(&graph(nodes, &edges));
        }
    }
}
