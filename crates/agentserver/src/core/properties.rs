//! Whatever handlers give back, the pump sends nothing in another's name,
//! reaches nobody it may not, answers in the right thread, keeps to budgets and to
//! order, and keeps nothing. And wherever a crash comes, the inputs that were kept
//! lead to the same state.

mod ledger;
mod random;
mod rules;

use super::account::AccountId;
use super::threads::ThreadId;
use super::time::Time;
use super::{Core, CoreLimits, Effect, Fit, Form, HopId, Job, Outcome, Outgoing, Record, Usage};
use crate::handler::Target;
use crate::payload::{Canonical, Payload};
use crate::system::{self, Fault, TodoUntil};
use crate::xml::Limits;
use ledger::{Ledger, Way};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{TestRng, TestRunner};
use random::{NAMES, Note, Say, Step, TARGETS, Traits, life, note, organism};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

struct World {
    core: Core,
    traits: Vec<Traits>,
    running: Vec<Arc<Job>>,
    /// The last state that was kept, and the inputs since.
    kept: (Vec<u8>, Vec<u8>),
    /// Answers that were given to gateways.
    given: HashSet<HopId>,
    /// Those of them that were not acknowledged, by conversation, in order.
    unacknowledged: HashMap<ThreadId, Vec<HopId>>,
    ledger: Ledger,
    /// What runs have used so far.
    using: HashMap<HopId, Usage>,
    /// The bounds that have ended work.
    bounds: BTreeSet<&'static str>,
    roots: Vec<ThreadId>,
    /// Whose a thread is and who called it, learnt from calls alone.
    parents: HashMap<ThreadId, ThreadId>,
    owners: HashMap<ThreadId, String>,
    /// The last message of each call that began.
    last_of_call: HashMap<(ThreadId, Option<AccountId>), HopId>,
    /// The last message of each sender that began.
    last_of_sender: HashMap<(ThreadId, Arc<str>), HopId>,
    now: Time,
}

impl World {
    fn new(traits: Vec<Traits>, limits: CoreLimits) -> Self {
        let now = Time::default();
        let mut core = Core::new(Arc::new(organism(&traits)), limits);
        core.keep_records();
        let kept = core.snapshot().unwrap();
        let open = |_| core.open("GATE", None, now).unwrap();
        let roots: Vec<_> = (0..3).map(open).collect();
        let kept = (kept, core.take_records());
        let mut ledger = Ledger::default();
        for root in &roots {
            ledger.open(*root, limits.conversation, now);
        }
        let owners = roots
            .iter()
            .map(|root| (*root, "gate".to_owned()))
            .collect();
        Self {
            core,
            traits,
            running: Vec::new(),
            kept,
            given: HashSet::new(),
            unacknowledged: HashMap::new(),
            ledger,
            using: HashMap::new(),
            bounds: BTreeSet::new(),
            roots,
            parents: HashMap::new(),
            owners,
            last_of_call: HashMap::new(),
            last_of_sender: HashMap::new(),
            now,
        }
    }

    fn traits_of(&self, name: &str) -> &Traits {
        let index = NAMES
            .iter()
            .position(|other| other.to_lowercase() == name.to_lowercase());
        &self.traits[index.unwrap()]
    }

    fn may_call(&self, sender: &str, target: &str) -> bool {
        if sender == "gate" {
            return ["a", "b"].contains(&target.to_lowercase().as_str());
        }
        let peers = self
            .traits_of(sender)
            .peers
            .iter()
            .filter_map(|peer| NAMES.get(*peer));
        peers
            .into_iter()
            .any(|peer| peer.to_lowercase() == target.to_lowercase())
    }

    fn note(
        sender: &str,
        thread: ThreadId,
        root: ThreadId,
        target: &str,
        follows: impl std::fmt::Display,
    ) -> Canonical {
        let truth = format!("{sender}|{thread}|{root}|{target}|{follows}");
        Canonical::parse(&Note { truth }.to_xml().unwrap(), &Limits::default()).unwrap()
    }

