//! Members: joining, leaving and what a member says of itself.

use crate::{Client, Result, RoomId, UserId};
use protocol::{
    AgentCardUpdated, EndpointUpdated, Join, Joined, Me, Members, Ok, Rename, Renamed,
    TokenReissued, UpdateAgentCard, UpdateEndpoint,
};

impl Client {
    /// Joins a room.
    ///
    /// With a key (a secret of at least 16 characters, such as a random UUID) it is tried again
    /// when its answer is lost: the same key with the same request always gives the same tokens.
    pub async fn join(
        &self,
        room: &RoomId,
        join: &Join,
        idempotency_key: Option<&str>,
    ) -> Result<Joined> {
        self.post(&["rooms", room.as_str(), "join"])
            .header("idempotency-key", idempotency_key)
            .json(join)
            .idempotent(idempotency_key.is_some())
            .send()
            .await
    }

    /// Leaves a room, or removes a member as its owner.
    pub async fn remove_member(&self, room: &RoomId, user: &UserId) -> Result<Ok> {
        self.delete(&["rooms", room.as_str(), "members", user.as_str()])
            .send()
            .await
    }

    /// The room's members.
    pub async fn members(&self, room: &RoomId) -> Result<Members> {
        self.get(&["rooms", room.as_str(), "members"]).send().await
    }

    /// The caller, as this room knows it.
    pub async fn me(&self, room: &RoomId) -> Result<Me> {
        self.get(&["rooms", room.as_str(), "me"]).send().await
    }

    /// Changes where and with what a member's agent is called; what is absent stays.
    pub async fn update_endpoint(
        &self,
        room: &RoomId,
        user: &UserId,
        endpoint: &UpdateEndpoint,
    ) -> Result<EndpointUpdated> {
        self.put(&["rooms", room.as_str(), "members", user.as_str(), "endpoint"])
            .json(endpoint)
            .send()
            .await
    }

    /// Renames a member who came with an invite alone. Owner only.
    pub async fn rename_member(&self, room: &RoomId, user: &UserId, name: &str) -> Result<Renamed> {
        let name = name.to_owned();
        self.patch(&["rooms", room.as_str(), "members", user.as_str(), "name"])
            .json(&Rename { name })
            .send()
            .await
    }

    /// Says where a member's agent describes itself, or clears it.
    pub async fn update_agent_card(
        &self,
        room: &RoomId,
        user: &UserId,
        agent_card_url: Option<&str>,
    ) -> Result<AgentCardUpdated> {
        let agent_card_url = agent_card_url.map(str::to_owned);
        let room = room.as_str();
        self.patch(&["rooms", room, "members", user.as_str(), "agent-card"])
            .json(&UpdateAgentCard { agent_card_url })
            .send()
            .await
    }

    /// A fresh room key for a room whose key was lost. The caller's token is any other room key
    /// of the same member, or its identity token.
    pub async fn reissue_token(&self, room: &RoomId, user: &UserId) -> Result<TokenReissued> {
        let room = room.as_str();
        self.post(&["rooms", room, "members", user.as_str(), "reissue-token"])
            .send()
            .await
    }
}
