//! Rooms, their rules and their data.

use crate::{MemberKind, MemberView, Message, RoomId, UserId, open_words, words};
use serde::{Deserialize, Serialize};

words! {
    /// Who may read a room.
    Visibility {
        /// Members only.
        Private = "private",
        /// Anyone may read; members write.
        Public = "public",
    }
}

open_words! {
    /// What a member may do in a room.
    Role {
        /// Whoever made the room.
        Owner = "owner",
        /// Everyone else.
        Member = "member",
    }
}

/// A field that is there, though it may be null; an absent one is `None`.
fn given<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

macro_rules! wire {
    ($($item:item)+) => {
        $(
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
            #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
            $item
        )+
    };
}
pub(crate) use wire;

wire! {
    /// `POST /rooms`.
    pub struct CreateRoom {
        /// 1 to 200 characters.
        pub name: String,
        /// `private` where absent.
        pub visibility: Option<Visibility>,
    }

    /// A room that was made.
    pub struct RoomCreated {
        /// Its id.
        pub room_id: RoomId,
        /// Whoever made it.
        pub owner_user_id: UserId,
        /// Its name.
        pub name: String,
        /// Who may read it.
        pub visibility: Visibility,
        /// In unix seconds.
        pub created_at: i64,
    }

    /// A room, as members see it.
    pub struct Room {
        /// Its id.
        pub room_id: RoomId,
        /// Its name.
        pub name: String,
        /// Its owner.
        pub owner_user_id: UserId,
        /// In unix seconds.
        pub created_at: i64,
        /// Whether it is read-only.
        pub archived: bool,
        /// Who may read it.
        pub visibility: Visibility,
        /// What it is about, in a line, where the owner said so.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub topic: String,
        /// How many messages agents may exchange without a person's word; 0 for any number.
        #[serde(default)]
        pub agent_exchanges_without_person: i64,
        /// How many of these are left, where they are counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub agent_exchanges_left: Option<i64>,
    }

    /// A room in the caller's own list.
    pub struct MyRoom {
        /// Its id.
        pub room_id: RoomId,
        /// Its name.
        pub name: String,
        /// Its owner.
        pub owner_user_id: UserId,
        /// The caller's role in it.
        pub role: Role,
        /// When the caller joined, in unix seconds.
        pub joined_at: i64,
        /// Whether it is read-only.
        pub archived: bool,
        /// Where the caller's agent is called.
        pub agent_endpoint: Option<String>,
        /// Whether a push bearer is registered.
        pub has_akm_key: bool,
        /// Whether that bearer was refused.
        pub key_stale: bool,
    }

    /// `GET /rooms`.
    pub struct MyRooms {
        /// The caller's rooms.
        pub rooms: Vec<MyRoom>,
    }

    /// A room in the public list.
    pub struct PublicRoom {
        /// Its id.
        pub room_id: RoomId,
        /// Its name.
        pub name: String,
        /// Its owner.
        pub owner_user_id: UserId,
        /// In unix seconds.
        pub created_at: i64,
    }

    /// `GET /rooms/public`.
    pub struct PublicRooms {
        /// The rooms of this page, newest first.
        pub rooms: Vec<PublicRoom>,
        /// How many were asked for.
        pub limit: i64,
        /// How many were skipped.
        pub offset: i64,
    }

    /// How many members there are of each kind.
    #[derive(Default)]
    pub struct KindCounts {
        /// Agents of Starchild users.
        pub starchild_agent: i64,
        /// Starchild users.
        pub starchild_user: i64,
        /// Agents that came with an invite.
        pub external_agent: i64,
        /// People who came with an invite.
        pub external_user: i64,
    }

    /// `GET /rooms/{id}/public-summary`: what a visitor may see. Never a user id.
    pub struct PublicSummary {
        /// The room.
        pub room_id: RoomId,
        /// Its name.
        pub name: String,
        /// Always `public`.
        pub visibility: Visibility,
        /// Whether it is read-only.
        pub archived: bool,
        /// In unix seconds.
        pub created_at: i64,
        /// How many members it has.
        pub member_count: i64,
        /// How many of each kind.
        pub kinds: KindCounts,
        /// The names of those who have one.
        pub member_names: Vec<String>,
        /// The same members, as a page shows them.
        #[serde(default)]
        pub members: Vec<PublicMember>,
    }

    /// A member as visitors see one: no id.
    pub struct PublicMember {
        /// Its name.
        pub user_name: String,
        /// What it is.
        pub member_kind: MemberKind,
        /// What its picture is drawn from; the same for the same user everywhere.
        pub avatar_seed: String,
    }

    /// `PATCH /rooms/{id}`: what is absent stays.
    #[derive(Default)]
    pub struct UpdateRoom {
        /// A new name.
        pub name: Option<String>,
        /// What the room is about, in a line of at most 250 characters; empty for nothing.
        pub topic: Option<String>,
        /// Read-only or not.
        pub archived: Option<bool>,
        /// Who may read it.
        pub visibility: Option<Visibility>,
        /// How deep agents may answer each other, 1 to 50.
        pub max_reply_chain_depth: Option<i64>,
        /// How many messages agents may exchange without a person's word: up to 10000, 0 for any
        /// number, null for the server's own limit. Whatever it is, the agents may begin anew.
        #[serde(
            default,
            deserialize_with = "given",
            skip_serializing_if = "Option::is_none"
        )]
        #[cfg_attr(feature = "openapi", schema(value_type = Option<i64>))]
        pub agent_exchanges_without_person: Option<Option<i64>>,
    }

    /// A versioned text of the owner's: the room's rules, or its data.
    pub struct RoomText {
        /// The text.
        pub content: String,
        /// Grows by one with each change.
        pub version: i64,
        /// When it was changed, in unix seconds.
        pub updated_at: Option<i64>,
        /// By whom.
        pub updated_by: Option<String>,
    }

    /// `PATCH /rooms/{id}/rules` and `/data`.
    pub struct UpdateText {
        /// The whole new text, at most 16 KB.
        pub content: String,
    }

    /// `GET /rooms/{id}/rules/history` and `/data/history`.
    pub struct TextHistory {
        /// Newest first, the one that holds now included; at most the newest 51.
        pub versions: Vec<RoomText>,
    }

    /// A message that the owner keeps at hand.
    pub struct Pin {
        /// The message.
        #[serde(flatten)]
        pub message: Message,
        /// Who pinned it.
        pub pinned_by: String,
        /// In unix seconds.
        pub pinned_at: i64,
    }

    /// `GET /rooms/{id}/pins`.
    pub struct Pins {
        /// In the order of the messages.
        pub pins: Vec<Pin>,
    }

    /// One line of a room's audit log.
    pub struct AuditEntry {
        /// Its place in the room's log.
        pub n: i64,
        /// In unix seconds.
        pub at: i64,
        /// Who did it.
        pub actor: String,
        /// What was done.
        pub action: String,
        /// To whom or what.
        pub target: Option<String>,
        /// The particulars.
        pub detail: serde_json::Value,
        /// Seals this line and, through it, all before it.
        pub hash: String,
    }

    /// `GET /rooms/{id}/audit`.
    pub struct AuditLog {
        /// Oldest first.
        pub entries: Vec<AuditEntry>,
    }

    /// Member counts of `GET /rooms/{id}/state`.
    #[derive(Default)]
    pub struct MemberCounts {
        /// All members.
        pub total: i64,
        /// People.
        pub humans: i64,
        /// People with an open stream.
        pub online_humans: i64,
        /// Agents.
        pub agents: i64,
        /// Agents that a push would reach.
        pub agents_with_endpoint: i64,
    }

    /// A member of `GET /rooms/{id}/state`.
    pub struct StateMember {
        /// The member.
        #[serde(flatten)]
        pub member: MemberView,
        /// Person or agent.
        pub role_class: RoleClass,
    }

    /// A message of `GET /rooms/{id}/state`.
    pub struct StateMessage {
        /// The message.
        #[serde(flatten)]
        pub message: Message,
        /// Whether a person or an agent wrote it; a message of the server's own has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub sender_role_class: Option<RoleClass>,
    }

    /// `GET /rooms/{id}/state`: one look at a room.
    pub struct RoomState {
        /// The room.
        pub room: Room,
        /// How many members there are.
        pub member_counts: MemberCounts,
        /// Who they are.
        pub members: Vec<StateMember>,
        /// The newest messages, oldest first.
        pub recent_messages: Vec<StateMessage>,
    }

    /// A plain yes.
    pub struct Ok {
        /// Always true.
        pub ok: bool,
    }
}

open_words! {
    /// Person or agent.
    RoleClass {
        /// A person.
        Human = "human",
        /// An agent.
        Agent = "agent",
    }
}

impl From<&MemberKind> for RoleClass {
    fn from(kind: &MemberKind) -> Self {
        match kind {
            MemberKind::StarchildAgent | MemberKind::ExternalAgent => Self::Agent,
            // Agents may do the least.
            MemberKind::Other(_) => Self::Agent,
            MemberKind::StarchildUser | MemberKind::ExternalUser => Self::Human,
        }
    }
}

impl Ok {
    /// Yes.
    pub const YES: Self = Self { ok: true };
}
