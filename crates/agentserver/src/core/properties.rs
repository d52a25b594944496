//! Whatever handlers give back, the pump sends nothing in another's name,
//! reaches nobody it may not, answers in the right thread and keeps nothing. And
//! wherever a crash comes, the inputs that were kept lead to the same state.

use super::accounts::AccountId;
use super::notes;
use super::threads::ThreadId;
use super::time::Time;
use super::{
    Budget, Core, CoreLimits, Effect, Fit, Form, HopId, Job, Outcome, Outgoing, Record, Usage,
};
use crate::handler::Target;
use crate::system::{Fault, TodoUntil};
use crate::xml::Limits;
use crate::{Gateway, Listener, Organism, Payload, payload::Canonical, system};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

#[derive(Payload, Debug)]
struct Note {
    /// Everything the receiver needs to find the pump out, written by the test.
    truth: String,
}

const NAMES: [&str; 5] = ["a", "a.b", "b", "c", "C.d"];
/// Also names that are no listener's, or not one that may be sent to.
const TARGETS: [&str; 11] = [
    "a",
    "A.B",
    "b",
    "C",
    "c.d",
    "gate",
    "system",
    "nobody",
    "todo-until",
    "todo-complete",
    "",
];

#[derive(Debug, Clone)]
struct Traits {
    is_agent: bool,
    is_broadcast: bool,
    hears: bool,
    concurrency: usize,
    /// Which of `NAMES`; one past the end is `todo-until`.
    peers: HashSet<usize>,
}

#[derive(Debug, Clone)]
enum Say {
    To(usize),
    Caller,
    ByType,
    Forged,
    Invalid(usize),
    Todo,
}

#[derive(Debug, Clone)]
enum Step {
    Finish { pick: usize, say: Vec<Say> },
    Fail { pick: usize, is_timeout: bool },
    Garble { pick: usize },
    Inject { conversation: usize, to: usize },
    Close { conversation: usize },
    Acknowledge { conversation: usize },
    Ask { pick: usize, to: usize },
    Tick,
    Snapshot,
    Crash,
}

fn traits() -> impl Strategy<Value = Traits> {
    (
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        1..4usize,
        prop::collection::hash_set(0..=NAMES.len(), 0..4),
    )
        .prop_map(
            |(is_agent, is_broadcast, hears, concurrency, peers)| Traits {
                is_agent,
                is_broadcast,
                hears,
                concurrency,
                peers,
            },
        )
}

fn say() -> impl Strategy<Value = Say> {
    prop_oneof![
        6 => (0..TARGETS.len()).prop_map(Say::To),
        3 => Just(Say::Caller),
        2 => Just(Say::ByType),
        1 => Just(Say::Forged),
        1 => (0..TARGETS.len()).prop_map(Say::Invalid),
        1 => Just(Say::Todo),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (any::<usize>(), prop::collection::vec(say(), 0..3)).prop_map(|(pick, say)| Step::Finish { pick, say }),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(pick, is_timeout)| Step::Fail { pick, is_timeout }),
        1 => any::<usize>().prop_map(|pick| Step::Garble { pick }),
        3 => (any::<usize>(), 0..TARGETS.len()).prop_map(|(conversation, to)| Step::Inject { conversation, to }),
        1 => any::<usize>().prop_map(|conversation| Step::Close { conversation }),
        1 => any::<usize>().prop_map(|conversation| Step::Acknowledge { conversation }),
        2 => (any::<usize>(), 0..TARGETS.len()).prop_map(|(pick, to)| Step::Ask { pick, to }),
        1 => Just(Step::Tick),
        1 => Just(Step::Snapshot),
        2 => Just(Step::Crash),
    ]
}

/// What a run keeps for its thread: whose it is.
fn note(job: &Job) -> notes::Note {
    notes::Note {
        list: "own".into(),
        text: job.thread.to_string().into(),
        forget: job.id.number() as usize % 3,
    }
}

struct World {
    core: Core,
    traits: Vec<Traits>,
    running: Vec<Arc<Job>>,
    /// The last state that was kept, and the inputs since.
    kept: (Vec<u8>, Vec<u8>),
    /// Answers that were given to gateways.
    given: HashSet<HopId>,
    roots: Vec<ThreadId>,
    /// Whose a thread is and who called it, learnt from calls alone.
    parents: HashMap<ThreadId, ThreadId>,
    owners: HashMap<ThreadId, String>,
    /// Messages that reached listeners, by conversation.
    handled: HashMap<ThreadId, u64>,
    /// The last message that each thread was given.
    /// The last message of each call that began.
    last_of_call: HashMap<(ThreadId, Option<AccountId>), HopId>,
    /// The last message of each sender that began.
    last_of_sender: HashMap<(ThreadId, Arc<str>), HopId>,
    now: Time,
}

