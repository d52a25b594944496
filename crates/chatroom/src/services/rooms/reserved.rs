//! The rooms that belong to the system: made at start, public, and nobody's to change.

use crate::{
    app::App,
    clock::Now,
    error::{Error, Result},
    services::{
        change::{RoomLog, RoomTx},
        reputation::score::VERSION,
    },
    store::{Tx, rooms::Text},
};
use protocol::{ErrorCode, RoomId, UserId, Visibility};

/// A reserved room's name and rules, in the order of [`RoomId::reserved`].
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

/// What the welcome room begins with, pinned.
const TOUR: &str = include_str!("tour.md");

/// Where the database keeps that the tour was given.
const TOUR_GIVEN: &str = "welcome_tour";

/// Where the database keeps which version of the scoring rules was told.
const RULES_TOLD: &str = "scoring_version";

/// Makes the reserved rooms that are not there yet, gives the tour, and tells of new scoring rules.
/// Any number of nodes may do so at once.
pub async fn prepare(app: &App) -> Result<()> {
    make(app).await?;
    give_tour(app).await?;
    tell_of_new_rules(app).await
}

/// Puts the tour into the welcome room and pins it, once.
async fn give_tour(app: &App) -> Result<()> {
    if app.db.read().await?.meta(TOUR_GIVEN).await?.is_some() {
        return Ok(());
    }
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    let room = tx.lock_room(&RoomId::welcome()).await?;
    let room = room.ok_or_else(Error::room_not_found)?;
    if tx.meta(TOUR_GIVEN).await?.is_some() {
        return Ok(());
    }
    let mut log = RoomLog::new(room);
    let seq = log.tour(&mut tx, TOUR.trim_end().to_owned(), now).await?;
    tx.pin(&RoomId::welcome(), seq, &UserId::system(), now.seconds())
        .await?;
    tx.set_meta(TOUR_GIVEN, &seq.to_string()).await?;
    tx.add_log(log);
    tx.commit().await
}

/// Tells the welcome room when this program scores by other rules than the one before it.
async fn tell_of_new_rules(app: &App) -> Result<()> {
    let version = VERSION.to_string();
    if app.db.read().await?.meta(RULES_TOLD).await? == Some(version.clone()) {
        return Ok(());
    }
    let mut tx = RoomTx::begin(app).await?;
    let room = tx.lock_room(&RoomId::welcome()).await?;
    let room = room.ok_or_else(Error::room_not_found)?;
    let before = tx.meta(RULES_TOLD).await?;
    tx.set_meta(RULES_TOLD, &version).await?;
    let mut log = RoomLog::new(room);
    if before.is_some_and(|before| before != version) {
        let words = format!("The scoring rules have version {version} now; see GET /scoring-rules");
        log.system_message(&mut tx, words, Now::get()).await?;
    }
    tx.add_log(log);
    tx.commit().await
}

async fn make(app: &App) -> Result<()> {
    let mut conn = app.db.read().await?;
    let mut missing = Vec::new();
    for (id, (name, rules)) in RoomId::reserved().into_iter().zip(ROOMS) {
        if conn.room(&id).await?.is_none() {
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
        make_one(&mut tx, &id, name, rules, now).await?;
    }
    tx.commit().await?;
    Ok(())
}

async fn make_one(tx: &mut Tx, id: &RoomId, name: &str, rules: &str, now: Now) -> Result<()> {
    let made = tx
        .insert_room(
            id,
            name,
            &UserId::system(),
            Visibility::Public,
            now.seconds(),
        )
        .await?;
    if made {
        tx.set_text(id, Text::Rules, rules, &UserId::system(), now.seconds())
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
