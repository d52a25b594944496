//! Having a message answered anew.

use crate::{
    app::App,
    auth::Caller,
    error::{Error, Result},
    services::access::{self, RoomLock},
    store::members::MemberRow,
};
use protocol::{
    AgentRetry, ErrorCode, EventKind, RetryTurn, RoleClass, RoomId, TurnRetried, UserId,
};

/// Members that are looked at, far more than a room of people and agents has.
const MOST_MEMBERS: i64 = 100;

/// Has a message answered anew: by the agent that is named, by those it mentions, or by all.
pub async fn answer_anew(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    seq: i64,
    request: RetryTurn,
) -> Result<TurnRetried> {
    let wanted = request
        .user_id
        .map(|id| id.parse::<UserId>())
        .transpose()
        .map_err(|why| Error::bad_request(format!("user_id does not fit: {why}")))?;
    let mut tx = app.db.begin_keeping_cache().await?;
    let entry = access::member(&mut tx, caller, room, RoomLock::Unlocked)
        .await?
        .as_oneself()?
        .not_archived()?;
    let message = tx.message(room, seq).await?;
    let message = message
        .filter(|message| !message.deleted)
        .ok_or_else(|| Error::not_found("No such message in this room, or it was deleted"))?;
    let me = &entry.member.user_id;
    if !entry.is_owner() && message.sender_user_id != *me {
        return Err(Error::forbidden(
            "Only the room's owner and whoever wrote the message may have it answered anew",
        ));
    }
    let agents = match &wanted {
        Some(user) => {
            let member = tx.member(room, user).await?;
            vec![member.ok_or_else(|| Error::not_found("No such member in this room"))?]
        }
        None => {
            let mentioned = tx.mentioned_by(room, seq).await?;
            let members = tx.members(room, MOST_MEMBERS, 0).await?;
            let meant =
                |member: &MemberRow| mentioned.is_empty() || mentioned.contains(&member.user_id);
            members.into_iter().filter(meant).collect()
        }
    };
    let (mut called, mut told, mut pending) = (Vec::new(), Vec::new(), false);
    for agent in &agents {
        let user = &agent.user_id;
        if agent.agent_endpoint.is_some() && agent.has_akm_key && !agent.key_stale {
            match tx.request_answer_anew(room, user, seq).await? {
                true => called.push(user.clone()),
                false => pending = true,
            }
        } else if RoleClass::from(&agent.member_kind) == RoleClass::Agent
            || wanted.as_ref() == Some(user)
        {
            // What was stopped is wanted after all.
            tx.forget_stop(room, user).await?;
            told.push(user.clone());
        }
    }
    if called.is_empty() && told.is_empty() {
        return Err(match pending {
            true => Error::new(
                ErrorCode::RetryPending,
                "The agent is about to be called for this message or another one already; wait \
                 for its answer, or stop it",
            ),
            false => Error::bad_request("There is no agent in this room that could answer anew"),
        });
    }
    tx.commit().await?;
    for user in &told {
        let event = AgentRetry {
            user_id: user.to_string(),
            seq,
            by_user_id: me.to_string(),
        };
        app.live
            .publish_to_member(room, user, EventKind::AgentRetry, &event);
    }
    if !called.is_empty() {
        app.live.wake_dispatcher(room, entry.room.head());
    }
    let ids = |users: Vec<UserId>| users.into_iter().map(String::from).collect();
    Ok(TurnRetried {
        ok: true,
        called: ids(called),
        told: ids(told),
    })
}
