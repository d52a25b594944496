//! Any coding agent that speaks the Agent Client Protocol: one process for the agent, one session
//! for each room, started again when it dies.

mod grants;
pub mod lines;
mod notice;
mod permission;
pub mod policy;
mod process;
mod quota;
mod turns;

use super::{
    Backend, BackendError, Call, Inbound, Reply, coding_agent,
    command_line::{words, work_folder},
    config::BackendConfig,
    environment::Environment,
};
use futures_util::future::BoxFuture;
use grants::Grants;
use policy::Policy;
use process::{Launch, Process, TurnError};
use std::{path::Path, sync::Arc};
use tokio::sync::Mutex;

/// A coding agent.
pub struct Acp {
    launch: Launch,
    policy: Arc<Policy>,
    grants: Arc<Grants>,
    process: Mutex<Option<Arc<Process>>>,
}

impl Acp {
    /// Reads the policy and checks that the command is there. The agent starts with its first
    /// message.
    pub fn new(config: &BackendConfig, folder: &Path) -> Result<Self, BackendError> {
        if config.command.is_none() {
            return Err(BackendError::Missing {
                what: "backend acp has no command".into(),
                hint: "set command: in handler.yaml to one that speaks the Agent Client Protocol, e.g. \"gemini --experimental-acp\"".into(),
            });
        }
        let mut words = words(config, "", "")?;
        let keys = coding_agent::keys(words.iter().map(String::as_str));
        words.extend(config.args.iter().cloned());
        Ok(Self {
            launch: Launch {
                words,
                environment: Environment::clean(keys, &config.env),
                folder: work_folder(folder)?,
                timeout: config.timeout(),
                owner: config.system_prompt.clone(),
            },
            policy: Arc::new(policy(config, folder)),
            grants: Arc::new(Grants::open(folder)),
            process: Mutex::new(None),
        })
    }

    /// The agent's process; a new one if there is none.
    async fn process(&self, inbound: &Inbound) -> Result<Arc<Process>, BackendError> {
        let mut process = self.process.lock().await;
        if let Some(alive) = process.as_ref().filter(|process| process.is_alive()) {
            return Ok(alive.clone());
        }
        *process = None;
        let (policy, grants) = (self.policy.clone(), self.grants.clone());
        let started = Process::start(&self.launch, inbound, policy, grants).await?;
        Ok(process.insert(Arc::new(started)).clone())
    }

    async fn ask(&self, inbound: &Inbound, call: &Call) -> Result<Reply, BackendError> {
        let mut has_died = false;
        loop {
            let process = self.process(inbound).await?;
            match process.ask(&self.launch, inbound, call).await {
                Ok(text) => return Ok(Reply::from_output(&text)),
                Err(TurnError::Failed(error)) => return Err(error),
                // It may have died of another room's message, or while nobody asked.
                Err(TurnError::Gone(why)) if !has_died => {
                    tracing::warn!("{why}; the agent is started again");
                    has_died = true;
                }
                Err(TurnError::Gone(why)) => {
                    return Err(BackendError::Failed(format!(
                        "{why}, twice at this message"
                    )));
                }
            }
            self.forget(&process).await;
        }
    }

    async fn forget(&self, gone: &Arc<Process>) {
        let mut process = self.process.lock().await;
        if process
            .as_ref()
            .is_some_and(|process| Arc::ptr_eq(process, gone))
        {
            *process = None;
        }
    }
}

impl Backend for Acp {
    fn answer<'a>(
        &'a self,
        inbound: &'a Inbound,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Reply, BackendError>> {
        Box::pin(self.ask(inbound, call))
    }
}

/// The policy file's rules; without one, or with one that cannot be read, everything is denied.
fn policy(config: &BackendConfig, folder: &Path) -> Policy {
    let Some(path) = &config.permissions else {
        tracing::info!("no permissions file: whatever the agent asks for is denied");
        return Policy::default();
    };
    let path = folder.join(path);
    Policy::load(&path).unwrap_or_else(|why| {
        let path = path.display();
        tracing::warn!("{path} cannot be used, so everything is denied: {why}");
        Policy::default()
    })
}

#[cfg(test)]
mod tests;
