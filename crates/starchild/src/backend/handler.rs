//! The `handler` backend: a script of the owner's that is run for every message and decides
//! everything itself.

use super::{
    Backend, BackendError, Call, Inbound, Reply, command::Program, config::BackendConfig,
    environment::Environment,
};
use futures_util::future::BoxFuture;
use protocol::{MAX_CONTENT_BYTES, Message, MessageType, Via};
use serde::Serialize;
use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

/// As much of a script's first line as systems read.
const FIRST_LINE_BYTES: u64 = 256;

/// A script.
#[derive(Debug)]
pub struct Handler {
    path: PathBuf,
    args: Vec<OsString>,
    timeout: Duration,
    environment: Environment,
}

impl Handler {
    /// The script that the configuration names, if it can be run.
    pub fn new(config: &BackendConfig, folder: &Path) -> Result<Self, BackendError> {
        let path = config.handler_path.as_deref().unwrap_or(Path::new(""));
        let handler = Self {
            path: folder.join(path),
            args: config.args.iter().map(Into::into).collect(),
            timeout: config.timeout(),
            environment: Environment::inherited(&config.env),
        };
        let start = Start::of(&handler.path)?;
        if matches!(start, Start::Converted { .. }) {
            tracing::warn!(
                "{} has Windows line endings; a copy without them is run. To mend it: sed -i 's/\\r$//' {0}",
                handler.path.display()
            );
        }
        Ok(handler)
    }

    async fn run(&self, inbound: &Inbound) -> Result<Reply, BackendError> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let (program, args) = match Start::of(&self.path)? {
            Start::Itself => (self.path.clone().into_os_string(), Vec::new()),
            Start::Shell => ("sh".into(), vec![self.path.clone().into_os_string()]),
            Start::Converted { program, mut args } => {
                args.push(self.convert(inbound)?.into_os_string());
                (program, args)
            }
        };
        let document = serde_json::to_vec(&Document::of(inbound))
            .map_err(|error| BackendError::Failed(error.to_string()))?;
        let program = Program::new(program, folder, self.timeout, self.environment.clone())
            .args(args)
            .args(self.args.iter().cloned());
        let output = program.ask(&document, inbound).await?;
        Ok(Reply::from_output(&output.replace("\r\n", "\n")))
    }

    /// A copy of the script without Windows line endings, in this message's own file, so that
    /// rooms that run side by side do not write over each other's.
    fn convert(&self, inbound: &Inbound) -> Result<PathBuf, BackendError> {
        let (room, seq) = (&inbound.room_name, inbound.message.seq);
        let copy = inbound.session.log_dir.join(format!(".handler-{room}"));
        let text = std::fs::read(&self.path).map_err(|error| missing(&self.path, &error))?;
        let mut converted = Vec::with_capacity(text.len());
        for (at, byte) in text.iter().enumerate() {
            if *byte != b'\r' || text.get(at + 1) != Some(&b'\n') {
                converted.push(*byte);
            }
        }
        std::fs::write(&copy, converted).map_err(|error| {
            BackendError::Unavailable(format!("seq {seq}: {}: {error}", copy.display()))
        })?;
        Ok(copy)
    }
}

impl Backend for Handler {
    fn answers_only_addressed(&self) -> bool {
        false
    }

    fn answer<'a>(
        &'a self,
        inbound: &'a Inbound,
        _call: &'a Call,
    ) -> BoxFuture<'a, Result<Reply, BackendError>> {
        Box::pin(self.run(inbound))
    }
}

/// How a script is started.
#[derive(Debug, PartialEq, Eq)]
enum Start {
    /// As the program it is.
    Itself,
    /// It names no interpreter: by the shell, as a shell would.
    Shell,
    /// Its lines end the Windows way, so no system finds its interpreter: by that interpreter,
    /// from a copy.
    Converted {
        program: OsString,
        args: Vec<OsString>,
    },
}

impl Start {
    /// Looks at the script, which may have changed since the last message.
    fn of(path: &Path) -> Result<Self, BackendError> {
        let first = first_bytes(path).map_err(|error| missing(path, &error))?;
        Ok(Self::from_first_bytes(&first))
    }

    fn from_first_bytes(first: &[u8]) -> Self {
        let line = first.split(|byte| *byte == b'\n').next().unwrap_or(first);
        let Some(interpreter) = line.strip_prefix(b"#!") else {
            let is_text = !first.contains(&0) && !first.starts_with(b"\x7fELF");
            return if is_text { Self::Shell } else { Self::Itself };
        };
        let Some(interpreter) = interpreter.strip_suffix(b"\r") else {
            return Self::Itself;
        };
        let text = String::from_utf8_lossy(interpreter);
        let mut words = text.trim().splitn(2, char::is_whitespace);
        Self::Converted {
            program: words.next().unwrap_or("sh").into(),
            args: words.map(|argument| argument.trim().into()).collect(),
        }
    }
}

fn first_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err(io::Error::other("it is not executable"));
    }
    let mut first = Vec::new();
    file.take(FIRST_LINE_BYTES).read_to_end(&mut first)?;
    Ok(first)
}

fn missing(path: &Path, error: &io::Error) -> BackendError {
    let shown = path.display();
    let hint = match error.kind() {
        io::ErrorKind::NotFound => {
            "write it, or set handler_path in handler.yaml to where it is".to_owned()
        }
        io::ErrorKind::Other => format!("make it so with: chmod +x {shown}"),
        _ => "set handler_path in handler.yaml to a script that you may run".to_owned(),
    };
    BackendError::Missing {
        what: format!("the handler {shown} cannot be run: {error}"),
        hint,
    }
}

/// The document on the script's standard input.
#[derive(Serialize)]
struct Document<'a> {
    room_id: &'a str,
    seq: i64,
    sender_user_id: &'a str,
    sender_user_name: Option<&'a str>,
    via: &'a Via,
    r#type: &'a MessageType,
    content: &'a str,
    reply_to_seq: Option<i64>,
    reply_chain_depth: i64,
    rules_version: i64,
    created_at: i64,
}

impl<'a> Document<'a> {
    fn of(inbound: &'a Inbound) -> Self {
        let message: &Message = &inbound.message;
        let end = message.content.floor_char_boundary(MAX_CONTENT_BYTES);
        Self {
            room_id: inbound.room_id.as_str(),
            seq: message.seq,
            sender_user_id: &message.sender_user_id,
            sender_user_name: message.sender_user_name.as_deref(),
            via: &message.via,
            r#type: &message.r#type,
            content: &message.content[..end],
            reply_to_seq: message.reply_to_seq,
            reply_chain_depth: message.reply_chain_depth,
            rules_version: message.rules_version,
            created_at: message.created_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_started_by_what_its_first_line_names() {
        let start = |text: &str| Start::from_first_bytes(text.as_bytes());
        assert_eq!(start("#!/bin/bash\necho"), Start::Itself);
        assert_eq!(start("#!/bin/sh"), Start::Itself);
        assert_eq!(start("\x7fELF\0\0"), Start::Itself);
        assert_eq!(start("echo hi\n"), Start::Shell);
        assert_eq!(start(""), Start::Shell);
        assert_eq!(
            start("#!/usr/bin/env -S bash -e\r\necho"),
            Start::Converted {
                program: "/usr/bin/env".into(),
                args: vec!["-S bash -e".into()],
            }
        );
    }
}
