//! Watchers: setting them, closing them, nudging.

use super::machine::Core;
use super::message::Job;
use super::rights::Refusal;
use super::threads::ThreadId;
use crate::payload::Canonical;
use crate::system::{self, Fault, TodoClosed, TodoComplete, TodoNudge, TodoRegistered, TodoUntil};
use std::time::Instant;
use uuid::Uuid;

impl Core {
    /// When [`Core::tick`] has something to do.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.todos.next_due()
    }

    /// Time has passed: nudges whoever has watchers open and is doing nothing.
    pub(crate) fn tick(&mut self, now: Instant) {
        let next = now + self.limits.nudge;
        while let Some((id, todo)) = self.todos.pop_due(now, next) {
            let (thread, is_raised) = (todo.thread, todo.is_raised);
            if self.threads.is_busy(thread) {
                continue;
            }
            todo.nudges += 1;
            if todo.nudges > self.limits.nudges {
                self.close_todo(id, thread);
                self.tell(thread, Fault::Timeout.payload(), Fault::Timeout);
                continue;
            }
            let nudge = TodoNudge {
                id: id.to_string(),
                description: todo.description.clone(),
                is_raised,
            };
            if let Some(entry) = self.owner(thread) {
                self.acknowledge(
                    thread,
                    entry.listener.name.clone(),
                    system::canonical(&nudge),
                );
            }
        }
    }

    pub(super) fn open_todo(
        &mut self,
        job: &Job,
        payload: &Canonical,
        now: Instant,
    ) -> Result<(), Refusal> {
        let asked = payload
            .read::<TodoUntil>()
            .map_err(|error| Refusal::new(Fault::Validation, error.to_string()))?;
        if self.todos.count(job.thread) >= self.limits.todos {
            return Err(Refusal::new(
                Fault::Routing,
                "too many watchers on this thread",
            ));
        }
        let id = self
            .todos
            .open(job.thread, job.root, asked, now + self.limits.nudge);
        self.threads.watch(job.root);
        let registered = TodoRegistered { id: id.to_string() };
        self.acknowledge(
            job.thread,
            system::TODO_UNTIL.into(),
            system::canonical(&registered),
        );
        Ok(())
    }

    pub(super) fn complete_todo(&mut self, job: &Job, payload: &Canonical) -> Result<(), Refusal> {
        let closed = payload
            .read::<TodoComplete>()
            .ok()
            .and_then(|asked| {
                Some((
                    asked.id.trim().to_owned(),
                    Uuid::try_parse(asked.id.trim()).ok()?,
                ))
            })
            .and_then(|(id, uuid)| {
                Some(TodoClosed {
                    id,
                    was_raised: self.close_todo(uuid, job.thread)?,
                })
            });
        match closed {
            Some(closed) => {
                self.acknowledge(
                    job.thread,
                    system::TODO_COMPLETE.into(),
                    system::canonical(&closed),
                );
                Ok(())
            }
            None => Err(Refusal::new(
                Fault::Routing,
                "no such watcher on this thread",
            )),
        }
    }

    fn close_todo(&mut self, id: Uuid, thread: ThreadId) -> Option<bool> {
        let todo = self.todos.close(id, thread)?;
        self.threads.unwatch(todo.root, &mut self.ended);
        Some(todo.is_raised)
    }
}