fn organism(traits: &[Traits]) -> Organism {
    let listeners = NAMES.iter().zip(traits).map(|(name, traits)| {
        let peers = traits
            .peers
            .iter()
            .map(|peer| NAMES.get(*peer).copied().unwrap_or("todo-until"));
        let listener = Listener::named(name)
            .agent(traits.is_agent)
            .broadcast(traits.is_broadcast)
            .concurrency(traits.concurrency)
            .peers(peers)
            .on(|_: Note, _| async { Ok(()) });
        match traits.hears {
            true => listener.on_system(|_, _| async { Ok(()) }),
            false => listener,
        }
    });
    Organism::new("test", listeners, [Gateway::named("gate", ["a", "b"])]).unwrap()
}

impl World {
    fn new(traits: Vec<Traits>) -> Self {
        let limits = CoreLimits {
            depth: 6,
            in_flight: 40,
            backlog: 60,
            request: Budget {
                hops: Some(30),
                messages: Some(100),
                time: Some(Duration::from_secs(200)),
                ..Budget::default()
            },
            conversation: Budget {
                messages: Some(400),
                ..Budget::default()
            },
            refusals: 3,
            todos: 3,
            ..CoreLimits::default()
        };
        let now = Time::default();
        let mut core = Core::new(Arc::new(organism(&traits)), limits);
        core.keep_records();
        let kept = core.snapshot().unwrap();
        let open = |_| core.open("GATE", None, now).unwrap();
        let roots: Vec<_> = (0..3).map(open).collect();
        let kept = (kept, core.take_records());
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
            roots,
            parents: HashMap::new(),
            owners,
            last_of_call: HashMap::new(),
            last_of_sender: HashMap::new(),
            handled: HashMap::new(),
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

    fn note(sender: &str, thread: ThreadId, root: ThreadId, target: &str) -> Canonical {
        let truth = format!("{sender}|{thread}|{root}|{target}");
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
            _ => Self::note(&job.entry.listener.name, job.thread, job.root, word),
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
                let payload = Self::note("gate", root, root, target);
                let out = Outgoing {
                    target: Target::Named(target.to_owned()),
                    payload,
                    form: Form::Text,
                    fit: Fit::Valid,
                };
                let is_open = self.core.is_own(root, "gate");
                let may = is_open && self.may_call("gate", target);
                match self.core.send(root, &out, None, self.now) {
                    Ok(sent) => assert!(may && sent.is_some()),
                    Err(told) => assert!(!may || told.xml().contains("<code>limit</code>")),
                }
            }
            Step::Close { conversation } => {
                let root = self.roots[conversation % self.roots.len()];
                self.core.close(root, self.now);
            }
            Step::Acknowledge { conversation } => {
                let root = self.roots[conversation % self.roots.len()];
                if let Some(arrival) = self.core.unacknowledged(root).first() {
                    self.core.acknowledge_answer(root, arrival.id, self.now);
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
                Effect::Deliver(arrival) => assert!(self.given.insert(arrival.id)),
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
        let notes = [note(&job)];
        self.core
            .finish(job.id, outcome, Usage::default(), &notes, self.now);
    }

    /// Checks everything that the pump would now do.
    fn observe(&mut self) {
        let effects = self.core.effects();
        let records = self.core.take_records();
        self.kept.1.extend(records);
        for effect in effects {
            match effect {
                Effect::Run(job) => self.begin(job),
                Effect::Deliver(arrival) => {
                    assert!(self.given.insert(arrival.id), "an answer is given once");
                    self.check(
                        &arrival.from,
                        "gate",
                        arrival.root,
                        arrival.root,
                        false,
                        &arrival.payload,
                    );
                }
                Effect::Cancel(cancellation) => cancellation.cancel(),
                Effect::Ended { .. }
                | Effect::Rest(_)
                | Effect::Finished(_)
                | Effect::Answered { .. }
                | Effect::Hop(_) => {}
            }
        }
    }

    fn begin(&mut self, job: Arc<Job>) {
        let noted = job.notes.iter().flat_map(|notes| notes.list("own"));
        let owner = job.thread.to_string();
        noted.for_each(|note| assert_eq!(**note, *owner, "another thread's note"));
        let name = job.entry.listener.name.clone();
        self.check(
            &job.from,
            &name,
            job.thread,
            job.root,
            job.is_self_call,
            &job.payload,
        );
        let running = self.running.iter();
        let at_once = running.filter(|other| other.entry.key == job.entry.key);
        let waiting = self.core.waiting_for_answers(&job.entry.key);
        assert!(at_once.count() < self.traits_of(&name).concurrency + waiting);
        self.check_turn(&job);
        self.running.push(job);
    }

    /// One message at a time in a thread, and no more of them than there is budget
    /// for. Those of a call, and those of a sender, in the order in which they came;
    /// a call's own messages go before the next call.
    fn check_turn(&mut self, job: &Job) {
        let mut others = self.running.iter();
        assert!(
            !others.any(|other| other.thread == job.thread),
            "one message at a time"
        );
        let call = self.core.accounts.call_of(job.thread, job.cause.account);
        let of_call = self.last_of_call.insert((job.thread, call), job.id);
        let sender = (job.thread, job.from.clone());
        let of_sender = self.last_of_sender.insert(sender, job.id);
        if !self.todos_may_interrupt(job) {
            let is_later = |before: Option<HopId>| before.is_none_or(|before| before < job.id);
            assert!(is_later(of_call), "a call's messages in order");
            assert!(is_later(of_sender), "a sender's messages in order");
        }
        let handled = self.handled.entry(job.root).or_default();
        *handled += 1;
        assert!(*handled <= 400, "no more than the conversation's budget");
    }

    /// A nudge belongs to no call, so it need not wait for the one that runs.
    fn todos_may_interrupt(&self, job: &Job) -> bool {
        self.traits_of(&job.entry.listener.name).hears
    }

    fn check(
        &mut self,
        from: &str,
        to: &str,
        thread: ThreadId,
        root: ThreadId,
        is_self: bool,
        payload: &Canonical,
    ) {
        assert!(
            ThreadId::parse(&thread.to_string()).is_some(),
            "a thread shows nothing but an id"
        );
        assert_eq!(is_self, from.to_lowercase() == to.to_lowercase());
        let Ok(Note { truth }) = payload.read::<Note>() else {
            let is_system =
                ["SystemError", "huh", "TodoRegistered", "TodoNudge"].contains(&payload.root());
            assert!(is_system, "only the pump's own payloads hold no truth");
            let is_nudge = payload.root() == "TodoNudge" && from == to;
            assert!(is_nudge || from == "system" || from == "todo-until");
            return;
        };
        let truth: Vec<_> = truth.split('|').collect();
        let [sender, sent_in, conversation, target] = truth[..] else {
            panic!("{truth:?}")
        };
        let sent_in = ThreadId::parse(sent_in).unwrap();
        assert_eq!(from, sender, "the sender's own name, always");
        assert_eq!(root.to_string(), conversation, "conversations do not mix");

        let caller = self.parents.get(&sent_in).copied();
        let is_answer = caller == Some(thread);
        if is_answer {
            let by_name = !matches!(target, "^" | "*");
            if by_name && !self.may_call(sender, to) {
                assert!(
                    !self.traits_of(sender).is_agent,
                    "an agent names its peers alone"
                );
                assert_eq!(target.to_lowercase(), to.to_lowercase());
            }
            return;
        }
        assert_ne!(
            target, "^",
            "an answer reaches the caller's thread and no other"
        );
        assert!(
            self.may_call(sender, to),
            "{sender} reached {to}, which is no peer"
        );
        if target != "*" {
            assert_eq!(target.to_lowercase(), to.to_lowercase());
        }
        match self.owners.get(&thread) {
            None => {
                self.owners.insert(thread, to.to_owned());
                self.parents.insert(thread, sent_in);
            }
            Some(owner) => {
                assert_eq!(owner, to, "a thread has one listener");
                let is_own = thread == sent_in && is_self;
                assert!(
                    is_own || self.parents.get(&thread) == Some(&sent_in),
                    "and one caller"
                );
            }
        }
    }

    /// Closes everything and lets what runs come to an end.
    fn wind_down(&mut self) {
        for root in self.roots.clone() {
            self.core.close(root, self.now);
        }
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_outputs_and_crashes_breaks_the_rules(
        traits in prop::collection::vec(traits(), NAMES.len()),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut world = World::new(traits);
        for step in &steps {
            world.take(step);
        }
        world.wind_down();
    }
}
