//! A command behind a listener: the payload on standard input, messages on
//! standard output. It runs under a guard, in a folder of its own, with an
//! environment of its own and bounded means. A command that fails or talks
//! without end is ended, and all that it started with it.

use super::{Types, accept_all};
use agentserver::payload::{Canonical, Schema};
use agentserver::{HandlerMetadata, Listener, Reply, Result};
use rustix::process::{DumpableBehavior, Pid, Signal, kill_process, set_dumpable_behavior};
use serde::Deserialize;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

/// The file's words for it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessFile {
    /// The program and its arguments.
    command: Vec<String>,
    /// How it reads and writes payloads.
    #[serde(default)]
    format: Format,
    /// Whether it is told of refusals and faults too.
    #[serde(default)]
    system: bool,
    /// Variables of the environment that it is given.
    #[serde(default)]
    env: Vec<String>,
    /// What it may write to besides its own folder.
    #[serde(default)]
    write: Vec<PathBuf>,
    /// What it may use.
    #[serde(default)]
    limits: ProcessLimits,
}

/// What each process of a command may use.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ProcessLimits {
    memory_mib: u64,
    cpu_seconds: u64,
}

impl Default for ProcessLimits {
    fn default() -> Self {
        Self {
            memory_mib: 4096,
            cpu_seconds: 600,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Xml,
    Json,
}

/// What a command may write.
const OUTPUT: u64 = 1 << 20;
/// What is kept of its complaints.
const COMPLAINTS: u64 = 4096;

/// The system starts no command with a variable much larger than this.
const USAGE: usize = 64 << 10;

/// What every command is given of the environment.
const ENVIRONMENT: [&str; 4] = ["PATH", "LANG", "LC_ALL", "TZ"];

struct Runner {
    program: String,
    arguments: Vec<OsString>,
    format: Format,
    /// The organism's folder.
    folder: PathBuf,
    /// The listener's own.
    own_folder: PathBuf,
    types: Types,
    env: Vec<String>,
    write: Vec<PathBuf>,
    limits: ProcessLimits,
}

impl ProcessFile {
    /// The program, as the file names it.
    pub fn program(&self) -> Option<&str> {
        self.command.first().map(String::as_str)
    }

    pub fn attach(
        &self,
        accepts: Vec<Schema>,
        listener: Listener,
        types: &Types,
        folder: &Path,
        secrets: &[String],
    ) -> std::result::Result<Listener, String> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err("its command is empty".to_owned());
        };
        if let Some(secret) = self.env.iter().find(|name| secrets.contains(name)) {
            return Err(format!("env: {secret} holds a model's key"));
        }
        hide_own_environment();
        let folder = std::path::absolute(folder).map_err(|error| error.to_string())?;
        let runner = Arc::new(Runner {
            program: program.clone(),
            arguments: arguments.iter().map(|a| in_folder(&folder, a)).collect(),
            format: self.format,
            own_folder: folder
                .join(".organism/work")
                .join(listener.name().to_lowercase()),
            types: types.clone(),
            env: self.env.clone(),
            write: self.write.iter().map(|path| folder.join(path)).collect(),
            limits: self.limits,
            folder,
        });
        let handler = move |payload, metadata| {
            let runner = runner.clone();
            async move { runner.run(payload, metadata).await }
        };
        let listener = accept_all(accepts, listener, handler.clone());
        Ok(match self.system {
            true => listener.on_system(handler),
            false => listener,
        })
    }
}

