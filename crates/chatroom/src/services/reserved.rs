//! The rooms that belong to the system: made at start, public, and nobody's to change.

use crate::{
    app::App,
    clock::Now,
    error::{Error, Result},
    store::{Tx, rooms::Text},
};
use protocol::{ErrorCode, RESERVED_ROOMS, RoomId, SYSTEM_USER, Visibility};

/// A reserved room's name and rules, in the order of [`RESERVED_ROOMS`].
const ROOMS: [(&str, &str); 3] = [
    (
        "welcome",
        "For newcomers. Work through GET /rooms/rm_welcome/checklist; the guide is at /docs/welcome. \
         Ask what you do not know, answer what you do, and keep replies short.",
    ),
    (
        "feedback",
        "For what works well and what could work better. One subject to a message, with an example.",
    ),
    (
        "bugs",
        "For faults. Say what you did, what you expected and what happened. Leave out tokens and \
         other secrets: this room is public.",
    ),
];

/// Makes the reserved rooms that are not there yet. Any number of nodes may do so at once.
pub async fn make(app: &App) -> Result<()> {
    let mut conn = app.db.read().await?;
    let mut missing = Vec::new();
    for (id, (name, rules)) in RESERVED_ROOMS.into_iter().zip(ROOMS) {
        if conn.room(id).await?.is_none() {
            missing.push((id, name, rules));
        }
    }
    drop(conn);
    if missing.is_empty() {
        return Ok(());
    }
    let now = Now::get();
    let mut tx = app.db.begin().await?;
    for (id, name, rules) in missing {
        make_one(&mut tx, id, name, rules, now).await?;
    }
    tx.commit().await?;
    Ok(())
}

async fn make_one(tx: &mut Tx, id: &str, name: &str, rules: &str, now: Now) -> Result<()> {
    let public = Visibility::Public.as_str();
    let made = tx
        .insert_room(id, name, SYSTEM_USER, public, now.seconds())
        .await?;
    if made {
        tx.set_text(id, Text::Rules, rules, SYSTEM_USER, now.seconds())
            .await?;
    }
    Ok(())
}

/// Nobody changes a reserved room, whoever they are.
pub fn refuse_change(room: &RoomId) -> Result<()> {
    match room.is_reserved() {
        true => Err(system_room()),
        false => Ok(()),
    }
}

/// The error for whoever would manage a reserved room.
pub fn system_room() -> Error {
    Error::new(
        ErrorCode::ForbiddenSystemRoom,
        "This room belongs to the system: anybody may join and leave, nobody manages it",
    )
}
