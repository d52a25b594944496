//! Consents: asking for a yes, and giving it.

use crate::{Client, Result, RoomId};
use protocol::{AskConsent, Consent, Consents, DecideConsent};

impl Client {
    /// Asks the caller's owner for a yes. The answer comes as an event, or is read with
    /// [`Client::consent`].
    ///
    /// With a key it is tried again when its answer is lost: the same key with the same request
    /// always means the same consent.
    pub async fn ask_consent(
        &self,
        room: &RoomId,
        ask: &AskConsent,
        idempotency_key: Option<&str>,
    ) -> Result<Consent> {
        self.post(&["rooms", room.as_str(), "consents"])
            .header("idempotency-key", idempotency_key)
            .json(ask)
            .idempotent(idempotency_key.is_some())
            .send()
            .await
    }

    /// The room's requests for consent, newest first; those that wait for an answer alone, or all.
    pub async fn consents(&self, room: &RoomId, open_only: bool) -> Result<Consents> {
        self.get(&["rooms", room.as_str(), "consents"])
            .query("state", open_only.then_some("open"))
            .send()
            .await
    }

    /// One request for consent.
    pub async fn consent(&self, room: &RoomId, consent_id: &str) -> Result<Consent> {
        self.get(&["rooms", room.as_str(), "consents", consent_id])
            .send()
            .await
    }

    /// Says yes or no, as the agent's owner.
    pub async fn decide_consent(
        &self,
        room: &RoomId,
        consent_id: &str,
        decision: &DecideConsent,
    ) -> Result<Consent> {
        self.post(&["rooms", room.as_str(), "consents", consent_id])
            .json(decision)
            .send()
            .await
    }

    /// Takes back a request of the caller's own.
    pub async fn withdraw_consent(&self, room: &RoomId, consent_id: &str) -> Result<Consent> {
        self.delete(&["rooms", room.as_str(), "consents", consent_id])
            .send()
            .await
    }
}