impl Runner {
    async fn run(&self, payload: Canonical, metadata: HandlerMetadata) -> Result<Reply> {
        let input = self.input(&payload)?;
        std::fs::create_dir_all(&self.own_folder)
            .map_err(|error| format!("{}: {error}", self.own_folder.display()))?;
        let mut command = self.guarded()?;
        command
            .env("ORGANISM_HOP", metadata.hop_id.to_string())
            .env("ORGANISM_DEDUP_KEY", metadata.dedup_key())
            .env("ORGANISM_THREAD", metadata.thread_id.to_string())
            .env("ORGANISM_FROM", &metadata.from_id)
            .env("ORGANISM_SELF_CALL", metadata.is_self_call.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if metadata.usage_instructions.len() <= USAGE {
            command.env("ORGANISM_USAGE", &*metadata.usage_instructions);
        }
        if let Some(own_name) = &metadata.own_name {
            command.env("ORGANISM_NAME", own_name);
        }
        let mut running = Running(
            command
                .spawn()
                .map_err(|error| format!("{}: {error}", self.program))?,
        );
        let (stdin, stdout, stderr) = (
            running.0.stdin.take(),
            running.0.stdout.take(),
            running.0.stderr.take(),
        );
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A command that does not read its input is none the worse for it.
                let _ = stdin.write_all(&input).await;
            }
        };
        let talk = async {
            tokio::join!(
                feed,
                read_some(stdout, OUTPUT + 1),
                skim(stderr, COMPLAINTS)
            )
        };
        let ((), output, complaints) = tokio::select! {
            talked = talk => talked,
            () = metadata.cancellation.cancelled() => return Err("was cancelled".into()),
        };
        let output = output?;
        if output.len() as u64 > OUTPUT {
            return Err(format!("{} wrote more than {OUTPUT} bytes", self.program).into());
        }
        let status = running.0.wait().await?;
        if !status.success() {
            let complaints = complaints.unwrap_or_default();
            let complaints = String::from_utf8_lossy(&complaints);
            return Err(format!("{}: {status}: {}", self.program, complaints.trim()).into());
        }
        match self.format {
            Format::Xml => Ok(Reply::Text(output)),
            Format::Json => self.messages(&output),
        }
    }

    /// The command under its guard, in its folder, with its environment.
    fn guarded(&self) -> Result<Command> {
        let ProcessLimits {
            memory_mib,
            cpu_seconds,
        } = self.limits;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["organism", "guard", "--memory-kib"])
            .arg(memory_mib.saturating_mul(1 << 10).to_string())
            .args(["--cpu-seconds", &cpu_seconds.to_string()]);
        for path in self.write.iter().chain([&self.own_folder]) {
            command.arg("--write").arg(path);
        }
        command.arg("--").arg(self.resolve()).args(&self.arguments);
        command.current_dir(&self.own_folder).env_clear();
        let given = ENVIRONMENT
            .into_iter()
            .chain(self.env.iter().map(String::as_str));
        command.envs(given.filter_map(|name| Some((name, std::env::var_os(name)?))));
        command
            .env("HOME", &self.own_folder)
            .env("TMPDIR", &self.own_folder)
            .env("ORGANISM_FOLDER", &self.folder);
        Ok(command)
    }

    /// A path with a slash is the file's own; a bare name is looked up.
    fn resolve(&self) -> PathBuf {
        match self.program.contains('/') {
            true => std::path::absolute(self.folder.join(&self.program))
                .unwrap_or_else(|_| self.program.clone().into()),
            false => self.program.clone().into(),
        }
    }

    fn input(&self, payload: &Canonical) -> Result<Vec<u8>> {
        match (self.format, self.types.get(payload.root())) {
            (Format::Json, Some(known)) => {
                let fields = known.xml_to_json(payload)?;
                Ok(serde_json::to_vec(
                    &serde_json::json!({ payload.root(): fields }),
                )?)
            }
            _ => Ok(payload.xml().as_bytes().to_vec()),
        }
    }

    /// One object or an array of them: `{"Name": {fields}}`, with `"to"` beside
    /// the name for a target.
    fn messages(&self, output: &[u8]) -> Result<Reply> {
        if output.trim_ascii().is_empty() {
            return Ok(Reply::from(()));
        }
        let messages = match serde_json::from_slice(output)? {
            Value::Array(messages) => messages,
            message => vec![message],
        };
        let mut text = String::new();
        for message in messages {
            let Value::Object(mut members) = message else {
                return Err("a message is an object".into());
            };
            let to = members.remove("to");
            let mut payloads = members.into_iter();
            let (Some((name, fields)), None) = (payloads.next(), payloads.next()) else {
                return Err("a message has one payload".into());
            };
            let known = self
                .types
                .get(&name)
                .ok_or_else(|| format!("the payload {name:?} does not exist"))?;
            let payload = known.json_to_xml(&fields)?;
            match to {
                None | Some(Value::Null) => text.push_str(&payload),
                Some(Value::String(to)) => text.push_str(&addressed(&to, &payload)),
                Some(_) => return Err("`to` is a name".into()),
            }
        }
        Ok(Reply::Text(text.into_bytes()))
    }
}

/// The keys in this process's environment and memory are not for the commands that it
/// starts, which could read them in `/proc` otherwise.
fn hide_own_environment() {
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "commands may be able to read this program's environment");
    }
}

/// An argument that names a file of the organism's is that file, wherever the
/// command runs.
fn in_folder(folder: &Path, argument: &str) -> OsString {
    let path = folder.join(argument);
    match !argument.is_empty() && path.is_file() {
        true => path.into_os_string(),
        false => argument.into(),
    }
}

fn addressed(to: &str, payload: &str) -> String {
    let to = to.replace('&', "&amp;").replace('<', "&lt;");
    format!("<message><meta><to>{to}</to></meta>{payload}</message>")
}

/// Reads the beginning; what comes after it is cut off.
async fn read_some(from: Option<impl AsyncRead + Unpin>, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(most).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

/// Reads the beginning, and lets the rest go by.
async fn skim(from: Option<impl AsyncRead + Unpin>, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        (&mut from).take(most).read_to_end(&mut bytes).await?;
        tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
    }
    Ok(bytes)
}

/// A command's guard. Told to stop when it is dropped before it has finished, as
/// after a time-out, it ends all that the command has started. No
/// `runtime::ProcessGroup`: that would kill the guard, which alone finds what has left
/// the group.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let pid = self
            .0
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended by itself, or been stopped by its command.
            let _ = kill_process(pid, Signal::TERM);
            let _ = kill_process(pid, Signal::CONT);
        }
    }
}
