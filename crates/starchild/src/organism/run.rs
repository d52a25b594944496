//! `organism run`: one conversation on standard input and output, until the
//! input ends or a signal comes. SIGHUP reads the file again.

use super::config::load;
use super::{FileArgument, RunArguments, trace};
use agentserver::{Conversation, Delivered, Pump, SendError};
use std::io::{BufRead, IsTerminal, Read};
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncWriteExt, stdout};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, mpsc};

/// One line of input.
const LINE: u64 = 1 << 20;

pub async fn run(arguments: RunArguments) -> Result<(), String> {
    log_to_stderr();
    let RunArguments {
        file: FileArgument { file: path },
        trace,
        gateway,
        stay,
        envelopes,
    } = arguments;
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let (file, organism) = load(&path).map_err(|error| text(&error))?;
    let mut settings = file.settings();
    let mut writer = None;
    if let Some(trace) = trace {
        let (sender, task) = trace::start(&trace)
            .await
            .map_err(|error| format!("{}: {error}", trace.display()))?;
        settings.trace = Some(sender);
        writer = Some(task);
    }
    let gateway = gateway.or_else(|| {
        file.gateways
            .first()
            .map(|gateway| gateway.name.value.clone())
    });
    let mut signals = Signals::new().map_err(|error| text(&error))?;
    let pump = Pump::start(organism, settings);
    let stop = Arc::new(Notify::new());
    let mut talk = match gateway {
        None => None,
        Some(name) => {
            let conversation = pump
                .open(&name)
                .ok_or_else(|| format!("there is no gateway {name:?}"))?;
            let session = Session {
                conversation,
                gateway: name,
                envelopes,
                lines: lines(),
                stop: stop.clone(),
            };
            Some(Box::pin(session.talk()))
        }
    };
    let mut is_stopping = false;
    let result = loop {
        tokio::select! {
            Some(ended) = next_end(&mut talk) => {
                talk = None;
                if ended.is_err() || is_stopping || !stay {
                    break ended;
                }
            }
            signal = signals.next() => match signal {
                Caught::Hangup => reload(&pump, &path),
                // The talk ends when what is under way has been answered.
                Caught::Stop if talk.is_some() && !is_stopping => {
                    is_stopping = true;
                    stop.notify_one();
                }
                Caught::Stop => break Ok(()),
            },
        }
    };
    // The trace ends when the last part of the pump is dropped.
    drop(talk);
    let finish = async {
        pump.drain().await;
        drop(pump);
        match writer {
            None => Ok(()),
            Some(writer) => match writer.await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(format!("the trace: {error}")),
                Err(error) => Err(format!("the trace: {error}")),
            },
        }
    };
    tokio::select! {
        finished = finish => result.and(finished),
        // Whoever asks twice does not want to wait.
        Caught::Stop = signals.next() => result,
    }
}

/// How the talk ended; nothing while there is none.
async fn next_end<F: Future + Unpin>(talk: &mut Option<F>) -> Option<F::Output> {
    match talk {
        Some(talk) => Some(talk.await),
        None => None,
    }
}

fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    // Another part of the program may have set it up.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .try_init();
}

/// A file with something wrong in it changes nothing.
fn reload(pump: &Pump, path: &Path) {
    match load(path) {
        Ok((_, organism)) => {
            pump.reload(organism);
            eprintln!("{}: read again", path.display());
        }
        Err(error) => eprintln!(
            "{error}\n{}: not read again; the organism stays as it was",
            path.display()
        ),
    }
}

enum Caught {
    Hangup,
    Stop,
}

struct Signals {
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> Caught {
        tokio::select! {
            _ = self.hangup.recv() => Caught::Hangup,
            _ = self.interrupt.recv() => Caught::Stop,
            _ = self.terminate.recv() => Caught::Stop,
        }
    }
}

/// Standard input and output as a gateway.
struct Session {
    conversation: Conversation,
    gateway: String,
    envelopes: bool,
    lines: mpsc::Receiver<std::io::Result<String>>,
    /// No more input is wanted.
    stop: Arc<Notify>,
}

impl Session {
    /// Sends each line and prints what comes back; after the last line, waits
    /// for what is still under way.
    async fn talk(mut self) -> Result<(), String> {
        let mut has_ended = false;
        while !has_ended || !self.conversation.is_at_rest() {
            tokio::select! {
                line = self.lines.recv(), if !has_ended => match line {
                    Some(line) => self.send(line.map_err(|error| error.to_string())?.trim()).await?,
                    None => has_ended = true,
                },
                () = self.stop.notified(), if !has_ended => has_ended = true,
                delivered = self.conversation.next() => {
                    if let Some(delivered) = delivered {
                        self.print(&delivered).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A line is a payload, or an envelope of which the `to` counts.
    async fn send(&mut self, text: &str) -> Result<(), String> {
        for (to, payload) in addressed(text) {
            match self.conversation.send_xml(to.as_deref(), &payload).await {
                Ok(()) => {}
                Err(SendError::Refused(refusal)) => print_line(refusal.xml()).await?,
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    async fn print(&self, delivered: &Delivered) -> Result<(), String> {
        match self.envelopes {
            true => {
                print_line(
                    &delivered
                        .envelope(&self.gateway)
                        .map_err(|error| error.to_string())?,
                )
                .await
            }
            false => print_line(delivered.payload.xml()).await,
        }
    }
}

/// What a line asks for. A line that is no XML goes as it is, to be refused.
fn addressed(text: &str) -> Vec<(Option<String>, String)> {
    if text.is_empty() {
        return Vec::new();
    }
    match agentserver::xml::Answer::read(text, &agentserver::xml::Limits::default()) {
        Ok(answer) => answer
            .said
            .into_iter()
            .map(|said| (said.to, said.payload.xml().to_owned()))
            .collect(),
        Err(_) => vec![(None, text.to_owned())],
    }
}

/// The lines of standard input, read by a thread of their own: a read that
/// waits for a person must not keep the program from ending.
fn lines() -> mpsc::Receiver<std::io::Result<String>> {
    let (sender, receiver) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = String::new();
            let read = match (&mut input).take(LINE).read_line(&mut line) {
                Ok(0) => return,
                Ok(_) if line.len() as u64 == LINE => {
                    Err(std::io::Error::other("a line is over 1 MiB"))
                }
                Ok(_) => Ok(line),
                Err(error) => Err(error),
            };
            let is_over = read.is_err();
            if sender.blocking_send(read).is_err() || is_over {
                return;
            }
        }
    });
    receiver
}

/// A message is one line: line breaks in its text are written as references.
async fn print_line(text: &str) -> Result<(), String> {
    let mut out = stdout();
    let line = format!("{}\n", text.replace('\n', "&#10;"));
    out.write_all(line.as_bytes())
        .await
        .map_err(|error| error.to_string())?;
    out.flush().await.map_err(|error| error.to_string())
}
