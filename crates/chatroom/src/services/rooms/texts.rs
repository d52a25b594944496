//! A room's rules and data: versioned texts that the owner writes and members read.

use super::reserved::refuse_change;
use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::{Error, Result},
    services::{
        access::{self, RoomLock},
        audit,
        change::{RoomLog, RoomTx},
        checks,
    },
    store::rooms::TextRow,
};
use protocol::{ErrorCode, EventKind, RoomId, RoomText, RulesUpdated, TextHistory};
use serde_json::json;

pub use crate::store::rooms::Text;

/// Older texts that are kept of each kind.
const MOST_OLDER: i64 = 50;

/// The texts that there were, newest first.
pub async fn history(app: &App, caller: &Caller, room: &RoomId, text: Text) -> Result<TextHistory> {
    let mut conn = app.db.read().await?;
    access::member(&mut conn, caller, room, RoomLock::Unlocked).await?;
    let current = conn.text(room, text).await?;
    let current = current.filter(|row| row.version > 0);
    let older = conn.older_texts(room, text).await?;
    let versions = current.into_iter().chain(older).map(room_text);
    Ok(TextHistory {
        versions: versions.collect(),
    })
}

fn room_text(row: TextRow) -> RoomText {
    RoomText {
        content: row.content,
        version: row.version,
        updated_at: row.updated_at,
        updated_by: row.updated_by.map(String::from),
    }
}

pub async fn read(app: &App, caller: &Caller, room: &RoomId, text: Text) -> Result<RoomText> {
    let mut conn = app.db.read().await?;
    access::member(&mut conn, caller, room, RoomLock::Unlocked).await?;
    let row = conn
        .text(room, text)
        .await?
        .ok_or_else(Error::room_not_found)?;
    Ok(room_text(row))
}

/// Replaces the whole text, where it is still the version that the caller has seen if they say which. New rules are told to the room twice: as an event, and as a message
/// that those who missed the event find when they catch up.
pub async fn write(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    text: Text,
    content: String,
    seen: Option<i64>,
) -> Result<RoomText> {
    refuse_change(room)?;
    checks::room_text(&content)?;
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    let entry = access::member(&mut tx, caller, room, RoomLock::Locked)
        .await?
        .as_owner()?
        .not_archived()?;
    let owner = entry.member;
    let before = tx.text(room, text).await?;
    let before = before.ok_or_else(Error::room_not_found)?;
    if seen.is_some_and(|seen| seen != before.version) {
        return Err(Error::new(
            ErrorCode::PreconditionFailed,
            format!(
                "Somebody changed this meanwhile: it has version {} now. Read it again, then save",
                before.version
            ),
        ));
    }
    if before.version > 0 {
        tx.keep_text(room, text, &before, MOST_OLDER).await?;
    }
    let version = tx
        .set_text(room, text, &content, &owner.user_id, now.seconds())
        .await?;
    let action = match text {
        Text::Rules => "rules_updated",
        Text::Data => "data_updated",
    };
    let detail = json!({"version": version});
    audit::record(&mut tx, room, &owner.user_id, action, None, detail, now).await?;
    if text == Text::Rules {
        let mut log = RoomLog::new(entry.room);
        log.set_rules_version(version);
        let event = RulesUpdated {
            version,
            updated_by: owner.user_id.to_string(),
            updated_at: now.seconds(),
        };
        log.event(&mut tx, EventKind::RulesUpdated, &event).await?;
        let words = format!("Rules updated to v{version} by {}", owner.shown_name());
        // The document sends this one through the fan-out.
        log.system_call(&mut tx, words, now).await?;
        tx.add_log(log);
    }
    tx.commit().await?;
    Ok(RoomText {
        content,
        version,
        updated_at: Some(now.seconds()),
        updated_by: Some(owner.user_id.into()),
    })
}
