//! A look at a room: the caller's own place in it, and the whole of it at once.

use super::{
    access::{self, Hold},
    messages::dress,
    welcome,
    wire::{self, stored},
};
use crate::{app::App, auth::Caller, error::Result, store::messages::Page};
use protocol::{
    Me, MemberCounts, MemberKind, MyRoomView, RoleClass, RoomId, RoomState, StateMember,
    StateMessage, Via, WELCOME_ROOM,
};

pub async fn me(app: &App, caller: &Caller, room: &RoomId) -> Result<Me> {
    let mut conn = app.db.read().await?;
    let entry = access::member(&mut conn, caller, room, Hold::No).await?;
    let (row, member) = (entry.room, entry.member);
    let last_message_seq = conn.last_message_of(room.as_str(), &member.user_id).await?;
    let last = last_message_seq.unwrap_or(0);
    let mentions_pending = conn
        .mentions_after(room.as_str(), &member.user_id, last)
        .await?;
    let welcome_score = match room.as_str() {
        WELCOME_ROOM => Some(welcome::score_of(&mut conn, &member.user_id).await?),
        _ => None,
    };
    Ok(Me {
        user_id: stored(&member.user_id)?,
        mention_key: format!("@{}", member.shown_name()),
        user_name: member.user_name,
        member_kind: stored(&member.member_kind)?,
        agent_card_url: member.agent_card_url,
        role: stored(&member.role)?,
        joined_at: member.joined_at,
        last_message_seq,
        messages_since_last_reply: row.last_seq - last,
        mentions_pending,
        room: MyRoomView {
            room_id: room.clone(),
            name: row.name,
            visibility: stored(&row.visibility)?,
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
    let entry = access::member(&mut conn, caller, room, Hold::No).await?;
    let rows = conn.members(room.as_str()).await?;
    let online = app.online(room.as_str());
    let mut members = Vec::with_capacity(rows.len());
    for row in &rows {
        let role_class = RoleClass::from(stored::<MemberKind>(&row.member_kind)?);
        members.push(StateMember {
            member: wire::member(row, online.contains(&row.user_id), &app.secrets)?,
            role_class,
        });
    }
    let page = Page {
        before: Some(i64::MAX),
        limit: recent,
        ..Page::default()
    };
    let messages = conn.messages(room.as_str(), &page).await?;
    let messages = dress(
        &mut conn,
        &entry.room,
        messages,
        Some(&entry.member.user_id),
    )
    .await?;
    let count = |wanted: &dyn Fn(&StateMember) -> bool| {
        i64::try_from(members.iter().filter(|member| wanted(member)).count()).unwrap_or(i64::MAX)
    };
    let is = |class: RoleClass| move |member: &StateMember| member.role_class == class;
    let member_counts = MemberCounts {
        total: count(&|_| true),
        humans: count(&is(RoleClass::Human)),
        online_humans: count(&|m| m.role_class == RoleClass::Human && m.member.online),
        agents: count(&is(RoleClass::Agent)),
        agents_with_endpoint: count(&|m| {
            m.role_class == RoleClass::Agent && m.member.has_agent_endpoint
        }),
    };
    let recent_messages = messages
        .into_iter()
        .map(|message| StateMessage {
            // A person may write through an agent's membership: how the message came decides.
            sender_role_class: if message.via == Via::Web {
                RoleClass::Human
            } else {
                RoleClass::Agent
            },
            message,
        })
        .collect();
    Ok(RoomState {
        room: wire::room(&entry.room)?,
        member_counts,
        members,
        recent_messages,
    })
}
