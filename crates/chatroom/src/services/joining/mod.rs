//! Joining a room: who one is from then on, and with what one comes back.

pub mod auto_join;
pub mod invites;
pub mod recovery;

use crate::{
    app::App,
    auth::{Caller, User},
    clock::Now,
    error::{Error, Result},
    services::{
        access::{may_name_private_endpoint, refuse_archived},
        change::{RoomLog, RoomTx},
        checks,
        credentials::{
            identity::{self, Basis, Lineage},
            keys,
        },
        delivery,
        idempotency::Repeatable,
        members::{bans, endpoint::seal_key, names, petnames},
        people,
    },
    store::{Tx, invites::InviteRow, members::NewMember, rooms::RoomRow},
};
use invites::refuse_full;
use protocol::{
    AdapterType, AgentId, ClientKind, ErrorCode, Join, Joined, MemberKind, Notice, Role, RoomId,
    UserId,
};

/// A joiner whose credentials were accepted.
struct Joiner {
    user: UserId,
    name: Option<String>,
    kind: MemberKind,
    basis: Basis,
    /// The invite they come with.
    invite: Option<String>,
}

/// How messages will reach the joiner.
pub struct Reach {
    adapter: AdapterType,
    endpoint: Option<String>,
    /// Whether a trusted caller named it.
    endpoint_trusted: bool,
    akm_key: Option<String>,
    container: Option<String>,
    card: Option<String>,
}

impl Reach {
    /// The joiner reads for itself.
    pub fn pull() -> Self {
        Self {
            adapter: AdapterType::Pull,
            endpoint: None,
            endpoint_trusted: false,
            akm_key: None,
            container: None,
            card: None,
        }
    }
}

/// Who takes a place in a room.
pub struct Seat<'a> {
    pub user: &'a UserId,
    pub name: Option<&'a str>,
    pub kind: MemberKind,
    /// Nothing where nobody has proven the id: [`identity::reissue`] finds out whose it is.
    pub lineage: Option<&'a Lineage>,
    /// The invite they come with.
    pub invite: Option<&'a str>,
    pub reach: &'a Reach,
}

pub async fn join(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    request: Join,
    repeatable: &Repeatable,
) -> Result<Joined> {
    let reach = reach(caller, &request)?;
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    if let Some(answer) = repeatable.answered(app, &mut tx).await? {
        return Ok(answer);
    }
    let row = tx.lock_room(room).await?;
    // A stranger learns nothing from a wrong code about whether there is such a room; users with
    // a token may know.
    if row.is_none() && matches!(caller, Caller::User(_)) {
        return Err(Error::room_not_found());
    }
    let invite = match &request.invite_code {
        Some(code) => Some(check_invite(app, &mut tx, room, code, now).await?),
        None => None,
    };
    let row = admit(row, caller, invite.as_ref())?;
    if let Some(invite) = invite.as_ref().filter(|invite| invite.recovers.is_some()) {
        return recovery::redeem(app, tx, caller, row, invite, &request, repeatable).await;
    }
    let mut joiner = match (caller, &invite) {
        (Caller::User(user), _) => {
            let source = identity::lock_source(&mut tx, caller).await?;
            starchild(&mut tx, room, user, reach.adapter, source).await?
        }
        (_, Some(invite)) => {
            external(app, &mut tx, caller, &request, reach.adapter, invite, &row).await?
        }
        (_, None) => return Err(Error::missing_bearer()),
    };
    joiner.invite = invite.as_ref().map(|invite| invite.jti.clone());
    bans::refuse_banned(app, &mut tx, room, &joiner.user).await?;
    refuse_archived(&row)?;
    if tx.member(room, &joiner.user).await?.is_some() {
        return Err(Error::new(
            ErrorCode::AlreadyMember,
            format!("{} is in this room already", joiner.user),
        ));
    }
    refuse_full(app, &mut tx, room).await?;
    if let Some(invite) = &invite
        && !tx.use_invite(&invite.jti, room, now.seconds()).await?
    {
        return Err(invite_invalid());
    }
    add(app, tx, row, joiner, reach, repeatable, now).await
}

/// What an invite must be to let anybody in.
async fn check_invite(
    app: &App,
    tx: &mut Tx,
    room: &RoomId,
    code: &str,
    now: Now,
) -> Result<InviteRow> {
    let claims = app
        .tokens
        .check_invite(code, now)
        .map_err(|_| invite_invalid())?;
    let invite = tx.invite(&claims.jti).await?.ok_or_else(invite_invalid)?;
    let open = invite.room_id == *room
        && !invite.revoked
        && invite.uses < invite.max_uses
        && invite.expires_at > now.seconds();
    open.then_some(invite).ok_or_else(invite_invalid)
}

