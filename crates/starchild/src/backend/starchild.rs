//! The owner's hosted agent, asked through the server's bridge: one thread for each room.

use super::{Backend, BackendError, Call, Inbound, Reply, config::BackendConfig, prompt::Prompt};
use crate::{
    bridge::{
        Bridge, BridgeError, BridgeRequest, CHANNEL,
        login::{Login, LoginError},
    },
    home::Home,
};
use futures_util::future::BoxFuture;
use std::time::Duration;

/// The agent behind the bridge.
pub struct Starchild {
    home: Home,
    model: Option<String>,
    owner: Option<String>,
    timeout: Duration,
}

impl Starchild {
    /// The agent that this machine is logged in to.
    pub fn new(config: &BackendConfig, home: Home) -> Result<Self, BackendError> {
        Login::load(&home).map_err(no_login)?;
        Ok(Self {
            home,
            model: config.model.clone(),
            owner: config.system_prompt.clone(),
            timeout: config.timeout(),
        })
    }

    async fn ask(&self, inbound: &Inbound, call: &Call) -> Result<Reply, BackendError> {
        // Read anew each time: a new login counts at once.
        let login = Login::load(&self.home).map_err(no_login)?;
        let prompt = Prompt::new(inbound, self.owner.as_deref()).whole();
        let question = BridgeRequest {
            message: &prompt,
            thread_id: &format!("chatroom-{}", inbound.room_name),
            channel: CHANNEL,
            model: self.model.as_deref(),
        };
        let answer = async {
            let mut answer = Bridge::new(&login)?.ask(&question).await?;
            let mut whole = String::new();
            while let Some(text) = answer.next().await? {
                call.report_more_text(&text);
                whole.push_str(&text);
            }
            Ok(whole)
        };
        let answer = tokio::time::timeout(self.timeout, answer)
            .await
            .map_err(|_| BackendError::TimedOut(self.timeout))?
            .map_err(why)?;
        Ok(Reply::from_output(&answer))
    }
}

impl Backend for Starchild {
    fn answer<'a>(
        &'a self,
        inbound: &'a Inbound,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Reply, BackendError>> {
        Box::pin(self.ask(inbound, call))
    }
}

fn no_login(error: LoginError) -> BackendError {
    BackendError::Missing {
        what: "the hosted agent cannot be asked".into(),
        hint: error.to_string(),
    }
}

fn why(error: BridgeError) -> BackendError {
    match error {
        // The agent has said what it has to say about this message.
        BridgeError::Agent(_) => BackendError::Failed(error.to_string()),
        error if error.is_transient() => BackendError::Unavailable(error.to_string()),
        error => BackendError::Failed(error.to_string()),
    }
}
