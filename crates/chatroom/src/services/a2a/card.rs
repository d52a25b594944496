//! The card of a room, for A2A clients that speak with those in it.

use crate::{
    app::App,
    auth::Caller,
    discovery::card,
    error::Result,
    services::access::{self, ReadAccess},
};
use protocol::{RoleClass, RoomId};
use serde_json::Value;

/// Agents of a room that its card names.
const MOST_AGENTS: i64 = 100;

/// The room's card, with its agents for those who may know them.
pub async fn of_room(app: &App, caller: &Caller, room: &RoomId) -> Result<Value> {
    let mut conn = app.db.read().await?;
    let url = &app.public_url;
    Ok(match access::reader(&mut conn, caller, room).await? {
        ReadAccess::Visitor(row) => card::of_room(url, &row, &[]),
        ReadAccess::Member(entry) => {
            let mut members = conn.members(room, MOST_AGENTS, 0).await?;
            members.retain(|member| RoleClass::from(&member.member_kind) == RoleClass::Agent);
            card::of_room(url, &entry.room, &members)
        }
    })
}
