//! What must hold of each message that a handler or a gateway is given.

use super::super::threads::ThreadId;
use super::super::{Arrival, Effect, HopId, Job};
use super::World;
use super::ledger::{Ledger, Lineage, Way};
use super::random::Note;
use crate::payload::Canonical;
use crate::trace::{Hop, HopKind};

impl World {
    pub(super) fn deliver(&mut self, arrival: &Arrival) {
        assert!(self.given.insert(arrival.id), "an answer is given once");
        let kept = self.unacknowledged.entry(arrival.root).or_default();
        kept.push(arrival.id);
        let (root, payload) = (arrival.root, &arrival.payload);
        self.check(&arrival.from, "gate", root, root, false, payload);
    }

    /// Whoever sent a message from outside is told when its budget is used up. Gives
    /// the messages whose work is over.
    pub(super) fn check_ends(&mut self, effects: &[Effect]) -> Vec<HopId> {
        let ends: Vec<_> = effects.iter().filter_map(end_by_budget).collect();
        self.reached.extend(ends.iter().map(|(_, bound)| *bound));
        let (outside, inside): (Vec<_>, Vec<_>) =
            ends.iter().partition(|(hop, _)| *hop.to == *"gate");
        let told = |root: ThreadId| {
            let delivered = effects.iter().filter_map(delivered);
            let told = delivered.filter(|arrival| {
                arrival.root == root && arrival.payload.xml().contains("used up its budget")
            });
            told.collect::<Vec<_>>()
        };
        let mut over = Vec::new();
        for (hop, _) in &outside {
            let root = hop.conversation;
            let of_root = outside
                .iter()
                .filter(|(other, _)| other.conversation == root);
            let told = told(root);
            let is_open = self.core.is_own(root, "gate");
            assert!(!is_open || told.len() >= of_root.count(), "an end is told");
            if inside.is_empty() {
                over.extend(told.iter().filter_map(|arrival| arrival.request));
            }
        }
        over
    }

    /// One message at a time in a thread. Those of a call, and those of a sender, in
    /// the order in which they came; a call's own messages go before the next call.
    pub(super) fn check_turn(&mut self, job: &Job) {
        let mut others = self.running.iter();
        assert!(
            !others.any(|other| other.thread == job.thread),
            "one message at a time"
        );
        let call = self.core.accounts.call_of(job.thread, job.cause.account);
        let of_call = self.last_of_call.insert((job.thread, call), job.id);
        let sender = (job.thread, job.from.clone());
        let of_sender = self.last_of_sender.insert(sender, job.id);
        let is_later = |before: Option<HopId>| before.is_none_or(|before| before < job.id);
        assert!(is_later(of_call), "a call's messages in order");
        // A nudge is from the listener itself and of no call, so it need not wait
        // for the one that runs.
        if !job.is_self_call {
            assert!(is_later(of_sender), "a sender's messages in order");
        }
    }

    pub(super) fn check(
        &mut self,
        from: &str,
        to: &str,
        thread: ThreadId,
        root: ThreadId,
        is_self: bool,
        payload: &Canonical,
    ) -> Option<Way> {
        assert!(
            ThreadId::parse(&thread.to_string()).is_some(),
            "a thread shows nothing but an id"
        );
        assert_eq!(is_self, from.to_lowercase() == to.to_lowercase());
        let Ok(Note { truth }) = payload.read::<Note>() else {
            let sender = match payload.root() {
                "SystemError" | "huh" => "system",
                "TodoRegistered" => "todo-until",
                "TodoClosed" => "todo-complete",
                "TodoNudge" => to,
                root => panic!("only the pump's own payloads hold no truth: {root}"),
            };
            assert_eq!(from, sender);
            return None;
        };
        let truth: Vec<_> = truth.split('|').collect();
        let [sender, sent_in, conversation, target, follows] = truth[..] else {
            panic!("{truth:?}")
        };
        let sent_in = ThreadId::parse(sent_in).unwrap();
        assert_eq!(from, sender, "the sender's own name, always");
        assert_eq!(root.to_string(), conversation, "conversations do not mix");

        let from = self.lineage(sender, root, follows);
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
            self.ends.answered(follows);
            return Some(Way::Answer {
                from,
                thread: sent_in,
            });
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
        Some(match thread == sent_in {
            true => Way::Within { from },
            false => Way::Call { from },
        })
    }

    /// What a message follows from, as the test wrote it.
    fn lineage(&self, sender: &str, root: ThreadId, follows: &str) -> Lineage {
        let number = || follows.parse().unwrap();
        match sender {
            "gate" => Ledger::outside(number(), root),
            _ => {
                let hop = HopId::parse(follows).unwrap();
                self.ledger.lineage(hop).unwrap().clone()
            }
        }
    }
}

/// The hop that tells of a budget's end, and the bound.
fn end_by_budget(effect: &Effect) -> Option<(&Hop, &'static str)> {
    match effect {
        Effect::Hop(hop) => match hop.kind {
            HopKind::Exhausted { limit, .. } => Some((&**hop, limit)),
            _ => None,
        },
        _ => None,
    }
}

fn delivered(effect: &Effect) -> Option<&Arrival> {
    match effect {
        Effect::Deliver(arrival) => Some(arrival),
        _ => None,
    }
}
