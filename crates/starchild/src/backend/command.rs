//! Runs one program for one message: words in, words out, and an end to it whatever it does.
//!
//! The program is the first of a process group of its own. When its time is up, or nobody waits any
//! more, the whole group is ended. What it prints is read no further than needed, and a child that
//! keeps its pipes open after it has gone holds nobody up.

mod reader;
mod stderr_log;

pub use reader::{HeadReader, LineReader, OutputReader};
pub use stderr_log::StderrLog;

use super::{BackendError, Inbound, environment::Environment};
use runtime::ProcessGroup;
use std::{
    ffi::OsString,
    io,
    os::fd::AsFd,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin},
    time::Instant,
};

/// How long a program may take to leave once it was asked to.
const GRACE_PERIOD: Duration = Duration::from_secs(2);
const BUFFER_BYTES: usize = 8 << 10;

/// A program and how to run it.
#[derive(Clone, Debug)]
pub struct Program {
    /// A name to look up on `PATH`, or a path.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Where it runs.
    pub folder: PathBuf,
    /// How long it may run.
    pub timeout: Duration,
    /// What it finds in its environment.
    pub environment: Environment,
}

/// How a program ended.
#[derive(Debug)]
pub struct Ending {
    /// Whether it ended well. One that was ended because it talked without end did.
    pub success: bool,
    /// For people: the exit status and the last words on standard error.
    pub words: String,
}

impl Program {
    /// A program that runs in `folder`.
    pub fn new(
        program: impl Into<OsString>,
        folder: &Path,
        timeout: Duration,
        environment: Environment,
    ) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            folder: folder.to_owned(),
            timeout,
            environment,
        }
    }

    /// Adds arguments.
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Runs it with `input` on its standard input, for the message `inbound`. What it prints goes to
    /// the reader as it comes; each line on its standard error is logged.
    pub async fn run(
        &self,
        input: &[u8],
        inbound: &Inbound,
        reader: &mut (dyn OutputReader + Send),
    ) -> Result<Ending, BackendError> {
        let (mut child, mut group) = self
            .spawn(inbound)
            .map_err(|error| self.not_started(error))?;
        let mut run = Run::new(&mut child, reader);
        let deadline = Instant::now() + self.timeout;
        let ended = run.until_ended(&mut child, input, deadline).await?;
        let status = match ended {
            Ended::Alone(status) => {
                // What it left running on purpose may stay.
                group.release();
                Some(status)
            }
            Ended::Endless => {
                group.terminate(&mut child, GRACE_PERIOD).await;
                None
            }
            Ended::Late => {
                group.terminate(&mut child, GRACE_PERIOD).await;
                run.drain();
                return Err(BackendError::TimedOut(self.timeout));
            }
        };
        run.drain();
        Ok(run.ending(status))
    }

    /// Runs it and takes what it printed as the answer; a program that fails has none.
    pub async fn ask(&self, input: &[u8], inbound: &Inbound) -> Result<String, BackendError> {
        let mut kept = HeadReader::default();
        let ending = self.run(input, inbound, &mut kept).await?;
        match ending.success {
            true => Ok(kept.text()),
            false => Err(self.failed(&ending.words)),
        }
    }

    /// The program failed, in words.
    pub fn failed(&self, words: &str) -> BackendError {
        BackendError::Failed(format!("{} {words}", self.program.display()))
    }

    fn spawn(&self, inbound: &Inbound) -> io::Result<(Child, ProcessGroup)> {
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(&self.args)
            .current_dir(&self.folder)
            .env_clear()
            .envs(self.environment.variables())
            .envs(contract_variables(inbound))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        ProcessGroup::spawn(&mut command)
    }

    fn not_started(&self, error: io::Error) -> BackendError {
        let program = self.program.display();
        let missing = |hint: &str| BackendError::Missing {
            what: format!("{program} cannot be started: {error}"),
            hint: hint.to_owned(),
        };
        match error.kind() {
            io::ErrorKind::NotFound if !self.folder.is_dir() => missing(&format!(
                "the folder {} is missing; make it",
                self.folder.display()
            )),
            io::ErrorKind::NotFound => {
                missing("install it, put it on PATH, or give its whole path in handler.yaml")
            }
            io::ErrorKind::PermissionDenied => missing("make it executable with chmod +x"),
            // Too many processes, too little memory, a file that is just being written.
            io::ErrorKind::WouldBlock
            | io::ErrorKind::OutOfMemory
            | io::ErrorKind::ExecutableFileBusy => {
                BackendError::Unavailable(format!("{program} cannot be started: {error}"))
            }
            _ => BackendError::Failed(format!("{program} cannot be started: {error}")),
        }
    }
}

