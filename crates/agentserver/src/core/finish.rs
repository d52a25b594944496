//! What comes from handlers: that one wants to call a model, and how its run
//! ended.

use super::budget::Usage;
use super::input::Input;
use super::machine::{Core, Running};
use super::message::{HopId, Job, Outcome, Outgoing};
use super::notes::Note;
use super::rights::{Refusal, Rights, Route, route};
use super::time::Time;
use crate::system::{self, Fault};
use crate::trace::HopKind;
use std::borrow::Cow;

impl Core {
    /// A handler wants to call a model. Not while its budget has nothing left;
    /// then the work is over.
    pub(crate) fn admit_model_call(&mut self, hop: HopId, now: Time) -> Result<(), String> {
        self.take_in(now, Input::ModelCall { hop });
        let Some(job) = self.running.get(&hop).map(|running| running.job.clone()) else {
            return Err("the work is over".to_owned());
        };
        if self.accounts.is_over(job.cause.account) || !self.threads.is_alive(job.thread) {
            return Err("nobody waits for this work any more".to_owned());
        }
        if let Err(exhausted) = self.accounts.admit_model_call(job.cause) {
            self.exhaust(exhausted, job.root);
            return Err(format!("the budget of {} is used up", exhausted.bound));
        }
        if let Some(running) = self.running.get_mut(&hop) {
            running.model_calls += 1;
        }
        Ok(())
    }

    /// A handler has finished, used this much on its way, and keeps these notes
    /// unless it failed.
    pub(crate) fn finish(
        &mut self,
        hop: HopId,
        outcome: Outcome,
        used: Usage,
        notes: &[Note],
        now: Time,
    ) {
        let input = Input::Finish {
            hop,
            outcome: Cow::Borrowed(&outcome),
            used,
            notes: Cow::Borrowed(notes),
        };
        self.take_in(now, input);
        if let Some(running) = self.running.get(&hop)
            && !matches!(outcome, Outcome::Failed { .. })
        {
            self.threads.note(running.job.thread, notes);
        }
        self.end_run(hop, outcome, used);
    }

    pub(super) fn end_run(&mut self, hop: HopId, outcome: Outcome, used: Usage) {
        let Some(running) = self.running.remove(&hop) else {
            return;
        };
        let fault = match &outcome {
            Outcome::Failed { fault, .. } => Some(*fault),
            Outcome::Sent(_) | Outcome::Garbled { .. } => None,
        };
        self.handled(&running, used, fault);
        let Running {
            job, asks, asked, ..
        } = running;
        self.parent = Some(hop);
        match asks {
            0 => self.queues.done(&job.entry.key),
            _ => self.forget_all(&asked),
        }
        let job = &*job;
        self.accounts.charge(job.cause.account, used);
        let is_over = self.accounts.is_over(job.cause.account);
        if self.threads.is_alive(job.thread) && !is_over {
            match outcome {
                Outcome::Sent(messages) => self.send_all(job, messages),
                Outcome::Garbled { attempt, reason } => {
                    let huh = system::huh(&attempt, &reason);
                    let refusal = Refusal::new(Fault::Validation, reason);
                    let (from, to) = (&job.entry.listener.name, &"?".into());
                    self.hop(job.root, from, to, &job.payload, refusal.kind());
                    self.refuse(job, vec![(huh, Fault::Validation)]);
                }
                Outcome::Failed {
                    fault,
                    reason,
                    words,
                } => {
                    let kind = HopKind::Failed { fault, reason };
                    let (from, to) = (&job.entry.listener.name, &job.from);
                    self.hop(job.root, from, to, &job.payload, kind);
                    self.fail(job.thread, fault.saying(&words), fault, job.cause);
                }
            }
        } else {
            let name = &job.entry.listener.name;
            self.hop(job.root, name, name, &job.payload, HopKind::Ended);
        }
        self.done(job);
    }

    /// Answers go before new calls, so that a call in the same breath survives
    /// the pruning.
    fn send_all(&mut self, job: &Job, messages: Vec<Outgoing>) {
        let entry = self.current(job);
        let rights = Rights {
            peers: &entry.peers,
            is_agent: entry.listener.is_agent,
            caller: job.caller.clone(),
            answers: entry.listener.answer.as_ref(),
        };
        let mut routed: Vec<_> = messages
            .into_iter()
            .map(|out| {
                let route = route(&self.organism, &rights, &out);
                (out, route)
            })
            .collect();
        routed.sort_by_key(|(_, route)| !matches!(route, Ok(Route::Caller)));
        let mut refused = Vec::new();
        for (out, route) in routed {
            if let Err(refusal) = route.and_then(|route| self.carry(job, route, &out)) {
                let (from, to) = (&job.entry.listener.name, &out.target_name());
                self.hop(job.root, from, to, &out.payload, refusal.kind());
                refused.push((refusal.payload(&out), refusal.fault));
            }
        }
        match refused.is_empty() {
            true => self.threads.went_through(job.thread),
            false => self.refuse(job, refused),
        }
    }

    fn carry(&mut self, job: &Job, route: Route, out: &Outgoing) -> Result<(), Refusal> {
        match route {
            Route::Caller => self.respond(job, out),
            Route::Listeners(entries) => entries.iter().try_for_each(|entry| {
                if self.threads.conversations.in_flight(job.root) > self.limits.backlog {
                    return Err(Refusal::limit("backlog", self.limits.backlog));
                }
                let from = job.entry.listener.name.clone();
                let cause = job.cause.next();
                self.forward(job.thread, entry, from, out.payload.clone(), cause)
            }),
            Route::TodoUntil => self.open_todo(job, &out.payload),
            Route::TodoComplete => self.complete_todo(job, &out.payload),
        }
    }
}