/// The room, if the caller may know of it and enter it this way.
fn admit(row: Option<RoomRow>, caller: &Caller, invite: Option<&InviteRow>) -> Result<RoomRow> {
    let row = row.ok_or_else(Error::room_not_found)?;
    match (caller, invite) {
        // A visitor's invite is for as long as anybody may read the room.
        (_, Some(invite)) if invite.created_by == UserId::visitor() && !row.is_public() => {
            Err(invite_invalid())
        }
        (_, Some(_)) => Ok(row),
        (Caller::User(_), None) if row.is_public() => Ok(row),
        (Caller::User(_), None) => Err(Error::new(
            ErrorCode::InviteInvalid,
            "A private room needs an invite_code",
        )),
        (_, None) if !row.is_public() => Err(Error::room_not_found()),
        (_, None) => Err(Error::new(
            ErrorCode::InviteInvalid,
            "Send an invite_code; for a public room, POST /rooms/{id}/auto-invite gives one",
        )),
    }
}

async fn starchild(
    tx: &mut Tx,
    room: &RoomId,
    user: &User,
    adapter: AdapterType,
    source: Option<String>,
) -> Result<Joiner> {
    let kind = match adapter {
        AdapterType::Clawd => MemberKind::StarchildAgent,
        AdapterType::Pull => MemberKind::StarchildUser,
    };
    let chosen = people::chosen_name(tx, &user.id, user.name.as_deref()).await?;
    Ok(Joiner {
        user: user.id.clone(),
        name: names::for_user(tx, &[room], &user.id, chosen.as_deref()).await?,
        kind,
        basis: Basis {
            lineage: Lineage::of_user(&user.id),
            source,
        },
        invite: None,
    })
}

async fn external(
    app: &App,
    tx: &mut Tx,
    caller: &Caller,
    request: &Join,
    adapter: AdapterType,
    invite: &InviteRow,
    row: &RoomRow,
) -> Result<Joiner> {
    let kind = match (
        adapter,
        request.client_kind.unwrap_or(ClientKind::ExternalAgent),
    ) {
        (AdapterType::Pull, ClientKind::Human) => MemberKind::ExternalUser,
        (AdapterType::Clawd, ClientKind::Human) => {
            return Err(Error::bad_request(
                "adapter_type clawd takes client_kind external_agent",
            ));
        }
        (_, ClientKind::ExternalAgent) => MemberKind::ExternalAgent,
    };
    let wanted = request.user_id.as_deref().ok_or_else(|| {
        Error::bad_request("user_id is needed where an invite is the only credential")
    })?;
    let user = match kind {
        MemberKind::ExternalAgent => {
            let agent: AgentId = wanted.parse().map_err(|why: protocol::BadId| {
                Error::new(ErrorCode::InvalidAgentId, why.to_string())
            })?;
            UserId::from(agent)
        }
        _ => {
            let user: UserId = wanted
                .parse()
                .map_err(|why: protocol::BadId| Error::bad_request(why.0))?;
            user.external()
        }
    };
    let name = match (&invite.display_name, &request.display_name) {
        (Some(name), _) => Some(name.clone()),
        (None, Some(name)) => {
            let name = checks::member_name("display_name", name)?;
            names::refuse_pretence(tx, &[&row.room_id], &user, "display_name", &name).await?;
            Some(name)
        }
        // Nobody is there to name whoever invited themselves.
        (None, None)
            if kind == MemberKind::ExternalAgent && invite.created_by == UserId::visitor() =>
        {
            Some(petnames::free_name(app, tx, &[&row.room_id]).await?)
        }
        (None, None) if kind == MemberKind::ExternalAgent => {
            names::at_birth(tx, &[&row.room_id], &user).await?
        }
        (None, None) => None,
    };
    let basis = identity::claim(app, tx, caller, &user).await?;
    Ok(Joiner {
        user,
        name,
        kind,
        basis,
        invite: None,
    })
}

