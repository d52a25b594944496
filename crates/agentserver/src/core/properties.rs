//! Whatever handlers give back, the pump sends nothing in another's name,
//! reaches nobody it may not, answers in the right thread, keeps to budgets and to
//! order, and keeps nothing. And wherever a crash comes, the inputs that were kept
//! lead to the same state.

mod ends;
mod ledger;
mod random;
mod rules;

use super::account::AccountId;
use super::threads::ThreadId;
use super::time::Time;
use super::{Core, CoreLimits, Effect, Fit, Form, HopId, Job, Outcome, Outgoing, Record, Usage};
use crate::handler::Target;
use crate::payload::{Canonical, Payload};
use crate::system::{self, Fault, TodoComplete, TodoUntil};
use crate::xml::Limits;
use ends::Ends;
use ledger::{Ledger, Way};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{TestRng, TestRunner};
use random::{NAMES, Note, Say, Step, TARGETS, Traits, life, note, organism};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
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
    ends: Ends,
    /// What runs have used so far.
    using: HashMap<HopId, Usage>,
    /// What this life has come to: bounds that have ended work, and what else a
    /// life seldom comes to.
    reached: BTreeSet<&'static str>,
    /// Keys that messages were accepted with.
    seen: HashSet<(ThreadId, u8)>,
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
            ends: Ends::default(),
            using: HashMap::new(),
            reached: BTreeSet::new(),
            seen: HashSet::new(),
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

    fn outgoing(core: &Core, job: &Job, say: &Say) -> Outgoing {
        let (target, word) = match say {
            Say::To(index) | Say::Invalid(index) => {
                (Target::Named(TARGETS[*index].to_owned()), TARGETS[*index])
            }
            Say::Caller => (Target::Caller, "^"),
            Say::ByType | Say::Forged => (Target::ByType, "*"),
            Say::Todo => (Target::Named("todo-until".to_owned()), "todo-until"),
            Say::Done => (Target::Named("todo-complete".to_owned()), "todo-complete"),
        };
        let payload = match say {
            Say::Forged => Fault::Handler.payload(),
            Say::Todo => system::canonical(&TodoUntil {
                wait_for: "Note".into(),
                from_listener: "b".into(),
                description: "x".into(),
            }),
            Say::Done => {
                let mut open = core.todos.overview().into_iter();
                let own = open.rfind(|todo| todo.thread == job.thread);
                let id = own.map(|todo| todo.id).unwrap_or_default();
                system::canonical(&TodoComplete { id })
            }
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
            Step::Finish { pick, say } => self.finish(*pick, |core, job| {
                let said = say.iter().map(|say| Self::outgoing(core, job, say));
                Outcome::Sent(said.collect())
            }),
            Step::Fail { pick, is_timeout } => self.finish(*pick, |_, _| Outcome::Failed {
                fault: if *is_timeout {
                    Fault::Timeout
                } else {
                    Fault::Handler
                },
                reason: "made so".into(),
                words: String::new(),
            }),
            Step::Garble { pick } => self.finish(*pick, |_, _| Outcome::Garbled {
                attempt: b"?".to_vec(),
                reason: "made so".into(),
            }),
            Step::Inject {
                conversation,
                to,
                key,
            } => self.inject(*conversation, TARGETS[*to], *key),
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
                    let out = Self::outgoing(&self.core, &job, &Say::To(*to));
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

    fn inject(&mut self, conversation: usize, target: &str, key: Option<u8>) {
        let root = self.roots[conversation % self.roots.len()];
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
        let is_seen = key.is_some_and(|key| self.seen.contains(&(root, key)));
        let name = key.map(|key| key.to_string());
        match self.core.send(root, &out, name.as_deref(), self.now) {
            Ok(Some(sent)) => {
                assert!(may && !is_seen);
                self.seen.extend(key.map(|key| (root, key)));
                self.ledger.accepted(request, sent);
            }
            Ok(None) => {
                assert!(is_seen, "only what was accepted before counts once");
                self.reached.insert("a key again");
            }
            Err(told) => {
                assert!(!is_seen || !is_open, "what was accepted stays accepted");
                assert!(!may || told.xml().contains("<code>limit</code>"));
            }
        }
    }

    /// The program ends, and what was kept is all there is.
    fn crash(&mut self) {
        let before = state(&mut self.core);
        if state_has_todos(&self.kept.0) && before["todos"]["todos"] != serde_json::json!({}) {
            self.reached.insert("to-dos in a snapshot");
        }
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
        let effects = self.core.effects();
        self.carry_out(effects, &ran);
        let lines = self.core.take_records();
        self.kept.1.extend(lines);
    }

    fn finish(&mut self, pick: usize, outcome: impl FnOnce(&Core, &Job) -> Outcome) {
        if self.running.is_empty() {
            return;
        }
        let job = self.running.swap_remove(pick % self.running.len());
        let outcome = outcome(&self.core, &job);
        self.ends.finish(&job, &self.parents);
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
        self.carry_out(effects, &HashSet::new());
        over.into_iter().for_each(|id| self.ledger.told_of_end(id));
    }

    /// Does what the pump would do. Those that ran before are not begun anew.
    fn carry_out(&mut self, effects: Vec<Effect>, ran: &HashSet<HopId>) {
        let (mut again, mut rested) = (Vec::new(), Vec::new());
        for effect in effects {
            match effect {
                Effect::Run(job) if ran.contains(&job.id) => again.push(job),
                Effect::Run(job) => self.begin(job),
                Effect::Deliver(arrival) => self.deliver(&arrival),
                Effect::Cancel(cancellation) => cancellation.cancel(),
                Effect::Ended { thread, .. } => self.ends.ended(thread),
                Effect::Rest(root) => rested.push(root),
                Effect::Finished(_) | Effect::Answered { .. } | Effect::Hop(_) => {}
            }
        }
        self.running.extend(again);
        self.check_pruned();
        self.check_rest(&rested);
    }

    fn begin(&mut self, job: Arc<Job>) {
        self.ends.begin(&job);
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

fn state_has_todos(snapshot: &[u8]) -> bool {
    let state: serde_json::Value = serde_json::from_slice(snapshot).unwrap();
    state["todos"]["todos"] != serde_json::json!({})
}

/// Plays a life to its end. Gives what it came to.
fn play((traits, limits, steps): (Vec<Traits>, CoreLimits, Vec<Step>)) -> BTreeSet<&'static str> {
    let mut world = World::new(traits, limits);
    for step in &steps {
        world.take(step);
    }
    world.wind_down();
    world.reached
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_outputs_and_crashes_breaks_the_rules(played in life()) {
        play(played);
    }
}

#[test]
fn lives_that_are_played_come_to_all_that_the_rules_are_about() {
    let config = ProptestConfig::default();
    let seed = TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config, seed);
    let mut lives = BTreeMap::<&'static str, usize>::new();
    for _ in 0..200 {
        for reached in play(life().new_tree(&mut runner).unwrap().current()) {
            *lives.entry(reached).or_default() += 1;
        }
    }
    let seldom = [
        "hops",
        "messages",
        "model_calls",
        "money",
        "seconds",
        "tokens",
    ];
    // So many that a run of another seed comes to them as well.
    let often = ["a key again", "a run is pruned", "to-dos in a snapshot"];
    for (what, least) in seldom
        .map(|s| (s, 1))
        .into_iter()
        .chain(often.map(|o| (o, 20)))
    {
        let count = lives.remove(what).unwrap_or(0);
        assert!(count >= least, "{count} lives come to {what}");
    }
    assert!(lives.is_empty(), "{lives:?}");
}
