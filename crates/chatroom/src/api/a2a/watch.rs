//! Following a task: the room's own stream tells when to look, and what agents write meanwhile.

use super::operations::Sent;
use crate::{
    api::mcp::Following,
    app::App,
    auth::Caller,
    services::a2a::tasks::{self, LoadedTask},
};
use futures_util::{Stream, stream};
use protocol::{
    AgentDelta, AgentTyping, Event,
    a2a::{Artifact, Message, Part, StreamResponse, Task, TaskDiff, TaskState},
};
use std::{
    collections::{BTreeMap, VecDeque},
    net::IpAddr,
    time::Duration,
};
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// What ends a task may be no message: it is looked at so often whatever happens.
const RELOAD_EVERY: Duration = Duration::from_secs(2);

/// A task that is followed.
pub struct Watch {
    app: App,
    caller: Caller,
    ip: IpAddr,
    task: LoadedTask,
    following: Following,
    reloads: Interval,
    told: TaskDiff,
    /// What agents have written so far.
    growing: BTreeMap<String, String>,
    /// What an agent does.
    doing: Option<String>,
    ready: VecDeque<StreamResponse>,
    ended: bool,
}

impl From<Watch> for Sent {
    fn from(watch: Watch) -> Self {
        Self {
            task: watch.task,
            caller: watch.caller,
            following: None,
        }
    }
}

impl Watch {
    pub fn new(
        app: App,
        caller: Caller,
        ip: IpAddr,
        task: LoadedTask,
        following: Following,
    ) -> Self {
        let first = task.to_task();
        let mut reloads = tokio::time::interval_at(Instant::now() + RELOAD_EVERY, RELOAD_EVERY);
        reloads.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            app,
            caller,
            ip,
            following,
            reloads,
            told: TaskDiff::all_of(&first),
            growing: BTreeMap::new(),
            doing: None,
            ended: task.status.state.is_terminal(),
            ready: VecDeque::from([StreamResponse::Task(first)]),
            task,
        }
    }

    /// The task, then whatever changes until it is over.
    pub fn events(self: Box<Self>) -> impl Stream<Item = StreamResponse> + Send + 'static {
        stream::unfold(self, async |mut watch| {
            let event = watch.next().await?;
            Some((event, watch))
        })
    }

    /// Waits until the task is over or waits for somebody, though not longer than this.
    pub async fn until_over(mut self, most: Duration) -> Self {
        let deadline = Instant::now() + most;
        loop {
            let state = self.task.status.state;
            if self.ended || state.is_terminal() || state.is_interrupted() {
                return self;
            }
            let next = tokio::time::timeout_at(deadline, self.next()).await;
            if !matches!(next, Ok(Some(_))) {
                return self;
            }
        }
    }

    async fn next(&mut self) -> Option<StreamResponse> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            let is_new = tokio::select! {
                event = self.following.next_event() => match event {
                    Some(event) => self.heard(event),
                    // Cut off, or the right to read has ended: whoever may, subscribes again.
                    None => {
                        self.ended = true;
                        true
                    }
                },
                _ = self.reloads.tick() => true,
            };
            if is_new {
                self.reload_task().await;
            }
            let (task, growing) = self.shown();
            let events = self.told.update(&task, &growing);
            self.ready.extend(events);
        }
    }

    /// Reads the task anew. Where that cannot be, nothing more is told.
    async fn reload_task(&mut self) {
        let name = self.task.name.clone();
        match tasks::read(&self.app, &self.caller, self.ip, &name).await {
            Ok(task) => {
                for answer in &task.answers {
                    let mut known = self.task.answers.iter();
                    if !known.any(|known| known.seq == answer.seq) {
                        self.growing.remove(answer.sender_user_id.as_str());
                    }
                }
                self.task = task;
                self.ended |= self.task.status.state.is_terminal();
            }
            Err(error) => {
                tracing::debug!(%error, task = %name, "a task is followed no more");
                self.ended = true;
            }
        }
    }

    /// Whether the task has to be read anew for this.
    fn heard(&mut self, event: Event) -> bool {
        match event {
            Event::Message(message) | Event::MessageEdited(message) => {
                self.task.has_turn(message.reply_to_seq) || self.task.has_turn(Some(message.seq))
            }
            Event::MessageDeleted { seq } => {
                let answers = self.task.answers.iter();
                let mut seqs = answers.map(|answer| answer.seq);
                self.task.has_turn(Some(seq)) || seqs.any(|answer| answer == seq)
            }
            Event::ConsentUpdated(_) | Event::Resync(_) | Event::MemberUpdated(_) => true,
            Event::AgentTyping(typing) => self.heard_typing(typing),
            Event::AgentDelta(AgentDelta {
                user_id,
                reply_to_seq,
                text,
            }) => {
                if self.task.has_turn(reply_to_seq) {
                    self.growing.insert(user_id, text);
                    self.doing = None;
                }
                false
            }
            _ => false,
        }
    }

    fn heard_typing(&mut self, typing: AgentTyping) -> bool {
        if !self.task.has_turn(typing.reply_to_seq) {
            return false;
        }
        if !typing.typing {
            self.doing = None;
            return true;
        }
        self.doing = typing
            .activity
            .map(|activity| format!("{}: {activity}", typing.user_id));
        false
    }

    /// The task with what is not in the log yet, and which artifacts still grow.
    fn shown(&self) -> (Task, Vec<String>) {
        let mut task = self.task.to_task();
        let mut growing = Vec::new();
        if task.status.state.is_terminal() {
            return (task, growing);
        }
        for (user, text) in &self.growing {
            let id = self.task.next_artifact(user);
            task.artifacts.push(Artifact {
                artifact_id: id.clone(),
                name: None,
                description: None,
                parts: vec![Part::text(text.clone())],
                metadata: None,
            });
            growing.push(id);
        }
        if let (TaskState::Working, Some(doing)) = (task.status.state, &self.doing) {
            let id = format!("{}-doing", task.id);
            let words = Message::of_agent(id, &task.id, &task.context_id, doing);
            task.status.message = Some(words);
        }
        (task, growing)
    }
}
