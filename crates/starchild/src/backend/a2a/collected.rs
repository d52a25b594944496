//! What was heard of a task so far. A rule without I/O.

use protocol::a2a::{Artifact, StreamResponse, Task, TaskState, TaskStatus};

/// The most artifacts that are read.
const MAX_ARTIFACTS: usize = 50;
/// The most text of all artifacts; a message is far shorter.
const MAX_TEXT_BYTES: usize = 256 * 1024;

/// What was heard of a task.
#[derive(Debug, Default)]
pub struct Collected {
    pub task_id: Option<String>,
    pub context_id: Option<String>,
    pub state: TaskState,
    /// What the agent says of where it stands.
    status: String,
    /// Words of each artifact, in the order they came.
    artifacts: Vec<(String, String)>,
    /// An answer without a task.
    message: Option<String>,
}

impl Collected {
    pub fn take(&mut self, event: StreamResponse) {
        match event {
            StreamResponse::Message(message) => {
                self.context_id = message.context_id.clone().or(self.context_id.take());
                self.message = Some(cut(message.words()));
            }
            StreamResponse::Task(task) => self.replace(task),
            StreamResponse::StatusUpdate(update) => {
                self.know(update.task_id, update.context_id);
                self.stands(update.status);
            }
            StreamResponse::ArtifactUpdate(update) => {
                self.know(update.task_id, update.context_id);
                self.add(update.artifact, update.append);
            }
        }
    }

    /// The task is this now.
    pub fn replace(&mut self, task: Task) {
        self.know(task.id, task.context_id);
        self.artifacts.clear();
        for artifact in task.artifacts {
            self.add(artifact, false);
        }
        self.stands(task.status);
    }

    fn know(&mut self, task: String, context: String) {
        self.task_id = Some(task);
        if !context.is_empty() {
            self.context_id = Some(context);
        }
    }

    fn stands(&mut self, status: TaskStatus) {
        self.state = status.state;
        self.status = cut(status
            .message
            .map(|words| words.words())
            .unwrap_or_default());
    }

    fn add(&mut self, artifact: Artifact, append: bool) {
        let words = artifact.words();
        let is_known = |(id, _): &(String, String)| *id == artifact.artifact_id;
        match self.artifacts.iter().position(is_known) {
            Some(at) if append => {
                let text = &mut self.artifacts[at].1;
                let left = MAX_TEXT_BYTES.saturating_sub(text.len());
                text.push_str(&words[..words.floor_char_boundary(left)]);
            }
            Some(at) => self.artifacts[at].1 = cut(words),
            None if self.artifacts.len() < MAX_ARTIFACTS => {
                self.artifacts.push((artifact.artifact_id, cut(words)));
            }
            None => {}
        }
    }

    /// Whether nothing more comes without another message.
    pub fn is_over(&self) -> bool {
        self.message.is_some() || self.state.is_terminal() || self.state.is_interrupted()
    }

    /// The words of all artifacts.
    pub fn text(&self) -> String {
        let texts = self.artifacts.iter().map(|(_, text)| text.as_str());
        let texts: Vec<&str> = texts.filter(|text| !text.trim().is_empty()).collect();
        cut(texts.join("\n\n"))
    }

    /// What the agent says that it does.
    pub fn progress(&self) -> Option<String> {
        let line = self.status.lines().next().unwrap_or_default();
        let line: String = line.chars().take(200).collect();
        (!line.trim().is_empty()).then_some(line)
    }

    /// What the agent says of where it stands, or what there is otherwise.
    pub fn words(&self) -> String {
        match self.status.trim().is_empty() {
            false => self.status.clone(),
            true => "it does not say why".to_owned(),
        }
    }

    /// The answer: an agent that waits for something says for what.
    pub fn answer(&self) -> String {
        if let Some(message) = &self.message {
            return message.clone();
        }
        let text = self.text();
        match (self.state.is_interrupted(), text.is_empty()) {
            (true, true) | (false, true) => self.status.clone(),
            (true, false) if !self.status.trim().is_empty() => format!("{text}\n\n{}", self.status),
            _ => text,
        }
    }
}

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::a2a::{ArtifactUpdate, Message, Part, StatusUpdate};

    fn piece(id: &str, text: &str, append: bool) -> StreamResponse {
        StreamResponse::ArtifactUpdate(ArtifactUpdate {
            task_id: "t".into(),
            context_id: "c".into(),
            artifact: Artifact {
                artifact_id: id.into(),
                name: None,
                description: None,
                parts: vec![Part::text(text)],
                metadata: None,
            },
            append,
            last_chunk: false,
        })
    }

    fn stands(state: TaskState, words: &str) -> StreamResponse {
        StreamResponse::StatusUpdate(StatusUpdate {
            task_id: "t".into(),
            context_id: "c".into(),
            status: TaskStatus::new(state, 0, Some(Message::of_agent("m", "t", "c", words))),
        })
    }

    #[test]
    fn pieces_become_the_answer() {
        let mut heard = Collected::default();
        heard.take(stands(TaskState::Working, "looking\nfurther"));
        assert_eq!(heard.progress().as_deref(), Some("looking"));
        heard.take(piece("a", "It is", false));
        heard.take(piece("a", " seven.", true));
        heard.take(piece("b", "Or so.", false));
        assert!(!heard.is_over());
        heard.take(stands(TaskState::Completed, "done"));
        assert!(heard.is_over());
        assert_eq!(heard.answer(), "It is seven.\n\nOr so.");
    }

    #[test]
    fn an_agent_that_waits_says_for_what() {
        let mut heard = Collected::default();
        heard.take(stands(TaskState::InputRequired, "Which one?"));
        assert!(heard.is_over());
        assert_eq!(heard.answer(), "Which one?");
    }

    #[test]
    fn what_is_heard_has_a_bound() {
        let mut heard = Collected::default();
        for _ in 0..10 {
            heard.take(piece("a", &"é".repeat(MAX_TEXT_BYTES / 4), true));
        }
        for n in 0..1000 {
            heard.take(piece(&n.to_string(), "x", false));
        }
        assert!(heard.text().len() <= MAX_TEXT_BYTES);
        assert_eq!(heard.artifacts.len(), MAX_ARTIFACTS);
    }
}
