//! What an agent is told of its peers.

use crate::listener::{Listener, key};
use crate::payload::Payload;
use crate::system::{self, TodoComplete, TodoUntil};

/// Told to every agent, whatever its peers.
const SEMANTICS: &str = "\
# Answering
When you respond to your caller, your call chain is pruned:
- Any sub-agents you called are effectively terminated.
- Their state and context are lost (calculator memory, scratch space and the like).
- You cannot call them again in the same context after responding.
Therefore: complete ALL sub-tasks before responding. If you need results from a peer, wait for their response first.
";

const FORM: &str = "\
# Sending
Write one XML element for each message, nothing else. It goes to the peer that accepts it; \
an element that no peer accepts goes back to your caller. To choose the peer yourself, write
<message><meta><to>NAME</to></meta>ELEMENT</message>
To answer your caller, whoever else accepts the element, write
<message><meta><to>caller</to></meta>ELEMENT</message>
";

/// The text for one listener when `caller` has called it; none for one from
/// outside, which takes anything.
pub(crate) fn instructions(
    listener: &Listener,
    all: &[Listener],
    caller: Option<&Listener>,
) -> String {
    let mut out = String::new();
    if !listener.peers.is_empty() {
        out.push_str("# Peers\n");
    }
    for peer in listener.peers.iter().map(|peer| key(peer)) {
        match &*peer {
            system::TODO_UNTIL => offer(
                system::TODO_UNTIL,
                "Watches this thread for you and reminds you until you close the to-do.",
                &[TodoUntil::schema()],
                &mut out,
            ),
            system::TODO_COMPLETE => {
                offer(
                    system::TODO_COMPLETE,
                    "Closes a to-do.",
                    &[TodoComplete::schema()],
                    &mut out,
                );
            }
            _ => {
                if let Some(peer) = all.iter().find(|other| other.key() == peer) {
                    let schemas: Vec<_> = peer.offers().cloned().collect();
                    offer(peer.name(), &peer.description, &schemas, &mut out);
                }
            }
        }
    }
    if let Some(caller) = caller {
        out.push_str("# Your caller\nAccepts as your answer:\n");
        for schema in caller.offers() {
            out.push_str(&schema.prompt());
        }
        out.push('\n');
    }
    if let Some(answer) = &listener.answer {
        out.push_str("# Your answer\nGoes to your caller, whoever else accepts it:\n");
        out.push_str(&answer.prompt());
        out.push('\n');
    }
    out.push_str(FORM);
    out.push('\n');
    out.push_str(SEMANTICS);
    out
}

fn offer(name: &str, description: &str, schemas: &[crate::payload::Schema], out: &mut String) {
    out.push_str(&format!("\n## {name}\n"));
    if !description.is_empty() {
        out.push_str(&format!("{description}\n"));
    }
    out.push_str("Accepts:\n");
    for schema in schemas {
        out.push_str(&schema.prompt());
    }
    out.push('\n');
}
