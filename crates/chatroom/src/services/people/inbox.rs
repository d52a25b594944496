//! How far members have read, and what waits for them.

use crate::{
    app::App,
    auth::Caller,
    error::{Error, Result},
    events::UserEvent,
    services::access::{self, RoomLock},
    store::{
        DbResult,
        inbox::{InboxMentionRow, InboxRoomRow, MentionCursor},
    },
};
use protocol::{
    EventKind, Inbox, InboxMention, InboxRoom, LastMessage, ReadPosition, RoomId, UserId,
};
use std::collections::HashMap;

/// The rooms that an inbox lists.
const ROOMS: i64 = 500;
/// What is unread is counted up to this.
const MOST_UNREAD: i64 = 100;
/// The mentions of a page.
const MENTIONS: i64 = 50;
const MOST_MENTIONS: i64 = 200;
/// The rooms whose members are asked for at once.
const ROOMS_AT_ONCE: usize = 200;

/// Notes that the caller has read the room up to `seq`. It goes forward only, and no further than
/// the room itself.
pub async fn mark_read(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    seq: i64,
) -> Result<ReadPosition> {
    // The posting task remembers nothing of this, so it need not look again.
    let mut tx = app.db.begin_keeping_cache().await?;
    let entry = access::member(&mut tx, caller, room, RoomLock::Unlocked)
        .await?
        .as_oneself()?;
    let (user, last_seq) = (entry.member.user_id, entry.room.last_seq);
    let seq = seq.min(last_seq);
    let moved = tx.advance_read_position(room, &user, seq).await?;
    let read_seq = match moved {
        true => seq,
        false => tx.read_position(room, &user).await?.unwrap_or(seq),
    };
    tx.commit().await?;
    let position = ReadPosition {
        room_id: room.clone(),
        read_seq,
        last_seq,
    };
    if moved {
        app.publish_to_user(&user, EventKind::Read, &position);
    }
    Ok(position)
}

/// Tells those who listen on this node that something happened in rooms of theirs. Whose they are is
/// asked now: nobody is told of a room that they have left.
pub async fn notify_moved_rooms(app: &App, rooms: &[RoomId]) -> DbResult<()> {
    let users = app.hub.users();
    let mut told: HashMap<UserId, Vec<RoomId>> = HashMap::new();
    for rooms in rooms.chunks(ROOMS_AT_ONCE) {
        let mut conn = app.db.read().await?;
        for row in conn.memberships(rooms, &users.listening()).await? {
            told.entry(row.user_id).or_default().push(row.room_id);
        }
    }
    for (user, rooms) in told {
        users.publish(&user, UserEvent::Moved(rooms.into()));
    }
    Ok(())
}

/// The caller's rooms by activity, and a page of what mentions the caller.
pub async fn read(
    app: &App,
    caller: &Caller,
    cursor: Option<&str>,
    limit: Option<i64>,
) -> Result<Inbox> {
    let user = &access::user(caller)?.id;
    let limit = limit.unwrap_or(MENTIONS);
    if limit < 1 {
        return Err(Error::bad_request("limit must be at least 1"));
    }
    let limit = limit.min(MOST_MENTIONS);
    let before = cursor.map(parse_cursor).transpose()?;
    let mut conn = app.db.read().await?;
    let rooms = conn.inbox_rooms(user, ROOMS, MOST_UNREAD).await?;
    let mentions = conn.inbox_mentions(user, before.as_ref(), limit).await?;
    let is_full = i64::try_from(mentions.len()).is_ok_and(|found| found == limit);
    Ok(Inbox {
        next_cursor: mentions.last().filter(|_| is_full).map(write_cursor),
        rooms: rooms.into_iter().map(inbox_room).collect(),
        mentions: mentions.into_iter().map(inbox_mention).collect(),
    })
}

fn inbox_room(row: InboxRoomRow) -> InboxRoom {
    let last_message = match (row.sender_user_id, row.via, row.r#type) {
        (Some(sender), Some(via), Some(r#type)) => Some(LastMessage {
            seq: row.last_seq,
            sender_user_id: sender.into(),
            sender_user_name: row.sender_user_name,
            via,
            r#type,
            preview: row.preview.unwrap_or_default(),
            created_at: row.active_at,
        }),
        _ => None,
    };
    InboxRoom {
        room_id: row.room_id,
        name: row.name,
        visibility: row.visibility,
        archived: row.archived,
        role: row.role,
        active_at: row.active_at,
        last_seq: row.last_seq,
        read_seq: row.read_seq,
        unread: row.unread,
        mentions: row.mentions,
        last_message,
    }
}

fn inbox_mention(row: InboxMentionRow) -> InboxMention {
    InboxMention {
        unread: row.seq > row.read_seq,
        room_id: row.room_id,
        room_name: row.room_name,
        seq: row.seq,
        sender_user_id: row.sender_user_id.into(),
        sender_user_name: row.sender_user_name,
        via: row.via,
        preview: row.preview,
        created_at: row.created_at,
    }
}

fn write_cursor(row: &InboxMentionRow) -> String {
    format!("{}.{}.{}", row.created_at, row.room_id, row.seq)
}

fn parse_cursor(text: &str) -> Result<MentionCursor> {
    let bad = || Error::bad_request("cursor must be the next_cursor of an earlier answer");
    let mut parts = text.split('.');
    let (Some(at), Some(room), Some(seq), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(bad());
    };
    Ok(MentionCursor {
        at: at.parse().map_err(|_| bad())?,
        room: room.parse().map_err(|_| bad())?,
        seq: seq.parse().map_err(|_| bad())?,
    })
}
