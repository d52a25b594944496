//! The loop: sessions that take input, ask the model, run its calls and ask
//! again. The rules are in [`state`], without I/O; [`drive`] does what they say.
//!
//! Each session is a task of its own with a queue of its own. One that hangs or
//! fails delays no other.

mod audit;
mod budget;
mod call;
mod command;
mod compact;
mod drive;
mod end;
mod expenses;
mod extract;
mod failures;
mod history;
mod hook;
mod plan;
pub mod slash;
pub mod span;
mod state;
mod store;
mod window;

pub use audit::{Audit, AuditLine, FileAudit, LogAudit, Verdict};
pub use budget::{Limits, Price, Spent};
pub use end::EndReason;
pub use expenses::Expenses;
pub use extract::ExtractError;
pub use failures::{Alarm, Failures};
pub use history::{History, Round, Summary, Turn};
pub use hook::Hook;
pub use state::SessionState;
pub use store::{OpenSession, SessionInfo, SessionStore, StoreError};
pub use window::{Window, window};

use crate::approval::{Approval, Consent};
use crate::provider::Provider;
use crate::segment::{ContentSegment, StopReason, ToolCall, ToolResult, Usage};
use crate::tool::retrieval::Selector;
use crate::tool::{Principal, Registry};
use extract::Wanted;
use futures_util::Stream;
use runtime::CancellationToken;
use serde::Serialize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Inputs that may wait in a session.
const QUEUE: usize = 16;
/// Events that may wait for the listener of a turn.
const EVENTS: usize = 64;

/// How an agent behaves.
#[derive(Clone)]
pub struct Settings {
    /// Who the agent is, for the model.
    pub system: String,
    /// How far a session may go.
    pub limits: Limits,
    /// How much of the history the model sees.
    pub window: Window,
    /// Whether turns that leave the window are summed up, or only left out.
    pub summarize: bool,
    /// How long a tool may run.
    pub tool_timeout: Duration,
    /// Which tools a turn is offered.
    pub selector: Selector,
    /// Which calls may run, and who says yes to them.
    pub approval: Approval,
    /// Where audit lines go.
    pub audit: Arc<dyn Audit>,
    /// The owner's code around model and tools.
    pub hooks: Vec<Arc<dyn Hook>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            system: String::new(),
            limits: Limits::default(),
            window: Window::default(),
            summarize: true,
            tool_timeout: Duration::from_secs(30),
            selector: Selector::default(),
            approval: Approval::default(),
            audit: Arc::new(LogAudit),
            hooks: Vec::new(),
        }
    }
}

/// A provider, tools and settings. Clones are the same agent.
#[derive(Clone)]
pub struct Agent {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) registry: Registry,
    pub(crate) settings: Settings,
}

impl Inner {
    /// The agent's provider, with another model where a session wants one.
    fn provider_for(&self, model: Option<&str>) -> Arc<dyn Provider> {
        model
            .and_then(|model| self.provider.with_model(model))
            .unwrap_or_else(|| Arc::clone(&self.provider))
    }
}

impl Agent {
    /// An agent.
    pub fn new(provider: Arc<dyn Provider>, registry: Registry, settings: Settings) -> Self {
        Self {
            inner: Arc::new(Inner {
                provider,
                registry,
                settings,
            }),
        }
    }

    /// The same agent, told something else of who it is.
    pub fn with_system(&self, system: impl Into<String>) -> Self {
        let settings = Settings {
            system: system.into(),
            ..self.inner.settings.clone()
        };
        Self::new(
            Arc::clone(&self.inner.provider),
            self.inner.registry.clone(),
            settings,
        )
    }

    /// Its tools.
    pub fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    /// Starts a session. With a file it is saved as it goes.
    pub fn session(&self, state: SessionState, file: Option<OpenSession>) -> Session {
        let (inputs, queue) = mpsc::channel(QUEUE);
        let id = state.id.clone();
        let Inner {
            registry, settings, ..
        } = self.inner.as_ref();
        settings.selector.prepare(&registry.snapshot());
        let driven = drive::serve(Arc::clone(&self.inner), state, file.map(Arc::new), queue);
        tokio::spawn(driven);
        Session { id, inputs }
    }
}

/// Why a session takes no input.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AskError {
    /// Too much is waiting.
    #[error("the session is busy")]
    Busy,
    /// The session has ended.
    #[error("the session has ended")]
    Ended,
}

/// What a session is asked to do.
pub(crate) enum Input {
    /// Words for the model.
    Words(Vec<ContentSegment>),
    /// A slash command.
    Command {
        line: String,
        /// Whether its calls are approved like the model's.
        needs_approval: bool,
    },
    /// Nothing new: the calls that waited when the program ended.
    GoOn,
}

pub(crate) struct Job {
    input: Input,
    /// The shape of the answer, where it has one.
    wanted: Option<Arc<Wanted>>,
    /// Cancelled when the program shuts down and the turn is left as it is.
    shutdown: CancellationToken,
    events: mpsc::Sender<SessionEvent>,
    /// The span of whoever asks.
    asked: tracing::Span,
    /// Dropped when the turn is over and the session saved.
    running: oneshot::Sender<()>,
}

/// A running session. It ends when the last clone is gone and its work is done.
#[derive(Clone)]
pub struct Session {
    id: String,
    inputs: mpsc::Sender<Job>,
}

impl Session {
    /// The id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Says something to the model. Text is never a command, whatever it begins
    /// with.
    pub fn say(&self, text: impl Into<String>) -> Result<TurnEvents, AskError> {
        self.send(vec![ContentSegment::text(text)])
    }

