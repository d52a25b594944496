//! Listeners and whom they may send what, as a picture or as
//! text for programs that draw.

mod layout;
pub mod svg;
pub mod text;

use super::check::sends;
use super::config::File;
use std::collections::HashMap;

/// Who may send what to whom.
pub struct Graph {
    name: String,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

struct Node {
    name: String,
    kind: NodeKind,
    description: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeKind {
    Gateway,
    Agent,
    Tool,
    /// The pump's own.
    System,
}

impl NodeKind {
    fn class(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Agent => "agent",
            Self::Tool => "tool",
            Self::System => "system",
        }
    }
}

/// By the places of its ends in the list of nodes.
struct Edge {
    from: usize,
    to: usize,
    payloads: Vec<String>,
}

impl Edge {
    /// The payloads, as far as there is room for them.
    fn label(&self) -> String {
        const SHOWN: usize = 32;
        let Some((first, others)) = self.payloads.split_first() else {
            return String::new();
        };
        let mut label: String = match first.chars().count() > SHOWN {
            true => first.chars().take(SHOWN - 1).chain(['…']).collect(),
            false => first.clone(),
        };
        for (place, name) in others.iter().enumerate() {
            // Whole names, and how many there are besides.
            if label.chars().count() + 2 + name.chars().count() > SHOWN {
                label.push_str(&format!(" +{}", others.len() - place));
                break;
            }
            label.push_str(", ");
            label.push_str(name);
        }
        label
    }
}

impl Graph {
    /// The picture, for a page that has a style of its own.
    pub fn drawing(&self) -> String {
        svg::picture(self, "")
    }

    /// Gateways first, then listeners, then the pump's own that someone may use.
    pub fn of(file: &File) -> Self {
        let gateways = file.gateways.iter().map(|gateway| Node {
            name: gateway.name.value.clone(),
            kind: NodeKind::Gateway,
            description: gateway.description.clone(),
        });
        let listeners = file.listeners.iter().map(|listener| Node {
            name: listener.name.value.clone(),
            kind: match listener.agent {
                true => NodeKind::Agent,
                false => NodeKind::Tool,
            },
            description: listener.description.clone(),
        });
        let mut nodes: Vec<_> = gateways.chain(listeners).collect();
        let all = file.gateways.iter().map(|gateway| &gateway.peers);
        let all = all.chain(file.listeners.iter().map(|listener| &listener.peers));
        for (name, payload) in SYSTEM {
            let is_used = all.clone().flatten().any(|peer| key(&peer.value) == name);
            if is_used {
                nodes.push(Node {
                    name: name.to_owned(),
                    kind: NodeKind::System,
                    description: payload.to_owned(),
                });
            }
        }
        let places: HashMap<_, _> = nodes
            .iter()
            .enumerate()
            .map(|(i, n)| (key(&n.name), i))
            .collect();
        let mut edges = Vec::new();
        for (from, peers) in all.enumerate() {
            let caller = from.checked_sub(file.gateways.len());
            let sent = caller.and_then(|place| sends(&file.listeners[place]));
            for peer in peers {
                let peer = key(&peer.value);
                let Some(to) = places.get(&peer) else {
                    continue;
                };
                let listener = file.listeners.iter().find(|l| key(&l.name.value) == peer);
                let payloads = match listener {
                    None => SYSTEM
                        .iter()
                        .filter(|(name, _)| *name == peer)
                        .map(|(_, p)| (*p).to_owned())
                        .collect(),
                    Some(listener) => {
                        let accepted = listener.accepts.iter().map(|name| name.value.clone());
                        let is_sent =
                            |name: &String| sent.as_ref().is_none_or(|s| s.contains(&&**name));
                        accepted.filter(is_sent).collect()
                    }
                };
                edges.push(Edge {
                    from,
                    to: *to,
                    payloads,
                });
            }
        }
        Self {
            name: file.organism.clone(),
            nodes,
            edges,
        }
    }
}

const SYSTEM: [(&str, &str); 2] = [
    (agentserver::system::TODO_UNTIL, "TodoUntil"),
    (agentserver::system::TODO_COMPLETE, "TodoComplete"),
];

fn key(name: &str) -> String {
    name.to_lowercase()
}
