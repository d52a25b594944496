//! Backends that are a command line: the prompt goes in, the answer comes out.

use super::{
    Backend, BackendError, Call, Inbound, Reply, coding_agent,
    command::{LineReader, Program},
    config::BackendConfig,
    environment::Environment,
    path::found,
    prompt::Prompt,
    transcript::{Dialect, Transcript},
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
    /// How it prints what it does; words alone where it has no such mode.
    dialect: Option<Dialect>,
    model: Option<String>,
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
        let dialect = Some(Dialect::Codex);
        Self::new(words, config, &work_folder(folder)?, environment, dialect)
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
        let dialect = Some(Dialect::Claude);
        Self::new(words, config, &work_folder(folder)?, environment, dialect)
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
        Self::new(words.into_iter(), config, folder, environment, None)
    }

    fn new(
        words: impl Iterator<Item = String>,
        config: &BackendConfig,
        folder: &Path,
        environment: Environment,
        dialect: Option<Dialect>,
    ) -> Result<Self, BackendError> {
        // Where the owner has chosen how it prints, it is taken at its words.
        let is_chosen = |flag: &&str| config.args.iter().any(|argument| argument == flag);
        let dialect = dialect.filter(|dialect| !dialect.arguments().iter().any(is_chosen));
        let json = dialect.map(Dialect::arguments).unwrap_or_default();
        let json = json.iter().map(|argument| (*argument).to_owned());
        let mut words = words.chain(json).chain(config.args.iter().cloned());
        let program = words.next().unwrap_or_default();
        let program = Program::new(program, folder, config.timeout(), environment);
        Ok(Self {
            program: program.args(words),
            owner: config.system_prompt.clone(),
            dialect,
            model: config.model.clone(),
        })
    }

    async fn ask(&self, inbound: &Inbound, call: &Call) -> Result<Reply, BackendError> {
        let prompt = Prompt::new(inbound, self.owner.as_deref()).whole();
        call.report_usage(|usage| usage.model.clone_from(&self.model));
        let output = match self.dialect {
            None => self.program.ask(prompt.as_bytes(), inbound).await?,
            Some(dialect) => self.read(dialect, &prompt, inbound, call).await?,
        };
        Ok(Reply::from_output(&output))
    }

    async fn read(
        &self,
        dialect: Dialect,
        prompt: &str,
        inbound: &Inbound,
        call: &Call,
    ) -> Result<String, BackendError> {
        let mut transcript = Transcript::new(dialect, call);
        let mut reader = LineReader::new(|line: &str| transcript.line(line));
        let ending = self.program.run(prompt.as_bytes(), inbound, &mut reader);
        let ending = ending.await?;
        reader.finish();
        match transcript.answer() {
            Err(why) => Err(self.program.failed(&format!("says: {why}"))),
            Ok(_) if !ending.success => Err(self.program.failed(&ending.words)),
            Ok(answer) => Ok(answer),
        }
    }
}

impl Backend for CommandLine {
    fn answer<'a>(
        &'a self,
        inbound: &'a Inbound,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Reply, BackendError>> {
        Box::pin(self.ask(inbound, call))
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
