//! Making, listing and changing rooms.

pub mod pins;
pub mod reserved;
pub mod state;
pub mod storage;
pub mod texts;
pub mod welcome;

use crate::{
    app::App,
    auth::{Caller, TokenType},
    clock::Now,
    error::{Error, Result},
    services::{
        access::{self, RoomLock},
        audit, checks,
        credentials::identity,
        idempotency::IdempotentRequest,
        members::{PAGE, names},
        people, visitors, wire,
    },
    store::{members::NewMember, rooms::MyRoomRow},
};
use protocol::{
    AdapterType, AdminRoom, AdminRooms, CreateRoom, KindCounts, MemberKind, MyRoom, MyRooms,
    PublicMember, PublicRoom, PublicRooms, PublicSummary, Role, Room, RoomCreated, RoomId,
    UpdateRoom, UserId, Visibility,
};
use reserved::refuse_change;
use serde_json::json;
use std::net::IpAddr;

/// The characters of a room's id after `rm_`, of five random bits each: whoever may tell 403 from
/// 404 still cannot find a room by trying.
const ID_LENGTH: usize = 12;
/// How deep an owner may let agents answer each other.
pub const CHAIN_DEPTHS: std::ops::RangeInclusive<i64> = 1..=50;
/// The exchanges between agents that an owner may allow.
pub const MOST_EXCHANGES: i64 = 10_000;

pub async fn create(
    app: &App,
    caller: &Caller,
    request: CreateRoom,
    idempotent: &IdempotentRequest,
) -> Result<RoomCreated> {
    let user = access::user(caller)?;
    let name = checks::room_name(&request.name)?;
    let visibility = request.visibility.unwrap_or(Visibility::Private);
    let now = Now::get();
    let owner = &user.id;
    let mut tx = app.db.begin().await?;
    if let Some(answer) = idempotent.answered(app, &mut tx).await? {
        return Ok(answer);
    }
    let room = loop {
        let id = app
            .secrets
            .random_code("rm_", ID_LENGTH)
            .map_err(Error::internal)?;
        let id = RoomId::try_from(id).map_err(Error::internal)?;
        if tx
            .insert_room(&id, &name, owner, visibility, now.seconds())
            .await?
        {
            break id;
        }
    };
    let chosen = people::chosen_name(&mut tx, &user.id, user.name.as_deref()).await?;
    let owner_name = names::for_user(&mut tx, &[&room], &user.id, chosen.as_deref()).await?;
    names::remember(&mut tx, &room, owner, owner_name.as_deref()).await?;
    // A person who signed in takes part as a person; anything else is that user's agent.
    let kind = match user.token_type {
        TokenType::Access => MemberKind::StarchildUser,
        TokenType::Container | TokenType::Admin => MemberKind::StarchildAgent,
    };
    tx.insert_member(NewMember {
        room_id: &room,
        user_id: owner,
        user_name: owner_name.as_deref(),
        member_kind: &kind,
        role: Role::Owner,
        adapter_type: AdapterType::Clawd,
        joined_at: now.seconds(),
        agent_endpoint: None,
        endpoint_trusted: false,
        akm: None,
        container_id: None,
        agent_card_url: None,
        lineage: None,
        invite_jti: None,
    })
    .await?;
    let detail = json!({"name": name, "visibility": visibility});
    audit::record(&mut tx, &room, owner, "room_created", None, detail, now).await?;
    let created = RoomCreated {
        room_id: room,
        owner_user_id: user.id.clone(),
        name,
        visibility,
        created_at: now.seconds(),
    };
    idempotent.keep(app, &mut tx, &created).await?;
    tx.commit().await?;
    Ok(created)
}

pub async fn mine(app: &App, caller: &Caller) -> Result<MyRooms> {
    let user = access::user(caller)?;
    let rows = app.db.read().await?.rooms_of(&user.id).await?;
    Ok(MyRooms {
        rooms: rows.into_iter().map(my_room).collect(),
    })
}

/// The rooms that the caller's credential opens: all of a user's, those that an agent's identity token can
/// get a key for, or the one of a room key.
pub async fn opened_by(app: &App, caller: &Caller) -> Result<Vec<MyRoom>> {
    let mut conn = app.db.read().await?;
    let (user, room) = match caller {
        Caller::Anonymous => return Err(Error::missing_bearer()),
        Caller::User(user) => (&user.id, None),
        Caller::RoomKey(key) => (&key.user_id, Some(&key.room_id)),
        Caller::Identity(identity) => (&identity.row.user_id, None),
    };
    let mut rooms = conn.rooms_of(user).await?;
    rooms.retain(|row| room.is_none_or(|room| row.room_id == *room));
    let mut opened = Vec::with_capacity(rooms.len());
    for row in rooms {
        if let Caller::Identity(identity) = caller
            && !identity::opens(&mut conn, &identity.row, &row.room_id).await?
        {
            continue;
        }
        opened.push(my_room(row));
    }
    Ok(opened)
}

fn my_room(row: MyRoomRow) -> MyRoom {
    MyRoom {
        room_id: row.room_id,
        name: row.name,
        owner_user_id: row.owner_user_id,
        role: row.role,
        joined_at: row.joined_at,
        archived: row.archived,
        agent_endpoint: row.agent_endpoint,
        has_akm_key: row.has_akm_key,
        key_stale: row.key_stale,
    }
}

pub async fn public(app: &App, limit: i64, offset: i64) -> Result<PublicRooms> {
    let rows = app.db.read().await?.public_rooms(limit, offset).await?;
    let rooms = rows.into_iter().map(|row| PublicRoom {
        room_id: row.room_id,
        owner_user_id: row.owner_user_id,
        name: row.name,
        created_at: row.created_at,
    });
    Ok(PublicRooms {
        rooms: rooms.collect(),
        limit,
        offset,
    })
}

