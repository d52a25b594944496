//! The rooms that the host was brought into with `--room`: who the agent is in each, and the key with
//! which it reads the room's rules. They are apart from the daemon's, which would answer there too.

use crate::{
    backend::Me,
    home::{AgentHome, FileError, RoomAddress, Secret, files},
};
use client::{Client, ClientError, MessageQuery};
use futures_util::future::BoxFuture;
use protocol::{ErrorCode, RoomId, RoomText, UserId};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How long what a server said of the agent is believed: people rename members, and give them away.
const FRESH_FOR: Duration = Duration::from_secs(30);
/// How long a call waits for the room to be kept that makes it.
const HANDOVER_WITHIN: Duration = Duration::from_secs(30);

/// The agent's place in one room.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HostedRoom {
    /// The room's server.
    pub server: String,
    /// The room.
    pub room_id: RoomId,
    /// Who the agent is there.
    pub user_id: UserId,
    /// The name it goes by.
    pub user_name: Option<String>,
    /// The room's key; none where the agent came with a user token.
    pub member_token: Option<Secret>,
    /// The key of the host that the room has.
    pub key_prefix: String,
    /// Where the room calls the agent.
    pub endpoint: String,
    /// The short code it came in with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined_with: Option<String>,
}

impl HostedRoom {
    /// Which room it is.
    pub fn address(&self) -> RoomAddress {
        RoomAddress::new(&self.server, &self.room_id)
    }

    /// Whether it has a key, and not this one.
    fn has_another_key_than(&self, refused: Option<&Secret>) -> bool {
        let key = self.member_token.as_ref().map(Secret::expose);
        key.is_some() && key != refused.map(Secret::expose)
    }

    /// Who the agent is in it, as far as is known here.
    fn me(&self) -> Me {
        let user_id = self.user_id.to_string();
        let name = self.user_name.as_deref().unwrap_or(&user_id);
        Me {
            mention_key: format!("@{name}"),
            user_name: self.user_name.clone(),
            owner_user_id: None,
            user_id,
        }
    }
}

/// All of them.
pub struct HostedRooms {
    agent: AgentHome,
    path: PathBuf,
    /// For rooms that were entered with it.
    user_token: Option<Secret>,
    rooms: Mutex<Vec<HostedRoom>>,
    /// Held while a room is given a key of the host, until all that its server answered is kept.
    handover: tokio::sync::Mutex<()>,
    /// Held while a key is renewed: whoever comes meanwhile takes the new one.
    renewal: tokio::sync::Mutex<()>,
    rules: Mutex<HashMap<RoomAddress, Arc<RoomText>>>,
    /// Who the agent is, as the servers said, and when.
    me: Mutex<HashMap<RoomAddress, (Me, Instant)>>,
}

impl HostedRooms {
    /// Those that are kept.
    pub fn open(agent: AgentHome, user_token: Option<Secret>) -> Result<Self, FileError> {
        let path = folder(&agent).join("rooms.json");
        let rooms = files::read_json(&path)?.unwrap_or_default();
        Ok(Self {
            agent,
            path,
            user_token,
            rooms: Mutex::new(rooms),
            handover: tokio::sync::Mutex::default(),
            renewal: tokio::sync::Mutex::default(),
            rules: Mutex::default(),
            me: Mutex::default(),
        })
    }

    /// Every room.
    pub fn all(&self) -> Vec<HostedRoom> {
        lock(&self.rooms).clone()
    }

    /// The room that has this key of the host. One that was given it just now may call before this
    /// side has heard that it is in: that is waited for.
    pub async fn with_key(&self, prefix: &str) -> Option<HostedRoom> {
        let find = || {
            let rooms = lock(&self.rooms);
            rooms.iter().find(|room| room.key_prefix == prefix).cloned()
        };
        let known = find();
        if known.as_ref().is_some_and(|room| self.has_credential(room)) {
            return known;
        }
        let _ended = tokio::time::timeout(HANDOVER_WITHIN, self.handover.lock()).await;
        find()
    }

    /// To be held while a room is given a key of the host.
    pub async fn hand_over(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.handover.lock().await
    }

    fn has_credential(&self, room: &HostedRoom) -> bool {
        room.member_token.is_some() || self.user_token.is_some()
    }

    /// One room.
    pub fn get(&self, address: &RoomAddress) -> Option<HostedRoom> {
        let rooms = lock(&self.rooms);
        rooms
            .iter()
            .find(|room| room.address() == *address)
            .cloned()
    }

    /// Keeps a room, in the place of what was known of it.
    pub fn save(&self, room: HostedRoom) -> Result<(), FileError> {
        let mut rooms = lock(&self.rooms);
        let mut changed = rooms.clone();
        changed.retain(|known| known.address() != room.address());
        changed.push(room);
        files::write_json(&self.path, &changed)?;
        *rooms = changed;
        Ok(())
    }

    /// Leaves a room, and forgets it.
    pub async fn leave(&self, room: &HostedRoom) -> Result<(), ClientError> {
        let left = self.call(room, |client| {
            Box::pin(async move { client.remove_member(&room.room_id, &room.user_id).await })
        });
        match left.await {
            Err(error) if !is_out_already(&error) => return Err(error),
            _ => {}
        }
        let mut rooms = lock(&self.rooms);
        rooms.retain(|known| known.address() != room.address());
        if let Err(error) = files::write_json(&self.path, &*rooms) {
            tracing::error!(%error, "a room that was left is still kept");
        }
        Ok(())
    }

