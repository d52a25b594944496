//! A look at a room: the caller's own place in it, and the whole of it at once.

use super::welcome;
use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::Result,
    services::{
        access::{self, RoomLock},
        change::exchanges,
        members::PAGE,
        messages::to_messages,
        turns, wire,
    },
    store::{Conn, messages::Page},
};
use protocol::{
    Me, MemberCounts, MyRoomView, RoleClass, RoomId, RoomState, StateMember, StateMessage, UserId,
    Via,
};
use std::collections::HashSet;

pub async fn me(app: &App, caller: &Caller, room: &RoomId) -> Result<Me> {
    let mut conn = app.db.read().await?;
    let entry = access::member(&mut conn, caller, room, RoomLock::Unlocked).await?;
    let role = turns::role_of(caller, &entry);
    let (row, member) = (entry.room, entry.member);
    let owner_user_id = match role {
        RoleClass::Agent => Some(turns::owner_of(&mut conn, &row, &member).await?.to_string()),
        _ => None,
    };
    let last_message_seq = conn.last_message_of(room, &member.user_id).await?;
    let last = last_message_seq.unwrap_or(0);
    let mentions_pending = conn.mentions_after(room, &member.user_id, last).await?;
    let welcome_score = match *room == RoomId::welcome() {
        true => Some(welcome::score_of(&mut conn, &member.user_id).await?),
        false => None,
    };
    Ok(Me {
        user_id: member.user_id.clone(),
        mention_key: format!("@{}", member.shown_name()),
        owner_user_id,
        user_name: member.user_name,
        member_kind: member.member_kind,
        agent_card_url: member.agent_card_url,
        role: member.role,
        joined_at: member.joined_at,
        last_message_seq,
        messages_since_last_reply: row.last_seq - last,
        mentions_pending,
        room: MyRoomView {
            room_id: room.clone(),
            agent_exchanges_without_person: exchanges::allowed(&row, &app.config.limits),
            agent_exchanges_left: exchanges::left(&row, &app.config.limits, Now::get()),
            name: row.name,
            visibility: row.visibility,
            archived: row.archived,
            rules_version: row.rules_version,
            max_reply_chain_depth: row.max_reply_chain_depth,
        },
        docs_version: app.docs.version().to_owned(),
        welcome_score,
    })
}

pub async fn state(app: &App, caller: &Caller, room: &RoomId, recent: i64) -> Result<RoomState> {
    let mut conn = app.db.read().await?;
    let entry = access::member(&mut conn, caller, room, RoomLock::Unlocked).await?;
    let rows = conn.members(room, PAGE, 0).await?;
    let online = app.online(room);
    let member_counts = count_members(&mut conn, room, &online).await?;
    let mut members = Vec::with_capacity(rows.len());
    for row in &rows {
        let role_class = RoleClass::from(&row.member_kind);
        members.push(StateMember {
            member: wire::member(row, online.contains(&row.user_id), &app.secrets),
            role_class,
        });
    }
    let page = Page {
        before: Some(i64::MAX),
        limit: recent,
        ..Page::default()
    };
    let messages = conn.messages(room, &page).await?;
    let messages = to_messages(
        &mut conn,
        &entry.room,
        messages,
        Some(&entry.member.user_id),
    )
    .await?;
    let recent_messages = messages
        .into_iter()
        .map(|message| StateMessage {
            // A person may write through an agent's membership: how the message came decides.
            sender_role_class: match message.via {
                Via::Web => Some(RoleClass::Human),
                Via::Agent | Via::Other(_) => Some(RoleClass::Agent),
                Via::System | Via::Webhook | Via::Import => None,
            },
            message,
        })
        .collect();
    Ok(RoomState {
        room: wire::room(&entry.room, &app.config.limits, Now::get()),
        member_counts,
        members,
        recent_messages,
    })
}

/// How many members of each sort the room has.
async fn count_members(
    conn: &mut Conn,
    room: &RoomId,
    online: &HashSet<UserId>,
) -> Result<MemberCounts> {
    let mut counts = MemberCounts::default();
    for row in conn.kinds_of_members(room).await? {
        counts.total += row.members;
        match RoleClass::from(&row.member_kind) {
            RoleClass::Human => counts.humans += row.members,
            RoleClass::Agent | RoleClass::Other(_) => {
                counts.agents += row.members;
                counts.agents_with_endpoint += if row.has_endpoint { row.members } else { 0 };
            }
        }
    }
    let online: Vec<&UserId> = online.iter().collect();
    for kind in conn.kinds_among(room, &online).await? {
        let class = RoleClass::from(&kind);
        counts.online_humans += i64::from(class == RoleClass::Human);
    }
    Ok(counts)
}
