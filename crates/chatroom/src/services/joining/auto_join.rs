//! Joining every reserved room at once.
//!
//! Nobody gets a token here. So an agent may be named without proof: its place in the reserved
//! rooms is for whoever claimed the id first, and does nothing until they prove it.

use super::{DeliverySettings, NewMembership, invites::refuse_full};
use crate::{
    app::App,
    auth::{Caller, Identity},
    clock::Now,
    error::{Error, Result},
    services::{
        change::RoomTx,
        checks,
        credentials::identity::{self, Lineage},
        joining,
        limits::{self, Limit},
        members::{names, petnames},
        visitors,
    },
    store::{Tx, members::MemberRow},
};
use protocol::{
    AdapterType, AgentId, AutoJoin, AutoJoined, ClientKind, ErrorCode, MemberKind,
    ReservedMembership, RoomId, UserId,
};
use std::net::IpAddr;

const HOUR_MS: i64 = 3_600_000;

/// Whoever is to be in the reserved rooms.
struct Newcomer {
    user: UserId,
    kind: MemberKind,
    name: Option<String>,
    lineage: Option<Lineage>,
}

pub async fn join(app: &App, caller: &Caller, ip: IpAddr, request: AutoJoin) -> Result<AutoJoined> {
    let now = Now::get();
    let newcomer = match caller {
        Caller::User(user) if request.client_kind.is_none() => Newcomer {
            user: user.id.clone(),
            kind: MemberKind::StarchildUser,
            name: user.name.clone(),
            lineage: Some(Lineage::of_user(&user.id)),
        },
        _ => external(caller, request)?,
    };
    if matches!(caller, Caller::Anonymous) {
        visitors::count_read(app, ip, "/rooms/public/auto-join").await?;
    }
    app.denylist.refuse_banned(&newcomer.user)?;
    let mut tx = RoomTx::begin(app).await?;
    let reserved = RoomId::reserved();
    let rows = tx.lock_rooms(&reserved.each_ref()).await?;
    let mut members = Vec::new();
    for room in reserved {
        let member = tx.member(&room, &newcomer.user).await?;
        members.push((room, member));
    }
    if matches!(caller, Caller::Anonymous) && members.iter().any(|(_, member)| member.is_none()) {
        limits::count_against(&mut tx, &[unproven_limit(app, ip)], now).await?;
    }
    let name = name_of(app, &mut tx, &newcomer, &members).await?;
    let delivery = DeliverySettings::pull();
    let mut reserved_rooms = Vec::new();
    for (room, member) in members {
        let newly_joined = member.is_none();
        if newly_joined {
            refuse_full(app, &mut tx, &room).await?;
            let membership = NewMembership {
                user: &newcomer.user,
                name: name.as_deref(),
                kind: newcomer.kind.clone(),
                lineage: newcomer.lineage.as_ref(),
                invite: None,
                delivery: &delivery,
            };
            let row = rows.iter().find(|row| row.room_id == room);
            let row = row.cloned().ok_or_else(Error::room_not_found)?;
            joining::add_member(app, &mut tx, row, membership, now).await?;
        }
        reserved_rooms.push(ReservedMembership {
            room_id: room,
            newly_joined,
            user_id: newcomer.user.clone(),
            user_name: match member {
                Some(member) => member.user_name,
                None => name.clone(),
            },
        });
    }
    tx.commit().await?;
    Ok(AutoJoined {
        user_id: newcomer.user,
        member_kind: newcomer.kind,
        reserved_rooms,
    })
}

/// Somebody who came with an invite once, or says so; a bearer tells who it is.
fn external(caller: &Caller, request: AutoJoin) -> Result<Newcomer> {
    if request.client_kind == Some(ClientKind::Human) {
        return Err(Error::bad_request(
            "client_kind must be external_agent; people join with an invite or a user token",
        ));
    }
    if request.adapter_type == Some(AdapterType::Clawd) {
        return Err(Error::bad_request(
            "adapter_type must be pull; to be called, join each room with /rooms/{id}/join",
        ));
    }
    let user = match caller {
        Caller::RoomKey(key) if !key.is_own() => {
            return Err(Error::forbidden(
                "A shared room key joins nothing; use a member_token or an identity_token",
            ));
        }
        Caller::RoomKey(key) => told_by_bearer(&key.user_id, request.user_id.as_deref())?,
        Caller::Identity(Identity { row, .. }) => {
            told_by_bearer(&row.user_id, request.user_id.as_deref())?
        }
        Caller::Anonymous | Caller::User(_) => match (&request.user_id, request.client_kind) {
            (Some(wanted), Some(_)) => agent_id(wanted)?,
            (None, Some(_)) => return Err(Error::bad_request("user_id is needed: who joins?")),
            (_, None) => return Err(Error::missing_bearer()),
        },
    };
    let kind = match (user.is_external(), agent_id(user.as_str())) {
        (false, _) => MemberKind::StarchildUser,
        (true, Ok(_)) => MemberKind::ExternalAgent,
        (true, Err(_)) => MemberKind::ExternalUser,
    };
    let name = request
        .user_name
        .filter(|_| kind.is_external())
        .map(|name| checks::member_name("user_name", &name))
        .transpose()?;
    let lineage = identity::proven(caller, &user)?;
    Ok(Newcomer {
        user,
        kind,
        name,
        lineage,
    })
}

fn told_by_bearer(holder: &UserId, wanted: Option<&str>) -> Result<UserId> {
    match wanted {
        Some(wanted) if agent_id(wanted)? != *holder => {
            Err(Error::forbidden("The bearer belongs to another user_id"))
        }
        _ => Ok(holder.clone()),
    }
}

fn agent_id(text: &str) -> Result<UserId> {
    let agent: AgentId = text
        .parse()
        .map_err(|why: protocol::BadId| Error::new(ErrorCode::InvalidAgentId, why.to_string()))?;
    Ok(agent.into())
}

/// The name asked for, or the one the member has in a reserved room; for an agent, the one in its id, or a
/// new one.
async fn name_of(
    app: &App,
    tx: &mut Tx,
    newcomer: &Newcomer,
    members: &[(RoomId, Option<MemberRow>)],
) -> Result<Option<String>> {
    let reserved = RoomId::reserved();
    let rooms = reserved.each_ref();
    let known = members
        .iter()
        .find_map(|(_, member)| member.as_ref()?.user_name.clone());
    let asked = match &newcomer.name {
        // Joining goes on under another name: whoever asks takes no refusal here.
        Some(name) if newcomer.kind.is_external() => {
            let impersonated = names::impersonated(tx, &rooms, &newcomer.user, name).await?;
            impersonated.is_none().then(|| name.clone())
        }
        name => names::for_user(tx, &rooms, &newcomer.user, name.as_deref()).await?,
    };
    match asked.or(known) {
        None if newcomer.kind == MemberKind::ExternalAgent => {
            match names::at_birth(tx, &rooms, &newcomer.user).await? {
                None => petnames::free_name(app, tx, &rooms).await.map(Some),
                name => Ok(name),
            }
        }
        name => Ok(name),
    }
}

fn unproven_limit(app: &App, ip: IpAddr) -> Limit {
    Limit {
        bucket: format!("auto-join {ip}"),
        most: app.config.limits.auto_joins_per_hour,
        window_ms: HOUR_MS,
        code: ErrorCode::RateLimited,
        words: "Too many agents joined the reserved rooms from your address. Send an identity_token as bearer",
        stored: true,
    }
}