    /// The room's server, with the best credential that there is.
    pub fn client(&self, room: &HostedRoom) -> Result<Client, ClientError> {
        let client = Client::new(&room.server)?;
        match room.member_token.as_ref().or(self.user_token.as_ref()) {
            Some(token) => client.with_token(token.expose()),
            None => Ok(client),
        }
    }

    /// The same for a backend, which speaks for the agent there and cannot get a key itself.
    pub async fn backend_client(&self, room: &HostedRoom) -> Result<Client, ClientError> {
        let kept = self.get(&room.address());
        let room = kept.as_ref().unwrap_or(room);
        if self.has_credential(room) {
            return self.client(room);
        }
        match self.renew(room).await {
            Ok(Some(renewed)) => self.client(&renewed),
            Ok(None) => self.client(room),
            Err(error) if error.is_transient() => Err(error),
            Err(error) => {
                tracing::warn!(room = %room.room_id, %error, "there is no key for this room");
                self.client(room)
            }
        }
    }

    /// Who the agent is in a room, as its server says; as it was when it joined where that is not told.
    pub async fn me(&self, room: &HostedRoom) -> Result<Me, ClientError> {
        let address = room.address();
        let known = lock(&self.me).get(&address).cloned();
        if let Some((me, _)) = known.filter(|(_, at)| at.elapsed() < FRESH_FOR) {
            return Ok(me);
        }
        let read = self.call(room, |client| {
            Box::pin(async move { client.me(&room.room_id).await })
        });
        let me = match read.await {
            Ok(me) => Me {
                user_id: me.user_id.to_string(),
                user_name: me.user_name,
                mention_key: me.mention_key,
                owner_user_id: me.owner_user_id,
            },
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => {
                tracing::warn!(room = %room.room_id, %error, "who the agent is there is not told");
                room.me()
            }
        };
        lock(&self.me).insert(address, (me.clone(), Instant::now()));
        Ok(me)
    }

    /// The room's rules of this version, or the newest there are; nothing where the agent may not
    /// read them any more.
    pub async fn rules(
        &self,
        room: &HostedRoom,
        version: i64,
    ) -> Result<Option<Arc<RoomText>>, ClientError> {
        let address = room.address();
        let known = lock(&self.rules).get(&address).cloned();
        if let Some(rules) = known.filter(|rules| rules.version >= version) {
            return Ok(Some(rules));
        }
        let read = self.call(room, |client| {
            Box::pin(async move { client.rules(&room.room_id).await })
        });
        let rules = match read.await {
            Ok(rules) => Arc::new(rules),
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => {
                tracing::warn!(room = %room.room_id, %error, "the rules cannot be read");
                return Ok(None);
            }
        };
        lock(&self.rules).insert(address, rules.clone());
        Ok(Some(rules))
    }

    /// Whether the agent wrote this message.
    pub async fn is_mine(&self, room: &HostedRoom, seq: i64) -> Result<bool, ClientError> {
        let query = MessageQuery {
            since: Some(seq - 1),
            limit: Some(1),
            ..MessageQuery::default()
        };
        let query = &query;
        let page = self.call(room, |client| {
            Box::pin(async move { client.messages(&room.room_id, query).await })
        });
        let first = page.await?.messages.into_iter().next();
        Ok(first
            .is_some_and(|said| said.seq == seq && said.sender_user_id == room.user_id.as_str()))
    }

    /// Calls the room, once more with a new key where the old one is refused.
    async fn call<'a, T>(
        &self,
        room: &HostedRoom,
        call: impl Fn(Client) -> BoxFuture<'a, Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        match call(self.client(room)?).await {
            Err(error) if error.status() == Some(401) => match self.renew(room).await? {
                Some(room) => call(self.client(&room)?).await,
                None => Err(error),
            },
            outcome => outcome,
        }
    }

    /// The room with a new key, got with the agent's own credential; nothing where there is none.
    pub async fn renew(&self, room: &HostedRoom) -> Result<Option<HostedRoom>, ClientError> {
        let _renewal = self.renewal.lock().await;
        let kept = self.get(&room.address());
        if let Some(kept) =
            kept.filter(|kept| kept.has_another_key_than(room.member_token.as_ref()))
        {
            return Ok(Some(kept));
        }
        let identity = self.agent.identity(&room.server).ok().flatten();
        let Some(identity) = identity else {
            return Ok(None);
        };
        let client = Client::new(&room.server)?.with_token(identity.identity_token.expose())?;
        let issued = client.reissue_token(&room.room_id, &room.user_id).await?;
        let renewed = HostedRoom {
            member_token: Some(issued.member_token.into()),
            ..room.clone()
        };
        if let Err(error) = self.save(renewed.clone()) {
            tracing::error!(%error, "a room's new key is not kept");
        }
        Ok(Some(renewed))
    }
}

/// Whether an agent that wants to leave is out already: kicked, or the room is gone.
pub fn is_out_already(error: &ClientError) -> bool {
    matches!(
        error.code(),
        Some(ErrorCode::NotFound | ErrorCode::NotAMember | ErrorCode::KeyInvalid)
    )
}

/// What the host keeps, in the agent's folder.
pub fn folder(agent: &AgentHome) -> PathBuf {
    agent.folder().join("host")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
