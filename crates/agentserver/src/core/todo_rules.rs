//! To-dos: setting them, closing them, nudging.

use super::account::Work;
use super::input::Input;
use super::machine::Core;
use super::message::Job;
use super::rights::Refusal;
use super::threads::ThreadId;
use super::time::Time;
use super::todo::TodoId;
use crate::payload::Canonical;
use crate::system::{self, Fault, TodoClosed, TodoComplete, TodoNudge, TodoRegistered, TodoUntil};

impl Core {
    /// When [`Core::tick`] has something to do.
    pub(crate) fn next_due(&self) -> Option<Time> {
        let deadline = self.accounts.next_deadline();
        self.todos.next_due().into_iter().chain(deadline).min()
    }

    /// Time has passed: ends work whose time is over, and nudges whoever has
    /// to-dos open and is doing nothing.
    pub(crate) fn tick(&mut self, now: Time) {
        self.take_in(now, Input::Tick);
        while let Some(exhausted) = self.accounts.past_deadline(now) {
            let root = self.threads.root(exhausted.holder);
            self.exhaust(exhausted, root.unwrap_or(exhausted.holder));
        }
        let next = now.after(self.limits.nudge);
        while let Some((id, todo)) = self.todos.pop_due(now, next) {
            let (thread, is_raised) = (todo.thread, todo.is_raised);
            if self.threads.is_busy(thread) {
                continue;
            }
            todo.nudges += 1;
            let root = todo.root;
            let work = Work::Nudge(todo.nudges);
            if todo.nudges > self.limits.nudges {
                tracing::warn!(limit = "nudges", %thread, "gave up a to-do that nobody closed");
                let fault = Fault::Timeout.payload();
                // It is not listed any more, and keeps its conversation until it is told.
                let given_up = self.todos.close(id, thread);
                self.on_account(work, root, |core, cause| {
                    core.tell(thread, fault.clone(), &fault, cause);
                });
                if given_up.is_some() {
                    self.threads.close_todo(root, &mut self.ended);
                }
                continue;
            }
            let nudge = TodoNudge {
                id: id.to_string(),
                description: todo.description.clone(),
                is_raised,
            };
            if let Some(entry) = self.owner(thread) {
                let (from, nudge) = (entry.listener.name.clone(), system::canonical(&nudge));
                self.on_account(work, root, |core, cause| {
                    core.acknowledge(thread, from, nudge, cause);
                });
            }
        }
    }

    pub(super) fn open_todo(&mut self, job: &Job, payload: &Canonical) -> Result<(), Refusal> {
        let asked = payload
            .read::<TodoUntil>()
            .map_err(|error| Refusal::new(Fault::Validation, error.to_string()))?;
        if self.todos.count(job.thread) >= self.limits.todos {
            return Err(Refusal::limit("todos", self.limits.todos));
        }
        // Whoever sets a new one at each reminder would never come to an end.
        let nudges = self.accounts.nudges_before(job.cause.account);
        if nudges >= self.limits.nudges {
            let limit = usize::try_from(self.limits.nudges).unwrap_or(usize::MAX);
            return Err(Refusal::limit("nudges", limit));
        }
        let due = self.now.after(self.limits.nudge);
        let id = TodoId::from(self.threads.next_id());
        self.todos
            .open(id, job.thread, job.root, asked.clone(), nudges, due);
        self.threads.conversations.open_todo(job.root);
        // What is waiting to be handled has not been seen either.
        for waiting in self.behind.get(&job.thread).into_iter().flatten() {
            let (from, payload) = (&waiting.from, waiting.payload.root());
            self.todos.arrived(job.thread, from, payload);
        }
        let registered = TodoRegistered {
            id: id.to_string(),
            wait_for: asked.wait_for,
            from_listener: asked.from_listener,
            description: asked.description,
        };
        let registered = system::canonical(&registered);
        self.acknowledge(job.thread, system::TODO_UNTIL.into(), registered, job.cause);
        Ok(())
    }

    pub(super) fn complete_todo(&mut self, job: &Job, payload: &Canonical) -> Result<(), Refusal> {
        let closed = payload
            .read::<TodoComplete>()
            .ok()
            .and_then(|asked| Some((asked.id.trim().to_owned(), TodoId::parse(asked.id.trim())?)))
            .and_then(|(id, todo)| {
                Some(TodoClosed {
                    id,
                    was_raised: self.close_todo(todo, job.thread)?,
                })
            });
        match closed {
            Some(closed) => {
                self.acknowledge(
                    job.thread,
                    system::TODO_COMPLETE.into(),
                    system::canonical(&closed),
                    job.cause,
                );
                Ok(())
            }
            None => Err(
                Refusal::new(Fault::Routing, "no such watcher on this thread")
                    .advise("You have no open to-do with this id."),
            ),
        }
    }

    fn close_todo(&mut self, id: TodoId, thread: ThreadId) -> Option<bool> {
        let todo = self.todos.close(id, thread)?;
        self.threads.close_todo(todo.root, &mut self.ended);
        Some(todo.is_raised)
    }
}