/// What a visitor may see of a public room. Names, never ids.
pub async fn public_summary(app: &App, ip: IpAddr, room: &RoomId) -> Result<PublicSummary> {
    let mut conn = app.db.read().await?;
    let row = access::public_room(conn.room(room).await?)?;
    drop(conn);
    visitors::count_read(app, ip, room).await?;
    let mut conn = app.db.read().await?;
    let members = conn.members(room, PAGE, 0).await?;
    let mut kinds = KindCounts::default();
    let mut member_count = 0;
    for row in conn.kinds_of_members(room).await? {
        member_count += row.members;
        *match row.member_kind {
            MemberKind::StarchildAgent => &mut kinds.starchild_agent,
            MemberKind::StarchildUser => &mut kinds.starchild_user,
            MemberKind::ExternalAgent => &mut kinds.external_agent,
            MemberKind::ExternalUser => &mut kinds.external_user,
            MemberKind::Other(_) => continue,
        } += row.members;
    }
    Ok(PublicSummary {
        room_id: room.clone(),
        name: row.name,
        visibility: Visibility::Public,
        archived: row.archived,
        created_at: row.created_at,
        member_count,
        kinds,
        member_names: members
            .iter()
            .filter_map(|member| member.user_name.clone())
            .collect(),
        members: members
            .into_iter()
            .filter_map(|member| {
                Some(PublicMember {
                    avatar_seed: app.secrets.pseudonym(member.user_id.as_str()),
                    member_kind: member.member_kind,
                    user_name: member.user_name?,
                })
            })
            .collect(),
    })
}

pub async fn get(app: &App, caller: &Caller, room: &RoomId) -> Result<Room> {
    let entry = access::member(&mut app.db.read().await?, caller, room, RoomLock::Unlocked).await?;
    Ok(wire::room(&entry.room, &app.config.limits, Now::get()))
}

pub async fn update(app: &App, caller: &Caller, room: &RoomId, request: UpdateRoom) -> Result<()> {
    refuse_change(room)?;
    let name = request.name.as_deref().map(checks::room_name).transpose()?;
    let depth = request
        .max_reply_chain_depth
        .map(|depth| checks::in_range("max_reply_chain_depth", depth, CHAIN_DEPTHS))
        .transpose()?;
    let exchanges = request
        .agent_exchanges_without_person
        .map(|limit| {
            limit
                .map(|n| checks::in_range("agent_exchanges_without_person", n, 0..=MOST_EXCHANGES))
                .transpose()
        })
        .transpose()?;
    let topic = request.topic.as_deref().map(checks::topic).transpose()?;
    if name.is_none()
        && topic.is_none()
        && depth.is_none()
        && exchanges.is_none()
        && request.archived.is_none()
        && request.visibility.is_none()
    {
        return Err(Error::bad_request(
            "Name what to change: name, topic, archived, visibility, max_reply_chain_depth or \
             agent_exchanges_without_person",
        ));
    }
    let now = Now::get();
    let mut tx = app.db.begin().await?;
    let entry = access::member(&mut tx, caller, room, RoomLock::Locked)
        .await?
        .as_owner()?;
    let (mut row, actor) = (entry.room, entry.member.user_id);
    let mut changes = Vec::new();
    if let Some(name) = name.filter(|name| *name != row.name) {
        changes.push(("room_renamed", json!({"from": row.name, "to": name})));
        row.name = name;
    }
    if let Some(topic) = topic.filter(|topic| *topic != row.topic) {
        changes.push(("topic_changed", json!({"from": row.topic, "to": topic})));
        row.topic = topic;
    }
    if let Some(archived) = request
        .archived
        .filter(|archived| *archived != row.archived)
    {
        changes.push((
            if archived {
                "room_archived"
            } else {
                "room_unarchived"
            },
            json!({}),
        ));
        row.archived = archived;
    }
    if let Some(visibility) = request.visibility.filter(|v| *v != row.visibility) {
        changes.push((
            "visibility_changed",
            json!({"from": row.visibility, "to": visibility}),
        ));
        row.visibility = visibility;
        if visibility == Visibility::Private {
            tx.revoke_invites_by(room, &UserId::visitor()).await?;
        }
    }
    if let Some(depth) = depth.filter(|depth| *depth != row.max_reply_chain_depth) {
        changes.push((
            "chain_depth_changed",
            json!({"from": row.max_reply_chain_depth, "to": depth}),
        ));
        row.max_reply_chain_depth = depth;
    }
    if let Some(limit) = exchanges {
        changes.push((
            "exchange_limit_changed",
            json!({"from": row.exchange_limit, "to": limit}),
        ));
        row.exchange_limit = limit;
        row.exchanges = 0;
    }
    tx.update_room(&row).await?;
    for (action, detail) in changes {
        audit::record(&mut tx, room, &actor, action, None, detail, now).await?;
    }
    tx.commit().await?;
    Ok(())
}

/// Every room there is, for the operator.
pub async fn all(app: &App, caller: &Caller, limit: i64, offset: i64) -> Result<AdminRooms> {
    access::operator(caller)?;
    let mut conn = app.db.read().await?;
    let total = conn.room_count().await?;
    let rows = conn.all_rooms(limit, offset).await?;
    let rooms = rows.into_iter().map(|row| AdminRoom {
        room_id: row.room_id,
        owner_user_id: row.owner_user_id,
        visibility: row.visibility,
        name: row.name,
        archived: row.archived,
        created_at: row.created_at,
        member_count: row.member_count,
        message_count: row.last_seq,
    });
    Ok(AdminRooms {
        rooms: rooms.collect(),
        total,
        limit,
        offset,
    })
}
