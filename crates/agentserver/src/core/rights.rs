//! Who may send what to whom. Decides; changes nothing.

use super::message::{Fit, Form, Outgoing};
use crate::handler::Target;
use crate::listener::{is_system_type, lowercase};
use crate::organism::{Organism, RegisteredListener};
use crate::payload::{Canonical, Schema};
use crate::system::{self, Fault, TodoComplete, TodoUntil};
use crate::trace::HopKind;
use std::collections::HashSet;
use std::sync::Arc;

/// Where a message will go.
pub enum Route {
    Caller,
    Listeners(Vec<Arc<RegisteredListener>>),
    TodoUntil,
    TodoComplete,
}

/// Why a message will not go.
pub struct Refusal {
    pub fault: Fault,
    /// For the operator alone.
    pub reason: String,
    /// For the sender: what it could do. Says nothing of what is not its own.
    advice: String,
}

/// What a sender may do.
pub struct Rights<'a> {
    pub peers: &'a HashSet<Arc<str>>,
    pub is_agent: bool,
    pub caller: Option<Arc<str>>,
    /// The type that is its answer, whoever else accepts it.
    pub answers: Option<&'a Schema>,
}

/// Where a message goes, or why it does not.
pub fn route(organism: &Organism, rights: &Rights<'_>, out: &Outgoing) -> Result<Route, Refusal> {
    let routed = resolve(organism, rights, out);
    routed.and_then(|route| admit(organism, rights, route, out))
}

/// Where a message would go, by rights alone. A target that may not be
/// reached and one that does not exist are the same from outside.
fn resolve(organism: &Organism, rights: &Rights<'_>, out: &Outgoing) -> Result<Route, Refusal> {
    let routing =
        |reason: &str| Refusal::new(Fault::Routing, reason).advise(rights.in_words(organism));
    match &out.target {
        Target::Caller => Ok(Route::Caller),
        Target::Named(name) => {
            let target = lowercase(name);
            if *target == *system::CALLER {
                return Ok(Route::Caller);
            }
            if !rights.is_agent && rights.caller.as_deref() == Some(&*target) {
                return Ok(Route::Caller);
            }
            if !rights.peers.contains(&*target) {
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
            if rights
                .answers
                .is_some_and(|schema| schema.is_of(&out.payload))
            {
                return Ok(Route::Caller);
            }
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
fn admit(
    organism: &Organism,
    rights: &Rights<'_>,
    route: Route,
    out: &Outgoing,
) -> Result<Route, Refusal> {
    let (namespace, root) = (out.payload.namespace(), out.payload.root());
    let unknown = |reason: &str| {
        let known = rights.in_words(organism);
        let advice = format!("<{root}> is not a payload that goes there. {known}");
        Refusal::new(Fault::Validation, reason).advise(advice)
    };
    if is_system_type(namespace, root) {
        return Err(unknown("only the pump sends this type"));
    }
    let takes = |entry: &Arc<RegisteredListener>| entry.listener.accepts(namespace, root);
    let is_taken = match &route {
        // Whoever is above is asked when the answer is carried there.
        Route::Caller => rights.caller.as_ref().is_none_or(|caller| {
            let own = rights
                .answers
                .is_some_and(|schema| schema.is_of(&out.payload));
            own || organism.get(caller).is_none_or(takes)
        }),
        Route::Listeners(entries) => entries.iter().all(takes),
        Route::TodoUntil => out.payload.is::<TodoUntil>(),
        Route::TodoComplete => out.payload.is::<TodoComplete>(),
    };
    match (&out.fit, &route) {
        (Fit::Unknown, _) => return Err(unknown("nobody knows this type")),
        (Fit::Not(reason), _) if !is_taken => return Err(unknown(reason)),
        (Fit::Not(reason), _) => {
            return Err(Refusal::new(Fault::Validation, reason.as_str()).advise(reason.as_str()));
        }
        (Fit::Valid, Route::Caller) => {}
        (Fit::Valid, _) if !is_taken => {
            return Err(unknown("the listener does not accept this type"));
        }
        (Fit::Valid, _) => {}
    }
    if let Route::Listeners(entries) = &route {
        let most = entries.iter().map(|entry| entry.listener.payload_bytes);
        let most = most.min().unwrap_or(usize::MAX);
        if out.payload.xml().len() > most {
            let advice = format!("It takes payloads of at most {most} bytes.");
            return Err(Refusal::new(Fault::Validation, "too large").advise(advice));
        }
    }
    Ok(route)
}

impl Rights<'_> {
    /// Whom the sender may send what, and nothing of anybody else.
    fn in_words(&self, organism: &Organism) -> String {
        let mut peers: Vec<_> = self
            .peers
            .iter()
            .map(|peer| match organism.get(peer) {
                Some(entry) => {
                    let accepted: Vec<_> = entry.listener.offers().map(|s| &*s.name).collect();
                    format!("{} ({})", entry.listener.name, accepted.join(", "))
                }
                None => peer.to_string(),
            })
            .collect();
        peers.sort();
        match (peers.is_empty(), self.caller.is_some()) {
            (true, true) => "You have no peers; you can answer your caller.".to_owned(),
            (true, false) => "There is nobody you may send to.".to_owned(),
            (false, _) => format!("You may send to: {}.", peers.join(", ")),
        }
    }
}

impl Refusal {
    pub fn new(fault: Fault, reason: impl Into<String>) -> Self {
        Self {
            fault,
            reason: reason.into(),
            advice: String::new(),
        }
    }

    /// A limit of this name was reached.
    pub fn limit(name: &str, most: usize) -> Self {
        Self::new(Fault::Limit, format!("the limit {name} of {most}"))
            .advise(format!("The limit \"{name}\" of {most} was reached."))
    }

    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }

    /// For the sender: what it could do.
    pub fn advice(&self) -> &str {
        &self.advice
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
            (Form::Text, Fault::Validation) => {
                system::huh(out.payload.xml().as_bytes(), &self.advice)
            }
            (_, fault) => fault.saying(&self.advice),
        }
    }
}
