//! Reading a room's log back into frames.

use super::frame::{FrameBuffer, Frames};
use crate::{
    error::Result,
    store::{Conn, messages::Page, rooms::RoomRow},
};
use protocol::{Cursor, EventKind, Resync, RoomId};

/// Rows of the log that are read at once.
const PAGE: i64 = 200;

/// Where a reader begins.
pub enum Start {
    /// The log holds everything after its cursor.
    Resume(Cursor),
    /// It does not: the reader is told to read the room anew, and goes on from there.
    Resync(Frames, Cursor),
}

/// Whether a reader can resume from its cursor.
pub fn start(room: &RoomRow, cursor: Cursor, replay_limit: i64) -> Start {
    let head = room.head();
    let reason = if cursor > head {
        Some("the cursor is ahead of the room")
    } else if cursor < room.pruned_to() {
        Some("the cursor is older than the events that are kept")
    } else if head.seq - cursor.seq > replay_limit {
        Some("the cursor is too many messages behind")
    } else {
        None
    };
    let Some(reason) = reason else {
        return Start::Resume(cursor);
    };
    let mut frames = FrameBuffer::default();
    let resync = Resync {
        room_id: room.room_id.clone(),
        reason: reason.to_owned(),
        latest_seq: head.seq,
    };
    frames.event(head, EventKind::Resync, &resync);
    Start::Resync(frames.finish(), head)
}

/// The next page of the log after the cursor, and where it ends; nothing where the log ends there,
/// or where events after the cursor were dropped meanwhile: a reader is never served a hole.
pub async fn page(
    conn: &mut Conn,
    room: &RoomId,
    after: Cursor,
) -> Result<Option<(Frames, Cursor)>> {
    let Some(row) = conn.room(room).await? else {
        return Ok(None);
    };
    let head = row.head();
    if after >= head {
        return Ok(None);
    }
    let messages = conn
        .messages(
            room,
            &Page {
                since: after.seq,
                limit: PAGE,
                ..Page::default()
            },
        )
        .await?;
    // Events after the page's last message belong to the next page, unless this is the last.
    let full = i64::try_from(messages.len()).is_ok_and(|n| n >= PAGE);
    let upto = match messages.last() {
        Some(last) if full => Cursor::at(last.seq),
        _ => head,
    };
    let events = conn.events_between(room, after, upto, PAGE).await?;
    // Asked after the events were read: what is dropped later was read already.
    let Some(row) = conn
        .room(room)
        .await?
        .filter(|row| after >= row.pruned_to())
    else {
        return Ok(None);
    };
    let upto = match events.last() {
        Some(last) if i64::try_from(events.len()).is_ok_and(|n| n >= PAGE) => last.cursor(),
        _ => upto,
    };

    let mut frames = FrameBuffer::default();
    let mut events = events.into_iter().peekable();
    for message in messages.into_iter().filter(|m| m.seq <= upto.seq) {
        while let Some(event) = events.next_if(|event| event.cursor() < Cursor::at(message.seq)) {
            side_event(conn, room, &row, &mut frames, event).await?;
        }
        frames.message(message.into_message(row.rules_version));
    }
    for event in events {
        side_event(conn, room, &row, &mut frames, event).await?;
    }
    Ok(Some((frames.finish(), upto)))
}

async fn side_event(
    conn: &mut Conn,
    room: &RoomId,
    row: &RoomRow,
    frames: &mut FrameBuffer,
    event: crate::store::log::EventRow,
) -> Result<()> {
    match event.about {
        None => frames.raw_event(event.cursor(), event.kind.as_str(), &event.data),
        Some(seq) => {
            if let Some(message) = conn.message(room, seq).await? {
                let message = message.into_message(row.rules_version);
                frames.message_event(event.cursor(), EventKind::MessageEdited, message);
            }
        }
    }
    Ok(())
}
