//! Bringing the host into a room: a key for it, a place in it, and the address that it calls.

use crate::{
    cli::{
        failure::Failure,
        room::invite::{self, Kind},
        show::{self, Spinner},
    },
    daemon::credentials::key::{now, save_identity},
    home::{AgentHome, JoinAttempt, RoomAddress, Secret},
    host::{
        HostState,
        keys::{NewKey, RateLimit, Scope, Wanted},
        rooms::HostedRoom,
    },
};
use client::{Client, ClientError};
use protocol::{AdapterType, ClientKind, ErrorCode, Join, RoomId, UpdateEndpoint, UserId};
use std::net::IpAddr;

/// How long a room's key lives; the host prolongs it.
const KEY_SECONDS: i64 = 90 * 24 * 3600;
/// A room calls for each of its messages.
const CALLS_PER_MINUTE: u32 = 600;

/// What it takes to bring the host into rooms.
pub struct Attach<'a> {
    /// Whose host it is.
    pub agent: &'a AgentHome,
    /// The host.
    pub host: &'a HostState,
    /// The server, where it is named.
    pub server: Option<String>,
    /// The agent's name, where the invite names none.
    pub display_name: Option<String>,
    /// The owner's own token: rooms then know the agent as theirs.
    pub user_token: Option<Secret>,
}

