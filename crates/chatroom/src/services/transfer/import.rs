//! Messages that were written elsewhere, brought into a new room by an operator. Who wrote them is told in
//! words: their authors become no members and no accounts, nobody is called for what they said, and no
//! score changes. Until the last messages have come, the room takes no others.

use crate::{
    app::App,
    auth::{Caller, TokenType, User},
    clock::Now,
    error::{Error, Result},
    services::{
        access, audit,
        change::{RoomLog, RoomTx, message::ImportedDraft},
        checks,
        idempotency::IdempotentRequest,
        rooms, search,
    },
    shown_text::name_of_token,
};
use protocol::{
    BeginImport, CreateRoom, IMPORT_PREFIX, ImportBegun, ImportMessages, Imported, ImportedMessage,
    MAX_IMPORTED_BYTES, MAX_IMPORTED_MESSAGES, RoomId, UserId,
};
use serde_json::json;

/// So many bytes of an author's id are kept.
const AUTHOR_BYTES: usize = 100;

/// Makes a room to fill.
pub async fn begin(app: &App, caller: &Caller, request: BeginImport) -> Result<ImportBegun> {
    access::operator(caller)?;
    let owner = request.owner_user_id;
    if owner.is_external() || owner.is_nobodys() {
        return Err(Error::bad_request("owner_user_id must be a user's id"));
    }
    let owner = Caller::User(User {
        id: owner,
        name: None,
        token_type: TokenType::Access,
        identity: None,
        issued_at: None,
        internal: false,
    });
    let room = CreateRoom {
        name: request.name,
        visibility: None,
    };
    let room = rooms::create(app, &owner, room, &IdempotentRequest::never())
        .await?
        .room_id;
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    let mut row = tx
        .lock_room(&room)
        .await?
        .ok_or_else(Error::room_not_found)?;
    row.archived = true;
    tx.update_room(&row).await?;
    tx.begin_import(&room, now.seconds()).await?;
    let actor = &access::user(caller)?.id;
    audit::record(&mut tx, &room, actor, "import_begun", None, json!({}), now).await?;
    tx.commit().await?;
    Ok(ImportBegun { room_id: room })
}

/// Adds the next messages.
pub async fn add(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    request: ImportMessages,
) -> Result<Imported> {
    access::operator(caller)?;
    let topic = request.topic.as_deref().map(checks::topic).transpose()?;
    if request.messages.len() > MAX_IMPORTED_MESSAGES {
        return Err(Error::bad_request(format!(
            "At most {MAX_IMPORTED_MESSAGES} messages come at once"
        )));
    }
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    let row = tx
        .lock_room(room)
        .await?
        .ok_or_else(Error::room_not_found)?;
    if !tx.is_importing(room).await? {
        return Err(Error::bad_request(
            "The room is not being imported: messages from elsewhere go into a new room alone",
        ));
    }
    if row.last_seq != request.after_seq {
        return Err(Error::bad_request(format!(
            "The room has come to {}; send what follows that",
            row.last_seq
        )));
    }
    let mut log = RoomLog::new(row);
    for message in request.messages {
        add_one(&mut tx, &mut log, message, now).await?;
    }
    let latest_seq = log.room().last_seq;
    if request.done {
        let mut room = log.room().clone();
        room.archived = false;
        room.topic = topic.unwrap_or(room.topic);
        tx.update_room(&room).await?;
        tx.end_import(&room.room_id).await?;
        // What was said long ago is not unread.
        tx.advance_read_position(&room.room_id, &room.owner_user_id, latest_seq)
            .await?;
        let actor = &access::user(caller)?.id;
        let detail = json!({"messages": latest_seq});
        audit::record(
            &mut tx,
            &room.room_id,
            actor,
            "import_done",
            None,
            detail,
            now,
        )
        .await?;
    }
    tx.add_log(log);
    tx.commit().await?;
    Ok(Imported { latest_seq })
}

async fn add_one(
    tx: &mut RoomTx,
    log: &mut RoomLog,
    message: ImportedMessage,
    now: Now,
) -> Result<()> {
    checks::at_most("content", &message.content, MAX_IMPORTED_BYTES)?;
    let room = log.room().room_id.clone();
    let before = log.room().last_seq;
    let reply_to_seq = message.reply_to_seq;
    if reply_to_seq.is_some_and(|parent| !(1..=before).contains(&parent)) {
        return Err(Error::bad_request(format!(
            "reply_to_seq of message {} names no message before it",
            before + 1
        )));
    }
    let content = match message.deleted {
        true => String::new(),
        false => message.content,
    };
    let draft = ImportedDraft {
        user_id: author(&message.author_id)?,
        user_name: message.author_name.as_deref().and_then(name_of_token),
        content: content.clone(),
        reply_to_seq,
        created_at: message.created_at.clamp(0, now.seconds()),
    };
    let seq = log.import(tx, draft).await?;
    if message.deleted {
        tx.redact_message(&room, seq).await?;
        search::index::forget(tx, &room, seq).await?;
    } else if let Some(at) = message.edited_at {
        let at = at.clamp(0, now.seconds());
        tx.edit_message(&room, seq, &content, at).await?;
    }
    Ok(())
}

/// An id that is nobody's here.
fn author(id: &str) -> Result<UserId> {
    let id = id.strip_prefix(IMPORT_PREFIX).unwrap_or(id);
    let kept: String = id
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || "_-.@:+".contains(*c))
        .take(AUTHOR_BYTES)
        .collect();
    let kept = if kept.is_empty() { "somebody" } else { &kept };
    format!("{IMPORT_PREFIX}{kept}")
        .parse()
        .map_err(Error::internal)
}
