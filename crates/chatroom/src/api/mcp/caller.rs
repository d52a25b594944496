//! Who calls: a room key, a user token or an identity token, and what of it the API gets to see.

use crate::{
    app::App,
    auth::{self, Caller, Credential, NoCaller, network::Origin},
    clock::Now,
    error::{Error, Result},
    services::{credentials::identity, rooms},
};
use axum::http::HeaderMap;
use protocol::{MyRoom, RoomId, UserId};
use std::sync::Arc;

/// A caller whose credential holds now. Found anew for each request.
#[derive(Clone)]
pub struct McpCaller {
    bearer: Arc<str>,
    caller: Arc<Caller>,
}

impl McpCaller {
    /// Checks the bearer of a request.
    pub async fn of(app: &App, headers: &HeaderMap, origin: Origin) -> Result<Self> {
        let bearer = auth::bearer(headers)?.ok_or_else(Error::missing_bearer)?;
        let caller = match app.tokens.check_mcp(bearer, Now::get()) {
            Some(Ok(claims)) => {
                app.denylist.refuse_banned(&claims.user_id)?;
                Credential::Identity(claims)
            }
            Some(Err(_)) => return Err(auth::token_invalid()),
            None => Credential::check(app, Some(bearer), origin, Now::get())
                .map_err(NoCaller::into_error)?,
        };
        let caller = auth::resolve(app, caller).await?;
        Ok(Self {
            bearer: bearer.into(),
            caller: Arc::new(caller.map_err(NoCaller::into_error)?),
        })
    }

    /// Checks the bearer of a request that is not MCP's: a token for `/mcp` is none.
    pub async fn of_the_api(app: &App, headers: &HeaderMap, origin: Origin) -> Result<Self> {
        let bearer = auth::bearer(headers)?.ok_or_else(Error::missing_bearer)?;
        let caller = resolved(app, bearer, origin).await?;
        Ok(Self {
            bearer: bearer.into(),
            caller: Arc::new(caller),
        })
    }

    /// As whom services know the caller in a room.
    pub async fn in_room(&self, app: &App, room: &RoomId, origin: Origin) -> Result<Caller> {
        if !matches!(&*self.caller, Caller::Identity(_)) {
            return Ok((*self.caller).clone());
        }
        let bearer = self.bearer_for(app, Some(room), true).await?;
        resolved(app, &bearer, origin).await
    }

    /// The one room that the credential opens, where it is a key.
    pub fn own_room(&self) -> Option<&RoomId> {
        match &*self.caller {
            Caller::RoomKey(key) => Some(&key.room_id),
            _ => None,
        }
    }

    /// The member that the credential stands for.
    pub fn user(&self) -> &str {
        match &*self.caller {
            Caller::Anonymous => "",
            Caller::User(user) => user.id.as_str(),
            Caller::RoomKey(key) => key.user_id.as_str(),
            Caller::Identity(identity) => identity.row.user_id.as_str(),
        }
    }

    /// Whose sessions these are: a key that was given away shares none with its member.
    pub fn owner(&self) -> String {
        match &*self.caller {
            Caller::RoomKey(key) => format!("key {}", key.jti),
            _ => format!("user {}", self.user()),
        }
    }

    /// The rooms that the credential opens.
    pub async fn rooms(&self, app: &App) -> Result<Vec<MyRoom>> {
        rooms::opened_by(app, &self.caller).await
    }

    /// The bearer for a request. A person's identity token stands for their user token, though not where a
    /// room key is wanted; an agent's opens no room by itself. With either, a key is made for each room, once,
    /// which ends with it.
    pub async fn bearer_for(
        &self,
        app: &App,
        room: Option<&RoomId>,
        with_key: bool,
    ) -> Result<Arc<str>> {
        let Caller::Identity(identity) = &*self.caller else {
            return Ok(self.bearer.clone());
        };
        if let (Some(person), false) = (&identity.person, with_key) {
            return Ok(app.tokens.identity(&identity.row, Some(person)).into());
        }
        let Some(room) = room else {
            return Ok(self.bearer.clone());
        };
        let name = (identity.row.jti.clone(), room.clone());
        if let Some(token) = app.mcp_keys.get(&name, Now::get()) {
            return Ok(token);
        }
        let user: &UserId = &identity.row.user_id;
        let minted = identity::agent_key(app, &self.caller, room, user).await?;
        let token: Arc<str> = minted.member_token.into();
        app.mcp_keys.keep(name, token.clone(), minted.expires_at);
        Ok(token)
    }

    /// Has the next request about a room get a new key: the one before was refused.
    pub fn forget_key(&self, app: &App, room: &RoomId) {
        if let Caller::Identity(identity) = &*self.caller {
            let name = (identity.row.jti.clone(), room.clone());
            app.mcp_keys.forget(&name);
        }
    }
}

async fn resolved(app: &App, bearer: &str, origin: Origin) -> Result<Caller> {
    let credential = Credential::check(app, Some(bearer), origin, Now::get());
    let credential = credential.map_err(NoCaller::into_error)?;
    let caller = auth::resolve(app, credential).await?;
    caller.map_err(NoCaller::into_error)
}