fn reach(caller: &Caller, request: &Join) -> Result<Reach> {
    let adapter = request.adapter_type.unwrap_or(AdapterType::Clawd);
    let endpoint = request
        .agent_endpoint
        .as_deref()
        .map(|url| checks::endpoint("agent_endpoint", url))
        .transpose()?;
    let akm_key = request
        .akm_key
        .as_deref()
        .map(|key| checks::opaque("akm_key", key))
        .transpose()?;
    if adapter == AdapterType::Clawd && (endpoint.is_none() || akm_key.is_none()) {
        return Err(Error::bad_request(
            "adapter_type clawd needs agent_endpoint and akm_key; to read for yourself, send adapter_type pull",
        ));
    }
    let push = adapter == AdapterType::Clawd;
    Ok(Reach {
        adapter,
        endpoint,
        endpoint_trusted: may_name_private_endpoint(caller),
        akm_key: akm_key.filter(|_| push),
        container: request
            .container_id
            .as_deref()
            .map(|id| checks::opaque("container_id", id))
            .transpose()?,
        card: request
            .agent_card_url
            .as_deref()
            .map(|url| checks::web_address("agent_card_url", url))
            .transpose()?,
    })
}

/// Makes the joiner a member, tells the room, and gives out the member's tokens.
async fn add(
    app: &App,
    mut tx: RoomTx,
    row: RoomRow,
    joiner: Joiner,
    reach: Reach,
    repeatable: &Repeatable,
    now: Now,
) -> Result<Joined> {
    let room = row.room_id.clone();
    let seat = Seat {
        user: &joiner.user,
        name: joiner.name.as_deref(),
        kind: joiner.kind.clone(),
        lineage: Some(&joiner.basis.lineage),
        invite: joiner.invite.as_deref(),
        reach: &reach,
    };
    take_seat(app, &mut tx, row, seat, now).await?;
    let member_key = match reach.adapter {
        AdapterType::Clawd => None,
        AdapterType::Pull => {
            let key =
                keys::new_member_key(app, &room, &joiner.user, &joiner.kind, &joiner.basis, now)?;
            tx.insert_key(&key).await?;
            Some(key)
        }
    };
    let identity = match &joiner.kind {
        MemberKind::ExternalAgent => {
            let row = identity::new_identity(app, &joiner.user, &joiner.basis, now)?;
            tx.insert_identity(&row).await?;
            Some(row)
        }
        _ => None,
    };
    let joined = Joined {
        ok: true,
        room_id: room,
        user_id: joiner.user,
        user_name: joiner.name,
        member_kind: joiner.kind,
        adapter_type: reach.adapter,
        joined_at: now.seconds(),
        member_token: member_key.as_ref().map(|key| app.tokens.room_key(key)),
        expires_at: member_key.map(|key| key.expires_at),
        identity_token: identity.as_ref().map(|row| app.tokens.identity(row, None)),
        identity_expires_at: identity.map(|row| row.expires_at),
    };
    repeatable.keep(app, &mut tx, &joined).await?;
    tx.commit().await?;
    Ok(joined)
}

/// Makes somebody a member and tells the room, which must be locked in the transaction.
pub async fn take_seat(
    app: &App,
    tx: &mut RoomTx,
    row: RoomRow,
    seat: Seat<'_>,
    now: Now,
) -> Result<()> {
    let reach = seat.reach;
    tx.insert_member(NewMember {
        room_id: &row.room_id,
        user_id: seat.user,
        user_name: seat.name,
        member_kind: &seat.kind,
        role: Role::Member,
        adapter_type: reach.adapter,
        joined_at: now.seconds(),
        agent_endpoint: reach.endpoint.as_deref(),
        endpoint_trusted: reach.endpoint_trusted,
        akm: reach
            .akm_key
            .as_deref()
            .map(|key| seal_key(app, key))
            .transpose()?,
        container_id: reach.container.as_deref(),
        agent_card_url: reach.card.as_deref(),
        lineage: seat.lineage.map(Lineage::as_str),
        invite_jti: seat.invite,
    })
    .await?;
    if reach.akm_key.is_some() {
        // From the message after the one that tells of the joining.
        delivery::arm(tx, &row, seat.user, row.last_seq + 1).await?;
        app.hub.dirty_rooms().follow(&row.room_id);
    }
    names::remember(tx, &row.room_id, seat.user, seat.name).await?;
    let mut log = RoomLog::new(row);
    let notice = Notice::MemberJoined {
        user_id: seat.user.to_string(),
        user_name: seat.name.map(str::to_owned),
    };
    log.notice(tx, notice, now).await?;
    tx.tell(log);
    Ok(())
}

/// The error for an invite that lets nobody in.
pub fn invite_invalid() -> Error {
    Error::new(
        ErrorCode::InviteInvalid,
        "This invite is not valid for this room, has expired or is used up; ask for a new one",
    )
}
