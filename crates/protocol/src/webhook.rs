//! Webhooks: addresses that post into a room, and addresses that a room tells what happens in it.

use crate::{RoomId, open_words, room::wire, words};
use serde::{Deserialize, Serialize};

words! {
    /// Which way a webhook goes.
    WebhookKind {
        /// Whoever knows its address posts into the room.
        In = "in",
        /// The room's events are sent to an address.
        Out = "out",
    }
}

words! {
    /// What a webhook tells of; also the `type` of what it sends.
    #[derive(PartialOrd, Ord)]
    WebhookEvent {
        /// A message of a member.
        Message = "message",
        /// A message of the server's own, such as that somebody joined or left.
        Notice = "notice",
        /// A message was edited.
        MessageEdited = "message_edited",
        /// A message was deleted.
        MessageDeleted = "message_deleted",
        /// A reaction was added.
        ReactionAdded = "reaction_added",
        /// A reaction was removed.
        ReactionRemoved = "reaction_removed",
        /// The room's rules have a new version.
        RulesUpdated = "rules_updated",
        /// A message was pinned, or its pin was taken away.
        PinUpdated = "pin_updated",
        /// How a member is reached has changed, or whether it can be.
        MemberUpdated = "member_updated",
    }
}

open_words! {
    /// How a delivery stands.
    DeliveryState {
        /// It was taken.
        Delivered = "delivered",
        /// It failed so far, and is tried again.
        Retrying = "retrying",
    }
}

wire! {
    /// `POST /rooms/{id}/webhooks`.
    pub struct CreateWebhook {
        /// Which way it goes.
        pub kind: WebhookKind,
        /// Under which name it posts, or is listed.
        pub name: String,
        /// For `in`: whether what comes has to be signed (`X-Hub-Signature-256`, as GitHub does).
        pub signed: Option<bool>,
        /// For `out`: where events are sent to.
        pub url: Option<String>,
        /// For `out`: which events; messages, edits and deletions where absent.
        pub events: Option<Vec<WebhookEvent>>,
    }

    /// A webhook, as the room's owner sees it. Never its address or secret.
    pub struct WebhookView {
        /// Its id; what it posts has this sender.
        pub id: String,
        /// Which way it goes.
        pub kind: WebhookKind,
        /// Its name.
        pub name: String,
        /// Who made it.
        pub created_by: String,
        /// In unix seconds.
        pub created_at: i64,
        /// Whether it works. One that failed for days is switched off.
        pub enabled: bool,
        /// Why it was switched off, where the server did so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub disabled_reason: Option<String>,
        /// Whether it has a secret to sign with.
        pub signed: bool,
        /// For `out`: scheme, host and port of its address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub target: Option<String>,
        /// For `out`: which events.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub events: Vec<WebhookEvent>,
        /// For `out`: since when it fails, in unix seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub failing_since: Option<i64>,
    }

    /// A webhook that was made, or has a new secret. What is secret is told once.
    pub struct WebhookCreated {
        /// The webhook.
        pub webhook: WebhookView,
        /// For `in`: the address to post to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub url: Option<String>,
        /// What deliveries are signed with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub secret: Option<String>,
    }

    /// `GET /rooms/{id}/webhooks`.
    pub struct Webhooks {
        /// Oldest first.
        pub webhooks: Vec<WebhookView>,
    }

    /// `PATCH /rooms/{id}/webhooks/{webhook_id}`.
    pub struct UpdateWebhook {
        /// Whether it works from now on.
        pub enabled: bool,
    }

    /// An event on its way to a webhook's address, or there.
    pub struct WebhookDelivery {
        /// The `webhook-id` that it carries, the same with every attempt.
        pub id: String,
        /// What it tells of.
        pub event: String,
        /// How it stands.
        pub state: DeliveryState,
        /// How often it was sent.
        pub attempts: i64,
        /// The status of the last answer, where there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<i64>,
        /// Why the last attempt failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub error: Option<String>,
        /// When it was first sent, in unix seconds.
        pub first_at: i64,
        /// When it was last sent, in unix seconds.
        pub last_at: i64,
    }

    /// `GET /rooms/{id}/webhooks/{webhook_id}/deliveries`.
    pub struct WebhookDeliveries {
        /// The newest 100, newest first.
        pub deliveries: Vec<WebhookDelivery>,
    }

    /// What was posted through a webhook.
    pub struct WebhookPosted {
        /// Always true.
        pub ok: bool,
        /// The room.
        pub room_id: RoomId,
        /// The message; absent where there was nothing to say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub seq: Option<i64>,
        /// False where the room's agents are not called for it: they have used up what they may say
        /// without a person's word.
        pub calls_agents: bool,
    }
}