    fn outgoing(job: &Job, say: &Say) -> Outgoing {
        let (target, word) = match say {
            Say::To(index) | Say::Invalid(index) => {
                (Target::Named(TARGETS[*index].to_owned()), TARGETS[*index])
            }
            Say::Caller => (Target::Caller, "^"),
            Say::ByType | Say::Forged => (Target::ByType, "*"),
            Say::Todo => (Target::Named("todo-until".to_owned()), "todo-until"),
        };
        let payload = match say {
            Say::Forged => Fault::Handler.payload(),
            Say::Todo => system::canonical(&TodoUntil {
                wait_for: "Note".into(),
                from_listener: "b".into(),
                description: "x".into(),
            }),
            _ => Self::note(&job.entry.listener.name, job.thread, job.root, word, job.id),
        };
        let fit = match say {
            Say::Invalid(_) => Fit::Not("made so".into()),
            _ => Fit::Valid,
        };
        Outgoing {
            target,
            payload,
            form: Form::Text,
            fit,
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Finish { pick, say } => self.finish(*pick, |job| {
                Outcome::Sent(say.iter().map(|say| Self::outgoing(job, say)).collect())
            }),
            Step::Fail { pick, is_timeout } => self.finish(*pick, |_| Outcome::Failed {
                fault: if *is_timeout {
                    Fault::Timeout
                } else {
                    Fault::Handler
                },
                reason: "made so".into(),
            }),
            Step::Garble { pick } => self.finish(*pick, |_| Outcome::Garbled {
                attempt: b"?".to_vec(),
                reason: "made so".into(),
            }),
            Step::Inject { conversation, to } => {
                let root = self.roots[conversation % self.roots.len()];
                let target = TARGETS[*to];
                let budget = self.core.limits.request;
                let request = self.ledger.request(root, budget, self.now);
                let payload = Self::note("gate", root, root, target, request);
                let out = Outgoing {
                    target: Target::Named(target.to_owned()),
                    payload,
                    form: Form::Text,
                    fit: Fit::Valid,
                };
                let is_open = self.core.is_own(root, "gate");
                let may = is_open && self.may_call("gate", target);
                match self.core.send(root, &out, None, self.now) {
                    Ok(sent) => {
                        assert!(may);
                        self.ledger.accepted(request, sent.unwrap());
                    }
                    Err(told) => assert!(!may || told.xml().contains("<code>limit</code>")),
                }
            }
            Step::Close { conversation } => {
                let root = self.roots[conversation % self.roots.len()];
                self.core.close(root, self.now);
                self.unacknowledged.remove(&root);
            }
            Step::Acknowledge { conversation } => {
                let root = self.roots[conversation % self.roots.len()];
                if let Some(kept) = self.unacknowledged.get_mut(&root)
                    && let Some(oldest) = kept.first().copied()
                {
                    kept.remove(0);
                    self.core.acknowledge_answer(root, oldest, self.now);
                }
            }
            Step::Ask { pick, to } => {
                if !self.running.is_empty() {
                    let job = self.running[pick % self.running.len()].clone();
                    let out = Self::outgoing(&job, &Say::To(*to));
                    let asked = self.core.ask(job.id, &out, self.now);
                    let may = self.may_call(&job.entry.listener.name, TARGETS[*to]);
                    assert!(asked.is_err() || may);
                }
            }
            Step::ModelCall {
                pick,
                tokens,
                money,
            } => {
                if !self.running.is_empty() {
                    let hop = self.running[pick % self.running.len()].id;
                    if self.core.admit_model_call(hop, self.now).is_ok() {
                        self.ledger.model_call(hop);
                        let using = self.using.entry(hop).or_default();
                        using.tokens += tokens;
                        using.money += money;
                    }
                }
            }
            Step::Tick => {
                self.now = self.now.after(Duration::from_secs(40));
                self.core.tick(self.now);
            }
            Step::Snapshot => self.kept = (self.core.snapshot().unwrap(), Vec::new()),
            Step::Crash => self.crash(),
        }
        self.observe();
    }

