//! `shell.run`: one program of an allow-list, without a shell around it, so that
//! the list cannot be talked around. When its time is up, or nobody waits any
//! more, the program and all it started are killed.

use super::confine::{self, Confinement};
use super::fs::cut;
use crate::segment::ContentSegment;
use crate::tool::{Risk, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, parse};
use futures_util::future::BoxFuture;
use runtime::ProcessGroup;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

const MAX_OUTPUT: usize = 64 << 10;
/// How long it may take to kill a program.
const KILLING: Duration = Duration::from_secs(5);
/// How long what a program said may take to be read once it has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The variable with the folder for drafts, which no two programs share.
const DRAFTS: &str = "TMPDIR";
/// What programs need to find their way; keys of models are not among it.
const KEPT_VARIABLES: [&str; 7] = ["PATH", "HOME", "LANG", "LC_ALL", "TERM", "TMPDIR", "USER"];

const CONFINED: &str = "\n[programs can write to the workspace alone; the owner allows more with \
    tools.shell.read and tools.shell.write]";

/// What `shell.run` may do.
#[derive(Clone, Debug)]
pub struct ShellConfig {
    /// Names of programs. `*` allows all.
    pub allow: Vec<String>,
    /// How long a program may run.
    pub timeout: Duration,
    /// Where it runs.
    pub folder: PathBuf,
    /// Which files it can use; all that its user can when there is no limit.
    pub confine: Option<ShellFiles>,
}

/// The files that a program can use beside the workspace and the system.
#[derive(Clone, Debug, Default)]
pub struct ShellFiles {
    /// To read. `~` stands for the home folder.
    pub read: Vec<PathBuf>,
    /// To read and write.
    pub write: Vec<PathBuf>,
}

/// Runs a program.
pub struct ShellRun {
    spec: ToolSpec,
    config: ShellConfig,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The program and its arguments. Quotes work; pipes, redirections and
    /// variables do not.
    command: String,
}

impl ShellRun {
    /// The tool. It is not offered unless the owner granted it.
    pub fn new(config: ShellConfig) -> Self {
        let list = config.allow.join(", ");
        let files = match config.confine.is_some() && confine::is_available() {
            true => " It can write to the workspace alone.",
            false => "",
        };
        let about = format!("Run one program in the workspace. Allowed: {list}.{files}");
        let mut spec = ToolSpec::of::<Args>("shell.run", &about, Risk::Destructive);
        // The limit here is kept by the tool itself, which tells what was said until then.
        spec.timeout = Some(config.timeout + KILLING);
        Self { spec, config }
    }

    async fn run(&self, args: Args) -> ToolOutput {
        let words = split(&args.command)?;
        let Some((program, rest)) = words.split_first() else {
            return Err(ToolError("the command is empty".into()));
        };
        let allowed = |name: &String| name == "*" || (name == program && !program.contains('/'));
        if !self.config.allow.iter().any(allowed) {
            let list = self.config.allow.join(", ");
            return Err(ToolError(format!(
                "{program} is not allowed; allowed: {list}"
            )));
        }
        let told = |error: std::io::Error| ToolError(format!("{program}: {error}"));
        let mut command = Command::new(program);
        command
            .args(rest)
            .current_dir(&self.config.folder)
            .env_clear()
            .envs(kept_variables())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Its drafts are its own: others' are none of its business.
        let scratch = tempfile::tempdir().map_err(told)?;
        command.env(DRAFTS, scratch.path());
        let confined = self.config.confine.as_ref();
        let confined = confined.filter(|_| confine::is_available());
        let spawned = match confined {
            Some(files) => {
                let confinement = Confinement::new(&self.config.folder, &files.read, &files.write)
                    .with_write(scratch.path());
                ProcessGroup::spawn_with(command, |command| confinement.spawn(command)).await
            }
            None => ProcessGroup::spawn(&mut command),
        };
        let (mut child, group) = spawned.map_err(told)?;
        let started = Started {
            group: Some(group),
            scratch,
        };
        let (mut out, mut err) = (Said::default(), Said::default());
        let pipes = (child.stdout.take(), child.stderr.take());
        let ended = {
            let drained = async { tokio::join!(out.drain(pipes.0), err.drain(pipes.1)) };
            tokio::pin!(drained);
            let mut silent = false;
            let work = async {
                tokio::select! {
                    _ = &mut drained => silent = true,
                    status = child.wait() => return status,
                }
                child.wait().await
            };
            let ended = tokio::time::timeout(self.config.timeout, work).await;
            // What it left in the background ends with it, and that closes the pipes.
            drop(started);
            if !silent {
                let _ = tokio::time::timeout(LAST_WORDS, drained).await;
            }
            ended
        };
        let mut text = out.text();
        if !err.is_empty() {
            text.push_str(&format!("\n[standard error]\n{}", err.text()));
        }
        let Ok(status) = ended else {
            let seconds = self.config.timeout.as_secs_f32();
            let killed = format!("[{program} was killed after {seconds} s]");
            return Err(ToolError(
                format!("{text}\n{killed}").trim_start().to_owned(),
            ));
        };
        let status = status.map_err(ToolError::new)?;
        match status.success() {
            true => Ok(vec![ContentSegment::text(text.trim_start_matches('\n'))]),
            false => {
                let refused = confined.is_some() && text.contains("ermission denied");
                let note = if refused { CONFINED } else { "" };
                Err(ToolError(format!("{text}\n[{status}]{note}")))
            }
        }
    }
}

