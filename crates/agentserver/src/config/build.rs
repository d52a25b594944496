//! From the file to an organism, with a place for everything that is wrong.

use super::{
    BudgetFile, BudgetsFile, ConfigError, LimitsFile, ListenerFile, OrganismFile, Problem,
};
use crate::listener::key;
use crate::payload::{PayloadType, Schema};
use crate::{Budget, Gateway, Listener, Organism, OrganismError, Settings, system};
use serde_saphyr::Spanned;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

impl<K, M, G> OrganismFile<K, M, G> {
    /// Puts the organism together. For each listener, `attach` is given what the
    /// file says of it, the schemas it accepts, and a [`Listener`] with all of
    /// that but handlers; it adds the handlers.
    pub fn build(
        &self,
        mut attach: impl FnMut(&ListenerFile<K>, Vec<Schema>, Listener) -> Result<Listener, String>,
    ) -> Result<Organism, ConfigError> {
        let mut problems = Vec::new();
        let schemas = self.schemas(&mut problems);
        self.check_names(&mut problems);
        self.check_peers(&mut problems);
        if let Some(given) = &self.limits.nudge_seconds
            && seconds(given.value).is_none()
        {
            problems.push(at(given, "nudge_seconds is not a time".to_owned()));
        }
        let budgets = [&self.budget.request, &self.budget.conversation];
        for budget in budgets.into_iter().flatten() {
            if let Err(message) = budget.value.check() {
                problems.push(at(budget, message.to_owned()));
            }
        }
        let mut listeners = Vec::new();
        for file in &self.listeners {
            let known = problems.len();
            let mut accepted = Vec::new();
            for name in &file.accepts {
                match schemas.get(&*name.value) {
                    Some(schema) => accepted.push(schema.clone()),
                    None => problems.push(no_payload(name)),
                }
            }
            let sent = file.sends.iter().flatten();
            let unknown = sent.filter(|name| !schemas.contains_key(&*name.value));
            problems.extend(unknown.map(no_payload));
            if problems.len() > known {
                continue;
            }
            match file
                .listener()
                .and_then(|listener| attach(file, accepted, listener))
            {
                Ok(listener) => listeners.push(listener),
                Err(message) => {
                    problems.push(at(&file.name, format!("{}: {message}", file.name.value)));
                }
            }
        }
        if !problems.is_empty() {
            problems.sort_by_key(|problem| (problem.line, problem.column));
            return Err(ConfigError(problems));
        }
        let gateways = self
            .gateways
            .iter()
            .map(|file| Gateway::named(&file.name.value, values(&file.peers)));
        Organism::new(&self.organism, listeners, gateways)
            .and_then(|organism| organism.with_types(schemas.values()))
            .map_err(|error| ConfigError(vec![self.locate(&error)]))
    }

    /// The payload types of the file by name; those that cannot be used are
    /// left out here and told by [`OrganismFile::build`].
    pub fn payload_types(&self) -> HashMap<String, PayloadType> {
        let schemas = self.payloads.iter().filter_map(|file| file.schema().ok());
        let compiled = schemas.filter_map(|schema| PayloadType::compile(schema).ok());
        compiled
            .map(|known| (known.schema().name.clone(), known))
            .collect()
    }

    /// How the pump is to be set up.
    pub fn settings(&self) -> Settings {
        let LimitsFile {
            bytes,
            levels,
            nodes,
            chain,
            in_flight,
            backlog,
            refusals,
            nudge_seconds,
            nudges,
            admission,
            mailbox,
            conversations,
        } = &self.limits;
        let mut settings = Settings::default();
        set(&mut settings.xml.bytes, *bytes);
        set(&mut settings.xml.depth, *levels);
        set(&mut settings.xml.nodes, *nodes);
        set(&mut settings.core.depth, *chain);
        set(&mut settings.core.in_flight, *in_flight);
        set(&mut settings.core.backlog, *backlog);
        set(&mut settings.core.refusals, *refusals);
        set(
            &mut settings.core.nudge,
            nudge_seconds
                .as_ref()
                .and_then(|given| seconds(given.value)),
        );
        set(&mut settings.core.nudges, *nudges);
        set(&mut settings.admission, admission.map(|count| count.max(1)));
        set(&mut settings.mailbox, *mailbox);
        set(&mut settings.conversations, *conversations);
        let BudgetsFile {
            request,
            conversation,
        } = &self.budget;
        for (given, budget) in [
            (request, &mut settings.core.request),
            (conversation, &mut settings.core.conversation),
        ] {
            if let Some(given) = given {
                given.value.apply(budget);
            }
        }
        settings
    }

