//! Standard input and output as a gateway: one conversation, element by element.

use super::hint::Hint;
use crate::terminal::printable;
use agentserver::system::{self, Fault, Huh};
use agentserver::xml::{Limits, ParsedOutput, Piece, Splitter, XmlError};
use agentserver::{Conversation, Delivered, Payload, Pump, SendError};
use runtime::CancellationToken;
use std::cell::Cell;
use std::convert::Infallible;
use std::io::{IsTerminal, Read};
use tokio::io::{AsyncWriteExt, stdout};
use tokio::sync::{Notify, mpsc};

/// Standard input and output as a gateway.
pub struct StdioGateway {
    conversation: Conversation,
    gateway: String,
    envelopes: bool,
    limits: Limits,
    hint: Hint,
    /// No more input is wanted.
    stop: CancellationToken,
    /// Messages that were refused, or answered with an error.
    failed: Cell<u64>,
    /// Something was sent, or nothing will be any more.
    sent: Notify,
    end: Cell<Option<End>>,
}

/// Why nothing more is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The input has ended: to-dos are waited for.
    Input,
    /// The program was told to stop: what is under way is waited for.
    Stop,
}

impl StdioGateway {
    /// Standard input as this gateway of a pump, in this conversation.
    pub fn new(
        pump: Pump,
        conversation: Conversation,
        gateway: String,
        limits: Limits,
        envelopes: bool,
        stop: CancellationToken,
    ) -> Self {
        Self {
            conversation,
            hint: Hint::new(pump, gateway.clone()),
            gateway,
            envelopes,
            limits,
            stop,
            failed: Cell::new(0),
            sent: Notify::new(),
            end: Cell::new(None),
        }
    }

    /// Sends each element and prints what comes back; after the last one, waits
    /// for what is still under way. Gives how many messages failed.
    pub async fn talk(self) -> Result<u64, String> {
        if std::io::stdin().is_terminal() {
            self.hint.give();
        }
        let pieces = pieces(self.limits.bytes);
        tokio::select! {
            printed = self.print_all() => printed?,
            failed = self.send_all(pieces) => match failed? {},
        }
        Ok(self.failed.get())
    }

    async fn send_all(
        &self,
        mut pieces: mpsc::Receiver<std::io::Result<Piece>>,
    ) -> Result<Infallible, String> {
        let end = loop {
            let piece = tokio::select! {
                piece = pieces.recv() => piece,
                () = self.stop.cancelled() => break End::Stop,
            };
            match piece {
                Some(piece) => self.send(piece.map_err(|error| error.to_string())?).await?,
                None => break End::Input,
            }
            self.sent.notify_one();
        };
        self.end.set(Some(end));
        self.sent.notify_one();
        if end == End::Input {
            self.stop.cancelled().await;
            self.end.set(Some(End::Stop));
            self.sent.notify_one();
        }
        std::future::pending().await
    }

    async fn print_all(&self) -> Result<(), String> {
        loop {
            let delivered = tokio::select! {
                biased;
                delivered = self.conversation.next() => delivered,
                () = self.conversation.idle(), if self.end.get() == Some(End::Stop) => None,
                () = self.sent.notified() => continue,
            };
            match delivered {
                Some(delivered) => self.print(&delivered).await?,
                None if self.end.get().is_some() => return Ok(()),
                None => self.sent.notified().await,
            }
        }
    }

    /// An element is a payload, or an envelope of which the `to` counts. What a
    /// person writes is never mended.
    async fn send(&self, piece: Piece) -> Result<(), String> {
        let text = match piece {
            Piece::Element(text) => text,
            Piece::Other(text) => {
                let wrong = self.hint.on(&text, &self.limits);
                let huh = system::huh(text.as_bytes(), &wrong);
                return self.not_understood(huh.xml()).await;
            }
            Piece::NotText(bytes) => {
                let huh = system::huh(&bytes, &XmlError::Encoding.to_string());
                return self.not_understood(huh.xml()).await;
            }
            Piece::TooLong => return self.refused(&too_long(self.limits.bytes)?).await,
        };
        for InputPayload { to, id, payload } in input_payloads(&text, &self.limits) {
            let (to, conversation) = (to.as_deref(), &self.conversation);
            let sent = match id {
                None => conversation.send_xml(to, &payload).await.map(drop),
                Some(id) => conversation.send_once(&id, to, &payload).await.map(drop),
            };
            match sent {
                Ok(()) => {}
                Err(SendError::Refused(refusal)) => match refusal.is::<Huh>() {
                    true => self.not_understood(refusal.xml()).await?,
                    false => self.refused(refusal.xml()).await?,
                },
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    async fn not_understood(&self, told: &str) -> Result<(), String> {
        self.refused(told).await?;
        self.hint.give();
        Ok(())
    }

    async fn refused(&self, told: &str) -> Result<(), String> {
        self.failed.set(self.failed.get() + 1);
        print_line(told).await
    }

    async fn print(&self, delivered: &Delivered) -> Result<(), String> {
        if &*delivered.from == agentserver::system::NAME {
            self.failed.set(self.failed.get() + 1);
        }
        match self.envelopes {
            true => {
                let envelope = delivered.envelope(&self.gateway);
                print_line(&envelope.map_err(|error| error.to_string())?).await
            }
            false => print_line(delivered.payload.xml()).await,
        }
    }
}

fn too_long(most: usize) -> Result<String, String> {
    let mut error = Fault::Limit.error();
    error.message = format!("{} One element is at most {most} bytes.", error.message);
    error.to_xml().map_err(|error| error.to_string())
}

/// A payload, whom it is for, and its sender's own id for it.
struct InputPayload {
    to: Option<String>,
    id: Option<String>,
    payload: String,
}

/// What an element asks for. One that is no XML goes as it is, to be refused.
fn input_payloads(text: &str, limits: &Limits) -> Vec<InputPayload> {
    match ParsedOutput::read_exact(text, limits) {
        Ok(answer) => answer
            .said
            .into_iter()
            .map(|said| InputPayload {
                to: said.to,
                id: said.id,
                payload: said.payload.xml().to_owned(),
            })
            .collect(),
        Err(_) => vec![InputPayload {
            to: None,
            id: None,
            payload: text.to_owned(),
        }],
    }
}

/// The elements of standard input, read by a thread of their own: a read that
/// waits for a person must not keep the program from ending.
fn pieces(most: usize) -> mpsc::Receiver<std::io::Result<Piece>> {
    let (sender, receiver) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut splitter = Splitter::new(most);
        let mut bytes = [0; 8192];
        loop {
            let mut found = Vec::new();
            let read = match input.read(&mut bytes) {
                Ok(0) => {
                    found.extend(splitter.finish());
                    None
                }
                Ok(count) => {
                    splitter.push(&bytes[..count], |piece| found.push(piece));
                    Some(())
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let _ = sender.blocking_send(Err(error));
                    return;
                }
            };
            for piece in found {
                if sender.blocking_send(Ok(piece)).is_err() {
                    return;
                }
            }
            if read.is_none() {
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
    let line = match std::io::stdout().is_terminal() {
        true => printable(&line).into_owned(),
        false => line,
    };
    let written = out.write_all(line.as_bytes()).await;
    written.map_err(|error| error.to_string())?;
    out.flush().await.map_err(|error| error.to_string())
}
