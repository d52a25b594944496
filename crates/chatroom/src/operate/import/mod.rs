//! Bringing messages from elsewhere into new rooms of a running server. Everything is read and checked once
//! before anything is sent: a file that is cut off or hostile makes no room.

mod files;
mod jsonl;
mod slack;

use super::admin::{AdminError, Server};
use files::Files;
use protocol::{
    BadId, BeginImport, ImportMessages, ImportedMessage, MAX_IMPORTED_BYTES, RoomId, UserId,
};
use std::{
    io,
    path::{Path, PathBuf},
};

/// Messages and bytes of text that are sent at once.
const BATCH: usize = 200;
const BATCH_BYTES: usize = 512 * 1024;
/// Messages of one room, at the most.
const MOST_MESSAGES: usize = 2_000_000;
/// The most characters of a room's name and topic.
const NAME_CHARS: usize = 200;
const TOPIC_CHARS: usize = 250;

/// Why nothing, or not everything, was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("cannot read {0}: {1}")]
    Io(PathBuf, io::Error),
    #[error("{0}: {1}")]
    Unfit(String, String),
    #[error("{0:?} does not do as the owner: {1}")]
    Owner(String, BadId),
    #[error("{0}")]
    Server(#[from] AdminError),
    #[error("{error}; the room {room} holds the first {messages} messages and stays archived")]
    BrokenOff {
        room: RoomId,
        messages: i64,
        error: AdminError,
    },
}

impl ImportError {
    fn unfit(place: impl ToString, why: impl ToString) -> Self {
        Self::Unfit(place.to_string(), why.to_string())
    }
}

/// A room that was made.
pub struct Made {
    pub room_id: RoomId,
    pub name: String,
    pub messages: i64,
}

/// A room to make.
struct NewRoom {
    name: String,
    topic: String,
}

/// What takes messages in their order: counts them at first, sends them then.
enum Sink<'a> {
    Check(usize),
    Fill(Filler<'a>),
}

impl Sink<'_> {
    async fn import_message(&mut self, mut message: ImportedMessage) -> Result<(), ImportError> {
        if message.content.len() > MAX_IMPORTED_BYTES {
            message.content = crate::render::untrusted::cut(&message.content, MAX_IMPORTED_BYTES);
        }
        match self {
            Self::Check(count) if *count >= MOST_MESSAGES => Err(ImportError::unfit(
                "the export",
                format!("a room takes at most {MOST_MESSAGES} messages from elsewhere"),
            )),
            Self::Check(count) => {
                *count += 1;
                Ok(())
            }
            Self::Fill(filler) => filler.import_message(message).await,
        }
    }
}

/// Imports what is there.
pub async fn import(
    server: &Server,
    source: &Path,
    owner: &str,
    channels: &[String],
) -> Result<Vec<Made>, ImportError> {
    let owner: UserId = owner
        .parse()
        .map_err(|why| ImportError::Owner(owner.to_owned(), why))?;
    match Files::open(source)? {
        Some(mut files) => {
            let export = slack::Export::read(&mut files, channels)?;
            for channel in export.channels() {
                export
                    .read_channel(&mut files, channel, &mut Sink::Check(0))
                    .await?;
            }
            let mut made = Vec::new();
            for channel in export.channels() {
                let mut sink = Sink::Fill(Filler::begin(server, &owner, channel.room()).await?);
                export.read_channel(&mut files, channel, &mut sink).await?;
                made.extend(finish(sink).await?);
            }
            Ok(made)
        }
        None => {
            let room = jsonl::read(source, &mut Sink::Check(0)).await?;
            let mut sink = Sink::Fill(Filler::begin(server, &owner, room).await?);
            jsonl::read(source, &mut sink).await?;
            Ok(finish(sink).await?.into_iter().collect())
        }
    }
}

async fn finish(sink: Sink<'_>) -> Result<Option<Made>, ImportError> {
    match sink {
        Sink::Check(_) => Ok(None),
        Sink::Fill(filler) => filler.finish().await.map(Some),
    }
}

/// Fills a room, some messages at a time.
struct Filler<'a> {
    server: &'a Server,
    room_id: RoomId,
    room: NewRoom,
    waiting: Vec<ImportedMessage>,
    bytes: usize,
    latest_seq: i64,
}

impl<'a> Filler<'a> {
    async fn begin(server: &'a Server, owner: &UserId, room: NewRoom) -> Result<Self, ImportError> {
        let begin = BeginImport {
            name: room.name.clone(),
            owner_user_id: owner.clone(),
        };
        Ok(Self {
            room_id: server.begin_import(&begin).await?,
            server,
            room,
            waiting: Vec::new(),
            bytes: 0,
            latest_seq: 0,
        })
    }

    async fn import_message(&mut self, message: ImportedMessage) -> Result<(), ImportError> {
        self.bytes += message.content.len();
        self.waiting.push(message);
        if self.waiting.len() >= BATCH || self.bytes >= BATCH_BYTES {
            self.send(false).await?;
        }
        Ok(())
    }

    async fn send(&mut self, done: bool) -> Result<(), ImportError> {
        let next = ImportMessages {
            after_seq: self.latest_seq,
            messages: std::mem::take(&mut self.waiting),
            done,
            topic: done.then(|| self.room.topic.clone()),
        };
        self.bytes = 0;
        let sent = self.server.import(&self.room_id, &next).await;
        self.latest_seq = sent.map_err(|error| ImportError::BrokenOff {
            room: self.room_id.clone(),
            messages: self.latest_seq,
            error,
        })?;
        Ok(())
    }

    async fn finish(mut self) -> Result<Made, ImportError> {
        self.send(true).await?;
        Ok(Made {
            room_id: self.room_id,
            name: self.room.name,
            messages: self.latest_seq,
        })
    }
}

/// A line of at most so many characters, fit for a name or a topic.
fn one_line(text: &str, chars: usize) -> String {
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(chars).collect()
}