    /// The program ends, and what was kept is all there is.
    fn crash(&mut self) {
        let before = state(&mut self.core);
        let mut core = Core::restore(serde_json::from_slice(&self.kept.0).unwrap());
        core.keep_records();
        for line in self.kept.1.split(|byte| *byte == b'\n') {
            if !line.is_empty() {
                core.repeat(serde_json::from_slice::<Record<'_>>(line).unwrap());
                core.effects();
            }
        }
        core.take_records();
        assert!(
            before == state(&mut core),
            "the inputs lead to the same state"
        );
        self.core = core;
        for root in &self.roots {
            let kept = self.core.unacknowledged(*root).into_iter();
            let kept: Vec<_> = kept.map(|arrival| arrival.id).collect();
            let given = self.unacknowledged.get(root).cloned();
            assert_eq!(kept, given.unwrap_or_default(), "answers to be given again");
        }
        // What a run that a crash has ended had used is not charged.
        self.using.clear();
        let ran: HashSet<_> = self.running.drain(..).map(|job| job.id).collect();
        self.core
            .reload(Arc::new(organism(&self.traits)), self.core.limits, self.now);
        self.core.resume(self.now);
        self.last_of_call.clear();
        self.last_of_sender.clear();
        // Those for which nobody waits any more are not begun again.
        let (effects, mut again) = (self.core.effects(), Vec::new());
        for effect in effects {
            match effect {
                Effect::Run(job) if ran.contains(&job.id) => again.push(job),
                Effect::Run(job) => self.begin(job),
                Effect::Deliver(arrival) => self.deliver(&arrival),
                _ => {}
            }
        }
        again.into_iter().for_each(|job| self.running.push(job));
        let lines = self.core.take_records();
        self.kept.1.extend(lines);
    }

    fn finish(&mut self, pick: usize, outcome: impl FnOnce(&Job) -> Outcome) {
        if self.running.is_empty() {
            return;
        }
        let job = self.running.swap_remove(pick % self.running.len());
        let outcome = outcome(&job);
        let (notes, used) = ([note(&job)], self.using.remove(&job.id));
        let used = used.unwrap_or_default();
        self.ledger.finish(job.id, used);
        self.core.finish(job.id, outcome, used, &notes, self.now);
    }

    /// Checks everything that the pump would now do.
    fn observe(&mut self) {
        let effects = self.core.effects();
        let records = self.core.take_records();
        self.kept.1.extend(records);
        let over = self.check_ends(&effects);
        for effect in effects {
            match effect {
                Effect::Run(job) => self.begin(job),
                Effect::Deliver(arrival) => self.deliver(&arrival),
                Effect::Cancel(cancellation) => cancellation.cancel(),
                Effect::Ended { .. }
                | Effect::Rest(_)
                | Effect::Finished(_)
                | Effect::Answered { .. }
                | Effect::Hop(_) => {}
            }
        }
        over.into_iter().for_each(|id| self.ledger.told_of_end(id));
    }

    fn begin(&mut self, job: Arc<Job>) {
        let noted = job.notes.iter().flat_map(|notes| notes.list("own"));
        let owner = job.thread.to_string();
        noted.for_each(|note| assert_eq!(**note, *owner, "another thread's note"));
        let name = job.entry.listener.name.clone();
        let is_self = job.is_self_call;
        let way = self.check(
            &job.from,
            &name,
            job.thread,
            job.root,
            is_self,
            &job.payload,
        );
        let way = way.unwrap_or(Way::Told { from: job.parent });
        let budget = self.traits_of(&name).budget;
        let request = self.core.limits.request;
        self.ledger.begin(&job, way, budget, request, self.now);
        let running = self.running.iter();
        let at_once = running.filter(|other| other.entry.key == job.entry.key);
        let waiting = self.core.waiting_for_answers(&job.entry.key);
        assert!(at_once.count() < self.traits_of(&name).concurrency + waiting);
        self.check_turn(&job);
        self.running.push(job);
    }

    /// Closes everything and lets what runs come to an end.
    fn wind_down(&mut self) {
        for root in self.roots.clone() {
            self.core.close(root, self.now);
        }
        self.unacknowledged.clear();
        for _ in 0..10_000 {
            self.observe();
            if let Some(job) = self.running.pop() {
                self.core.finish(
                    job.id,
                    Outcome::Sent(Vec::new()),
                    Usage::default(),
                    &[],
                    self.now,
                );
            } else if self.core.next_due().is_some() {
                self.now = self.now.after(Duration::from_secs(40));
                self.core.tick(self.now);
            } else {
                break;
            }
        }
        self.observe();
        assert!(
            self.running.is_empty() && self.core.is_at_rest(),
            "nothing is kept"
        );
    }
}

/// The whole state, so that two can be compared.
fn state(core: &mut Core) -> serde_json::Value {
    serde_json::from_slice(&core.snapshot().unwrap()).unwrap()
}

/// Plays a life to its end. Gives the bounds that ended work in it.
fn play((traits, limits, steps): (Vec<Traits>, CoreLimits, Vec<Step>)) -> BTreeSet<&'static str> {
    let mut world = World::new(traits, limits);
    for step in &steps {
        world.take(step);
    }
    world.wind_down();
    world.bounds
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_outputs_and_crashes_breaks_the_rules(played in life()) {
        play(played);
    }
}

#[test]
fn lives_that_are_played_use_up_every_kind_of_budget() {
    let config = ProptestConfig::default();
    let seed = TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config, seed);
    let mut bounds = BTreeSet::new();
    for _ in 0..200 {
        bounds.append(&mut play(life().new_tree(&mut runner).unwrap().current()));
    }
    let all = [
        "hops",
        "messages",
        "model_calls",
        "money",
        "seconds",
        "tokens",
    ];
    assert_eq!(bounds, all.into());
}
