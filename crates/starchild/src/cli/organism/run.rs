//! `organism run`: one conversation on standard input and output, and as many as
//! come by the other gateways, until the input ends or a signal comes. SIGHUP
//! reads the file again.

use super::stdio::StdioGateway;
use super::{FileArgument, RunArguments};
use crate::organism::config::{File, load};
use crate::organism::gateway::{Connected, GatewayKind};
use crate::organism::observe::Observers;
use crate::organism::observe::recent::Recent;
use crate::organism::ui::Page;
use agentserver::Pump;
use agentserver::config::Durable;
use runtime::CancellationToken;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::Layer;

pub async fn run(arguments: RunArguments) -> Result<(), String> {
    log_to_stderr()?;
    let RunArguments {
        file: FileArgument { file: path },
        trace,
        state,
        ui,
        gateway,
        stay,
        envelopes,
    } = arguments;
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let (file, organism) = load(&path).map_err(|error| text(&error))?;
    let mut settings = file.settings();
    let recent = ui.map(|_| Arc::new(Recent::new()));
    let observers = Observers::new(trace.as_deref(), recent.clone()).await?;
    let (sender, observing) = observers.start().unzip();
    settings.trace = sender;
    let gateway = gateway.or_else(|| {
        let mut gateways = file.gateways.iter();
        let found = gateways.find(|gateway| matches!(gateway.kind, GatewayKind::Stdin));
        found.map(|gateway| gateway.name.value.clone())
    });
    let limits = settings.xml;
    let mut signals = Signals::new().map_err(|error| text(&error))?;
    let journal = journal_folder(&file, &path, state);
    let pump = match &journal {
        None => Pump::start(organism, settings),
        Some(folder) => {
            Pump::start_durable(organism, settings, folder).map_err(|error| text(&error))?
        }
    };
    let page = match (ui, recent) {
        (Some(listen), Some(recent)) => {
            Some(Page::start(listen, &file, pump.clone(), recent, journal).await?)
        }
        _ => None,
    };
    let connected = Connected::start(&file, &pump, limits).await?;
    // With nothing but the network to listen to, only a signal ends it.
    let stay = stay || !connected.is_empty() || page.is_some();
    let stop = CancellationToken::new();
    let mut talk = match gateway {
        None => None,
        Some(name) => {
            let conversation = match pump.recovered(&name).into_iter().next() {
                Some(conversation) => conversation,
                None => pump
                    .open(&name)
                    .map_err(|_| format!("there is no gateway {name:?}"))?,
            };
            let stdio = StdioGateway::new(
                pump.clone(),
                conversation,
                name,
                limits,
                envelopes,
                stop.clone(),
            );
            Some(Box::pin(stdio.talk()))
        }
    };
    let mut is_stopping = false;
    let mut refused = 0;
    let result = loop {
        tokio::select! {
            Some(ended) = next_end(&mut talk) => {
                talk = None;
                refused += ended.as_ref().copied().unwrap_or(0);
                if ended.is_err() || is_stopping || !stay {
                    break ended.map(drop);
                }
            }
            signal = signals.next() => match signal {
                Caught::Hangup => reload(&pump, &path, &file, page.as_ref()),
                // The talk ends when what is under way has been answered.
                Caught::Stop if talk.is_some() && !is_stopping => {
                    is_stopping = true;
                    stop.cancel();
                }
                Caught::Stop => break Ok(()),
            },
        }
    };
    // The trace ends when the last part of the pump is dropped.
    drop(talk);
    drop(connected);
    drop(page);
    let finish = async {
        pump.drain().await.map_err(|error| error.to_string())?;
        let failures = pump.failures();
        drop(pump);
        if let Some(observing) = observing {
            let written = observing.await.map_err(|error| error.to_string());
            let written = written.and_then(|written| written.map_err(|error| error.to_string()));
            written.map_err(|error| format!("the trace: {error}"))?;
        }
        match (refused, failures) {
            (0, 0) => Ok(()),
            (refused, failures) => Err(format!(
                "{refused} messages were refused or answered with an error; {failures} handlers \
                 failed or were ended by a limit"
            )),
        }
    };
    tokio::select! {
        finished = finish => result.and(finished),
        // Whoever asks twice does not want to wait.
        Caught::Stop = signals.next() => result,
    }
}

/// Where the journal is: what the file says, in its own folder, or in the state
/// folder; nowhere for an organism that is to forget.
fn journal_folder(file: &File, path: &Path, state: Option<PathBuf>) -> Option<PathBuf> {
    match &file.durable {
        Some(Durable::In(folder)) => Some(path.with_file_name("").join(folder)),
        Some(Durable::Is(false)) => None,
        Some(Durable::Is(true)) | None => state,
    }
}

/// How the talk ended; nothing while there is none.
async fn next_end<F: Future + Unpin>(talk: &mut Option<F>) -> Option<F::Output> {
    match talk {
        Some(talk) => Some(talk.await),
        None => None,
    }
}

/// What goes wrong, and what `RUST_LOG` asks for.
pub fn log_to_stderr() -> Result<(), String> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    let log = tracing_subscriber::fmt::layer()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .with_filter(filter);
    crate::telemetry::begin(log)
}

/// A file with something wrong in it changes nothing.
fn reload(pump: &Pump, path: &Path, started: &File, page: Option<&Page>) {
    match load(path) {
        Ok((file, organism)) => {
            pump.reload(organism);
            if let Some(page) = page {
                page.redraw(&file);
            }
            eprintln!("{}: read again", path.display());
            let changed = connected_otherwise(started, &file);
            if !changed.is_empty() {
                let changed = changed.join(", ");
                eprintln!("{changed}: connected as at the start; restart to connect anew");
            }
        }
        Err(error) => eprintln!(
            "{error}\n{}: not read again; the organism stays as it was",
            path.display()
        ),
    }
}

/// Gateways whose connection a file would have otherwise than another.
fn connected_otherwise<'a>(started: &'a File, file: &'a File) -> Vec<&'a str> {
    let both = started.gateways.iter().chain(&file.gateways);
    let kind = |file: &'a File, name: &str| {
        let mut gateways = file.gateways.iter();
        let found = gateways.find(|gateway| gateway.name.value.eq_ignore_ascii_case(name));
        found.map(|gateway| &gateway.kind)
    };
    let names = both.map(|gateway| &*gateway.name.value);
    let mut changed: Vec<_> = names
        .filter(|name| kind(started, name) != kind(file, name))
        .collect();
    changed.sort_unstable();
    changed.dedup();
    changed
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
