//! One call of a backend: what it tells while it works, and how it learns that it was stopped.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use std::time::Duration;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

/// The most text that is shown while it grows; a message is shorter.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// The most of a tool's arguments that is shown.
const MAX_ARGUMENTS: usize = 120;
/// The most tools of one call that are told by name.
const MAX_TOOLS: usize = 50;

/// A call under way. The backend tells its progress here, and is never held up by who looks at it:
/// whoever looks sees the newest state. Dropping the backend's future ends the call. Clones are the
/// same call.
#[derive(Clone, Debug)]
pub struct Call {
    progress: watch::Sender<Progress>,
    show_arguments: bool,
    is_stopped: Arc<AtomicBool>,
    is_shutting_down: Arc<AtomicBool>,
    consent_changed: Arc<Notify>,
}

/// How far an answer has come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// What it does now besides thinking and writing: a tool's name.
    pub activity: Option<String>,
    /// What it has written so far. It may be replaced: what an agent says before it uses a tool is
    /// not always part of its answer.
    pub text: String,
    /// How many questions a person is asked now.
    pub questions: u32,
    /// What the call has cost so far, as far as the backend knows.
    pub usage: Usage,
}

/// A question that a person is asked, for as long as this lives.
pub struct Asking(Call);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.progress.send_modify(|now| {
            now.questions = now.questions.saturating_sub(1);
            now.activity = None;
        });
    }
}

/// What a call has cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// The model that was asked.
    pub model: Option<String>,
    /// Tokens that it read.
    pub input_tokens: Option<u64>,
    /// Tokens that it wrote.
    pub output_tokens: Option<u64>,
    /// In US dollars, where a price is known.
    pub cost_usd: Option<f64>,
    /// The tools that were used, each once.
    pub tools: Vec<String>,
}

impl Default for Call {
    fn default() -> Self {
        Self::new(false)
    }
}

impl Call {
    /// A call that begins. Whether the arguments of tools are shown is the owner's choice.
    pub fn new(show_arguments: bool) -> Self {
        Self {
            progress: watch::Sender::default(),
            show_arguments,
            is_stopped: Arc::default(),
            is_shutting_down: Arc::default(),
            consent_changed: Arc::default(),
        }
    }

    /// Follows the progress.
    pub fn watch(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// What it has come to.
    pub fn progress(&self) -> Progress {
        self.progress.borrow().clone()
    }

    /// Says that somebody stopped the call, before its future is dropped: the backend tells its model.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
    }

    /// Whether somebody stopped it.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    /// Says that the program ends, before the future is dropped: the same message will be asked again,
    /// and what waits for a person's answer goes on waiting.
    pub fn begin_shutdown(&self) {
        self.is_shutting_down.store(true, Ordering::SeqCst);
    }

    /// Whether the program ends.
    pub fn is_shutting_down(&self) -> bool {
        self.is_shutting_down.load(Ordering::SeqCst)
    }

    /// The backend thinks.
    pub fn report_thinking(&self) {
        self.progress
            .send_if_modified(|now| now.activity.take().is_some());
    }

    /// A person is asked whether a tool may be used.
    pub fn report_question(&self, tool: &str) -> Asking {
        self.progress.send_modify(|now| {
            now.questions += 1;
            now.activity = Some(format!("asks whether it may use {tool}"));
        });
        Asking(self.clone())
    }

    /// Ends when a person is asked something.
    pub async fn is_asking(&self) {
        let mut progress = self.watch();
        // It fails only when the call is gone, which is here.
        let _ = progress.wait_for(|now| now.questions > 0).await;
    }

    /// Ends when the call has taken so long. The time in which a person is asked does not count.
    pub async fn overdue(&self, limit: Duration) {
        let mut progress = self.watch();
        let mut left = limit;
        loop {
            let _ = progress.wait_for(|now| now.questions == 0).await;
            let since = Instant::now();
            tokio::select! {
                () = tokio::time::sleep(left) => return,
                _ = progress.wait_for(|now| now.questions > 0) => {
                    left = left.saturating_sub(since.elapsed());
                }
            }
        }
    }

    /// Something was heard of a person's answer: whoever waits for one looks.
    pub fn notify_consent_change(&self) {
        self.consent_changed.notify_waiters();
    }

    /// Waits for that.
    pub async fn wait_for_consent_change(&self) {
        self.consent_changed.notified().await;
    }

    /// A part of the backend works.
    pub fn report_activity(&self, activity: &str) {
        self.progress
            .send_modify(|now| now.activity = Some(activity.to_owned()));
    }

    /// The backend uses a tool.
    pub fn report_tool(&self, name: &str, arguments: &str) {
        let mut activity = name.to_owned();
        if self.show_arguments && !arguments.is_empty() {
            let shown: String = arguments.chars().take(MAX_ARGUMENTS).collect();
            activity.push(' ');
            activity.push_str(&shown);
        }
        self.progress.send_modify(|now| {
            now.activity = Some(activity);
            let tools = &mut now.usage.tools;
            if tools.len() < MAX_TOOLS && !tools.iter().any(|known| known == name) {
                tools.push(name.to_owned());
            }
        });
    }

    /// The backend has written more.
    pub fn report_more_text(&self, more: &str) {
        self.progress.send_modify(|now| {
            let left = MAX_TEXT_BYTES.saturating_sub(now.text.len());
            now.text.push_str(&more[..more.floor_char_boundary(left)]);
            now.activity = None;
        });
    }

    /// All that the backend has written so far is this.
    pub fn report_whole_text(&self, text: &str) {
        let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
        self.progress.send_if_modified(|now| {
            let is_new = now.text != text;
            if is_new {
                now.text = text.to_owned();
                now.activity = None;
            }
            is_new
        });
    }

    /// The backend knows more of what it costs.
    pub fn report_usage(&self, change: impl FnOnce(&mut Usage)) {
        // Nobody is shown this before the answer is there.
        self.progress.send_if_modified(|now| {
            change(&mut now.usage);
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_only_where_the_owner_wants() {
        let call = Call::default();
        call.report_tool("fs.read", "secret.txt");
        call.report_tool("fs.read", "b");
        assert_eq!(call.progress().activity.as_deref(), Some("fs.read"));
        assert_eq!(call.progress().usage.tools, ["fs.read"]);
        let call = Call::new(true);
        call.report_tool("fs.read", &"é".repeat(500));
        let activity = call.progress().activity.unwrap();
        assert_eq!(activity.chars().count(), "fs.read ".len() + MAX_ARGUMENTS);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_in_which_a_person_is_asked_does_not_count() {
        let call = Call::default();
        let second = Duration::from_secs(1);
        let asked = call.clone();
        let began = Instant::now();
        tokio::spawn(async move {
            tokio::time::sleep(second).await;
            let asking = asked.report_question("fs.write");
            tokio::time::sleep(100 * second).await;
            drop(asking);
        });
        call.overdue(3 * second).await;
        assert_eq!(began.elapsed().as_secs(), 103);
    }

    #[test]
    fn text_has_a_bound_and_ends_an_activity() {
        let call = Call::default();
        call.report_tool("fs.read", "");
        call.report_more_text(&"é".repeat(MAX_TEXT_BYTES));
        call.report_more_text("more");
        let progress = call.progress();
        assert_eq!(progress.text.len(), MAX_TEXT_BYTES);
        assert_eq!(progress.activity, None);
    }
}