impl Attach<'_> {
    /// Tells rooms that were joined before where the host is now.
    pub async fn reattach_moved(&self) -> Result<(), Failure> {
        for room in self.host.rooms.all() {
            if room.endpoint != self.host.base_url {
                self.update_endpoint(room).await?;
            }
        }
        Ok(())
    }

    /// Joins the room of an invite and has it call the host.
    pub async fn room(&self, code: &str) -> Result<(), Failure> {
        let code = invite::parse(code).map_err(Failure::permanent)?;
        let server = self.server.clone().or(code.server);
        let server = match server {
            Some(server) => server,
            None => self.configured_server()?,
        };
        let server = server.trim_end_matches('/').to_owned();
        let client = Client::new(&server)?;
        let short = match &code.kind {
            Kind::Short(short) => Some(short.clone()),
            Kind::Invite(_) => None,
        };
        if let Some(room) = self.entered_with(&server, short.as_deref()) {
            return self.update_endpoint(room).await;
        }
        let spinner = Spinner::new("joining");
        let invite = match code.kind {
            Kind::Invite(invite) => invite,
            Kind::Short(short) => client.invite_code(&short).await?.trim().to_owned(),
        };
        let room = invite::room_of(&invite).map_err(Failure::permanent)?;
        let address = RoomAddress::new(&server, &room);
        let room = match self.host.rooms.get(&address) {
            Some(known) => {
                drop(spinner);
                return self.update_endpoint(known).await;
            }
            None => self.join(&client, &address, invite, short).await?,
        };
        drop(spinner);
        show::note(&format!(
            "{} joined {}, which calls it at {}.",
            room.user_id, room.room_id, room.endpoint
        ));
        if self.user_token.is_none() && is_private(&room.endpoint) {
            show::note(&about_private_addresses(&room));
        }
        Ok(())
    }

    fn configured_server(&self) -> Result<String, Failure> {
        let path = self.agent.config_file();
        Ok(crate::backend::config::BackendConfig::load(&path)?.server)
    }

    fn entered_with(&self, server: &str, short: Option<&str>) -> Option<HostedRoom> {
        let short = short?;
        let mut rooms = self.host.rooms.all().into_iter();
        rooms.find(|room| room.server == server && room.joined_with.as_deref() == Some(short))
    }

    fn make_key(&self, room: &RoomId) -> Result<NewKey, Failure> {
        let wanted = Wanted {
            scope: Scope::room(room),
            ttl_seconds: KEY_SECONDS,
            label: format!("room {room}"),
            rate_limit: RateLimit {
                per_minute: CALLS_PER_MINUTE,
            },
            capabilities: None,
        };
        let made = self.host.keys.create(wanted, now());
        made.map_err(|error| Failure::permanent(error.to_string()))
    }

    async fn join(
        &self,
        client: &Client,
        address: &RoomAddress,
        invite: String,
        short: Option<String>,
    ) -> Result<HostedRoom, Failure> {
        let _handover = self.host.rooms.hand_over().await;
        let attempt = self.attempt(address, invite, short)?;
        let key = attempt.join.akm_key.clone().unwrap_or_default();
        let prefix = key
            .rsplit_once('_')
            .map_or(key.as_str(), |(prefix, _)| prefix);
        let client = match &self.user_token {
            Some(token) => client.with_token(token.expose())?,
            None => match self.agent.identity(&address.server)? {
                Some(identity) => client.with_token(identity.identity_token.expose())?,
                None => client.clone(),
            },
        };
        let idempotency_key = Some(attempt.idempotency_key.expose());
        let joined = client
            .join(&address.room, &attempt.join, idempotency_key)
            .await;
        let hosted = |user_id: UserId, user_name: Option<String>| HostedRoom {
            server: address.server.clone(),
            room_id: address.room.clone(),
            user_id,
            user_name,
            member_token: None,
            key_prefix: prefix.to_owned(),
            endpoint: self.host.base_url.clone(),
            joined_with: attempt.short_code.clone(),
        };
        let room = match joined {
            Ok(joined) => {
                if let (Some(token), Some(end)) =
                    (joined.identity_token, joined.identity_expires_at)
                {
                    save_identity(self.agent, &address.server, token.into(), end)?;
                }
                let room = hosted(joined.user_id, joined.user_name);
                self.host.rooms.save(room.clone())?;
                room
            }
            Err(error) if error.code() == Some(ErrorCode::AlreadyMember) => {
                self.endpoint_of_member(&client, address, &key, hosted)
                    .await?
            }
            Err(error) => {
                if error.code().is_some() && !error.is_transient() {
                    self.agent.forget_join_attempt(address)?;
                    let _ = self.host.keys.delete(prefix, now());
                }
                return Err(refused(error));
            }
        };
        self.agent.forget_join_attempt(address)?;
        // With a key of the room it reads the rules; without one it still answers.
        match self.user_token.is_some() {
            true => Ok(room),
            false => Ok(self.host.rooms.renew(&room).await?.unwrap_or(room)),
        }
    }

    /// Gives the room a key where the agent is in it already.
    async fn endpoint_of_member(
        &self,
        client: &Client,
        address: &RoomAddress,
        key: &str,
        hosted: impl Fn(UserId, Option<String>) -> HostedRoom,
    ) -> Result<HostedRoom, Failure> {
        let mut room = hosted(self.agent.user_id(), None);
        let client = match &self.user_token {
            Some(_) => client.clone(),
            None => {
                let renewed = self.host.rooms.renew(&room).await?;
                room = renewed.ok_or_else(|| {
                    Failure::permanent(format!(
                        "{} is in {} already, but this machine has no credential for it",
                        room.user_id, room.room_id
                    ))
                    .with_hint("Ask the room's owner to remove it, then join again.")
                })?;
                self.host.rooms.client(&room)?
            }
        };
        let me = client.me(&address.room).await?;
        room.user_id = me.user_id;
        room.user_name = me.user_name;
        let endpoint = UpdateEndpoint {
            agent_endpoint: Some(self.host.base_url.clone()),
            akm_key: Some(key.to_owned()),
            container_id: None,
        };
        client
            .update_endpoint(&address.room, &room.user_id, &endpoint)
            .await?;
        self.host.rooms.save(room.clone())?;
        Ok(room)
    }

    /// The request, kept before it is sent; where one with this invite got no answer, that one.
    fn attempt(
        &self,
        address: &RoomAddress,
        invite: String,
        short_code: Option<String>,
    ) -> Result<JoinAttempt, Failure> {
        let attempts = self.agent.join_attempts(&address.server)?;
        let is_same = |attempt: &&JoinAttempt| {
            attempt.join.invite_code.as_ref() == Some(&invite) && attempt.join.akm_key.is_some()
        };
        if let Some(kept) = attempts.iter().find(is_same) {
            return Ok(kept.clone());
        }
        let made = self.make_key(&address.room)?;
        let join = Join {
            invite_code: Some(invite),
            adapter_type: Some(AdapterType::Clawd),
            agent_endpoint: Some(self.host.base_url.clone()),
            akm_key: Some(made.secret),
            user_id: Some(self.agent.id().to_string()),
            client_kind: Some(ClientKind::ExternalAgent),
            display_name: self.display_name.clone(),
            agent_card_url: Some(format!(
                "{}/.well-known/agent-card.json",
                self.host.base_url
            )),
            container_id: None,
        };
        let attempt = JoinAttempt {
            server: address.server.clone(),
            short_code,
            idempotency_key: uuid::Uuid::new_v4().to_string().into(),
            join,
        };
        self.agent.save_join_attempt(address, &attempt)?;
        Ok(attempt)
    }

    /// Gives a room a new key and the host's address of now.
    async fn update_endpoint(&self, room: HostedRoom) -> Result<(), Failure> {
        let _handover = self.host.rooms.hand_over().await;
        let made = self.make_key(&room.room_id)?;
        let update = UpdateEndpoint {
            agent_endpoint: Some(self.host.base_url.clone()),
            akm_key: Some(made.secret),
            container_id: None,
        };
        let mut client = self.host.rooms.client(&room)?;
        let mut sent = client
            .update_endpoint(&room.room_id, &room.user_id, &update)
            .await;
        if sent
            .as_ref()
            .is_err_and(|error| error.status() == Some(401))
            && let Some(renewed) = self.host.rooms.renew(&room).await?
        {
            client = self.host.rooms.client(&renewed)?;
            sent = client
                .update_endpoint(&room.room_id, &room.user_id, &update)
                .await;
        }
        if let Err(error) = sent {
            let _ = self.host.keys.delete(&made.key.prefix, now());
            return Err(refused(error));
        }
        let _ = self.host.keys.delete(&room.key_prefix, now());
        let known = self.host.rooms.get(&room.address()).unwrap_or(room);
        let room = HostedRoom {
            key_prefix: made.key.prefix,
            endpoint: self.host.base_url.clone(),
            ..known
        };
        show::note(&format!(
            "{} calls {} at {} from now on.",
            room.room_id, room.user_id, room.endpoint
        ));
        Ok(self.host.rooms.save(room)?)
    }
}

