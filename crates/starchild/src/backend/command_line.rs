//! Backends that are a command line: the prompt goes in, the answer comes out.

use super::{
    Backend, BackendError, Inbound, Reply, coding_agent, command::Program, config::BackendConfig,
    environment::Environment, path::found, prompt::Prompt,
};
use futures_util::future::BoxFuture;
use std::path::Path;

/// The folder of an agent in which tools run that strangers' words reach. The agent's own folder
/// holds the keys of its rooms.
const WORK_FOLDER: &str = "work";

/// A program that is asked with the prompt on its standard input.
pub struct CommandLine {
    program: Program,
    owner: Option<String>,
}

impl CommandLine {
    /// OpenAI's `codex`.
    pub fn codex(config: &BackendConfig, folder: &Path) -> Result<Self, BackendError> {
        let hint = "install it with `npm install -g @openai/codex`, then run `codex login`";
        let command = words(config, "codex", hint)?;
        let limits = coding_agent::codex_limits(&owners_words(config, &command));
        let words = command
            .into_iter()
            .chain(["exec".into(), "--skip-git-repo-check".into()])
            .chain(limits)
            .chain(model(config));
        let environment = Environment::clean(coding_agent::keys(["codex"]), &config.env);
        Self::new(words, config, &work_folder(folder)?, environment)
    }

    /// Anthropic's `claude`.
    pub fn claude(config: &BackendConfig, folder: &Path) -> Result<Self, BackendError> {
        let hint = "install it with `npm install -g @anthropic-ai/claude-code`, then run `claude` once to sign in";
        let command = words(config, "claude", hint)?;
        let limits = coding_agent::claude_limits(&owners_words(config, &command));
        let words = command
            .into_iter()
            .chain(["-p".into()])
            .chain(limits)
            .chain(model(config));
        let environment = Environment::clean(coding_agent::keys(["claude"]), &config.env);
        Self::new(words, config, &work_folder(folder)?, environment)
    }

    /// The owner's own shell body. It runs in the agent's folder, as a handler does.
    pub fn custom(config: &BackendConfig, folder: &Path) -> Result<Self, BackendError> {
        let body = config.command.clone().unwrap_or_default();
        if body.trim().is_empty() {
            return Err(BackendError::Missing {
                what: "backend custom has no command".into(),
                hint: "set command: in handler.yaml to a shell body that reads a prompt and prints an answer".into(),
            });
        }
        let shell = ["bash", "sh"]
            .into_iter()
            .find(|shell| found(shell.as_ref()).is_some());
        let shell = shell.unwrap_or("sh");
        // What follows the body is its name and its arguments.
        let words = [shell, "-c", &body, shell].map(str::to_owned);
        let environment = Environment::inherited(&config.env);
        Self::new(words.into_iter(), config, folder, environment)
    }

    fn new(
        words: impl Iterator<Item = String>,
        config: &BackendConfig,
        folder: &Path,
        environment: Environment,
    ) -> Result<Self, BackendError> {
        let mut words = words.chain(config.args.iter().cloned());
        let program = words.next().unwrap_or_default();
        let program = Program::new(program, folder, config.timeout(), environment);
        Ok(Self {
            program: program.args(words),
            owner: config.system_prompt.clone(),
        })
    }
}

impl Backend for CommandLine {
    fn answer<'a>(&'a self, inbound: &'a Inbound) -> BoxFuture<'a, Result<Reply, BackendError>> {
        Box::pin(async move {
            let prompt = Prompt::new(inbound, self.owner.as_deref()).whole();
            let output = self.program.ask(prompt.as_bytes(), inbound).await?;
            Ok(Reply::from_output(&output))
        })
    }
}

/// The command that the owner named, or the usual one; its program must be there.
pub(super) fn words(
    config: &BackendConfig,
    usual: &str,
    hint: &str,
) -> Result<Vec<String>, BackendError> {
    let command = config.command.as_deref().unwrap_or(usual);
    let words = shell_words::split(command).map_err(|error| BackendError::Missing {
        what: format!("the command {command:?} cannot be read: {error}"),
        hint: "close its quotes in handler.yaml".into(),
    })?;
    match words.first() {
        Some(program) if found(program.as_ref()).is_some() => Ok(words),
        program => Err(BackendError::Missing {
            what: format!("{} is not on PATH", program.map_or(usual, String::as_str)),
            hint: match config.command {
                Some(_) => "correct command: in handler.yaml".into(),
                None => hint.into(),
            },
        }),
    }
}

/// What the owner wrote behind the program: in `command:`, and in `args:`.
fn owners_words(config: &BackendConfig, command: &[String]) -> Vec<String> {
    let behind = command.iter().skip(1);
    behind.chain(&config.args).cloned().collect()
}

fn model(config: &BackendConfig) -> impl Iterator<Item = String> + use<> {
    let model = config.model.clone();
    model
        .into_iter()
        .flat_map(|model| ["--model".to_owned(), model])
}

/// Makes the folder that tools work in.
pub(super) fn work_folder(folder: &Path) -> Result<std::path::PathBuf, BackendError> {
    let work = folder.join(WORK_FOLDER);
    crate::home::files::make_folder(&work).map_err(|error| BackendError::Missing {
        what: error.to_string(),
        hint: "make the agent's folder writable".into(),
    })?;
    Ok(work)
}
