//! The members of a room: who they are, how they are reached, and how they go.

use super::{
    access::{self, Hold},
    audit, checks,
    fanout::{self, Skipped},
    reputation::scorer,
    room_tx::RoomTx,
    welcome,
    wire::{self, stored},
};
use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::{Error, Result},
    events::Appender,
    store::{
        Tx,
        members::{MemberRow, SealedKey},
    },
};
use protocol::{
    AgentCardUpdated, EndpointUpdated, EventKind, MemberKind, MemberUpdated, Members, Renamed,
    RoomId, UpdateEndpoint, UserId, WELCOME_ROOM,
};
use serde_json::json;
use std::collections::HashMap;

/// Members that are listed at once. Only the reserved rooms have more.
pub const PAGE: i64 = 1000;

/// So many members in the order they joined, after so many.
pub async fn list(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    limit: Option<i64>,
    offset: Option<i64>,
) -> Result<Members> {
    let limit = checks::in_range("limit", limit.unwrap_or(PAGE), 1..=PAGE)?;
    let offset = checks::offset(offset)?;
    let mut conn = app.db.read().await?;
    access::member(&mut conn, caller, room, Hold::No).await?;
    // One more than is shown tells whether there are more.
    let mut rows = conn.members(room.as_str(), limit + 1, offset).await?;
    let more = i64::try_from(rows.len()).is_ok_and(|rows| rows > limit);
    if more {
        rows.pop();
    }
    let errors: HashMap<String, String> = conn
        .delivery_errors(room.as_str())
        .await?
        .into_iter()
        .collect();
    let online = app.online(room.as_str());
    let members = rows.iter().map(|row| {
        let mut member = wire::member(row, online.contains(&row.user_id), &app.secrets)?;
        member.last_error = errors.get(&row.user_id).cloned();
        Ok(member)
    });
    let mut members = Members {
        members: members.collect::<Result<_>>()?,
        next_offset: more.then_some(offset + limit),
    };
    if room.as_str() == WELCOME_ROOM {
        welcome::add_scores(&mut conn, &mut members.members).await?;
    }
    Ok(members)
}

/// Takes a member out: oneself, or anyone but oneself as owner.
pub async fn remove(app: &App, caller: &Caller, room: &RoomId, user: &UserId) -> Result<()> {
    let now = Now::get();
    let mut tx = RoomTx::begin(app).await?;
    let mut entry = access::member(&mut tx, caller, room, Hold::Yes).await?;
    let leaving = entry.member.user_id == user.as_str();
    if !leaving {
        entry = entry.as_owner()?;
    }
    let target = tx.member(room.as_str(), user.as_str()).await?;
    let target = target.ok_or_else(|| Error::not_found("No such member in this room"))?;
    if target.is_owner() {
        return Err(Error::forbidden(
            "The owner cannot leave or be removed; archive the room instead",
        ));
    }
    let actor = entry.member;
    let words = match leaving {
        true => format!("{} left the room", target.shown_name()),
        false => format!(
            "{} was removed by {}",
            target.shown_name(),
            actor.shown_name()
        ),
    };
    let action = if leaving {
        "member_left"
    } else {
        "member_removed"
    };
    let told_at = entry.room.last_seq + 1;
    let mut log = Appender::new(entry.room);
    take_out(
        &mut tx,
        &mut log,
        &target,
        &actor.user_id,
        action,
        words,
        now,
    )
    .await?;
    if !leaving {
        scorer::kicked(
            &mut tx,
            room.as_str(),
            user.as_str(),
            &actor.user_id,
            told_at,
            now.seconds(),
        )
        .await?;
    }
    tx.tell(log);
    tx.recheck_readers(room.as_str());
    tx.commit().await?;
    Ok(())
}

/// Takes a member out of the room that the log is of, and says so there.
pub async fn take_out(
    tx: &mut Tx,
    log: &mut Appender,
    member: &MemberRow,
    actor: &str,
    action: &str,
    words: String,
    now: Now,
) -> Result<()> {
    let room = log.room().room_id.clone();
    let user = member.user_id.as_str();
    tx.delete_member(&room, user).await?;
    tx.revoke_all_keys(&room, user).await?;
    audit::record(tx, &room, actor, action, Some(user), json!({}), now).await?;
    log.system_message(tx, words, now).await
}

/// Changes where and with what a member's agent is called.
pub async fn set_endpoint(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    user: &UserId,
    request: UpdateEndpoint,
) -> Result<EndpointUpdated> {
    let endpoint = request
        .agent_endpoint
        .as_deref()
        .map(|url| checks::endpoint("agent_endpoint", url))
        .transpose()?;
    let key = request
        .akm_key
        .as_deref()
        .map(|key| checks::opaque("akm_key", key))
        .transpose()?;
    let container = request
        .container_id
        .as_deref()
        .map(|id| checks::opaque("container_id", id))
        .transpose()?;
    let mut tx = RoomTx::begin(app).await?;
    let mut entry = access::member(&mut tx, caller, room, Hold::Yes)
        .await?
        .as_writer()?;
    if entry.member.user_id != user.as_str() {
        entry = entry.as_owner()?;
    }
    let target = tx.member(room.as_str(), user.as_str()).await?;
    let target = target.ok_or_else(|| Error::not_found("No such member in this room"))?;
    let sealed = key.as_deref().map(|key| seal_key(app, key)).transpose()?;
    let prior_akm_prefix = target.akm_prefix.filter(|_| sealed.is_some());
    tx.set_endpoint(
        room.as_str(),
        user.as_str(),
        endpoint.as_deref(),
        sealed,
        container.as_deref(),
    )
    .await?;
    if entry.member.user_id != user.as_str() {
        let actor = &entry.member.user_id;
        audit::record(
            &mut tx,
            room.as_str(),
            actor,
            "endpoint_changed",
            Some(user.as_str()),
            json!({}),
            Now::get(),
        )
        .await?;
    }
    let mut log = Appender::new(entry.room);
    let has_endpoint = endpoint.is_some() || target.agent_endpoint.is_some();
    let has_key = key.is_some() || target.has_akm_key;
    // A stale member is not called, and why stays known, until it has a new key.
    let mut skipped = None;
    if has_endpoint && has_key && (key.is_some() || !target.key_stale) {
        let head = log.room().last_seq;
        skipped = fanout::arm(&mut tx, log.room(), user.as_str(), head).await?;
        app.hub.moves().follow(room.as_str());
    }
    if let Some(skipped) = skipped {
        let actor = &entry.member.user_id;
        record_skipped(&mut tx, room, user, actor, skipped).await?;
    }
    let event = MemberUpdated {
        user_id: user.to_string(),
        has_agent_endpoint: has_endpoint,
        has_akm_key: has_key,
        key_stale: target.key_stale && key.is_none(),
        reason: None,
    };
    log.event(&mut tx, EventKind::MemberUpdated, &event).await?;
    tx.tell(log);
    tx.commit().await?;
    Ok(EndpointUpdated {
        ok: true,
        prior_akm_prefix,
        skipped_messages: skipped.map(Skipped::messages),
    })
}

