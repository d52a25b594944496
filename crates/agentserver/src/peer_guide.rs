//! What an agent is told of its peers.

use crate::listener::{Listener, key};
use crate::payload::{Payload, Schema};
use crate::system::{self, TodoComplete, TodoUntil};
use std::sync::Arc;

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

/// What a listener may send: a payload to a peer, or an answer to its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The peer; none for the caller.
    pub to: Option<String>,
    /// What the peer does.
    pub description: String,
    /// The payload.
    pub schema: Schema,
}

/// What a listener is told when one caller has called it.
#[derive(Debug)]
pub(crate) struct PeerGuide {
    /// For a model's system prompt.
    pub text: Arc<str>,
    /// The same as data.
    pub offers: Arc<[Offer]>,
}

impl PeerGuide {
    /// For one that is told nothing.
    pub fn empty() -> Self {
        Self {
            text: "".into(),
            offers: Arc::default(),
        }
    }

    /// For one listener when `caller` has called it; none for one from outside,
    /// which takes anything.
    pub fn new(listener: &Listener, all: &[Listener], caller: Option<&Listener>) -> Self {
        let mut offers = Vec::new();
        for peer in listener.peers.iter().map(|peer| key(peer)) {
            offers.extend(to_peer(&peer, all));
        }
        let answers: Vec<Schema> = match (&listener.answer, caller) {
            (Some(answer), _) => vec![answer.clone()],
            (None, Some(caller)) => caller.offers().cloned().collect(),
            (None, None) => Vec::new(),
        };
        let text = text(&offers, &answers);
        offers.extend(answers.into_iter().map(|schema| Offer {
            to: None,
            description: String::new(),
            schema,
        }));
        Self {
            text: text.into(),
            offers: offers.into(),
        }
    }
}

fn to_peer(peer: &str, all: &[Listener]) -> Vec<Offer> {
    let (name, description, schemas) = match peer {
        system::TODO_UNTIL => (
            peer,
            "Watches this thread for you and reminds you until you close the to-do.",
            vec![TodoUntil::schema()],
        ),
        system::TODO_COMPLETE => (peer, "Closes a to-do.", vec![TodoComplete::schema()]),
        _ => match all.iter().find(|other| *other.key() == *peer) {
            Some(peer) => (
                peer.name(),
                &*peer.description,
                peer.offers().cloned().collect(),
            ),
            None => return Vec::new(),
        },
    };
    let offer = |schema| Offer {
        to: Some(name.to_owned()),
        description: description.to_owned(),
        schema,
    };
    schemas.into_iter().map(offer).collect()
}

fn text(offers: &[Offer], answers: &[Schema]) -> String {
    let mut out = String::new();
    if !offers.is_empty() {
        out.push_str("# Peers\n");
    }
    let mut last = None;
    for offer in offers {
        if last != Some(&offer.to) {
            let name = offer.to.as_deref().unwrap_or_default();
            out.push_str(&format!("\n## {name}\n"));
            if !offer.description.is_empty() {
                out.push_str(&format!("{}\n", offer.description));
            }
            out.push_str("Accepts:\n");
        }
        out.push_str(&offer.schema.prompt());
        last = Some(&offer.to);
    }
    if !answers.is_empty() {
        out.push_str("\n# Your answer\nYour caller accepts:\n");
        out.extend(answers.iter().map(Schema::prompt));
    }
    out.push('\n');
    out.push_str(FORM);
    out.push('\n');
    out.push_str(SEMANTICS);
    out
}
