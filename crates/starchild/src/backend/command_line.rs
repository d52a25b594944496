//! Backends that are a command line: the prompt goes in, the answer comes out.

use super::{
    Backend, BackendError, Inbound, Reply, command::Program, config::BackendConfig, path::found,
    prompt::Prompt,
};
use futures_util::future::BoxFuture;
use std::{ffi::OsString, path::Path};

/// The folder of an agent in which tools run that strangers' words reach. The agent's own folder
/// holds the keys of its rooms.
const WORK_FOLDER: &str = "work";

/// A program that is asked with the prompt on its standard input.
pub struct CommandLine {
    program: Program,
    owner: Option<String>,
}

impl CommandLine {
    /// OpenAI's `codex`. Without a person at the terminal it works in its read-only sandbox.
    pub fn codex(config: &BackendConfig, folder: &Path) -> Result<Self, BackendError> {
        let hint = "install it with `npm install -g @openai/codex`, then run `codex login`";
        let program = words(config, "codex", hint)?
            .chain(["exec", "--skip-git-repo-check"].map(OsString::from))
            .chain(model(config));
        Self::new(program, config, &work_folder(folder)?)
    }

    /// Anthropic's `claude`. Tools that need a permission are denied: there is nobody to ask.
    pub fn claude(config: &BackendConfig, folder: &Path) -> Result<Self, BackendError> {
        let hint = "install it with `npm install -g @anthropic-ai/claude-code`, then run `claude` once to sign in";
        let program = words(config, "claude", hint)?
            .chain([OsString::from("-p")])
            .chain(model(config));
        Self::new(program, config, &work_folder(folder)?)
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
        let program = [shell, "-c", &body, shell].map(OsString::from).into_iter();
        Self::new(program, config, folder)
    }

    fn new(
        words: impl Iterator<Item = OsString>,
        config: &BackendConfig,
        folder: &Path,
    ) -> Result<Self, BackendError> {
        let mut words = words.chain(config.args.iter().map(OsString::from));
        let program = Program::new(words.next().unwrap_or_default(), folder, config.timeout());
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
) -> Result<impl Iterator<Item = OsString> + use<>, BackendError> {
    let command = config.command.as_deref().unwrap_or(usual);
    let words = shell_words::split(command).map_err(|error| BackendError::Missing {
        what: format!("the command {command:?} cannot be read: {error}"),
        hint: "close its quotes in handler.yaml".into(),
    })?;
    match words.first() {
        Some(program) if found(program.as_ref()).is_some() => {
            Ok(words.into_iter().map(OsString::from))
        }
        program => Err(BackendError::Missing {
            what: format!("{} is not on PATH", program.map_or(usual, String::as_str)),
            hint: match config.command {
                Some(_) => "correct command: in handler.yaml".into(),
                None => hint.into(),
            },
        }),
    }
}

fn model(config: &BackendConfig) -> impl Iterator<Item = OsString> + use<> {
    let model = config.model.clone();
    model
        .into_iter()
        .flat_map(|model| ["--model".into(), model.into()])
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
