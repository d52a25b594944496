//! What `export` wrote.

use super::{ImportError, NAME_CHARS, NewRoom, Sink, TOPIC_CHARS, one_line};
use protocol::{EXPORT_FORMAT, EXPORT_VERSION, ExportLine, ImportedMessage, Message};
use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

/// The longest line that is read.
const MAX_LINE: u64 = 1024 * 1024;

/// Reads an export to its end, and gives the room that it is of.
pub async fn read(path: &Path, sink: &mut Sink<'_>) -> Result<NewRoom, ImportError> {
    let io = |error| ImportError::Io(path.to_owned(), error);
    let mut file = BufReader::new(File::open(path).map_err(io)?);
    let mut room = None;
    // The seq that each message had, by the one that it gets.
    let mut seqs: Vec<i64> = Vec::new();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let bounded = &mut file.by_ref().take(MAX_LINE);
        let read = bounded.read_until(b'\n', &mut line).map_err(io)?;
        let unfit = |why: &str| ImportError::unfit(format!("line {number}"), why);
        if read == 0 {
            return Err(unfit("the export breaks off: its last line is missing"));
        }
        if line.last() != Some(&b'\n') && line.len() as u64 >= MAX_LINE {
            return Err(unfit("the line is too long"));
        }
        let parsed = serde_json::from_slice(&line);
        let parsed = parsed.map_err(|error| unfit(&format!("no line of an export: {error}")))?;
        match (parsed, &room) {
            (ExportLine::Room(head), None) => {
                if head.format != EXPORT_FORMAT || head.version != EXPORT_VERSION {
                    return Err(unfit("a form of export that this program does not know"));
                }
                let name = one_line(&head.name, NAME_CHARS);
                room = Some(NewRoom {
                    name: if name.is_empty() {
                        "Imported".to_owned()
                    } else {
                        name
                    },
                    topic: one_line(&head.topic, TOPIC_CHARS),
                });
            }
            (ExportLine::Message(message), Some(_)) => {
                if seqs.last().is_some_and(|last| *last >= message.seq) {
                    return Err(unfit("the messages are not in their order"));
                }
                let answers = message
                    .reply_to_seq
                    .and_then(|seq| seqs.binary_search(&seq).ok());
                seqs.push(message.seq);
                sink.import_message(imported(*message, answers)).await?;
            }
            (ExportLine::End(end), Some(_)) => {
                if usize::try_from(end.messages) != Ok(seqs.len()) {
                    return Err(unfit("messages are missing"));
                }
                break;
            }
            _ => return Err(unfit("the first line must tell the room, and no other")),
        }
    }
    room.ok_or_else(|| ImportError::unfit(path.display(), "there is nothing in it"))
}

fn imported(message: Message, answers: Option<usize>) -> ImportedMessage {
    ImportedMessage {
        author_id: message.sender_user_id,
        author_name: message.sender_user_name,
        content: message.content,
        created_at: message.created_at,
        edited_at: message.edited_at,
        reply_to_seq: answers.and_then(|at| i64::try_from(at + 1).ok()),
        deleted: message.deleted,
    }
}
