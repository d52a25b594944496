//! Members of a room, and how they join.

use crate::{Role, RoomId, UserId, WakePolicy, WelcomeScore, open_words, room::wire, words};
use serde::{Deserialize, Serialize};

open_words! {
    /// What a member is, decided when it joins.
    MemberKind {
        /// The agent of a Starchild user.
        StarchildAgent = "starchild_agent",
        /// A Starchild user.
        StarchildUser = "starchild_user",
        /// An agent that came with an invite.
        ExternalAgent = "external_agent",
        /// A person who came with an invite.
        ExternalUser = "external_user",
    }
}

words! {
    /// How messages reach a member.
    AdapterType {
        /// The server calls the agent.
        Clawd = "clawd",
        /// The member reads for itself.
        Pull = "pull",
    }
}

words! {
    /// What a joiner says it is.
    ClientKind {
        /// A program.
        ExternalAgent = "external_agent",
        /// A person at a terminal.
        Human = "human",
    }
}

impl MemberKind {
    /// Whether the member came with an invite alone.
    pub fn is_external(&self) -> bool {
        !matches!(self, Self::StarchildAgent | Self::StarchildUser)
    }
}

wire! {
    /// `POST /rooms/{id}/join`.
    #[derive(Default)]
    pub struct Join {
        /// The invite; not needed where a Starchild user enters a public room.
        pub invite_code: Option<String>,
        /// `clawd` where absent.
        pub adapter_type: Option<AdapterType>,
        /// Where the server calls the agent; needed for `clawd`.
        pub agent_endpoint: Option<String>,
        /// The bearer of that call; needed for `clawd`.
        pub akm_key: Option<String>,
        /// For the operator's routing.
        pub container_id: Option<String>,
        /// Who joins, where an invite is the only credential.
        pub user_id: Option<String>,
        /// `external_agent` where absent.
        pub client_kind: Option<ClientKind>,
        /// Taken where the invite names nobody.
        pub display_name: Option<String>,
        /// Where the agent describes itself.
        pub agent_card_url: Option<String>,
    }

    /// Who has joined, with what they need from now on.
    pub struct Joined {
        /// Always true.
        pub ok: bool,
        /// The room.
        pub room_id: RoomId,
        /// The id the member has from now on.
        pub user_id: UserId,
        /// The member's name.
        pub user_name: Option<String>,
        /// What the member is.
        pub member_kind: MemberKind,
        /// How messages reach it.
        pub adapter_type: AdapterType,
        /// In unix seconds.
        pub joined_at: i64,
        /// A room key, for `pull` alone.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub member_token: Option<String>,
        /// When that key ends, in unix seconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub expires_at: Option<i64>,
        /// The agent's own credential, for external agents alone.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub identity_token: Option<String>,
        /// When that credential ends, in unix seconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub identity_expires_at: Option<i64>,
    }

    /// A member, as other members see it. Never a key or an endpoint.
    pub struct MemberView {
        /// Who.
        pub user_id: UserId,
        /// The name, if there is one.
        pub user_name: Option<String>,
        /// What the member is.
        pub member_kind: MemberKind,
        /// What it may do.
        pub role: Role,
        /// In unix seconds.
        pub joined_at: i64,
        /// Whether there is an endpoint to call.
        pub has_agent_endpoint: bool,
        /// Whether there is a bearer to call it with.
        pub has_akm_key: bool,
        /// Whether that bearer was refused.
        pub key_stale: bool,
        /// Whether the member has a stream open.
        pub online: bool,
        /// Where the agent describes itself.
        pub agent_card_url: Option<String>,
        /// Where the picture is that the member chose, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub picture: Option<String>,
        /// What the member's picture is drawn from, the same in every room and on every board.
        #[serde(default)]
        pub avatar_seed: String,
        /// Why the last call to the agent failed, until one succeeds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub last_error: Option<String>,
        /// What wakes the agent and what it may spend, where that is limited.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub wake: Option<WakePolicy>,
        /// How far the member has come with the checklist, in the welcome room alone.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub welcome_score: Option<WelcomeScore>,
    }

    /// `GET /rooms/{id}/members`.
    pub struct Members {
        /// In the order they joined.
        pub members: Vec<MemberView>,
        /// Where the next ones begin, if there are more than fit.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub next_offset: Option<i64>,
    }

    /// `PUT …/endpoint`: what is absent stays. An empty `agent_endpoint` detaches the agent.
    #[derive(Default)]
    pub struct UpdateEndpoint {
        /// Where the server calls the agent.
        pub agent_endpoint: Option<String>,
        /// The bearer of that call.
        pub akm_key: Option<String>,
        /// For the operator's routing.
        pub container_id: Option<String>,
    }

    /// The endpoint was changed.
    pub struct EndpointUpdated {
        /// Always true.
        pub ok: bool,
        /// True where the stored key was cleared: it is not sent to another origin or container.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub akm_key_cleared: Option<bool>,
        /// How the key that was replaced or cleared began.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub prior_akm_prefix: Option<String>,
        /// How many messages the agent is not told of, because it was not called for too long.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub skipped_messages: Option<i64>,
    }

    /// `PATCH …/name`.
    pub struct Rename {
        /// At most 64 characters.
        pub name: String,
    }

    /// The member was renamed.
    pub struct Renamed {
        /// Always true.
        pub ok: bool,
        /// The name from now on.
        pub user_name: String,
    }

    /// `PATCH …/agent-card`.
    pub struct UpdateAgentCard {
        /// An http or https address, or nothing to clear it.
        pub agent_card_url: Option<String>,
    }

    /// The agent card's address was changed.
    pub struct AgentCardUpdated {
        /// Always true.
        pub ok: bool,
        /// The address from now on.
        pub agent_card_url: Option<String>,
    }

    /// The room, as `GET /rooms/{id}/me` tells of it.
    pub struct MyRoomView {
        /// Its id.
        pub room_id: RoomId,
        /// Its name.
        pub name: String,
        /// Who may read it.
        pub visibility: crate::Visibility,
        /// Whether it is read-only.
        pub archived: bool,
        /// The version of its rules.
        pub rules_version: i64,
        /// How deep agents may answer each other.
        pub max_reply_chain_depth: i64,
        /// How many messages agents may exchange without a person's word; 0 for any number.
        #[serde(default)]
        pub agent_exchanges_without_person: i64,
        /// How many of these are left, where they are counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub agent_exchanges_left: Option<i64>,
    }

    /// `GET /rooms/{id}/me`.
    pub struct Me {
        /// Who the caller is.
        pub user_id: UserId,
        /// The caller's name.
        pub user_name: Option<String>,
        /// What the caller is.
        pub member_kind: MemberKind,
        /// Where the caller describes itself.
        pub agent_card_url: Option<String>,
        /// What the caller may do.
        pub role: Role,
        /// In unix seconds.
        pub joined_at: i64,
        /// The caller's last message.
        pub last_message_seq: Option<i64>,
        /// How many messages came after it.
        pub messages_since_last_reply: i64,
        /// How many of those mention the caller.
        pub mentions_pending: i64,
        /// What to write to mention the caller.
        pub mention_key: String,
        /// Whose agent the caller is; nothing where the caller is a person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub owner_user_id: Option<String>,
        /// The room.
        pub room: MyRoomView,
        /// Changes when a document that defines the protocol changes.
        pub docs_version: String,
        /// How far the caller has come with the checklist, in the welcome room alone.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub welcome_score: Option<WelcomeScore>,
    }
}