/// Whether an address can be reached from this machine or its own network alone.
fn is_private(endpoint: &str) -> bool {
    let rest = endpoint.split("://").nth(1).unwrap_or_default();
    let authority = rest.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        Ok(IpAddr::V6(ip)) => {
            ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()
        }
        Err(_) => host == "localhost" || host.ends_with(".local") || host.ends_with(".internal"),
    }
}

/// What to do where a room may not call the host.
fn about_private_addresses(room: &HostedRoom) -> String {
    format!(
        "{endpoint} is a private address. {server} calls such addresses only for members who came with a\n\
         user token, unless its operator allows it for all. Where it does not call, one of these helps:\n  \
         - --public-url with an address that the server may call, e.g. https://agent.example.org;\n  \
         - a user token of that server in STARCHILD_USER_TOKEN (sc-chatroom token --user ID), and the room\n    \
           joined anew: the agent is then that user's;\n  \
         - fanout.private_endpoints = \"all\" in the server's settings, where every member may be trusted;\n  \
         - starchild run instead of starchild host: the agent then calls the server.",
        server = room.server,
        endpoint = room.endpoint,
    )
}

fn refused(error: ClientError) -> Failure {
    let invalid = error.code() == Some(ErrorCode::InviteInvalid);
    let failure = Failure::from(error);
    match invalid {
        true => failure.with_hint("Ask the room's owner for a new code."),
        false => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_network_is_private() {
        for url in [
            "http://127.0.0.1:8000",
            "http://[::1]:8000",
            "http://localhost",
            "http://10.1.2.3/x",
            "http://box.local:1",
        ] {
            assert!(is_private(url), "{url}");
        }
        for url in [
            "https://agent.example.org",
            "http://198.51.100.7:80",
            "https://10.example.org",
        ] {
            assert!(!is_private(url), "{url}");
        }
    }
}