    /// As [`Session::say`], with pictures or sound.
    pub fn send(&self, input: Vec<ContentSegment>) -> Result<TurnEvents, AskError> {
        self.queue(Input::Words(input), None)
    }

    /// As [`Session::send`], for an answer of a shape.
    fn ask_for(
        &self,
        input: Vec<ContentSegment>,
        wanted: Arc<Wanted>,
    ) -> Result<TurnEvents, AskError> {
        self.queue(Input::Words(input), Some(wanted))
    }

    /// Runs a slash command, past the model. The caller vouches that the line
    /// comes from the session's owner: tools run without further questions.
    pub fn command(&self, line: impl Into<String>) -> Result<TurnEvents, AskError> {
        let line = line.into();
        self.queue(
            Input::Command {
                line,
                needs_approval: false,
            },
            None,
        )
    }

    /// Runs a slash command, past the model. Its calls are approved as the model's are: for a caller
    /// that believes the line to be the owner's, and cannot vouch for it.
    pub fn ruled_command(&self, line: impl Into<String>) -> Result<TurnEvents, AskError> {
        let line = line.into();
        self.queue(
            Input::Command {
                line,
                needs_approval: true,
            },
            None,
        )
    }

    /// Goes on with a turn whose calls waited for a yes when the program ended:
    /// see [`SessionState::waits`].
    pub fn go_on(&self) -> Result<TurnEvents, AskError> {
        self.queue(Input::GoOn, None)
    }

    fn queue(&self, input: Input, wanted: Option<Arc<Wanted>>) -> Result<TurnEvents, AskError> {
        let (events, listener) = mpsc::channel(EVENTS);
        let shutdown = CancellationToken::new();
        let (running, saved) = oneshot::channel();
        let job = Job {
            input,
            wanted,
            shutdown: shutdown.clone(),
            events,
            asked: tracing::Span::current(),
            running,
        };
        let sent = self.inputs.try_send(job);
        sent.map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => AskError::Busy,
            mpsc::error::TrySendError::Closed(_) => AskError::Ended,
        })?;
        Ok(TurnEvents {
            listener,
            shutdown,
            saved,
        })
    }
}

/// What happens in a turn. The last event is [`SessionEvent::End`]. Dropping it
/// cancels the turn.
pub struct TurnEvents {
    listener: mpsc::Receiver<SessionEvent>,
    shutdown: CancellationToken,
    saved: oneshot::Receiver<()>,
}

impl TurnEvents {
    /// The next event.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        self.listener.recv().await
    }

    /// Leaves the turn as it is and ends the session, for a program that shuts
    /// down: calls that wait for a yes go on waiting, and
    /// [`Session::go_on`] takes them up.
    pub fn leave_for_shutdown(self) {
        self.shutdown.cancel();
    }

    /// Cancels the turn, and waits until the session is saved as it then is.
    pub async fn cancel(self) {
        let Self {
            listener, saved, ..
        } = self;
        drop(listener);
        // Nothing is sent: the other end goes when it is done.
        let _ = saved.await;
    }

    /// Waits for the end.
    pub async fn outcome(mut self) -> Outcome {
        while let Some(event) = self.next().await {
            if let SessionEvent::End(outcome) = event {
                return outcome;
            }
        }
        Outcome::broken()
    }
}

impl Stream for TurnEvents {
    type Item = SessionEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SessionEvent>> {
        self.listener.poll_recv(cx)
    }
}

/// Something that happened in a turn.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum SessionEvent {
    /// More words of the model.
    Text {
        /// The words.
        text: String,
    },
    /// More of its thoughts.
    Reasoning {
        /// The thought.
        text: String,
    },
    /// A picture, sound, or something to draw.
    Segment {
        /// What came.
        segment: ContentSegment,
    },
    /// A call waits for a yes.
    ConsentAsked {
        /// What is asked.
        consent: Box<Consent>,
    },
    /// A running tool says that it goes on.
    ToolProgress {
        /// The call's id.
        id: String,
        /// How far it is.
        text: String,
    },
    /// A tool begins.
    ToolStarted {
        /// The call.
        call: ToolCall,
        /// Who wants it.
        principal: Principal,
    },
    /// A call has its result.
    ToolFinished {
        /// The result.
        result: ToolResult,
        /// How long it took.
        ms: u64,
    },
    /// The model is at work where nobody sees it.
    Activity,
    /// The API did not answer, and is asked again.
    Waiting {
        /// Why it did not.
        why: String,
        /// How long it is left alone.
        seconds: f64,
    },
    /// Something the user should know.
    Notice {
        /// What.
        text: String,
    },
    /// The turn is over.
    End(Outcome),
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Why it ended.
    pub end: EndReason,
    /// Why the model stopped last, where the API told.
    pub stop: Option<StopReason>,
    /// What was said last.
    pub segments: Vec<ContentSegment>,
    /// All rounds of the turn.
    pub trace: Vec<Round>,
    /// What the session has used up so far.
    pub usage: Usage,
    /// The model that was asked, or that answered in its place, where one was and has a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Outcome {
    fn broken() -> Self {
        Self {
            end: EndReason::Failed("the session ended".into()),
            stop: None,
            segments: Vec::new(),
            trace: Vec::new(),
            usage: Usage::default(),
            model: None,
        }
    }

    /// The words that were said last.
    pub fn text(&self) -> String {
        crate::segment::joined_text(&self.segments)
    }
}
