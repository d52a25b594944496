//! What a reader was told of a task, and what to tell it next. A rule without I/O.

use super::{ArtifactUpdate, Part, StatusUpdate, StreamResponse, Task, TaskStatus};
use std::collections::HashMap;

/// What one reader was told of one task.
#[derive(Debug, Default)]
pub struct TaskDiff {
    status: Option<TaskStatus>,
    /// The words of each artifact.
    artifacts: HashMap<String, String>,
}

impl TaskDiff {
    /// For a reader that was sent the task as it is here.
    pub fn all_of(task: &Task) -> Self {
        let words = |artifact: &super::Artifact| (artifact.artifact_id.clone(), artifact.words());
        Self {
            status: Some(task.status.clone()),
            artifacts: task.artifacts.iter().map(words).collect(),
        }
    }

    /// What has changed. The artifacts that are named still grow.
    pub fn update(&mut self, task: &Task, growing: &[String]) -> Vec<StreamResponse> {
        let mut events = Vec::new();
        for artifact in &task.artifacts {
            let words = artifact.words();
            let before = self.artifacts.get(&artifact.artifact_id);
            if before == Some(&words) {
                continue;
            }
            let more = before.and_then(|before| words.strip_prefix(before.as_str()));
            let mut sent = artifact.clone();
            if let Some(more) = more {
                sent.parts = vec![Part::text(more)];
            }
            events.push(StreamResponse::ArtifactUpdate(ArtifactUpdate {
                task_id: task.id.clone(),
                context_id: task.context_id.clone(),
                append: more.is_some(),
                last_chunk: !growing.contains(&artifact.artifact_id),
                artifact: sent,
            }));
            self.artifacts.insert(artifact.artifact_id.clone(), words);
        }
        let same = |before: &TaskStatus| {
            let words = |status: &TaskStatus| status.message.as_ref().map(super::Message::words);
            before.state == task.status.state && words(before) == words(&task.status)
        };
        if !self.status.as_ref().is_some_and(same) {
            self.status = Some(task.status.clone());
            events.push(StreamResponse::StatusUpdate(StatusUpdate {
                task_id: task.id.clone(),
                context_id: task.context_id.clone(),
                status: task.status.clone(),
            }));
        }
        events
    }
}
