//! Messages that a room's owner keeps at hand.

use super::reserved::refuse_change;
use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::{Error, Result},
    services::{
        access::{self, ReadAccess, RoomLock},
        change::{RoomLog, RoomTx},
        messages::to_messages,
        visitors,
    },
};
use protocol::{EventKind, Pin, PinUpdated, Pins, RoomId};
use std::net::IpAddr;

const MOST_PINS: i64 = 50;

/// The pinned messages, in their order, for whoever may read the room.
pub async fn list(app: &App, caller: &Caller, ip: IpAddr, room: &RoomId) -> Result<Pins> {
    let mut conn = app.db.read().await?;
    let (row, me) = match access::reader(&mut conn, caller, room).await? {
        ReadAccess::Member(entry) => (entry.room, Some(entry.member.user_id)),
        ReadAccess::Visitor(row) => {
            drop(conn);
            visitors::count_read(app, ip, room).await?;
            conn = app.db.read().await?;
            (*row, None)
        }
    };
    let pinned = conn.pins(room).await?;
    let rows = conn.pinned_messages(room).await?;
    let messages = to_messages(&mut conn, &row, rows, me.as_ref()).await?;
    let pins = messages.into_iter().filter_map(|message| {
        let pin = pinned.iter().find(|pin| pin.seq == message.seq)?;
        Some(Pin {
            message,
            pinned_by: pin.pinned_by.to_string(),
            pinned_at: pin.pinned_at,
        })
    });
    Ok(Pins {
        pins: pins.collect(),
    })
}

/// Pins a message, or takes the pin away. Twice is as good as once.
pub async fn set(app: &App, caller: &Caller, room: &RoomId, seq: i64, pinned: bool) -> Result<()> {
    refuse_change(room)?;
    let now = Now::get().seconds();
    let mut tx = RoomTx::begin(app).await?;
    let entry = access::member(&mut tx, caller, room, RoomLock::Locked)
        .await?
        .as_owner()?
        .not_archived()?;
    let owner = entry.member.user_id;
    let changed = match pinned {
        false => tx.unpin(room, seq).await?,
        true => {
            let message = tx.message(room, seq).await?;
            if message.is_none_or(|message| message.deleted) {
                return Err(Error::not_found("No such message in this room"));
            }
            let added = tx.pin(room, seq, &owner, now).await?;
            if added && tx.pin_count(room).await? > MOST_PINS {
                return Err(Error::bad_request(format!(
                    "{MOST_PINS} messages are pinned already; take one pin away first"
                )));
            }
            added
        }
    };
    if changed {
        let event = PinUpdated {
            seq,
            pinned,
            by_user_id: owner.into(),
        };
        let mut log = RoomLog::new(entry.room);
        log.event(&mut tx, EventKind::PinUpdated, &event).await?;
        tx.add_log(log);
        tx.commit().await?;
    }
    Ok(())
}
