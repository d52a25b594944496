//! An organism: listeners, gateways and payload types that fit together.

use crate::core::{Fit, IdMap};
use crate::listener::{Listener, key};
use crate::payload::{Canonical, PayloadType, Schema, SchemaError};
use crate::peer_guide::{Offer, PeerGuide};
use crate::system;
use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

/// Listeners that do not fit together.
#[derive(Debug, thiserror::Error)]
pub enum OrganismError {
    /// A name that is the pump's own.
    #[error("the name {0:?} is reserved")]
    Reserved(String),
    /// A name that is no name.
    #[error("{0:?} is not a name: letters, digits, '.', '_' and '-', at most 64")]
    Name(String),
    /// Two of one name, compared without case.
    #[error("the name {0:?} is taken")]
    Taken(String),
    /// A peer that nobody is.
    #[error("{name}: the peer {peer:?} does not exist")]
    Peer {
        /// Whose peer.
        name: String,
        /// The peer.
        peer: String,
    },
    /// One root element, two meanings.
    #[error("{name}: <{root}> already means something else")]
    Type {
        /// The listener that brought the second meaning.
        name: String,
        /// The root element.
        root: String,
    },
    /// A schema that cannot be used.
    #[error("{name}: {error}")]
    Schema {
        /// The listener that brought it.
        name: String,
        /// What is wrong.
        #[source]
        error: SchemaError,
    },
}

/// Someone outside who may begin conversations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    pub(crate) name: Arc<str>,
    pub(crate) peers: HashSet<Arc<str>>,
    declared: Vec<String>,
}

impl Gateway {
    /// A gateway and whom it may send to.
    pub fn named<S: Into<String>>(
        name: impl AsRef<str>,
        peers: impl IntoIterator<Item = S>,
    ) -> Self {
        let declared: Vec<String> = peers.into_iter().map(Into::into).collect();
        let peers = declared.iter().map(|peer| key(peer)).collect();
        Self {
            name: Arc::from(name.as_ref()),
            peers,
            declared,
        }
    }

    /// Its name: what its messages are from.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whom it may send to, as they were written.
    pub(crate) fn declared(&self) -> &[String] {
        &self.declared
    }
}

/// A listener in its organism.
#[derive(Debug)]
pub struct RegisteredListener {
    pub(crate) key: Arc<str>,
    pub(crate) listener: Listener,
    pub(crate) peers: HashSet<Arc<str>>,
    peer_guides: GuideByCaller,
}

/// What an agent is told of its peers and of its caller.
#[derive(Debug)]
struct GuideByCaller {
    /// By the caller's key.
    by_caller: IdMap<Arc<str>, PeerGuide>,
    /// For a caller that is nobody's listener or gateway any more.
    without_caller: PeerGuide,
}

impl RegisteredListener {
    /// A listener that is told nothing of the others.
    pub(crate) fn bare(listener: Listener) -> Self {
        Self {
            key: listener.key(),
            peers: listener.peers.iter().map(|peer| key(peer)).collect(),
            peer_guides: GuideByCaller {
                by_caller: IdMap::default(),
                without_caller: PeerGuide::empty(),
            },
            listener,
        }
    }

    /// What the listener is told when it works for this caller.
    pub(crate) fn peer_guide(&self, caller: Option<&str>) -> &PeerGuide {
        caller
            .and_then(|caller| self.peer_guides.by_caller.get(caller))
            .unwrap_or(&self.peer_guides.without_caller)
    }
}

/// Everything that the pump routes between. Checked as it is built.
#[derive(Debug)]
pub struct Organism {
    name: String,
    entries: IdMap<Arc<str>, Arc<RegisteredListener>>,
    gateways: IdMap<Arc<str>, Arc<Gateway>>,
    types: ByType<Arc<PayloadType>>,
    /// Types that no listener accepts and some handler sends; compiled when
    /// first seen. As many as the program has structs.
    sent: RwLock<ByType<Option<Arc<PayloadType>>>>,
}

/// By root element, and then by namespace, of which a name has seldom two.
#[derive(Debug)]
struct ByType<T>(IdMap<Box<str>, Vec<(Box<str>, T)>>);

impl<T> Default for ByType<T> {
    fn default() -> Self {
        Self(IdMap::default())
    }
}

