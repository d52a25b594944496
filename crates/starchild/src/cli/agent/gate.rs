//! Asks the person at the terminal before a dangerous call.

use futures_util::future::BoxFuture;
use openstarry::approval::{Answer, Consent, Form, Gate};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// A question for the person.
pub enum TerminalQuestion {
    /// Whether a call may run.
    Consent {
        /// What would run.
        consent: Box<Consent>,
        /// Where the answer goes. Dropping it means no.
        answer: oneshot::Sender<Answer>,
    },
    /// What a server wants to know.
    Form {
        /// The fields.
        form: Form,
        /// Where the values go. Dropping it means that nobody tells.
        answer: oneshot::Sender<Option<Value>>,
    },
}

/// Hands questions to whoever has the terminal.
pub struct AskPerson(mpsc::Sender<TerminalQuestion>);

impl AskPerson {
    /// A gate, and the questions that come through it.
    pub fn new() -> (Self, mpsc::Receiver<TerminalQuestion>) {
        let (sender, questions) = mpsc::channel(1);
        (Self(sender), questions)
    }
}

impl Gate for AskPerson {
    fn ask<'a>(&'a self, consent: &'a Consent) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let consent = Box::new(consent.clone());
            let asked = self
                .0
                .send(TerminalQuestion::Consent { consent, answer })
                .await;
            let nobody = Answer::Deny { reason: None };
            match asked {
                Ok(()) => answered.await.unwrap_or(nobody),
                Err(_) => nobody,
            }
        })
    }

    fn fill_in<'a>(&'a self, form: &'a Form) -> BoxFuture<'a, Option<Value>> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let form = form.clone();
            self.0
                .send(TerminalQuestion::Form { form, answer })
                .await
                .ok()?;
            answered.await.ok().flatten()
        })
    }
}
