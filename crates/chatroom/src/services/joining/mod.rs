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
        delivery::enable_delivery,
        idempotency::IdempotentRequest,
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

/// How messages reach the joiner.
pub struct DeliverySettings {
    adapter: AdapterType,
    endpoint: Option<String>,
    /// Whether a trusted caller named it.
    endpoint_trusted: bool,
    akm_key: Option<String>,
    container: Option<String>,
    card: Option<String>,
}

impl DeliverySettings {
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

/// Somebody who becomes a member of a room.
pub struct NewMembership<'a> {
    pub user: &'a UserId,
    pub name: Option<&'a str>,
    pub kind: MemberKind,
    /// Nothing where nobody has proven the id: [`identity::reissue`] finds out whose it is.
    pub lineage: Option<&'a Lineage>,
    /// The invite they come with.
    pub invite: Option<&'a str>,
    pub delivery: &'a DeliverySettings,
}

pub async fn join(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    request: Join,
    idempotent: &IdempotentRequest,
) -> Result<Joined> {
    let delivery = delivery_settings(caller, &request)?;
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    if let Some(answer) = idempotent.answered(app, &mut tx).await? {
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
    let row = check_may_join(row, caller, invite.as_ref())?;
    if let Some(invite) = invite.as_ref().filter(|invite| invite.recovers.is_some()) {
        return recovery::redeem(app, tx, caller, row, invite, &request, idempotent).await;
    }
    let mut joiner = match (caller, &invite) {
        (Caller::User(user), _) => {
            let source = identity::lock_source(&mut tx, caller).await?;
            starchild(&mut tx, room, user, delivery.adapter, source).await?
        }
        (_, Some(invite)) => {
            external(
                app,
                &mut tx,
                caller,
                &request,
                delivery.adapter,
                invite,
                &row,
            )
            .await?
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
    add_joiner(app, tx, row, joiner, delivery, idempotent, now).await
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
fn check_may_join(
    row: Option<RoomRow>,
    caller: &Caller,
    invite: Option<&InviteRow>,
) -> Result<RoomRow> {
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
            names::refuse_impersonation(tx, &[&row.room_id], &user, "display_name", &name).await?;
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

fn delivery_settings(caller: &Caller, request: &Join) -> Result<DeliverySettings> {
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
    Ok(DeliverySettings {
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
async fn add_joiner(
    app: &App,
    mut tx: RoomTx,
    row: RoomRow,
    joiner: Joiner,
    delivery: DeliverySettings,
    idempotent: &IdempotentRequest,
    now: Now,
) -> Result<Joined> {
    let room = row.room_id.clone();
    let membership = NewMembership {
        user: &joiner.user,
        name: joiner.name.as_deref(),
        kind: joiner.kind.clone(),
        lineage: Some(&joiner.basis.lineage),
        invite: joiner.invite.as_deref(),
        delivery: &delivery,
    };
    add_member(app, &mut tx, row, membership, now).await?;
    let member_key = match delivery.adapter {
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
        adapter_type: delivery.adapter,
        joined_at: now.seconds(),
        member_token: member_key.as_ref().map(|key| app.tokens.room_key(key)),
        expires_at: member_key.map(|key| key.expires_at),
        identity_token: identity.as_ref().map(|row| app.tokens.identity(row, None)),
        identity_expires_at: identity.map(|row| row.expires_at),
    };
    idempotent.keep(app, &mut tx, &joined).await?;
    tx.commit().await?;
    Ok(joined)
}

/// Makes somebody a member and tells the room, which must be locked in the transaction.
pub async fn add_member(
    app: &App,
    tx: &mut RoomTx,
    row: RoomRow,
    membership: NewMembership<'_>,
    now: Now,
) -> Result<()> {
    let delivery = membership.delivery;
    tx.insert_member(NewMember {
        room_id: &row.room_id,
        user_id: membership.user,
        user_name: membership.name,
        member_kind: &membership.kind,
        role: Role::Member,
        adapter_type: delivery.adapter,
        joined_at: now.seconds(),
        agent_endpoint: delivery.endpoint.as_deref(),
        endpoint_trusted: delivery.endpoint_trusted,
        akm: delivery
            .akm_key
            .as_deref()
            .map(|key| seal_key(app, key))
            .transpose()?,
        container_id: delivery.container.as_deref(),
        agent_card_url: delivery.card.as_deref(),
        lineage: membership.lineage.map(Lineage::as_str),
        invite_jti: membership.invite,
    })
    .await?;
    if delivery.akm_key.is_some() {
        // From the message after the one that tells of the joining.
        enable_delivery(tx, &row, membership.user, row.last_seq + 1).await?;
        app.hub.dirty_rooms().track(&row.room_id);
    }
    names::remember(tx, &row.room_id, membership.user, membership.name).await?;
    let mut log = RoomLog::new(row);
    let notice = Notice::MemberJoined {
        user_id: membership.user.to_string(),
        user_name: membership.name.map(str::to_owned),
    };
    log.notice(tx, notice, now).await?;
    tx.add_log(log);
    Ok(())
}

/// The error for an invite that lets nobody in.
pub fn invite_invalid() -> Error {
    Error::new(
        ErrorCode::InviteInvalid,
        "This invite is not valid for this room, has expired or is used up; ask for a new one",
    )
}