impl<T> ByType<T> {
    fn get(&self, namespace: &str, root: &str) -> Option<&T> {
        let mut of_name = self.0.get(root)?.iter();
        let found = of_name.find(|(known, _)| **known == *namespace);
        found.map(|(_, value)| value)
    }

    fn insert(&mut self, namespace: &str, root: &str, value: T) {
        let of_name = self.0.entry(root.into()).or_default();
        of_name.retain(|(known, _)| **known != *namespace);
        of_name.push((namespace.into(), value));
    }
}

impl Organism {
    /// Puts an organism together.
    pub fn new(
        name: impl Into<String>,
        listeners: impl IntoIterator<Item = Listener>,
        gateways: impl IntoIterator<Item = Gateway>,
    ) -> Result<Self, OrganismError> {
        let mut organism = Self {
            name: name.into(),
            entries: IdMap::default(),
            gateways: IdMap::default(),
            types: ByType::default(),
            sent: RwLock::default(),
        };
        for schema in system::schemas() {
            organism.add_type(system::NAME, &schema)?;
        }

        let mut listeners: Vec<Listener> = listeners.into_iter().collect();
        listeners.sort_by_key(Listener::key);
        let mut names = HashSet::new();
        for listener in &listeners {
            check_name(&listener.name, &mut names)?;
            for schema in listener.schemas() {
                organism.add_type(&listener.name, schema)?;
            }
        }
        for gateway in gateways {
            check_name(&gateway.name, &mut names)?;
            let gateway = Arc::new(gateway);
            organism.gateways.insert(key(&gateway.name), gateway);
        }

        let known: HashSet<Arc<str>> = listeners
            .iter()
            .map(Listener::key)
            .chain([system::TODO_UNTIL, system::TODO_COMPLETE].map(Arc::from))
            .collect();
        for gateway in organism.gateways.values() {
            check_peers(&gateway.name, &gateway.declared, &known)?;
        }
        for listener in &listeners {
            check_peers(&listener.name, &listener.peers, &known)?;
        }
        let usage: Vec<_> = listeners
            .iter()
            .map(|listener| organism.guide_by_caller(listener, &listeners))
            .collect();
        for (listener, usage) in listeners.into_iter().zip(usage) {
            let entry = RegisteredListener {
                key: listener.key(),
                peers: listener.peers.iter().map(|peer| key(peer)).collect(),
                peer_guides: usage,
                listener,
            };
            organism.entries.insert(entry.key.clone(), Arc::new(entry));
        }
        Ok(organism)
    }

    /// An organism for the rules alone: nobody is told of anybody, and no
    /// payload can be checked.
    pub(crate) fn bare(
        name: &str,
        entries: impl IntoIterator<Item = Arc<RegisteredListener>>,
        gateways: impl IntoIterator<Item = Gateway>,
    ) -> Self {
        let entries = entries.into_iter();
        let gateways = gateways.into_iter().map(Arc::new);
        Self {
            name: name.to_owned(),
            entries: entries.map(|entry| (entry.key.clone(), entry)).collect(),
            gateways: gateways
                .map(|gateway| (key(&gateway.name), gateway))
                .collect(),
            types: ByType::default(),
            sent: RwLock::default(),
        }
    }

    /// What one listener is told, for each that may call it.
    fn guide_by_caller(&self, listener: &Listener, all: &[Listener]) -> GuideByCaller {
        let own = listener.key();
        let calls = |peers: &[String]| peers.iter().any(|peer| key(peer) == own);
        let gateways = self.gateways.iter();
        let gateways = gateways.filter(|(_, gateway)| gateway.peers.contains(&own));
        let gateways = gateways.map(|(key, _)| (key.clone(), None));
        let callers = all.iter().filter(|other| calls(&other.peers));
        let callers = callers.map(|caller| (caller.key(), Some(caller)));
        let instructions = |caller| PeerGuide::new(listener, all, caller);
        GuideByCaller {
            by_caller: gateways
                .chain(callers)
                .map(|(key, caller)| (key, instructions(caller)))
                .collect(),
            without_caller: instructions(None),
        }
    }