    fn schemas(&self, problems: &mut Vec<Problem>) -> HashMap<Arc<str>, Schema> {
        let mut schemas = HashMap::new();
        for file in &self.payloads {
            let name = &file.name;
            let schema = match file.schema() {
                Ok(schema) => schema,
                Err(message) => {
                    problems.push(at(name, message));
                    continue;
                }
            };
            if let Err(error) = PayloadType::compile(schema.clone()) {
                problems.push(at(name, error.to_string()));
            }
            if schemas.insert(Arc::from(&*name.value), schema).is_some() {
                problems.push(at(
                    name,
                    format!("the payload {:?} is there twice", name.value),
                ));
            }
        }
        schemas
    }

    fn check_names(&self, problems: &mut Vec<Problem>) {
        let mut seen = HashSet::new();
        let names = self
            .listeners
            .iter()
            .map(|file| &file.name)
            .chain(self.gateways.iter().map(|file| &file.name));
        for name in names {
            if !seen.insert(key(&name.value)) {
                problems.push(at(name, format!("the name {:?} is taken", name.value)));
            }
        }
    }

    fn check_peers(&self, problems: &mut Vec<Problem>) {
        let mut known: HashSet<_> = self
            .listeners
            .iter()
            .map(|file| key(&file.name.value))
            .collect();
        known.extend([system::TODO_UNTIL, system::TODO_COMPLETE].map(Arc::from));
        let of_listeners = self.listeners.iter().flat_map(|file| &file.peers);
        for peer in of_listeners.chain(self.gateways.iter().flat_map(|file| &file.peers)) {
            if !known.contains(&key(&peer.value)) {
                problems.push(at(
                    peer,
                    format!("the peer {:?} does not exist", peer.value),
                ));
            }
        }
    }

    /// Where the listener is that an organism could not be built with.
    fn locate(&self, error: &OrganismError) -> Problem {
        let name = match error {
            OrganismError::Reserved(name)
            | OrganismError::Name(name)
            | OrganismError::Taken(name) => name,
            OrganismError::Peer { name, .. }
            | OrganismError::Type { name, .. }
            | OrganismError::Schema { name, .. } => name,
        };
        let names = self
            .listeners
            .iter()
            .map(|file| &file.name)
            .chain(self.gateways.iter().map(|file| &file.name));
        match names.into_iter().find(|file| file.value == *name) {
            Some(place) => at(place, error.to_string()),
            None => Problem {
                line: 0,
                column: 0,
                message: error.to_string(),
            },
        }
    }
}

impl<K> ListenerFile<K> {
    /// The listener without handlers.
    fn listener(&self) -> Result<Listener, String> {
        let mut listener = Listener::named(&self.name.value)
            .describe(&self.description)
            .agent(self.agent)
            .peers(values(&self.peers))
            .broadcast(self.broadcast)
            .concurrent(self.concurrent);
        if let Some(given) = self.timeout_seconds {
            listener = listener.timeout(seconds(given).ok_or("timeout_seconds is not a time")?);
        }
        if let Some(concurrency) = self.concurrency {
            if concurrency == 0 {
                return Err("concurrency is at least 1".to_owned());
            }
            listener = listener.concurrency(concurrency);
        }
        if let Some(file) = &self.budget {
            file.check()?;
            let mut budget = Budget::default();
            file.apply(&mut budget);
            listener = listener.budget(budget);
        }
        if let Some(bytes) = self.limits.bytes {
            listener = listener.payload_bytes(bytes);
        }
        Ok(listener)
    }
}

impl BudgetFile {
    fn check(&self) -> Result<(), &'static str> {
        let is_time = self.seconds.is_none_or(|given| seconds(given).is_some());
        let is_money = self.money.is_none_or(|given| millionths(given).is_some());
        match (is_time, is_money) {
            (true, true) => Ok(()),
            (false, _) => Err("seconds is not a time"),
            (_, false) => Err("money is not an amount"),
        }
    }

    /// What is said takes the place of what was there.
    fn apply(&self, budget: &mut Budget) {
        let money = self.money.and_then(millionths);
        let time = self.seconds.and_then(seconds);
        budget.hops = self.hops.or(budget.hops);
        budget.messages = self.messages.or(budget.messages);
        budget.model_calls = self.model_calls.or(budget.model_calls);
        budget.tokens = self.tokens.or(budget.tokens);
        budget.money = money.or(budget.money);
        budget.time = time.or(budget.time);
    }
}

/// An amount in millionths.
fn millionths(given: f64) -> Option<u64> {
    let amount = given * 1e6;
    (amount.is_finite() && (0.0..1e15).contains(&amount)).then_some(amount as u64)
}

fn no_payload(name: &Spanned<String>) -> Problem {
    at(name, format!("the payload {:?} does not exist", name.value))
}

fn at<T>(place: &Spanned<T>, message: String) -> Problem {
    Problem {
        line: place.referenced.line(),
        column: place.referenced.column(),
        message,
    }
}

fn values(names: &[Spanned<String>]) -> impl Iterator<Item = String> {
    names.iter().map(|name| name.value.clone())
}

fn set<T>(to: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *to = given;
    }
}

fn seconds(given: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(given)
        .ok()
        .filter(|time| !time.is_zero())
}
