//! Who may send what to whom. Decides; changes nothing.

use super::message::{Fit, Form, Outgoing};
use crate::handler::Target;
use crate::listener::{is_system_type, key};
use crate::organism::{Entry, Organism};
use crate::payload::Canonical;
use crate::system::{self, Fault, TodoComplete, TodoUntil};
use crate::trace::HopKind;
use std::collections::HashSet;
use std::sync::Arc;

/// Where a message will go.
pub enum Route {
    Caller,
    Listeners(Vec<Arc<Entry>>),
    TodoUntil,
    TodoComplete,
}

/// Why a message will not go.
pub struct Refusal {
    pub fault: Fault,
    pub reason: String,
}

/// What a sender may do.
pub struct Rights<'a> {
    pub peers: &'a HashSet<Arc<str>>,
    pub is_agent: bool,
    pub caller: Option<Arc<str>>,
}

/// Where a message goes, or why it does not.
pub fn route(organism: &Organism, rights: &Rights<'_>, out: &Outgoing) -> Result<Route, Refusal> {
    admit(resolve(organism, rights, out)?, out)
}

/// Where a message would go, by rights alone. A target that may not be
/// reached and one that does not exist are the same from outside.
fn resolve(organism: &Organism, rights: &Rights<'_>, out: &Outgoing) -> Result<Route, Refusal> {
    let routing = |reason: &str| Refusal::new(Fault::Routing, reason);
    match &out.target {
        Target::Caller => Ok(Route::Caller),
        Target::Named(name) => {
            let target = key(name);
            if !rights.is_agent && rights.caller.as_ref() == Some(&target) {
                return Ok(Route::Caller);
            }
            if !rights.peers.contains(&target) {
                return Err(routing("not a peer"));
            }
            match &*target {
                system::TODO_UNTIL => Ok(Route::TodoUntil),
                system::TODO_COMPLETE => Ok(Route::TodoComplete),
                _ => match organism.get(&target) {
                    Some(entry) => Ok(Route::Listeners(vec![entry.clone()])),
                    None => Err(routing("no such listener")),
                },
            }
        }
        Target::ByType => {
            if out.payload.is::<TodoUntil>() && rights.peers.contains(system::TODO_UNTIL) {
                return Ok(Route::TodoUntil);
            }
            if out.payload.is::<TodoComplete>() && rights.peers.contains(system::TODO_COMPLETE) {
                return Ok(Route::TodoComplete);
            }
            let mut takers: Vec<_> = rights
                .peers
                .iter()
                .filter_map(|peer| organism.get(peer))
                .filter(|entry| {
                    entry
                        .listener
                        .accepts(out.payload.namespace(), out.payload.root())
                })
                .cloned()
                .collect();
            takers.sort_by(|a, b| a.key.cmp(&b.key));
            match takers.len() {
                0 => Ok(Route::Caller),
                1 => Ok(Route::Listeners(takers)),
                _ if takers.iter().all(|entry| entry.listener.is_broadcast) => {
                    Ok(Route::Listeners(takers))
                }
                _ => Err(routing("several peers accept this payload; name one")),
            }
        }
    }
}

/// Whether the payload may go where the message would.
fn admit(route: Route, out: &Outgoing) -> Result<Route, Refusal> {
    let validation = |reason: &str| Refusal::new(Fault::Validation, reason);
    let (namespace, root) = (out.payload.namespace(), out.payload.root());
    if is_system_type(namespace, root) {
        return Err(validation("only the pump sends this type"));
    }
    if let Fit::Not(reason) = &out.fit {
        return Err(validation(reason));
    }
    let takes = match &route {
        // Whoever is above is asked when the answer is carried there.
        Route::Caller => true,
        Route::Listeners(entries) => entries.iter().all(|entry| {
            entry.listener.accepts(namespace, root)
                && out.payload.xml().len() <= entry.listener.payload_bytes
        }),
        Route::TodoUntil => out.payload.is::<TodoUntil>(),
        Route::TodoComplete => out.payload.is::<TodoComplete>(),
    };
    match takes {
        true => Ok(route),
        false => Err(validation("the listener does not accept this type")),
    }
}

impl Refusal {
    pub fn new(fault: Fault, reason: impl Into<String>) -> Self {
        Self {
            fault,
            reason: reason.into(),
        }
    }

    pub fn kind(&self) -> HopKind {
        HopKind::Refused {
            fault: self.fault,
            reason: self.reason.clone(),
        }
    }

    /// What the sender reads.
    pub fn payload(&self, out: &Outgoing) -> Canonical {
        match (out.form, self.fault) {
            (Form::Text, Fault::Validation) => system::huh(out.payload.xml().as_bytes()),
            (_, fault) => fault.payload(),
        }
    }
}
