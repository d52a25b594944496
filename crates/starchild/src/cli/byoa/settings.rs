//! The settings of an agent, as flags.

use super::yaml::{self, Change};
use crate::{
    backend::{
        answer_in::AnswerIn,
        config::{BackendKind, DEFAULT_SERVER},
    },
    cli::failure::Failure,
};
use clap::Args;
use std::path::{Path, PathBuf};

/// What `handler.yaml` can say.
#[derive(Args, Default)]
pub struct Settings {
    /// What answers: codex, claude, openai, plain, custom, handler, starchild, acp, a2a, agent or organism.
    #[arg(long)]
    pub backend: Option<BackendKind>,
    /// The name that it joins rooms with; from the prefix where there is none, as Tidy Falcon.
    #[arg(long)]
    name: Option<String>,
    /// handler: the script that is run for every message.
    #[arg(long, value_name = "PATH")]
    handler_path: Option<PathBuf>,
    /// custom: a shell body; codex, claude, plain, acp: the command to run.
    #[arg(long)]
    command: Option<String>,
    /// A further argument of the command; may be given several times.
    #[arg(long = "arg", value_name = "ARG", allow_hyphen_values = true)]
    args: Vec<String>,
    /// openai, codex, claude: the model.
    #[arg(long)]
    model: Option<String>,
    /// What the agent is told before the room's rules.
    #[arg(long, value_name = "TEXT")]
    system_prompt: Option<String>,
    /// How long an answer may take.
    #[arg(long, value_name = "N")]
    timeout_seconds: Option<u64>,
    /// How many earlier messages the backend is shown.
    #[arg(long, value_name = "N")]
    context_messages: Option<u32>,
    /// acp: the file that says what the agent may do.
    #[arg(long, value_name = "PATH")]
    permissions: Option<PathBuf>,
    /// agent: its agent.yaml; starchild agent init writes one.
    #[arg(long, value_name = "PATH")]
    agent_file: Option<PathBuf>,
    /// organism: its organism.yaml.
    #[arg(long, value_name = "PATH")]
    organism_file: Option<PathBuf>,
    /// a2a: the agent's address, or its card's.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// a2a: the variable of the daemon's environment with the bearer for it.
    #[arg(long, value_name = "NAME")]
    token_env: Option<String>,
    /// Where it answers: joined, all, or room ids with commas between them.
    #[arg(long, value_name = "ROOMS")]
    answer_in: Option<AnswerIn>,
    /// A variable that the backend's program gets from the daemon's environment; may be given
    /// several times.
    #[arg(long = "env", value_name = "NAME")]
    variables: Vec<String>,
}

impl Settings {
    /// What the flags change, and the server where one is named. Paths count from where the command
    /// was given.
    pub fn changes(&self, server: Option<&str>) -> Result<Vec<Change>, Failure> {
        let mut changes: Vec<Change> = Vec::new();
        let mut text = |key, value: Option<&str>| {
            if let Some(value) = value {
                changes.push((key, Some(yaml::scalar(value))));
            }
        };
        text("server", server.map(|url| url.trim_end_matches('/')));
        text("backend", self.backend.map(BackendKind::as_str));
        text(
            "handler_path",
            absolute(self.handler_path.as_deref())?.as_deref(),
        );
        text("name", self.name.as_deref());
        text("command", self.command.as_deref());
        text("model", self.model.as_deref());
        text("system_prompt", self.system_prompt.as_deref());
        text(
            "permissions",
            absolute(self.permissions.as_deref())?.as_deref(),
        );
        text("url", self.url.as_deref());
        text("token_env", self.token_env.as_deref());
        text("agent", absolute(self.agent_file.as_deref())?.as_deref());
        text(
            "organism",
            absolute(self.organism_file.as_deref())?.as_deref(),
        );
        if !self.args.is_empty() {
            changes.push(("args", Some(yaml::list(&self.args))));
        }
        if !self.variables.is_empty() {
            changes.push(("env", Some(yaml::list(&self.variables))));
        }
        if let Some(answer_in) = &self.answer_in {
            changes.push(yaml::answer_in(answer_in));
        }
        if let Some(seconds) = self.timeout_seconds {
            changes.push(("timeout_seconds", Some(seconds.to_string())));
        }
        if let Some(messages) = self.context_messages {
            changes.push(("context_messages", Some(messages.to_string())));
        }
        Ok(changes)
    }

    /// A file with these settings and nothing else.
    pub fn new_file(&self, server: Option<&str>) -> Result<String, Failure> {
        let text = "# Which backend answers for this agent; docs/daemon.md tells of every key.\n";
        let server = server.unwrap_or(DEFAULT_SERVER);
        yaml::edit(text, &self.changes(Some(server))?).map_err(Failure::permanent)
    }
}

fn absolute(path: Option<&Path>) -> Result<Option<String>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let path = std::path::absolute(path)?;
    let text = path.to_str();
    let text = text.ok_or_else(|| Failure::permanent(format!("{} is no UTF-8", path.display())))?;
    Ok(Some(text.to_owned()))
}
