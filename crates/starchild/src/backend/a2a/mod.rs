//! Any agent that speaks A2A, by the address of its card: one conversation for each room, its words shown
//! as it says them, its task ended when the call is.

mod collected;
mod contexts;
mod remote;

use super::{Backend, BackendError, Call, Inbound, Reply, config::BackendConfig, prompt::Prompt};
use collected::Collected;
use contexts::{Contexts, RemoteContext};
use futures_util::future::BoxFuture;
use protocol::a2a::{CARD_PATH, Card, Configuration, Message, Part, Role, SendMessage, TaskState};
use remote::{Connector, Events, Remote, RemoteError};
use reqwest::Url;
use sha2::{Digest, Sha256};
use std::{
    path::Path,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How long a card counts.
const CARD_KEPT: Duration = Duration::from_secs(300);
/// How often a task is asked for that is not streamed.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// How long an agent may take to take a task back.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// An agent elsewhere.
pub struct A2a {
    card_url: Url,
    connector: Connector,
    owner: Option<String>,
    timeout: Duration,
    contexts: Contexts,
    card: Mutex<Option<(Card, Instant)>>,
}

impl A2a {
    /// The agent that `url` names. `env` looks up the bearer.
    pub fn new(
        config: &BackendConfig,
        folder: &Path,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, BackendError> {
        let url = config.url.as_deref().unwrap_or_default();
        let missing = |what: String, hint: &str| BackendError::Missing {
            what,
            hint: hint.into(),
        };
        let card_url = card_url(url).ok_or_else(|| {
            missing(
                format!("url {url:?} is no address"),
                "give the agent's address or its card's, e.g. https://agent.example/.well-known/agent-card.json",
            )
        })?;
        let token = match &config.token_env {
            None => None,
            Some(name) => {
                let token = env(name).map(|token| token.trim().to_owned());
                let token = token.filter(|token| !token.is_empty());
                Some(token.ok_or_else(|| {
                    missing(
                        format!("the variable {name}, which token_env names, is not set"),
                        "set it where the daemon starts",
                    )
                })?)
            }
        };
        let connector = Connector::new(&card_url, token)
            .map_err(|why| missing(why, "look at the address and the token"))?;
        Ok(Self {
            card_url,
            connector,
            owner: config.system_prompt.clone(),
            timeout: config.timeout(),
            contexts: Contexts::open(folder.join("a2a-contexts.json")),
            card: Mutex::default(),
        })
    }

    async fn ask(&self, inbound: &Inbound, call: &Call) -> Result<Reply, BackendError> {
        let answer = self.converse(inbound, call);
        tokio::time::timeout(self.timeout, answer)
            .await
            .map_err(|_| BackendError::TimedOut(self.timeout))?
    }

    async fn converse(&self, inbound: &Inbound, call: &Call) -> Result<Reply, BackendError> {
        let card = self.card().await?;
        let remote = self.connector.remote(&card).map_err(why)?;
        let before = self.contexts.get(&inbound.room_name);
        let known = before.context_id.is_some() || before.task_id.is_some();
        let asked = match known {
            // The agent remembers the rest.
            true => self.request(
                &inbound.unseen(before.seq, before.rules_version),
                &remote,
                &before,
            ),
            false => self.request(inbound, &remote, &before),
        };
        let mut outcome = self.run(&remote, &card, asked, call).await;
        if let Err(RemoteError::Refused { .. }) = &outcome
            && known
        {
            // It may have forgotten the conversation: begin another one.
            let asked = self.request(inbound, &remote, &RemoteContext::default());
            outcome = self.run(&remote, &card, asked, call).await;
        }
        let heard = outcome.map_err(why)?;
        let waits = heard.state.is_interrupted();
        let context = RemoteContext {
            task_id: heard.task_id.clone().filter(|_| waits),
            context_id: heard.context_id.clone(),
            seq: inbound.message.seq,
            rules_version: inbound.rules.as_ref().map(|rules| rules.version),
        };
        self.contexts.keep(&inbound.room_name, context);
        let words = heard.answer();
        match heard.state {
            TaskState::Failed | TaskState::Rejected | TaskState::Canceled => {
                let state = match heard.state {
                    TaskState::Failed => "failed",
                    TaskState::Rejected => "does not want to",
                    _ => "took the task back",
                };
                Err(BackendError::Failed(format!(
                    "the agent {state}: {}",
                    heard.words()
                )))
            }
            _ => Ok(Reply::from_output(&words)),
        }
    }

    /// Sends the message, and follows the task until it is over or waits for somebody.
    async fn run(
        &self,
        remote: &Remote,
        card: &Card,
        request: SendMessage,
        call: &Call,
    ) -> Result<Collected, RemoteError> {
        // Of its own, so that it goes on where the caller is gone before the agent has named the task.
        let beginning = begin(remote.clone(), card.streaming, request);
        let beginning = tokio::spawn(tokio::time::timeout(self.timeout, beginning));
        let no_answer = || RemoteError::Broken("it gave no answer".into());
        let begun = beginning.await.map_err(|_| no_answer())?;
        let Begun {
            mut heard,
            events,
            mut cancel_on_drop,
        } = begun.map_err(|_| no_answer())??;
        show(&heard, call);
        if let Some(mut events) = events {
            while !heard.is_over()
                && let Some(event) = events.next().await?
            {
                heard.take(event);
                cancel_on_drop.task = heard.task_id.clone();
                show(&heard, call);
            }
        }
        while !heard.is_over() {
            let id = heard.task_id.clone().ok_or_else(no_answer)?;
            tokio::time::sleep(POLL_EVERY).await;
            heard.replace(remote.task(&id).await?);
            show(&heard, call);
        }
        cancel_on_drop.task = None;
        Ok(heard)
    }

    fn request(
        &self,
        inbound: &Inbound,
        remote: &Remote,
        conversation: &RemoteContext,
    ) -> SendMessage {
        // A message that is asked again is the same message.
        let id = format!("{} {}", inbound.room_name, inbound.message.seq);
        let id = Sha256::digest(id.as_bytes());
        let id: String = id
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let text = Prompt::new(inbound, self.owner.as_deref()).whole();
        SendMessage {
            tenant: remote.tenant().map(str::to_owned),
            message: Message {
                message_id: id,
                context_id: conversation.context_id.clone(),
                task_id: conversation.task_id.clone(),
                role: Role::User,
                parts: vec![Part::text(text)],
                metadata: None,
                extensions: Vec::new(),
                reference_task_ids: Vec::new(),
            },
            configuration: Some(Configuration {
                accepted_output_modes: vec!["text/plain".to_owned()],
                ..Configuration::default()
            }),
        }
    }

    async fn card(&self) -> Result<Card, BackendError> {
        let kept = || self.card.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((card, at)) = &*kept()
            && at.elapsed() < CARD_KEPT
        {
            return Ok(card.clone());
        }
        let card = self.connector.card(&self.card_url).await.map_err(why)?;
        *kept() = Some((card.clone(), Instant::now()));
        Ok(card)
    }
}

impl Backend for A2a {
    fn answer<'a>(
        &'a self,
        inbound: &'a Inbound,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Reply, BackendError>> {
        Box::pin(self.ask(inbound, call))
    }
}

/// What is known once a message was sent. Dropped before it is over, the task is taken back.
struct Begun {
    heard: Collected,
    /// The rest of what it streams.
    events: Option<Events>,
    cancel_on_drop: CancelTaskOnDrop,
}

/// Sends a message, and waits until the agent has named the task or is done.
async fn begin(
    remote: Remote,
    streaming: bool,
    request: SendMessage,
) -> Result<Begun, RemoteError> {
    let mut heard = Collected::default();
    let mut events = None;
    if streaming {
        let stream = events.insert(remote.stream(&request).await?);
        while heard.task_id.is_none()
            && !heard.is_over()
            && let Some(event) = stream.next().await?
        {
            heard.take(event);
        }
    } else {
        let request = match request.configuration.clone() {
            // Long work is asked for again and again, and can be ended meanwhile.
            Some(wanted) => SendMessage {
                configuration: Some(Configuration {
                    return_immediately: true,
                    ..wanted
                }),
                ..request
            },
            None => request,
        };
        heard.take(remote.send(&request).await?);
    }
    let task = heard.task_id.clone().filter(|_| !heard.is_over());
    let cancel_on_drop = CancelTaskOnDrop { remote, task };
    Ok(Begun {
        heard,
        events,
        cancel_on_drop,
    })
}

/// A task that is taken back when whoever waits for it is gone.
struct CancelTaskOnDrop {
    remote: Remote,
    task: Option<String>,
}

impl Drop for CancelTaskOnDrop {
    fn drop(&mut self) {
        let (Some(task), Ok(runtime)) = (self.task.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let remote = self.remote.clone();
        runtime.spawn(async move {
            let canceled = tokio::time::timeout(CANCEL_TIMEOUT, remote.cancel(&task)).await;
            if !matches!(canceled, Ok(Ok(()))) {
                tracing::debug!(task, "the agent did not take a task back");
            }
        });
    }
}

fn show(heard: &Collected, call: &Call) {
    let text = heard.text();
    if !text.is_empty() {
        call.report_whole_text(&text);
    } else if let Some(words) = heard.progress() {
        call.report_activity(&words);
    }
}

/// Where the card is: as given where that is a file, otherwise at its usual place.
fn card_url(url: &str) -> Option<Url> {
    let given: Url = url.trim().parse().ok()?;
    if !matches!(given.scheme(), "http" | "https") || given.host_str().is_none() {
        return None;
    }
    if given.path().ends_with(".json") {
        return Some(given);
    }
    let mut usual = given.clone();
    usual.set_path(&format!(
        "{}{CARD_PATH}",
        given.path().trim_end_matches('/')
    ));
    Some(usual)
}

fn why(error: RemoteError) -> BackendError {
    match error {
        RemoteError::Away(_) => BackendError::Unavailable(error.to_string()),
        _ => BackendError::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_where_it_is_said_or_at_its_usual_place() {
        for (given, card) in [
            (
                "https://a.example",
                "https://a.example/.well-known/agent-card.json",
            ),
            (
                "https://a.example/x/",
                "https://a.example/x/.well-known/agent-card.json",
            ),
            ("https://a.example/card.json", "https://a.example/card.json"),
        ] {
            assert_eq!(card_url(given).unwrap().as_str(), card);
        }
        for bad in ["", "a.example", "file:///etc/passwd", "https://"] {
            assert!(card_url(bad).is_none(), "{bad}");
        }
    }
}
