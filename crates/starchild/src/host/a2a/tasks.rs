//! The tasks of a host: those in hand, and the last ones that are over. Each is a file as well, so that
//! it can be asked for after a restart; what was in hand then has failed.

use crate::{
    backend::Call,
    home::{FileError, files},
};
use futures_util::{Stream, stream};
use protocol::a2a::{
    A2aError, Artifact, ListTasks, Message, PushConfig, StreamResponse, Task, TaskDiff, TaskList,
    TaskState, TaskStatus,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{HashMap, VecDeque},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::{sync::watch, task::AbortHandle};

/// How many tasks are kept; the oldest that are over go first.
const MAX_TASKS: usize = 500;

/// A task as it is kept on the disk.
#[derive(Serialize, Deserialize)]
struct TaskFile {
    owner: String,
    message_id: String,
    began_ms: i64,
    task: Task,
}

/// A task's present state.
#[derive(Clone)]
struct Now {
    task: Task,
    /// Whether its artifact still grows.
    growing: bool,
}

/// One task.
pub struct Entry {
    path: PathBuf,
    /// The key whose task it is.
    owner: String,
    message_id: String,
    began_ms: i64,
    now: watch::Sender<Now>,
    work: Mutex<Option<(Call, AbortHandle)>>,
    pushes: Mutex<HashMap<String, (PushConfig, AbortHandle)>>,
}

/// All tasks of a host.
pub struct Tasks {
    folder: PathBuf,
    tasks: Mutex<HashMap<String, Arc<Entry>>>,
}

impl Tasks {
    /// The tasks in this folder.
    pub fn open(folder: PathBuf) -> Result<Self, FileError> {
        files::make_folder(&folder)?;
        files::sweep(&folder);
        let mut tasks = HashMap::new();
        let listed = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for file in listed.take(10 * MAX_TASKS) {
            let path = file.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let Ok(Some(kept)) = files::read_json::<TaskFile>(&path) else {
                tracing::warn!(path = %path.display(), "a task cannot be read and is left out");
                continue;
            };
            let id = kept.task.id.clone();
            let entry = Arc::new(Entry::new(&folder, kept));
            entry.end(
                TaskState::Failed,
                Some("the host was restarted before it was done"),
            );
            tasks.insert(id, entry);
        }
        Ok(Self {
            folder,
            tasks: Mutex::new(tasks),
        })
    }

    /// A new task for a message; nothing where too many are in hand.
    pub fn add(&self, owner: &str, thread: &str, mut message: Message) -> Option<Arc<Entry>> {
        let id = uuid::Uuid::new_v4().to_string();
        let message_id = message.message_id.clone();
        message.task_id = Some(id.clone());
        message.context_id = Some(thread.to_owned());
        let kept = TaskFile {
            owner: owner.to_owned(),
            message_id,
            began_ms: now_ms(),
            task: Task {
                id: id.clone(),
                context_id: thread.to_owned(),
                status: TaskStatus::new(TaskState::Submitted, now_ms(), None),
                artifacts: Vec::new(),
                history: vec![message],
                metadata: None,
            },
        };
        let entry = Arc::new(Entry::new(&self.folder, kept));
        let mut tasks = self.lock();
        if tasks.len() >= MAX_TASKS {
            let over = tasks.iter().filter(|(_, one)| one.state().is_terminal());
            let oldest = over.min_by_key(|(_, one)| one.began_ms)?.0.clone();
            if let Some(gone) = tasks.remove(&oldest) {
                let _ = std::fs::remove_file(&gone.path);
            }
        }
        tasks.insert(id, entry.clone());
        drop(tasks);
        entry.keep();
        Some(entry)
    }

    /// A task of this key.
    pub fn find(&self, id: &str, owner: &str) -> Option<Arc<Entry>> {
        let found = self.lock().get(id).cloned();
        found.filter(|entry| entry.owner == owner)
    }

    /// The task that this message of this key began.
    pub fn of_message(&self, owner: &str, message_id: &str) -> Option<Arc<Entry>> {
        let tasks = self.lock();
        let mut entries = tasks.values();
        let found = entries.find(|one| one.owner == owner && one.message_id == message_id);
        found.cloned()
    }

    /// The tasks of this key, newest first.
    pub fn list(&self, owner: &str, wanted: &ListTasks) -> Result<TaskList, A2aError> {
        let tasks = self.lock();
        let own = tasks.values().filter(|entry| entry.owner == owner);
        let own = own.map(|entry| entry.task()).collect();
        drop(tasks);
        wanted.page(own, |task, context| task.context_id == context)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Entry>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn new(folder: &Path, kept: TaskFile) -> Self {
        Self {
            path: folder.join(format!("{}.json", kept.task.id)),
            owner: kept.owner,
            message_id: kept.message_id,
            began_ms: kept.began_ms,
            now: watch::Sender::new(Now {
                task: kept.task,
                growing: false,
            }),
            work: Mutex::default(),
            pushes: Mutex::default(),
        }
    }

    /// The task as it is.
    pub fn task(&self) -> Task {
        self.now.borrow().task.clone()
    }

    /// Where it stands.
    pub fn state(&self) -> TaskState {
        self.now.borrow().task.status.state
    }

    /// What works at it, so that it can be ended.
    pub fn works(&self, call: Call, work: AbortHandle) {
        if self.state().is_terminal() {
            work.abort();
            return;
        }
        *self.work.lock().unwrap_or_else(PoisonError::into_inner) = Some((call, work));
    }

    /// Changes a task that is not over; whether it was not.
    pub fn change(&self, change: impl FnOnce(&mut Task)) -> bool {
        self.change_growing(false, change)
    }

    fn change_growing(&self, growing: bool, change: impl FnOnce(&mut Task)) -> bool {
        self.now.send_if_modified(|now| {
            if now.task.status.state.is_terminal() {
                return false;
            }
            let before = now.task.status.state;
            change(&mut now.task);
            now.growing = growing;
            if now.task.status.state != before {
                let state = now.task.status.state;
                let message = now.task.status.message.take();
                now.task.status = TaskStatus::new(state, now_ms(), message);
            }
            true
        })
    }

    /// Tells what the agent does and has written so far.
    pub fn tell(&self, activity: Option<&str>, artifact: Option<Artifact>) {
        self.change_growing(true, |task| {
            task.status.message = activity.map(|activity| words(task, activity));
            if let Some(artifact) = artifact {
                task.artifacts = vec![artifact];
            }
        });
    }

    /// The task is done, and this came of it.
    pub fn complete(&self, artifact: Artifact) {
        let done = self.change(|task| {
            task.status.message = None;
            task.status.state = TaskState::Completed;
            task.artifacts = vec![artifact];
        });
        if done {
            self.keep();
        }
    }

    /// Ends a task without an answer; whether it was not over yet. What works at it is dropped.
    pub fn end(&self, state: TaskState, why: Option<&str>) -> bool {
        let ended = self.change(|task| {
            task.status.message = why.map(|why| words(task, why));
            task.status.state = state;
            task.artifacts.clear();
        });
        if ended {
            let work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
            if let (TaskState::Canceled, Some((call, work))) = (state, &*work) {
                call.stop();
                work.abort();
            }
            drop(work);
            self.keep();
        }
        ended
    }

    /// Waits until it is over.
    pub async fn over(&self) {
        let mut now = self.now.subscribe();
        // It fails only when the task is gone, which is here.
        let _ = now
            .wait_for(|now| now.task.status.state.is_terminal())
            .await;
    }

    /// The task, then what changes, until it is over.
    pub fn events(self: Arc<Self>) -> impl Stream<Item = StreamResponse> + Send + 'static {
        let mut now = self.now.subscribe();
        let first = now.borrow_and_update().task.clone();
        let state = Following {
            diff: TaskDiff::all_of(&first),
            ended: first.status.state.is_terminal(),
            ready: VecDeque::from([StreamResponse::Task(first)]),
            now,
            _entry: self,
        };
        stream::unfold(state, async |mut following| {
            let event = following.next().await?;
            Some((event, following))
        })
    }

    /// Follows where it stands.
    pub async fn next_state(&self, before: TaskState) -> Task {
        let mut now = self.now.subscribe();
        let changed = now
            .wait_for(|now| now.task.status.state != before)
            .await
            .map(|now| now.task.clone());
        changed.unwrap_or_else(|_| self.task())
    }

    /// Where its changes are sent.
    pub fn pushes(&self) -> Vec<PushConfig> {
        let pushes = self.pushes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut configs: Vec<_> = pushes.values().map(|(config, _)| config.clone()).collect();
        configs.sort_by(|a, b| a.id.cmp(&b.id));
        configs
    }

    /// Remembers where its changes are sent; whether there was room.
    pub fn remember_push(&self, config: PushConfig, sends: AbortHandle, most: usize) -> bool {
        let mut pushes = self.pushes.lock().unwrap_or_else(PoisonError::into_inner);
        let id = config.id.clone().unwrap_or_default();
        if pushes.len() >= most && !pushes.contains_key(&id) {
            sends.abort();
            return false;
        }
        if let Some((_, before)) = pushes.insert(id, (config, sends)) {
            before.abort();
        }
        true
    }

    /// Sends its changes there no more.
    pub fn forget_push(&self, id: &str) {
        let mut pushes = self.pushes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, sends)) = pushes.remove(id) {
            sends.abort();
        }
    }

    fn keep(&self) {
        let kept = TaskFile {
            owner: self.owner.clone(),
            message_id: self.message_id.clone(),
            began_ms: self.began_ms,
            task: self.task(),
        };
        if let Err(error) = files::write_json(&self.path, &kept) {
            tracing::warn!(%error, "a task is not kept over a restart");
        }
    }
}

fn words(task: &Task, text: &str) -> Message {
    let id = uuid::Uuid::new_v4().to_string();
    Message::of_agent(id, &task.id, &task.context_id, text)
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

struct Following {
    now: watch::Receiver<Now>,
    diff: TaskDiff,
    ready: VecDeque<StreamResponse>,
    ended: bool,
    _entry: Arc<Entry>,
}

impl Following {
    async fn next(&mut self) -> Option<StreamResponse> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.ended || self.now.changed().await.is_err() {
                return None;
            }
            let now = self.now.borrow_and_update().clone();
            let ids = now.task.artifacts.iter();
            let growing: Vec<String> = match now.growing {
                true => ids.map(|artifact| artifact.artifact_id.clone()).collect(),
                false => Vec::new(),
            };
            self.ready.extend(self.diff.update(&now.task, &growing));
            self.ended = now.task.status.state.is_terminal();
        }
    }
}
