//! Where and with what a member's agent is called.

use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::{Error, Result},
    services::{
        access::{self, RoomLock},
        audit,
        change::{RoomLog, RoomTx},
        checks,
        delivery::{self, Skipped},
    },
    store::{
        Tx,
        members::{Endpoint, MemberRow, PushKey, SealedKey},
    },
};
use protocol::{EndpointUpdated, EventKind, MemberUpdated, RoomId, UpdateEndpoint, UserId};
use serde_json::json;

/// What a request makes of where and with what a member's agent is called.
enum EndpointChange {
    /// It is not called any more.
    Detach,
    /// What is given changes, what is not stays.
    Set {
        endpoint: Option<String>,
        key: Option<String>,
        container: Option<String>,
    },
}

impl EndpointChange {
    fn of(request: &UpdateEndpoint) -> Result<Self> {
        if request.agent_endpoint.as_deref() == Some("") {
            return match (&request.akm_key, &request.container_id) {
                (None, None) => Ok(Self::Detach),
                _ => Err(Error::bad_request(
                    "An empty agent_endpoint detaches the agent; send it without akm_key and container_id",
                )),
            };
        }
        let opaque = |field: &str, value: &Option<String>| {
            let value = value.as_deref();
            value.map(|value| checks::opaque(field, value)).transpose()
        };
        let endpoint = request.agent_endpoint.as_deref();
        Ok(Self::Set {
            endpoint: endpoint
                .map(|url| checks::endpoint("agent_endpoint", url))
                .transpose()?,
            key: opaque("akm_key", &request.akm_key)?,
            container: opaque("container_id", &request.container_id)?,
        })
    }

    /// What the member has afterwards. A push bearer goes only where it was sent: without a new
    /// one, another origin or another container gets none.
    fn apply<'a>(&'a self, app: &App, target: &'a MemberRow) -> Result<Endpoint<'a>> {
        let Self::Set {
            endpoint,
            key,
            container,
        } = self
        else {
            return Ok(Endpoint {
                agent_endpoint: None,
                container_id: None,
                akm: PushKey::Forget,
                trusted: None,
            });
        };
        let (before, container_before) = (&target.agent_endpoint, &target.container_id);
        let agent_endpoint = endpoint.as_deref().or(before.as_deref());
        let container_id = container.as_deref().or(container_before.as_deref());
        let moved = before
            .as_deref()
            .is_some_and(|before| agent_endpoint.map(origin) != Some(origin(before)))
            || container_before.is_some() && container_id != container_before.as_deref();
        let akm = match key {
            Some(key) => PushKey::New(seal_key(app, key)?),
            None if moved => PushKey::Forget,
            None => PushKey::Keep,
        };
        Ok(Endpoint {
            agent_endpoint,
            container_id,
            akm,
            trusted: None,
        })
    }
}

/// Scheme, host and port of an address that was checked before.
fn origin(address: &str) -> String {
    reqwest::Url::parse(address).map_or_else(
        |_| address.to_owned(),
        |url| url.origin().ascii_serialization(),
    )
}

/// Changes where and with what a member's agent is called. Of another member's, the room's owner
/// can only say that it is not called any more.
pub async fn set(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    user: &UserId,
    request: UpdateEndpoint,
) -> Result<EndpointUpdated> {
    let change = EndpointChange::of(&request)?;
    let mut tx = RoomTx::begin(app).await?;
    let mut entry = access::member(&mut tx, caller, room, RoomLock::Locked).await?;
    let own = entry.member.user_id == *user;
    entry = match own {
        true => entry.as_oneself()?,
        false => entry.as_owner()?,
    };
    let target = tx.member(room, user).await?;
    let target = target.ok_or_else(|| Error::not_found("No such member in this room"))?;
    if !own && !matches!(change, EndpointChange::Detach) {
        return Err(Error::forbidden(
            "Of another member's endpoint, an owner can only detach it: send {\"agent_endpoint\": \"\"}",
        ));
    }
    let mut endpoint = change.apply(app, &target)?;
    if request.agent_endpoint.is_some() {
        endpoint.trusted = Some(access::may_name_private_endpoint(caller));
    }
    let (new_key, has_key) = match &endpoint.akm {
        PushKey::Keep => (false, target.has_akm_key),
        PushKey::Forget => (false, false),
        PushKey::New(_) => (true, true),
    };
    let has_endpoint = endpoint.agent_endpoint.is_some();
    let key_stale = target.key_stale && has_key && !new_key;
    let prior_akm_prefix = match &endpoint.akm {
        PushKey::Keep => None,
        PushKey::Forget | PushKey::New(_) => target.akm_prefix.clone(),
    };
    tx.set_endpoint(room, user, endpoint).await?;
    let actor = &entry.member.user_id;
    if matches!(change, EndpointChange::Detach) {
        tx.disable_delivery(room, user).await?;
    }
    if !own {
        let (action, target) = ("endpoint_detached", Some(user.as_str()));
        audit::record(&mut tx, room, actor, action, target, json!({}), Now::get()).await?;
    }
    let mut log = RoomLog::new(entry.room);
    // A stale member is not called, and why stays known, until it has a new key.
    let mut skipped = None;
    if has_endpoint && has_key && !key_stale {
        let head = log.room().last_seq;
        skipped = delivery::enable_delivery(&mut tx, log.room(), user, head).await?;
        app.hub.dirty_rooms().track(room);
    }
    if let Some(skipped) = skipped {
        record_skipped(&mut tx, room, user, actor, skipped).await?;
    }
    let event = MemberUpdated {
        user_id: user.to_string(),
        has_agent_endpoint: has_endpoint,
        has_akm_key: has_key,
        key_stale,
        reason: None,
    };
    log.event(&mut tx, EventKind::MemberUpdated, &event).await?;
    tx.add_log(log);
    tx.commit().await?;
    Ok(EndpointUpdated {
        ok: true,
        akm_key_cleared: (target.has_akm_key && !has_key).then_some(true),
        prior_akm_prefix,
        skipped_messages: skipped.map(Skipped::messages),
    })
}

/// Says to the operator and to the room's owner what an agent will not be told of.
async fn record_skipped(
    tx: &mut Tx,
    room: &RoomId,
    user: &UserId,
    actor: &UserId,
    skipped: Skipped,
) -> Result<()> {
    let Skipped { from_seq, to_seq } = skipped;
    let messages = skipped.messages();
    tracing::warn!(
        %room, %user, from_seq, to_seq, messages,
        "an agent was not called for so long that it goes on with the newest messages; it is not told of these"
    );
    let detail = json!({"from_seq": from_seq, "to_seq": to_seq, "messages": messages});
    let target = Some(user.as_str());
    audit::record(
        tx,
        room,
        actor,
        "backlog_skipped",
        target,
        detail,
        Now::get(),
    )
    .await
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
