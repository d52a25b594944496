//! The test's own books: what each message follows from, and what was used by its
//! request, its conversation and each call that it is part of. They are kept from
//! what the test itself wrote into the payloads, not from the pump's accounts.

use super::super::threads::ThreadId;
use super::super::time::Time;
use super::super::{Budget, HopId, Job, Usage};
use std::collections::{HashMap, HashSet};

/// What a message follows from.
#[derive(Debug, Clone)]
pub struct Lineage {
    /// Which message from outside, or of the pump's own, in the order sent.
    pub request: usize,
    /// How many came one after the other, this one included.
    hops: u64,
    conversation: ThreadId,
    /// The calls that it is part of, outermost first.
    calls: Vec<Call>,
}

/// A call, by its thread and its first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Call {
    thread: ThreadId,
    first: HopId,
}

/// Whose work it is that something was used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Work {
    Conversation(ThreadId),
    Request(usize),
    Call(Call),
}

struct Spent {
    budget: Budget,
    used: Usage,
    begun: Time,
    /// Messages one after the other, before the first of this work.
    before: u64,
}

#[derive(Default)]
pub struct Ledger {
    books: HashMap<Work, Spent>,
    lineages: HashMap<HopId, Lineage>,
    requests: usize,
    /// Requests by the id that the pump gave for them.
    by_id: HashMap<HopId, usize>,
    over: HashSet<usize>,
}

/// How a message came to its thread.
pub enum Way {
    /// From the one that the test wrote into it, as a call of the thread.
    Call { from: Lineage },
    /// From a sub-thread that answered.
    Answer { from: Lineage, thread: ThreadId },
    /// Within its own thread.
    Within { from: Lineage },
    /// From the pump, in a thread.
    Told { from: Option<HopId> },
}

impl Ledger {
    pub fn open(&mut self, conversation: ThreadId, budget: Budget, now: Time) {
        self.book(Work::Conversation(conversation), budget, 0, now);
    }

    fn book(&mut self, work: Work, budget: Budget, before: u64, begun: Time) {
        self.books.entry(work).or_insert(Spent {
            budget,
            used: Usage::default(),
            begun,
            before,
        });
    }

    /// A new message, that follows from none.
    pub fn request(&mut self, conversation: ThreadId, budget: Budget, now: Time) -> usize {
        self.requests += 1;
        let request = self.requests;
        self.book(Work::Request(request), budget, 0, now);
        self.book(Work::Conversation(conversation), Budget::default(), 0, now);
        request
    }

    /// The pump has accepted it under this id.
    pub fn accepted(&mut self, request: usize, id: HopId) {
        self.by_id.insert(id, request);
    }

    /// Whoever sent it was told that its budget is used up.
    pub fn told_of_end(&mut self, id: HopId) {
        self.over.extend(self.by_id.get(&id));
    }

    pub fn lineage(&self, hop: HopId) -> Option<&Lineage> {
        self.lineages.get(&hop)
    }

    /// The lineage of a message from outside, before it is one of a call.
    pub fn outside(request: usize, conversation: ThreadId) -> Lineage {
        Lineage {
            request,
            hops: 0,
            conversation,
            calls: Vec::new(),
        }
    }

    /// A handler is given a message: it is paid for, and there was budget for it.
    pub fn begin(&mut self, job: &Job, way: Way, budget: Budget, request: Budget, now: Time) {
        let (hop, thread, conversation) = (job.id, job.thread, job.root);
        let mut lineage = match way {
            Way::Call { mut from } => {
                from.hops += 1;
                let call = Call { thread, first: hop };
                self.book(Work::Call(call), budget, from.hops, now);
                from.calls.push(call);
                from
            }
            Way::Answer { mut from, thread } => {
                from.hops += 1;
                while from.calls.last().is_some_and(|call| call.thread == thread) {
                    from.calls.pop();
                }
                from
            }
            Way::Within { mut from } => {
                from.hops += 1;
                from
            }
            Way::Told { from } => match from.and_then(|hop| self.lineage(hop).cloned()) {
                Some(mut from) => {
                    from.hops += 1;
                    while from.calls.last().is_some_and(|call| call.thread != thread) {
                        from.calls.pop();
                    }
                    from
                }
                None => Self::outside(self.request(conversation, request, now), conversation),
            },
        };
        lineage.conversation = conversation;
        assert!(
            !self.over.contains(&lineage.request),
            "work whose end was told goes on"
        );
        let one = Usage {
            messages: 1,
            ..Usage::default()
        };
        self.charge(&lineage, one);
        for (work, spent) in self.of(&lineage) {
            let Budget {
                hops,
                messages,
                time,
                ..
            } = spent.budget;
            let within = |most: Option<u64>, used: u64| most.is_none_or(|most| used <= most);
            let passed = lineage.hops - spent.before.min(lineage.hops);
            assert!(within(hops, passed), "{work:?} is over its hops");
            assert!(
                within(messages, spent.used.messages),
                "{work:?} is over its messages"
            );
            let is_in_time = time.is_none_or(|time| now.since(spent.begun) < time);
            assert!(is_in_time, "{work:?} is over its time");
        }
        self.lineages.insert(hop, lineage);
    }

    /// A handler may call a model: there was budget for it.
    pub fn model_call(&mut self, hop: HopId) {
        let Some(lineage) = self.lineage(hop).cloned() else {
            return;
        };
        for (work, Spent { budget, used, .. }) in self.of(&lineage) {
            let is_left = |most: Option<u64>, used: u64| most.is_none_or(|most| used < most);
            assert!(
                is_left(budget.model_calls, used.model_calls),
                "{work:?} is over its model calls"
            );
            assert!(
                is_left(budget.tokens, used.tokens),
                "{work:?} is over its tokens"
            );
            assert!(
                is_left(budget.money, used.money),
                "{work:?} is over its money"
            );
        }
        let one = Usage {
            model_calls: 1,
            ..Usage::default()
        };
        self.charge(&lineage, one);
    }

    /// A run has ended, and used this.
    pub fn finish(&mut self, hop: HopId, used: Usage) {
        if let Some(lineage) = self.lineage(hop).cloned() {
            self.charge(&lineage, used);
        }
    }

    fn charge(&mut self, lineage: &Lineage, used: Usage) {
        for work in works(lineage) {
            if let Some(spent) = self.books.get_mut(&work) {
                spent.used.add(used);
            }
        }
    }

    fn of(&self, lineage: &Lineage) -> impl Iterator<Item = (Work, &Spent)> {
        let works: Vec<_> = works(lineage).collect();
        works
            .into_iter()
            .filter_map(|work| Some((work, self.books.get(&work)?)))
    }
}

fn works(lineage: &Lineage) -> impl Iterator<Item = Work> {
    let calls = lineage.calls.clone().into_iter().map(Work::Call);
    calls.chain([
        Work::Request(lineage.request),
        Work::Conversation(lineage.conversation),
    ])
}
