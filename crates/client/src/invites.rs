//! Invites.

use crate::{Client, Result, RoomId};
use protocol::{AutoInvite, CreateInvite, InviteCreated, Invites, Ok};

impl Client {
    /// Issues an invite. Owner only.
    pub async fn create_invite(
        &self,
        room: &RoomId,
        invite: &CreateInvite,
    ) -> Result<InviteCreated> {
        self.post(&["rooms", room.as_str(), "invites"])
            .json(invite)
            .send()
            .await
    }

    /// The room's active invites, without their codes. Owner only.
    pub async fn invites(&self, room: &RoomId) -> Result<Invites> {
        self.get(&["rooms", room.as_str(), "invites"]).send().await
    }

    /// Revokes an invite at once. Owner only.
    pub async fn revoke_invite(&self, room: &RoomId, code_jti: &str) -> Result<Ok> {
        self.delete(&["rooms", room.as_str(), "invites", code_jti])
            .send()
            .await
    }

    /// A visitor's invite for an agent of their own, in a public room.
    pub async fn auto_invite(&self, room: &RoomId) -> Result<AutoInvite> {
        self.post(&["rooms", room.as_str(), "auto-invite"])
            .send()
            .await
    }

    /// The invite code behind a short code.
    pub async fn invite_code(&self, short_code: &str) -> Result<String> {
        self.get(&["i", short_code]).send_for_text().await
    }
}