    /// Adds types that nobody here accepts, for those who answer with them in
    /// text.
    pub fn with_types<'a>(
        mut self,
        schemas: impl IntoIterator<Item = &'a Schema>,
    ) -> Result<Self, OrganismError> {
        for schema in schemas {
            self.add_type("payloads", schema)?;
        }
        Ok(self)
    }

    fn add_type(&mut self, name: &str, schema: &Schema) -> Result<(), OrganismError> {
        if let Some(known) = self.types.get(&schema.namespace, &schema.name) {
            return match known.schema().content.accepts_the_same(&schema.content) {
                true => Ok(()),
                false => Err(OrganismError::Type {
                    name: name.to_owned(),
                    root: schema.name.clone(),
                }),
            };
        }
        let compiled =
            PayloadType::compile(schema.clone()).map_err(|error| OrganismError::Schema {
                name: name.to_owned(),
                error,
            })?;
        let compiled = Arc::new(compiled);
        self.types.insert(&schema.namespace, &schema.name, compiled);
        Ok(())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Arc<RegisteredListener>> {
        self.entries.get(key)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Arc<RegisteredListener>> {
        self.entries.values()
    }

    pub(crate) fn gateways(&self) -> impl Iterator<Item = &Arc<Gateway>> {
        self.gateways.values()
    }

    pub(crate) fn gateway(&self, key: &str) -> Option<&Arc<Gateway>> {
        self.gateways.get(key)
    }

    /// What a gateway may send to whom.
    pub fn offers(&self, gateway: &str) -> Vec<Offer> {
        let gateway = self.gateways.get(&key(gateway));
        let peers = gateway.iter().flat_map(|gateway| &gateway.declared);
        let peers = peers.filter_map(|peer| self.entries.get(&key(peer)));
        let offers = peers.flat_map(|entry| {
            let listener = &entry.listener;
            listener.offers().map(|schema| Offer {
                to: Some(listener.name.to_string()),
                description: listener.description.clone(),
                schema: schema.clone(),
            })
        });
        offers.collect()
    }

    /// A payload type by its root element.
    pub fn payload_type(&self, namespace: &str, root: &str) -> Option<&Arc<PayloadType>> {
        self.types.get(namespace, root)
    }

    /// Whether a payload is a valid one of a type known here.
    pub(crate) fn fit(&self, payload: &Canonical) -> Fit {
        let known = self.types.get(payload.namespace(), payload.root());
        fit(known, payload)
    }

    /// Whether a struct's payload is a valid one of the type known here by its
    /// name, or of its own.
    pub(crate) fn fit_typed(&self, payload: &Canonical, schema: fn() -> Schema) -> Fit {
        let (namespace, root) = (payload.namespace(), payload.root());
        if let Some(known) = self.types.get(namespace, root) {
            return fit(Some(known), payload);
        }
        let seen = self
            .sent
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(namespace, root)
            .cloned();
        let own = seen.unwrap_or_else(|| {
            let compiled = PayloadType::compile(schema()).ok().map(Arc::new);
            self.sent
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(namespace, root, compiled.clone());
            compiled
        });
        fit(own.as_ref(), payload)
    }
}

fn fit(known: Option<&Arc<PayloadType>>, payload: &Canonical) -> Fit {
    match known.map(|known| known.check(payload)) {
        Some(Ok(())) => Fit::Valid,
        Some(Err(error)) => Fit::Not(error.to_string()),
        None => Fit::Unknown,
    }
}

fn check_name(name: &str, names: &mut HashSet<Arc<str>>) -> Result<(), OrganismError> {
    let is_name = !name.is_empty()
        && name.len() <= 64
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || "._-".contains(c));
    if !is_name {
        return Err(OrganismError::Name(name.to_owned()));
    }
    let key = key(name);
    let is_own = [system::NAME, system::CALLER].contains(&&*key)
        || key.starts_with("system.") && *key != *system::BOOT
        || [system::TODO_UNTIL, system::TODO_COMPLETE].contains(&&*key);
    if is_own {
        return Err(OrganismError::Reserved(name.to_owned()));
    }
    match names.insert(key) {
        true => Ok(()),
        false => Err(OrganismError::Taken(name.to_owned())),
    }
}

fn check_peers(
    name: &str,
    peers: &[String],
    known: &HashSet<Arc<str>>,
) -> Result<(), OrganismError> {
    match peers.iter().find(|peer| !known.contains(&key(peer))) {
        None => Ok(()),
        Some(peer) => Err(OrganismError::Peer {
            name: name.to_owned(),
            peer: peer.clone(),
        }),
    }
}
