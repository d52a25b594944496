//! One turn of the backend for a task.

use super::tasks::Entry;
use crate::{
    backend::{Call, Reply},
    host::{
        HostState,
        threads::{self, ThreadLock},
    },
};
use protocol::{
    MAX_CONTENT_BYTES,
    a2a::{Artifact, Part, TaskState},
    answer::may_be_silence,
};
use std::sync::Arc;

/// The name of a turn's only artifact.
pub const ANSWER: &str = "answer";

/// Has the backend answer when the thread's turn comes.
pub fn spawn(
    host: Arc<HostState>,
    entry: Arc<Entry>,
    thread_lock: Arc<ThreadLock>,
    thread: String,
    text: String,
) {
    let call = Call::default();
    let (working, its_call) = (entry.clone(), call.clone());
    let work = tokio::spawn(async move {
        let guard = tokio::time::timeout(host.timeout, threads::wait(thread_lock)).await;
        let Ok(_guard) = guard else {
            working.end(TaskState::Failed, Some("the thread is busy; try again"));
            return;
        };
        answer(&host, &working, &its_call, &thread, text).await;
    });
    entry.works(call, work.abort_handle());
}

async fn answer(host: &HostState, entry: &Entry, call: &Call, thread: &str, text: String) {
    let inbound = host.direct(thread, text);
    let mut progress = call.watch();
    entry.change(|task| task.status.state = TaskState::Working);
    let mut answer = host.backend.answer(&inbound, call);
    let reply = loop {
        tokio::select! {
            biased;
            reply = &mut answer => break reply,
            Ok(()) = progress.changed() => {
                let now = progress.borrow_and_update().clone();
                let text = now.text.trim_start();
                // Only the end tells whether it is silence, and how a long text is cut.
                let is_shown = !may_be_silence(text) && text.len() < MAX_CONTENT_BYTES;
                entry.tell(now.activity.as_deref(), is_shown.then(|| artifact(text)));
            }
        }
    };
    match reply {
        Ok(Reply::Text(text)) => match Reply::from_output(&text) {
            Reply::Text(text) => {
                entry.complete(artifact(&text));
            }
            Reply::Silent => {
                entry.end(TaskState::Rejected, Some("the agent does not answer this"));
            }
        },
        Ok(Reply::Silent) => {
            entry.end(TaskState::Rejected, Some("the agent does not answer this"));
        }
        Err(error) => {
            tracing::warn!(%error, "a task came to nothing");
            entry.end(TaskState::Failed, Some(&error.to_string()));
        }
    }
}

fn artifact(text: &str) -> Artifact {
    Artifact {
        artifact_id: ANSWER.to_owned(),
        name: None,
        description: None,
        parts: vec![Part::text(text)],
        metadata: None,
    }
}
