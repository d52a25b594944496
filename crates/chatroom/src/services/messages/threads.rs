//! Threads: what leads to a message, how often messages were answered, and how far members have read.
//!
//! A thread that a member has opened by itself has a position of its own there; all others are read with
//! their room.

use super::{no_message, to_messages};
use crate::{
    app::App,
    auth::Caller,
    error::Result,
    services::{
        access::{self, ReadAccess, RoomLock},
        visitors,
    },
    store::{Conn, DbResult},
};
use protocol::{Answers, EventKind, Message, RoomId, Thread, ThreadPosition, UserId};
use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
};

/// A thread is followed this far up.
const LONGEST_THREAD: i64 = 1000;
/// Messages that are looked at for where the threads of a page begin.
const MOST_ANSWERED: i64 = 5000;
/// Threads of which a member's position is kept, in each room.
const MOST_OPENED: usize = 200;

/// The chain of replies from its root to this message.
pub async fn read(
    app: &App,
    caller: &Caller,
    ip: IpAddr,
    room: &RoomId,
    seq: i64,
    html: bool,
) -> Result<Thread> {
    let mut conn = app.db.read().await?;
    let (row, me, oneself) = match access::reader(&mut conn, caller, room).await? {
        ReadAccess::Member(entry) => {
            let oneself = entry.is_oneself();
            (entry.room, Some(entry.member.user_id), oneself)
        }
        ReadAccess::Visitor(row) => {
            drop(conn);
            visitors::count_read(app, ip, room).await?;
            conn = app.db.read().await?;
            (*row, None, false)
        }
    };
    let rows = conn.thread(room, seq, LONGEST_THREAD).await?;
    if rows.is_empty() {
        return Err(no_message());
    }
    let mut thread = to_messages(&mut conn, &row, rows, me.as_ref()).await?;
    let read_seq = match me.filter(|_| oneself) {
        Some(me) => {
            let root = root_of(&mut conn, room, seq).await?;
            conn.thread_position(room, &me, root.unwrap_or(seq)).await?
        }
        None => None,
    };
    drop(conn);
    if html {
        app.renderer.messages(&mut thread).await;
    }
    Ok(Thread { thread, read_seq })
}

/// Notes that the caller has read the thread of a message up to `seq`. It goes forward only, and no
/// further than the room.
pub async fn mark_read(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    message: i64,
    seq: i64,
) -> Result<ThreadPosition> {
    // The posting task remembers nothing of this, so it need not look again.
    let mut tx = app.db.begin_keeping_cache().await?;
    let entry = access::member(&mut tx, caller, room, RoomLock::Unlocked)
        .await?
        .as_oneself()?;
    let user = entry.member.user_id;
    let seq = seq.min(entry.room.last_seq);
    let root_seq = root_of(&mut tx, room, message)
        .await?
        .ok_or_else(no_message)?;
    let moved = tx
        .advance_thread_position(room, &user, root_seq, seq)
        .await?;
    let read_seq = match moved {
        true => seq,
        false => tx
            .thread_position(room, &user, root_seq)
            .await?
            .unwrap_or(seq),
    };
    if moved {
        forget_oldest(&mut tx, room, &user).await?;
    }
    tx.commit().await?;
    let position = ThreadPosition {
        room_id: room.clone(),
        root_seq,
        read_seq,
    };
    if moved {
        app.publish_to_user(&user, EventKind::ThreadRead, &position);
    }
    Ok(position)
}

/// Keeps the positions that are furthest on, so many as may be kept.
async fn forget_oldest(conn: &mut Conn, room: &RoomId, user: &UserId) -> DbResult<()> {
    let mut positions = conn.thread_positions(room, user).await?;
    positions.sort_unstable_by_key(|(root, read)| std::cmp::Reverse((*read, *root)));
    for (root, _) in positions.into_iter().skip(MOST_OPENED) {
        conn.forget_thread(room, user, root).await?;
    }
    Ok(())
}

/// Adds to each message how often it was answered, and how many answers of others than `me` are new: in a
/// thread that `opened_by` has opened those after the position there, in all others those after `after`.
pub async fn add_answers(
    conn: &mut Conn,
    room: &RoomId,
    messages: &mut [Message],
    me: Option<&UserId>,
    opened_by: Option<&UserId>,
    after: i64,
) -> Result<()> {
    let seqs: Vec<i64> = messages.iter().map(|message| message.seq).collect();
    let opened = match opened_by {
        Some(user) => opened(conn, room, user, &seqs).await?,
        None => HashMap::new(),
    };
    let read = |seq: &i64| (*seq, opened.get(seq).copied().unwrap_or(after));
    let read: Vec<(i64, i64)> = seqs.iter().map(read).collect();
    for row in conn.answers_to(room, &read, me).await? {
        if let Ok(at) = messages.binary_search_by_key(&row.seq, |message| message.seq) {
            messages[at].answers = Some(Answers {
                count: row.count,
                last_seq: row.last_seq,
                unread: row.unread,
                read_seq: opened.get(&row.seq).copied(),
            });
        }
    }
    Ok(())
}

/// Those of these messages whose threads the member has opened, with the position there.
async fn opened(
    conn: &mut Conn,
    room: &RoomId,
    user: &UserId,
    seqs: &[i64],
) -> DbResult<HashMap<i64, i64>> {
    let positions: HashMap<i64, i64> = conn
        .thread_positions(room, user)
        .await?
        .into_iter()
        .collect();
    if positions.is_empty() || seqs.is_empty() {
        return Ok(HashMap::new());
    }
    let answered: BTreeMap<i64, Option<i64>> = conn
        .answered_messages(room, seqs, MOST_ANSWERED)
        .await?
        .into_iter()
        .collect();
    // A message answers an older one: by the time that it is looked at, where that one belongs is known.
    let mut roots = HashMap::with_capacity(answered.len());
    for (seq, answers) in answered {
        let root = answers.map_or(seq, |older| roots.get(&older).copied().unwrap_or(older));
        roots.insert(seq, root);
    }
    let position = |seq: &i64| Some((*seq, *positions.get(roots.get(seq)?)?));
    Ok(seqs.iter().filter_map(position).collect())
}

/// The message that this one's thread began with; nothing where there is no such message.
async fn root_of(conn: &mut Conn, room: &RoomId, seq: i64) -> DbResult<Option<i64>> {
    let chain = conn.answered_messages(room, &[seq], MOST_ANSWERED).await?;
    Ok(chain.into_iter().map(|(seq, _)| seq).min())
}