/// The variables of the handler contract.
pub fn contract_variables(inbound: &Inbound) -> [(&'static str, OsString); 4] {
    [
        ("SCCHAT_ROOM_ID", inbound.room_id.as_str().into()),
        ("SCCHAT_USER_ID", inbound.me.user_id.as_str().into()),
        ("SCCHAT_SESSION_ID", inbound.session.id.as_str().into()),
        (
            "SCCHAT_HANDLER_LOG_DIR",
            inbound.session.log_dir.clone().into_os_string(),
        ),
    ]
}

/// How a program came to its end.
enum Ended {
    Alone(ExitStatus),
    /// It said more than anybody wants to hear.
    Endless,
    /// Its time is up.
    Late,
}

/// A program's pipes and what has come out of them.
struct Run<'a> {
    stdin: Option<ChildStdin>,
    stdout: Pipe<tokio::process::ChildStdout>,
    stderr: Pipe<tokio::process::ChildStderr>,
    reader: &'a mut (dyn OutputReader + Send),
    stderr_log: StderrLog,
}

impl<'a> Run<'a> {
    fn new(child: &mut Child, reader: &'a mut (dyn OutputReader + Send)) -> Self {
        Self {
            stdin: child.stdin.take(),
            stdout: Pipe::new(child.stdout.take()),
            stderr: Pipe::new(child.stderr.take()),
            reader,
            stderr_log: StderrLog::default(),
        }
    }

    async fn until_ended(
        &mut self,
        child: &mut Child,
        input: &[u8],
        deadline: Instant,
    ) -> Result<Ended, BackendError> {
        let stdin = self.stdin.take();
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A program that does not read its input is none the worse for it.
                let _ = stdin.write_all(input).await;
            }
        };
        tokio::pin!(feed);
        let mut fed = false;
        loop {
            tokio::select! {
                status = child.wait() => {
                    let status = status.map_err(|error| BackendError::Failed(error.to_string()))?;
                    return Ok(Ended::Alone(status));
                }
                () = &mut feed, if !fed => fed = true,
                read = self.stdout.read() , if self.stdout.is_open() => {
                    self.reader.read(read);
                    if self.reader.is_full() {
                        return Ok(Ended::Endless);
                    }
                }
                read = self.stderr.read(), if self.stderr.is_open() => self.stderr_log.push(read),
                () = tokio::time::sleep_until(deadline) => return Ok(Ended::Late),
            }
        }
    }

    /// Takes what is left in the pipes of a program that is gone, and waits for nothing: a child
    /// of it may hold them open for ever.
    fn drain(&mut self) {
        while !self.reader.is_full()
            && let Some(read) = self.stdout.read_now()
        {
            self.reader.read(read);
        }
        while self.stderr_log.wants_more()
            && let Some(read) = self.stderr.read_now()
        {
            self.stderr_log.push(read);
        }
        self.stderr_log.finish();
    }

    fn ending(self, status: Option<ExitStatus>) -> Ending {
        let success = status.is_none_or(|status| status.success());
        let mut words = match status {
            Some(status) => format!("ended with {status}"),
            None => "was ended because its output had no end".to_owned(),
        };
        if let Some(last) = self.stderr_log.last() {
            words.push_str(": ");
            words.push_str(last);
        }
        Ending { success, words }
    }
}

/// The end of a pipe that is read piece by piece.
struct Pipe<P> {
    pipe: Option<P>,
    buffer: Box<[u8]>,
}

impl<P: AsyncRead + AsFd + Unpin> Pipe<P> {
    fn new(pipe: Option<P>) -> Self {
        Self {
            pipe,
            buffer: vec![0; BUFFER_BYTES].into(),
        }
    }

    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// The next bytes; none, once, when the other end is closed.
    async fn read(&mut self) -> &[u8] {
        let read = match &mut self.pipe {
            Some(pipe) => pipe.read(&mut self.buffer).await.unwrap_or(0),
            None => 0,
        };
        if read == 0 {
            self.pipe = None;
        }
        &self.buffer[..read]
    }

    /// The next bytes if they are there already.
    fn read_now(&mut self) -> Option<&[u8]> {
        let read = rustix::io::read(self.pipe.as_ref()?, &mut *self.buffer).unwrap_or(0);
        (read > 0).then(|| &self.buffer[..read])
    }
}

#[cfg(test)]
mod tests;
