//! Reading messages, and what members do to them afterwards.

pub mod posting;
pub mod threads;

use crate::{
    app::App,
    auth::{Caller, TokenType},
    clock::Now,
    error::{Error, Result},
    services::{
        access::{self, ReadAccess, RoomAccess, RoomLock},
        change::{AuthorKind, Candidate, RoomLog, RoomTx, admit},
        checks::{self, Content},
        reputation::scorer,
        search, visitors,
    },
    store::{
        Conn,
        messages::{MessageRow, Page},
        rooms::RoomRow,
    },
};
use posting::mentions::mentioned;
use protocol::{
    EventKind, Message, MessageDeleted, MessageEdited, Messages, Reaction, ReactionAdded,
    ReactionCount, ReactionRemoved, RoomId, UserId, Via,
};
use serde_json::json;
use std::{collections::HashSet, net::IpAddr};

const MOST: i64 = 200;
const MOST_FOR_VISITORS: i64 = 50;
/// Different emoji that one member may give to one message.
const REACTIONS_PER_MEMBER: i64 = 20;

/// What to read.
#[derive(Debug, Default)]
pub struct Query {
    pub since: Option<i64>,
    pub before: Option<i64>,
    /// As many messages before this one as after it, itself among them.
    pub around: Option<i64>,
    pub limit: Option<i64>,
    pub mentions_me: bool,
    pub sender: Option<String>,
    /// Also tell of each message's answers, and how many of others are after this seq.
    pub answers_after: Option<i64>,
    pub html: bool,
}

pub async fn list(
    app: &App,
    caller: &Caller,
    ip: IpAddr,
    room: &RoomId,
    query: Query,
) -> Result<Messages> {
    let limit = query.limit.unwrap_or(50);
    if limit < 1 {
        return Err(Error::bad_request("limit must be at least 1"));
    }
    let mut conn = app.db.read().await?;
    let access = access::reader(&mut conn, caller, room).await?;
    let bounds = [query.since, query.before, query.around];
    if bounds.iter().flatten().count() > 1 {
        return Err(Error::bad_request(
            "Send one of since, before and around, not several",
        ));
    }
    let mut page = Page {
        since: query.since.unwrap_or(0),
        before: query.before,
        limit: limit.min(MOST),
        ..Page::default()
    };
    let mut read = match access {
        ReadAccess::Visitor(row) => {
            if query.mentions_me {
                return Err(Error::missing_bearer());
            }
            drop(conn);
            visitors::count_read(app, ip, room).await?;
            conn = app.db.read().await?;
            page.limit = limit.min(MOST_FOR_VISITORS);
            read_page(&mut conn, &row, page, &query, None, None).await?
        }
        ReadAccess::Member(entry) => {
            let oneself = entry.is_oneself();
            let me = entry.member.user_id;
            let sender = query
                .sender
                .as_deref()
                .map(str::parse::<UserId>)
                .transpose();
            // Nobody has sent anything under what is no id.
            if sender.is_err() {
                page.limit = 0;
            }
            let sender = sender.unwrap_or_default();
            page.sender = sender.as_ref();
            page.mentions = query.mentions_me.then_some(&me);
            let opened_by = oneself.then_some(&me);
            read_page(&mut conn, &entry.room, page, &query, Some(&me), opened_by).await?
        }
    };
    drop(conn);
    if query.html {
        app.renderer.messages(&mut read.messages).await;
    }
    Ok(read)
}

async fn read_page(
    conn: &mut Conn,
    room: &RoomRow,
    mut page: Page<'_>,
    query: &Query,
    me: Option<&UserId>,
    opened_by: Option<&UserId>,
) -> Result<Messages> {
    let mut rows = Vec::new();
    if let Some(seq) = query.around {
        let after = page.limit / 2;
        page.before = Some(seq.saturating_add(1));
        page.limit -= after;
        rows = conn.messages(&room.room_id, &page).await?;
        (page.before, page.since, page.limit) = (None, seq, after);
    }
    rows.extend(conn.messages(&room.room_id, &page).await?);
    let mut messages = to_messages(conn, room, rows, me).await?;
    if let Some(after) = query.answers_after {
        let (opened, room) = (opened_by, &room.room_id);
        threads::add_answers(conn, room, &mut messages, me, opened, after).await?;
    }
    Ok(Messages {
        room_id: room.room_id.clone(),
        messages,
        latest_seq: room.last_seq,
    })
}

/// Rows with their reactions, and whether they mention the caller.
pub async fn to_messages(
    conn: &mut Conn,
    room: &RoomRow,
    rows: Vec<MessageRow>,
    me: Option<&UserId>,
) -> Result<Vec<Message>> {
    let (Some(first), Some(last)) = (rows.first().map(|m| m.seq), rows.last().map(|m| m.seq))
    else {
        return Ok(Vec::new());
    };
    let seqs: Vec<i64> = rows.iter().map(|row| row.seq).collect();
    let mut messages: Vec<Message> = rows
        .into_iter()
        .map(|row| row.into_message(room.rules_version))
        .collect();
    for reaction in conn.reactions(&room.room_id, &seqs, me).await? {
        let count = ReactionCount {
            count: reaction.count,
            by_me: reaction.by_me && me.is_some(),
        };
        if let Ok(at) = messages.binary_search_by_key(&reaction.seq, |message| message.seq) {
            messages[at].reactions.insert(reaction.emoji, count);
        }
    }
    if let Some(me) = me {
        let mentions: HashSet<i64> = conn
            .mentions_between(&room.room_id, me, first, last)
            .await?
            .into_iter()
            .map(|(seq,)| seq)
            .collect();
        for message in &mut messages {
            message.mentions_me = Some(mentions.contains(&message.seq));
        }
    }
    Ok(messages)
}