/// Says to the operator and to the room's owner what an agent will not be told of.
async fn record_skipped(
    tx: &mut Tx,
    room: &RoomId,
    user: &UserId,
    actor: &str,
    skipped: Skipped,
) -> Result<()> {
    let Skipped { from_seq, to_seq } = skipped;
    let messages = skipped.messages();
    tracing::warn!(
        %room, %user, from_seq, to_seq, messages,
        "an agent was not called for so long that it goes on with the newest messages; it is not told of these"
    );
    let detail = json!({"from_seq": from_seq, "to_seq": to_seq, "messages": messages});
    let (room, user) = (room.as_str(), Some(user.as_str()));
    audit::record(tx, room, actor, "backlog_skipped", user, detail, Now::get()).await
}

/// Renames a member who came with an invite. The names of Starchild members are not the room's
/// to change.
pub async fn rename(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    user: &UserId,
    name: &str,
) -> Result<Renamed> {
    let name = checks::member_name("name", name)?;
    let mut tx = app.db.begin().await?;
    let entry = access::member(&mut tx, caller, room, Hold::Yes)
        .await?
        .as_owner()?;
    let target = tx.member(room.as_str(), user.as_str()).await?;
    let target = target.ok_or_else(|| Error::not_found("No such member in this room"))?;
    if !stored::<MemberKind>(&target.member_kind)?.is_external() {
        return Err(Error::forbidden(
            "The names of Starchild members come with their tokens",
        ));
    }
    tx.set_member_name(room.as_str(), user.as_str(), &name)
        .await?;
    let detail = json!({"from": target.user_name, "to": name});
    let actor = &entry.member.user_id;
    audit::record(
        &mut tx,
        room.as_str(),
        actor,
        "member_renamed",
        Some(user.as_str()),
        detail,
        Now::get(),
    )
    .await?;
    tx.commit().await?;
    Ok(Renamed {
        ok: true,
        user_name: name,
    })
}

/// Changes one's own agent card, or clears another's as owner.
pub async fn set_agent_card(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    user: &UserId,
    url: Option<&str>,
) -> Result<AgentCardUpdated> {
    let url = url
        .filter(|url| !url.is_empty())
        .map(|url| checks::web_address("agent_card_url", url))
        .transpose()?;
    let mut tx = app.db.begin().await?;
    let entry = access::member(&mut tx, caller, room, Hold::Yes)
        .await?
        .as_writer()?;
    if entry.member.user_id != user.as_str() {
        entry.as_owner()?;
        if url.is_some() {
            return Err(Error::forbidden(
                "Of another member's agent card, an owner can only clear the address",
            ));
        }
        if tx.member(room.as_str(), user.as_str()).await?.is_none() {
            return Err(Error::not_found("No such member in this room"));
        }
    }
    tx.set_agent_card(room.as_str(), user.as_str(), url.as_deref())
        .await?;
    tx.commit().await?;
    Ok(AgentCardUpdated {
        ok: true,
        agent_card_url: url,
    })
}

/// A push bearer as it is stored: encrypted, with the part that may be shown.
pub fn seal_key(app: &App, key: &str) -> Result<SealedKey> {
    let sealed = app.secrets.seal(key).map_err(Error::internal)?;
    Ok(SealedKey {
        sealed,
        prefix: shown_prefix(key).to_owned(),
    })
}

/// How a key begins, up to and with its prefix part: `sk_ab12cd34` of `sk_ab12cd34_…`. Never
/// more than a third of the key.
fn shown_prefix(key: &str) -> &str {
    let kind_end = key.find('_').map_or(0, |at| at + 1);
    let rest = &key[kind_end..];
    let part = rest.find('_').map_or(8, |at| at.min(8));
    &key[..(kind_end + part).min(key.len() / 3)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_key_only_its_prefix_part_is_shown() {
        assert_eq!(
            shown_prefix("sk_ab12cd34_0123456789abcdef0123456789abcdef"),
            "sk_ab12cd34"
        );
        assert_eq!(
            shown_prefix("sk_0123456789abcdef0123456789abcdef0123"),
            "sk_01234567"
        );
        assert_eq!(shown_prefix("0123456789abcdef0123456789abcdef"), "01234567");
        assert_eq!(shown_prefix("secret"), "se");
        assert_eq!(shown_prefix("x"), "");
    }
}
