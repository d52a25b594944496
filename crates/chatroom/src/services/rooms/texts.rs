//! A room's rules and data: versioned texts that the owner writes and members read.

use super::reserved::refuse_change;
use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::{Error, Result},
    services::{
        access::{self, Hold},
        audit,
        change::{RoomLog, RoomTx},
        checks,
    },
    store::rooms::Text,
};
use protocol::{EventKind, RoomId, RoomText, RulesUpdated};
use serde_json::json;

pub async fn read(app: &App, caller: &Caller, room: &RoomId, text: Text) -> Result<RoomText> {
    let mut conn = app.db.read().await?;
    access::member(&mut conn, caller, room, Hold::No).await?;
    let row = conn
        .text(room, text)
        .await?
        .ok_or_else(Error::room_not_found)?;
    Ok(RoomText {
        content: row.content,
        version: row.version,
        updated_at: row.updated_at,
        updated_by: row.updated_by.map(String::from),
    })
}

/// Replaces the whole text. New rules are told to the room twice: as an event, and as a message
/// that those who missed the event find when they catch up.
pub async fn write(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    text: Text,
    content: String,
) -> Result<RoomText> {
    refuse_change(room)?;
    checks::room_text(&content)?;
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    let entry = access::member(&mut tx, caller, room, Hold::Yes)
        .await?
        .as_owner()?
        .not_archived()?;
    let owner = entry.member;
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
        tx.tell(log);
    }
    tx.commit().await?;
    Ok(RoomText {
        content,
        version,
        updated_at: Some(now.seconds()),
        updated_by: Some(owner.user_id.into()),
    })
}
