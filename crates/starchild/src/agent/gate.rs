//! Asks the person at the terminal before a dangerous call.

use futures_util::future::BoxFuture;
use openstarry::segment::ToolCall;
use openstarry::session::Gate;
use openstarry::tool::Risk;
use tokio::sync::{mpsc, oneshot};

/// A question for the person.
pub struct Question {
    /// What would run.
    pub call: ToolCall,
    /// What can go wrong.
    pub risk: Risk,
    /// Where the answer goes. Dropping it means no.
    pub answer: oneshot::Sender<bool>,
}

/// Hands questions to whoever has the terminal.
pub struct AskPerson(mpsc::Sender<Question>);

impl AskPerson {
    /// A gate, and the questions that come through it.
    pub fn new() -> (Self, mpsc::Receiver<Question>) {
        let (sender, questions) = mpsc::channel(1);
        (Self(sender), questions)
    }
}

impl Gate for AskPerson {
    fn confirm<'a>(&'a self, _: &'a str, call: &'a ToolCall, risk: Risk) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let question = Question {
                call: call.clone(),
                risk,
                answer,
            };
            self.0.send(question).await.is_ok() && answered.await.unwrap_or(false)
        })
    }
}

/// Says yes to everything: `--yes`.
pub struct AllowAll;

impl Gate for AllowAll {
    fn confirm<'a>(&'a self, _: &'a str, _: &'a ToolCall, _: Risk) -> BoxFuture<'a, bool> {
        Box::pin(async { true })
    }
}
