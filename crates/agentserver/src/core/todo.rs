//! To-dos: what listeners asked to be reminded of.

use super::ids::{IdMap, opaque_id};
use super::overview::OpenTodo;
use super::threads::ThreadId;
use super::time::Time;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

opaque_id! {
    /// A to-do's id.
    pub struct TodoId;
}

/// One to-do of one thread.
#[derive(Serialize, Deserialize)]
pub struct Todo {
    pub thread: ThreadId,
    pub root: ThreadId,
    pub wait_for: String,
    pub from_listener: String,
    pub description: String,
    pub is_raised: bool,
    /// How often it has reminded, and those that led to it.
    pub nudges: u32,
    due: Time,
}

impl Todo {
    /// Whether a message is what it waits for. No name is anybody's.
    fn awaits(&self, from: &str, payload: &str) -> bool {
        let is_same = |one: &str, other: &str| one.trim().to_lowercase() == other.to_lowercase();
        let is_from = self.from_listener.trim().is_empty() || is_same(&self.from_listener, from);
        is_from && is_same(&self.wait_for, payload)
    }
}

#[derive(Default, Serialize, Deserialize)]
pub struct Todos {
    todos: IdMap<TodoId, Todo>,
    by_thread: IdMap<ThreadId, Vec<TodoId>>,
    due: BTreeSet<(Time, TodoId)>,
}

impl Todos {
    pub fn open(
        &mut self,
        id: TodoId,
        thread: ThreadId,
        root: ThreadId,
        asked: crate::system::TodoUntil,
        nudges: u32,
        due: Time,
    ) {
        let todo = Todo {
            thread,
            root,
            wait_for: asked.wait_for,
            from_listener: asked.from_listener,
            description: asked.description,
            is_raised: false,
            nudges,
            due,
        };
        self.todos.insert(id, todo);
        self.by_thread.entry(thread).or_default().push(id);
        self.due.insert((due, id));
    }

    /// Closes a to-do, which only its own thread can.
    pub fn close(&mut self, id: TodoId, thread: ThreadId) -> Option<Todo> {
        if self.todos.get(&id)?.thread != thread {
            return None;
        }
        if let Some(ids) = self.by_thread.get_mut(&thread) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_thread.remove(&thread);
            }
        }
        self.remove(id)
    }

    /// A thread ended, and its to-dos with it.
    pub fn end_thread(&mut self, thread: ThreadId) -> Vec<Todo> {
        let ids = self.by_thread.remove(&thread).unwrap_or_default();
        ids.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    fn remove(&mut self, id: TodoId) -> Option<Todo> {
        let todo = self.todos.remove(&id)?;
        self.due.remove(&(todo.due, id));
        Some(todo)
    }

    /// A message reaches a thread: to-dos that wait for it are raised.
    pub fn arrived(&mut self, thread: ThreadId, from: &str, payload: &str) {
        for id in self.by_thread.get(&thread).into_iter().flatten() {
            if let Some(todo) = self.todos.get_mut(id) {
                todo.is_raised |= todo.awaits(from, payload);
            }
        }
    }

    /// How many to-dos a thread has.
    pub fn count(&self, thread: ThreadId) -> usize {
        self.by_thread.get(&thread).map_or(0, Vec::len)
    }

    /// The open to-dos of a thread, for its prompt.
    pub fn reminder(&self, thread: ThreadId) -> Option<String> {
        let ids = self.by_thread.get(&thread)?;
        let mut text = String::from("\n\nOpen to-dos of yours:\n");
        for (id, todo) in ids.iter().filter_map(|id| Some((id, self.todos.get(id)?))) {
            let state = match todo.is_raised {
                true => {
                    "what it waits for has arrived; close it with <TodoComplete> when it is done"
                }
                false => "still waiting",
            };
            text.push_str(&format!("- {id}: {} ({state})\n", todo.description));
        }
        Some(text)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.todos.len()
    }

    /// All of them; their owners are not known here.
    pub fn overview(&self) -> Vec<OpenTodo> {
        let mut open: Vec<_> = self
            .todos
            .iter()
            .map(|(id, todo)| OpenTodo {
                id: id.to_string(),
                thread: todo.thread,
                owner: None,
                wait_for: todo.wait_for.clone(),
                from_listener: todo.from_listener.clone(),
                description: todo.description.clone(),
                is_raised: todo.is_raised,
            })
            .collect();
        open.sort_by(|a, b| a.id.cmp(&b.id));
        open
    }

    pub fn next_due(&self) -> Option<Time> {
        self.due.first().map(|(due, _)| *due)
    }

    /// A to-do whose time has come, set to come again at `next`.
    pub fn pop_due(&mut self, now: Time, next: Time) -> Option<(TodoId, &mut Todo)> {
        let (due, id) = *self.due.first()?;
        if due > now {
            return None;
        }
        self.due.pop_first();
        let todo = self.todos.get_mut(&id)?;
        todo.due = next;
        self.due.insert((next, id));
        Some((id, todo))
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.todos.is_empty() && self.by_thread.is_empty() && self.due.is_empty()
    }
}