pub async fn edit(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    seq: i64,
    content: String,
) -> Result<MessageEdited> {
    let content = Content::new(content)?;
    let mentioned = mentioned(&app.db, room, content.as_str()).await?.users;
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    let entry = writer(&mut tx, caller, room).await?;
    let row = own_message(app, &mut tx, &entry, seq, now).await?;
    if row.deleted {
        return Err(Error::bad_request("This message was deleted"));
    }
    let mut log = RoomLog::new(entry.room.clone());
    // An edit is a word like a message: agents must not go on in edits.
    let limits = &app.config.limits;
    let words = Candidate {
        author: author_kind(caller, &entry),
        user: &row.sender_user_id,
        parent: None,
        depth: None,
    };
    let admission = admit(log.room(), words, limits, now)?;
    tx.edit_message(room, seq, content.as_str(), now.seconds())
        .await?;
    let edited = tx.message(room, seq).await?.ok_or_else(no_message)?;
    search::index::replace(&mut tx, room, &edited).await?;
    log.edit(&mut tx, admission, edited.clone(), &mentioned, limits, now)
        .await?;
    let me = entry.member.user_id;
    let message = to_messages(&mut tx, &entry.room, vec![edited], Some(&me))
        .await?
        .pop();
    tx.add_log(log);
    tx.commit().await?;
    Ok(MessageEdited {
        ok: true,
        message: message.ok_or_else(no_message)?,
    })
}

pub async fn delete(app: &App, caller: &Caller, room: &RoomId, seq: i64) -> Result<MessageDeleted> {
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    let entry = writer(&mut tx, caller, room).await?;
    let row = own_message(app, &mut tx, &entry, seq, now).await?;
    if !row.deleted {
        tx.redact_message(room, seq).await?;
        search::index::forget(&mut tx, room, seq).await?;
        let mut log = RoomLog::new(entry.room);
        log.event(&mut tx, EventKind::MessageDeleted, &json!({"seq": seq}))
            .await?;
        tx.add_log(log);
        tx.erase_deleted_text();
        tx.commit().await?;
    }
    Ok(MessageDeleted {
        ok: true,
        seq,
        deleted: true,
    })
}

pub async fn react(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    seq: i64,
    emoji: &str,
) -> Result<ReactionAdded> {
    let emoji = checks::emoji(emoji)?;
    let mut tx = RoomTx::begin(app).await?;
    let entry = writer(&mut tx, caller, room).await?;
    let me = entry.member.user_id;
    let message = tx.message(room, seq).await?.ok_or_else(no_message)?;
    if message.deleted {
        return Err(Error::bad_request("This message was deleted"));
    }
    let now = Now::get().seconds();
    let added = tx.add_reaction(room, seq, emoji, &me, now).await?;
    if added {
        if tx.reaction_count(room, seq, &me).await? > REACTIONS_PER_MEMBER {
            return Err(Error::bad_request(format!(
                "You gave this message {REACTIONS_PER_MEMBER} emoji already; take one back first"
            )));
        }
        scorer::reacted(&mut tx, room, &message, &me, emoji, now).await?;
        let reaction = Reaction {
            seq,
            user_id: me.into(),
            emoji: emoji.to_owned(),
        };
        let mut log = RoomLog::new(entry.room);
        log.event(&mut tx, EventKind::ReactionAdded, &reaction)
            .await?;
        tx.add_log(log);
        tx.commit().await?;
    }
    Ok(ReactionAdded { ok: true, added })
}

pub async fn unreact(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    seq: i64,
    emoji: &str,
) -> Result<ReactionRemoved> {
    let emoji = checks::emoji(emoji)?;
    let mut tx = RoomTx::begin(app).await?;
    let entry = writer(&mut tx, caller, room).await?;
    let me = entry.member.user_id;
    tx.message(room, seq).await?.ok_or_else(no_message)?;
    let removed = tx.remove_reaction(room, seq, emoji, &me).await?;
    if removed {
        let reaction = Reaction {
            seq,
            user_id: me.into(),
            emoji: emoji.to_owned(),
        };
        let mut log = RoomLog::new(entry.room);
        log.event(&mut tx, EventKind::ReactionRemoved, &reaction)
            .await?;
        tx.add_log(log);
        tx.commit().await?;
    }
    Ok(ReactionRemoved { ok: true, removed })
}

/// Whose words a change is.
fn author_kind(caller: &Caller, entry: &RoomAccess) -> AuthorKind {
    let signed_in = matches!(caller, Caller::User(user) if user.token_type == TokenType::Access);
    let via = match &entry.key {
        Some(key) if key.posts_as == Via::Web => Via::Web,
        _ => Via::Agent,
    };
    AuthorKind::of(&via, &entry.member.member_kind, signed_in)
}

async fn writer(conn: &mut Conn, caller: &Caller, room: &RoomId) -> Result<RoomAccess> {
    access::member(conn, caller, room, RoomLock::Locked)
        .await?
        .not_archived()
}

/// A message that its own sender may still change.
async fn own_message(
    app: &App,
    conn: &mut Conn,
    entry: &RoomAccess,
    seq: i64,
    now: Now,
) -> Result<MessageRow> {
    let row = conn
        .message(&entry.room.room_id, seq)
        .await?
        .ok_or_else(no_message)?;
    if row.sender_user_id != entry.member.user_id {
        return Err(Error::forbidden("Only its sender may change a message"));
    }
    let window = app.config.limits.edit_window_seconds;
    if window > 0 && now.seconds() - row.created_at > window {
        return Err(Error::forbidden(format!(
            "A message can be changed for {window} s after it was posted"
        )));
    }
    Ok(row)
}

fn no_message() -> Error {
    Error::not_found("No such message in this room")
}
