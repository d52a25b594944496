//! As much of an organism as the rules look at. Kept with the inputs, so that
//! they come to the same when the organism itself is another.

use super::budget::Budget;
use super::limits::CoreLimits;
use crate::listener::Listener;
use crate::organism::{Gateway, Organism, RegisteredListener};
use crate::payload::{Schema, Shape};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An organism's outline, and the limits of its pump.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outline {
    name: String,
    listeners: Vec<ListenerOutline>,
    gateways: Vec<GatewayOutline>,
    pub limits: CoreLimits,
}

/// A listener's outline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerOutline {
    name: String,
    is_agent: bool,
    is_broadcast: bool,
    peers: Vec<String>,
    concurrency: usize,
    is_concurrent: bool,
    budget: Option<Budget>,
    answer: Option<TypeName>,
    payload_bytes: usize,
    accepts: Vec<TypeName>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct GatewayOutline {
    name: String,
    peers: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct TypeName {
    namespace: String,
    name: String,
}

impl Outline {
    pub fn of(organism: &Organism, limits: CoreLimits) -> Self {
        let mut listeners: Vec<_> = organism
            .entries()
            .map(|entry| ListenerOutline::of(&entry.listener))
            .collect();
        listeners.sort_by(|a, b| a.name.cmp(&b.name));
        let mut gateways: Vec<_> = organism
            .gateways()
            .map(|gateway| GatewayOutline {
                name: gateway.name.to_string(),
                peers: gateway.declared().to_vec(),
            })
            .collect();
        gateways.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            name: organism.name().to_owned(),
            listeners,
            gateways,
            limits,
        }
    }

    /// An organism of which the rules cannot tell that it is none: its handlers
    /// only fail.
    pub fn organism(&self) -> Organism {
        let entries = self.listeners.iter().map(ListenerOutline::entry);
        let gateways = self.gateways.iter();
        let gateways = gateways.map(|gateway| Gateway::named(&gateway.name, &gateway.peers));
        Organism::bare(&self.name, entries, gateways)
    }
}

impl ListenerOutline {
    pub fn of(listener: &Listener) -> Self {
        Self {
            name: listener.name.to_string(),
            is_agent: listener.is_agent,
            is_broadcast: listener.is_broadcast,
            peers: listener.peers.clone(),
            concurrency: listener.concurrency,
            is_concurrent: listener.is_concurrent,
            budget: listener.budget,
            answer: listener.answer.as_ref().map(TypeName::of),
            payload_bytes: listener.payload_bytes,
            accepts: listener.schemas().map(TypeName::of).collect(),
        }
    }

    pub fn entry(&self) -> Arc<RegisteredListener> {
        let mut listener = Listener::named(&self.name)
            .agent(self.is_agent)
            .broadcast(self.is_broadcast)
            .peers(&self.peers)
            .concurrency(self.concurrency)
            .concurrent(self.is_concurrent)
            .payload_bytes(self.payload_bytes);
        listener.budget = self.budget;
        listener.answer = self.answer.as_ref().map(TypeName::schema);
        let gone = |_, _| async { Err::<(), _>("the listener is not there any more".into()) };
        for name in &self.accepts {
            listener = listener.on_schema(name.schema(), gone);
        }
        Arc::new(RegisteredListener::bare(listener))
    }
}

impl TypeName {
    fn of(schema: &Schema) -> Self {
        Self {
            namespace: schema.namespace.clone(),
            name: schema.name.clone(),
        }
    }

    /// A schema of that name, and of no fields: the rules look at the name.
    fn schema(&self) -> Schema {
        Schema {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            description: String::new(),
            content: Shape::Record(Vec::new()),
        }
    }
}