impl Tool for ShellRun {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, args: Value, _: &'a ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { self.run(parse(args)?).await })
    }

    fn canonical_args(&self, args: &Value) -> Value {
        let words = args.get("command").and_then(Value::as_str).map(split);
        match words {
            Some(Ok(words)) => {
                let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                serde_json::json!({ "command": words.join(" ") })
            }
            _ => args.clone(),
        }
    }

    fn granted_args(&self) -> &[&str] {
        &["command"]
    }
}

/// A word as it is typed: with quotes where it needs them.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%^*~".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// The variables that every program we start gets.
pub(crate) fn kept_variables() -> impl Iterator<Item = (&'static str, std::ffi::OsString)> {
    let kept = KEPT_VARIABLES.into_iter();
    kept.filter_map(|name| Some((name, std::env::var_os(name)?)))
}

/// A program and all that it starts. Dropping it ends them, also those that went into a session of
/// their own, and removes their drafts.
struct Started {
    group: Option<ProcessGroup>,
    scratch: tempfile::TempDir,
}

impl Drop for Started {
    fn drop(&mut self) {
        drop(self.group.take());
        runtime::kill_marked(DRAFTS, self.scratch.path().as_os_str());
    }
}

/// What a program said, as far as it is kept.
#[derive(Default)]
struct Said {
    kept: Vec<u8>,
    total: usize,
}

impl Said {
    /// Reads to the end, and keeps the beginning: a program that says too much is
    /// not stopped by a full pipe.
    async fn drain(&mut self, pipe: Option<impl AsyncRead + Unpin>) {
        let Some(mut pipe) = pipe else {
            return;
        };
        let mut buffer = vec![0; 8192];
        while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
            self.total += read;
            let room = MAX_OUTPUT.saturating_sub(self.kept.len()).min(read);
            self.kept.extend_from_slice(&buffer[..room]);
        }
    }

    fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    fn text(&self) -> String {
        let mut text = cut(String::from_utf8_lossy(&self.kept).into_owned(), MAX_OUTPUT);
        if self.total > self.kept.len() {
            let more = self.total - self.kept.len();
            text.push_str(&format!("\n[cut: {more} more bytes]"));
        }
        text
    }
}

/// Takes a command apart at blanks, with quotes and backslashes as a shell has
/// them. What only a shell could do is an error rather than a surprise.
fn split(command: &str) -> Result<Vec<String>, ToolError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('\''), c) => word.get_or_insert_default().push(c),
            (_, '\\') => {
                let next = chars
                    .next()
                    .ok_or_else(|| ToolError("a lone backslash".into()))?;
                word.get_or_insert_default().push(next);
            }
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '|' | '&' | ';' | '<' | '>' | '`' | '$' | '\n') => {
                let why = format!("{c:?}: there is no shell; run one program at a time");
                return Err(ToolError(why));
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err(ToolError("a quote is not closed".into()));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
#[path = "shell_tests.rs"]
mod tests;
