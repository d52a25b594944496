//! What is played: random organisms, budgets, outputs and crashes.

use super::super::{Budget, CoreLimits, Job, notes};
use crate::{Gateway, Listener, Organism, Payload};
use proptest::prelude::*;
use std::collections::HashSet;
use std::time::Duration;

#[derive(Payload, Debug)]
pub struct Note {
    /// Everything the receiver needs to find the pump out, written by the test.
    pub truth: String,
}

pub const NAMES: [&str; 5] = ["a", "a.b", "b", "c", "C.d"];
/// Where to-dos are kept, and which peers they are.
const WATCHERS: [&str; 2] = ["todo-until", "todo-complete"];
const TODOS: [usize; 2] = [NAMES.len(), NAMES.len() + 1];
/// Also names that are no listener's, or not one that may be sent to.
pub const TARGETS: [&str; 11] = [
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
pub struct Traits {
    pub is_agent: bool,
    pub is_broadcast: bool,
    pub is_concurrent: bool,
    pub hears: bool,
    pub concurrency: usize,
    pub budget: Budget,
    /// Which of `NAMES`; those past the end are `todo-until` and `todo-complete`.
    pub peers: HashSet<usize>,
}

#[derive(Debug, Clone)]
pub enum Say {
    To(usize),
    Caller,
    ByType,
    Forged,
    Invalid(usize),
    Todo,
    /// Closes a to-do of the thread.
    Done,
}

#[derive(Debug, Clone)]
pub enum Step {
    Finish {
        pick: usize,
        say: Vec<Say>,
    },
    Fail {
        pick: usize,
        is_timeout: bool,
    },
    Garble {
        pick: usize,
    },
    Inject {
        conversation: usize,
        to: usize,
        key: Option<u8>,
    },
    Close {
        conversation: usize,
    },
    Acknowledge {
        conversation: usize,
    },
    Ask {
        pick: usize,
        to: usize,
    },
    ModelCall {
        pick: usize,
        tokens: u64,
        money: u64,
    },
    Tick,
    Snapshot,
    Crash,
}

/// Budgets that a short run can use up; each bound is there or is not.
fn budget(scale: u64) -> impl Strategy<Value = Budget> {
    let bound = |most: u64| prop::option::weighted(0.4, most..4 * most);
    (
        bound(scale),
        bound(3 * scale),
        bound(scale),
        bound(scale),
        bound(scale),
        prop::option::weighted(0.4, 50..250u64),
    )
        .prop_map(
            |(hops, messages, model_calls, tokens, money, seconds)| Budget {
                hops,
                messages,
                model_calls,
                tokens,
                money,
                time: seconds.map(Duration::from_secs),
            },
        )
}

fn traits() -> impl Strategy<Value = Traits> {
    (
        any::<[bool; 3]>(),
        prop::bool::weighted(0.2),
        1..4usize,
        budget(1),
        prop::collection::hash_set(0..NAMES.len(), 0..4),
        any::<bool>(),
    )
        .prop_map(
            |(
                [is_agent, is_broadcast, hears],
                is_concurrent,
                concurrency,
                budget,
                peers,
                has_todos,
            )| Traits {
                is_agent,
                is_broadcast,
                is_concurrent,
                hears,
                concurrency,
                budget,
                peers: match has_todos {
                    true => peers.into_iter().chain(TODOS).collect(),
                    false => peers,
                },
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
        3 => Just(Say::Todo),
        1 => Just(Say::Done),
    ]
}

/// Whom a message from outside is for: mostly one that the gateway may send to.
fn entrance() -> impl Strategy<Value = usize> {
    prop_oneof![3 => prop::sample::select(vec![0, 2]), 1 => 0..TARGETS.len()]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (any::<usize>(), prop::collection::vec(say(), 0..3)).prop_map(|(pick, say)| Step::Finish { pick, say }),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(pick, is_timeout)| Step::Fail { pick, is_timeout }),
        1 => any::<usize>().prop_map(|pick| Step::Garble { pick }),
        4 => (any::<usize>(), entrance(), prop::option::weighted(0.4, 0..2u8))
            .prop_map(|(conversation, to, key)| Step::Inject { conversation, to, key }),
        1 => any::<usize>().prop_map(|conversation| Step::Close { conversation }),
        2 => any::<usize>().prop_map(|conversation| Step::Acknowledge { conversation }),
        2 => (any::<usize>(), 0..TARGETS.len()).prop_map(|(pick, to)| Step::Ask { pick, to }),
        8 => (any::<usize>(), 0..9u64, 0..9u64).prop_map(|(pick, tokens, money)| Step::ModelCall { pick, tokens, money }),
        1 => Just(Step::Tick),
        3 => Just(Step::Snapshot),
        2 => Just(Step::Crash),
    ]
}

/// An organism's listeners, its limits, and what happens to it.
pub fn life() -> impl Strategy<Value = (Vec<Traits>, CoreLimits, Vec<Step>)> {
    (
        prop::collection::vec(traits(), NAMES.len()),
        limits(),
        prop::collection::vec(step(), 1..120),
    )
}

fn limits() -> impl Strategy<Value = CoreLimits> {
    (budget(3), budget(8)).prop_map(|(request, conversation)| CoreLimits {
        depth: 6,
        in_flight: 40,
        backlog: 60,
        request,
        conversation,
        refusals: 3,
        todos: 3,
        // They come to an end where no budget ends them.
        nudges: 4,
        ..CoreLimits::default()
    })
}

pub fn organism(traits: &[Traits]) -> Organism {
    let listeners = NAMES.iter().zip(traits).map(|(name, traits)| {
        let peers = traits
            .peers
            .iter()
            .map(|peer| NAMES.iter().chain(&WATCHERS).nth(*peer).copied());
        let listener = Listener::named(name)
            .agent(traits.is_agent)
            .broadcast(traits.is_broadcast)
            .concurrency(traits.concurrency)
            .budget(traits.budget)
            .concurrent(traits.is_concurrent)
            .on_thread_end(|_| {})
            .peers(peers.flatten())
            .on(|_: Note, _| async { Ok(()) });
        match traits.hears {
            true => listener.on_system(|_, _| async { Ok(()) }),
            false => listener,
        }
    });
    Organism::new("test", listeners, [Gateway::named("gate", ["a", "b"])]).unwrap()
}

/// What a run keeps for its thread: whose it is.
pub fn note(job: &Job) -> notes::Note {
    notes::Note {
        list: "own".into(),
        text: job.thread.to_string().into(),
        forget: job.id.number() as usize % 3,
    }
}
